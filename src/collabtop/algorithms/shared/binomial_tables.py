"""Many binomial draws with the same few parameters: tables that are made once and take a fraction of NumPy's time."""

import math
from collections import OrderedDict
from functools import lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from collabtop.protocol.messages import Ints, Reals

_FEW_ENTRIES, _MANY_ENTRIES, _MANY_RUNS = 4, 16, 1_000
"""A table is made if it has at most so many entries per draw: few pay for one batch, many for the large batches of
studies that use a table again and again."""
_COST_OF_SUMS = 4
"""How many times as long an entry takes in a table of sums."""
_MOST_ENTRIES = 400_000
"""A larger table would not stay in the processor's cache."""
_FEW_DRAWS = 500
"""With fewer draws than that for each number of trials, they are made one by one: tables have a cost for each use."""
_NARROW = 64
"""In a narrow table, few values share the probability, so that more parts are needed to tell them apart."""
CACHED = 2**15
"""So many numbers at a time stay in the processor's cache."""
_DEVIATIONS = 7.2
"""Values farther from the mean, in standard deviations, are left out: less than one draw in 10^12 would give one."""

ComplexNumbers = NDArray[np.complex128]


class BinomialDraws:
    """Draws of the successes of arms, for many runs at once.

    Args:
        means: one mean per arm, or a row with one per agent: then the successes of all agents are added up.

    >>> draws = BinomialDraws(np.array([0.0, 1.0, 0.5]))
    >>> draws.successes(np.array([[0, 1, 2], [1, 0, 0]]), 10, np.random.default_rng(1)).tolist()
    [[0.0, 10.0, 8.0], [10.0, 0.0, 0.0]]
    >>> draws = BinomialDraws(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> draws.successes(np.array([[0, 1, 2]]), 10, np.random.default_rng(1)).tolist()
    [[0.0, 10.0, 20.0]]
    """

    def __init__(self, means: Reals) -> None:
        self._means = means.reshape(len(means), -1)
        self._agents = self._means.shape[1]
        self._distinct, self._kinds = _distinct_means(means.tobytes(), self._agents)
        self._key = self._distinct.tobytes()

    def successes(self, arms: Ints, times: int | Ints, rng: np.random.Generator) -> Reals:
        """The successes in so many pulls of each of these arms, which are a row per run; or one number for each row."""
        most = (_FEW_ENTRIES if len(arms) < _MANY_RUNS else _MANY_ENTRIES) * arms.shape[1]
        if isinstance(times, int):
            return self._successes(arms, times, rng, most)
        values = np.unique(times).tolist()
        if arms.size < _FEW_DRAWS * len(values):
            single = rng.binomial(times[:, np.newaxis, np.newaxis], self._means[arms])
            return np.asarray(single.sum(axis=2), np.float64)
        drawn = np.empty(arms.shape)
        for value in values:
            rows = np.flatnonzero(times == value)
            chosen = np.broadcast_to(arms[:1], (len(rows), arms.shape[1])) if arms.strides[0] == 0 else arms[rows]
            drawn[rows] = self._successes(chosen, value, rng, most)
        return drawn

    def _successes(self, arms: Ints, times: int, rng: np.random.Generator, most: int) -> Reals:
        """Draw from a table if it has at most `most` entries for each row of arms."""
        by_arm = arms.strides[0] == 0  # all rows are the same
        used, width = arms[:1] if by_arm else arms, table_width(times * self._agents)
        if self._agents > 1:  # a table saves the draws of all agents
            most = most * self._agents // _COST_OF_SUMS
        limit = min(most * len(arms), _MOST_ENTRIES)
        if width <= limit:
            kinds = self._used_kinds(used)
            if len(kinds) * width <= limit:
                table, places = _TABLES.get(times, self._key, self._agents, kinds)
                return table.draw(places.take(self._kinds).take(used), rng, arms.shape)
        drawn = np.zeros(arms.shape)
        for means in self._means.T:
            if by_arm:  # NumPy prepares a binomial once for equal draws in a row
                drawn += rng.binomial(times, means[used.T], arms.T.shape).T
            else:
                drawn += rng.binomial(times, means[arms])
        return drawn

    def _used_kinds(self, arms: Ints) -> Ints:
        """The indices of the distinct means that these arms have."""
        is_used = np.zeros(len(self._means), np.bool_)
        is_used[arms] = True
        is_kind = np.zeros(len(self._distinct), np.bool_)
        is_kind[self._kinds[is_used]] = True
        return np.flatnonzero(is_kind)


@lru_cache(maxsize=64)
def _distinct_means(means: bytes, agents: int) -> tuple[Reals, Ints]:
    """The distinct ones among the means of arms, a row per arm, and the index of each arm into them."""
    distinct, kinds = np.unique(_rows(means, agents), axis=0, return_inverse=True)
    return distinct, kinds.reshape(-1)


def _rows(means: bytes, agents: int) -> Reals:
    return np.frombuffer(means).reshape(-1, agents)


_Key = tuple[int, bytes, int]  # trials, means and agents


class TableCache:
    """The tables that were used last, with a limit on their entries: non-IID arms need a table per agent and round.

    A table has rows only for the means that were needed so far: in late rounds few arms are live.
    """

    def __init__(self, most_entries: int) -> None:
        self._most, self._entries = most_entries, 0
        self._tables: OrderedDict[_Key, tuple[BinomialTable, Ints]] = OrderedDict()
        self._lock = Lock()  # plans simulate in threads

    def get(self, times: int, means: bytes, agents: int, needed: Ints) -> tuple["BinomialTable", Ints]:
        """The table for so many trials that has rows for the needed arms, and the row of each arm (-1: none)."""
        key, all_means = (times, means, agents), _rows(means, agents)
        with self._lock:
            table, places = self._tables.get(key) or (BinomialTable(times, all_means[:0]), np.full(len(all_means), -1))
        missing = needed[places[needed] < 0]
        if len(missing):
            places = places.copy()
            places[missing] = len(table.entries) + np.arange(len(missing))
            table = table.with_rows(all_means[missing])
        self._keep(key, table, places)
        return table, places

    def _keep(self, key: _Key, table: "BinomialTable", places: Ints) -> None:
        with self._lock:
            replaced = self._tables.pop(key, None)
            self._entries += table.entries.size - (0 if replaced is None else replaced[0].entries.size)
            self._tables[key] = table, places
            while self._entries > self._most and len(self._tables) > 1:
                _, (oldest, _) = self._tables.popitem(last=False)
                self._entries -= oldest.entries.size


_TABLES = TableCache(most_entries=20_000_000)  # 160 MB at most


def table_width(times: int) -> int:
    """How many values a table has for each mean.

    >>> table_width(10), table_width(10_000)
    (11, 721)
    """
    return min(times, math.ceil(_DEVIATIONS * math.sqrt(times))) + 1  # at most half a root of times is the deviation


class BinomialTable:
    """Binomial distributions with the same number of trials, or sums of them, as tables of cumulated probabilities.

    A draw looks for a random number among those of a row. It begins at the first value that is possible for the leading
    bits of the number, which is usually the right one already.

    Args:
        times: the number of trials of each agent.
        means: one mean per row of the table, or one per row and agent: the successes of a row's agents are added up.

    >>> table = BinomialTable(100, np.array([0.2, 0.5]))
    >>> table.draw(np.array([[0, 1, 1]]), np.random.default_rng(1))
    array([[20., 58., 45.]])
    """

    def __init__(self, times: int, means: Reals) -> None:
        by_agent = means[:, np.newaxis] if means.ndim == 1 else means
        trials = times * by_agent.shape[1]
        self.times, self.width = times, table_width(trials)
        middle = times * by_agent.sum(axis=1) - (self.width - 1) / 2
        self.lowest: Reals = np.clip(np.floor(middle), 0, trials + 1 - self.width)
        """The value of the first column of each row."""
        if trials == times:
            probabilities = _probabilities(times, by_agent[:, 0], self.lowest, self.width)
        else:
            probabilities = _probabilities_of_sums(times, by_agent, self.lowest, self.width)
        cumulated = np.minimum(np.cumsum(probabilities, axis=1), 1.0)
        cumulated[:, -1] = 1.0
        self._parts = 1 << (self.width.bit_length() + (self.width <= _NARROW))
        self._first = _first_entries(cumulated, self._parts)
        """Where to begin in `entries`, laid end to end, for each part of the numbers from 0 to 1."""
        self.entries: Reals = cumulated + np.arange(len(cumulated))[:, np.newaxis]
        """The cumulated probabilities of each row, plus the number of the row: so they ascend over all rows."""
        self._shift = self._shifts()

    def _shifts(self) -> Reals:
        """By how much the place of an entry exceeds its value, for each row."""
        return np.asarray(self.width * np.arange(len(self.lowest)) - self.lowest)

    def with_rows(self, means: Reals) -> "BinomialTable":
        """A table with these rows of other means after its own."""
        table = BinomialTable(self.times, means)
        table.lowest = np.concatenate([self.lowest, table.lowest])
        table._first = np.concatenate([self._first, table._first + self.entries.size])
        table.entries = np.concatenate([self.entries, table.entries + len(self.entries)])
        table._shift = table._shifts()
        return table

    def draw(self, rows: Ints, rng: np.random.Generator, shape: tuple[int, ...] | None = None) -> Reals:
        """One value from each of these rows; if a shape is given, a single line of them is repeated to fill it."""
        drawn = np.empty(shape or rows.shape)
        step = max(1, CACHED // max(1, drawn.shape[1]))
        for start in range(0, len(drawn), step):
            part = drawn[start : start + step]
            self._draw(rows if len(rows) == 1 else rows[start : start + step], rng, part)
        return drawn

    def _draw(self, rows: Ints, rng: np.random.Generator, drawn: Reals) -> None:
        """Draw into an array that should be small enough for the processor's cache."""
        number: Reals = rng.random(out=drawn)
        part = (number * self._parts).astype(np.int64)
        part += rows * self._parts
        at = self._first.take(part)
        number += rows
        later = np.flatnonzero(number >= self.entries.take(at))
        if len(later):
            flat, wanted = at.ravel(), number.ravel().take(later)
            after = flat.take(later) + 1
            far = np.flatnonzero(wanted >= self.entries.ravel().take(after, mode="clip"))
            after[far] = np.searchsorted(self.entries.ravel(), wanted.take(far), side="right")
            flat[later] = after
            np.minimum(at, rows * self.width + (self.width - 1), out=at)  # rounding may have led to the next row
        np.subtract(at, self._shift.take(rows), out=drawn)


def _first_entries(cumulated: Reals, parts: int) -> Ints:
    """For each row and part of the numbers from 0 to 1: the first entry above its start, counted over all rows."""
    rows, width = cumulated.shape
    first_part = np.ceil(cumulated * parts).astype(np.int64)  # from which on an entry is not above the start
    first_part += (parts + 1) * np.arange(rows)[:, np.newaxis]
    counts = np.bincount(first_part.ravel(), minlength=rows * (parts + 1)).reshape(rows, parts + 1)
    passed = np.cumsum(counts[:, :parts], axis=1)
    return np.asarray(passed + width * np.arange(rows)[:, np.newaxis])


def _probabilities(times: int, means: Reals, lowest: Reals, width: int) -> Reals:
    """The probabilities of `width` values from the lowest on, a row per mean; they add up to 1."""
    with np.errstate(divide="ignore"):
        odds = np.clip(np.log(means) - np.log1p(-means), -1e4, 1e4)  # so that 0 and 1 give finite numbers
    values = lowest.astype(np.int64)[:, np.newaxis] + np.arange(width)
    logs = _log_ways(times).take(values)
    logs += values * odds[:, np.newaxis]
    logs -= logs.max(axis=1, keepdims=True)
    weights: Reals = np.exp(logs, out=logs)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


@lru_cache(maxsize=16)
def _log_ways(times: int) -> Reals:
    """The logarithm of the number of ways to succeed in 0, 1, ..., `times` of the trials."""
    successes = np.arange(1, times + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log((times + 1 - successes) / successes))])
    logs.setflags(write=False)
    return logs


def _probabilities_of_sums(times: int, means: Reals, lowest: Reals, width: int) -> Reals:
    """The same for sums of binomial variables, one for each mean of a row.

    The characteristic function of a sum is a product. Its Fourier transform gives the probabilities modulo `period`,
    and values beyond the width of the table are too rare to matter.
    """
    period = _convenient(width)
    turns = np.exp(-2j * math.pi / period * np.arange(period // 2 + 1)) - 1
    product = np.ones((len(means), len(turns)), np.complex128)
    for of_agent in means.T:
        product *= 1 + of_agent[:, np.newaxis] * turns
    at_period = np.fft.irfft(_power(product, times), period, axis=1)
    columns = (lowest.astype(np.int64)[:, np.newaxis] + np.arange(width)) % period
    weights = np.maximum(np.take_along_axis(at_period, columns, axis=1), 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _convenient(size: int) -> int:
    """The smallest even number from `size` on whose factors are small, as Fourier transforms prefer.

    >>> _convenient(11), _convenient(229)
    (12, 240)
    """
    step = 1 << max(1, size.bit_length() - 4)
    return -(-size // step) * step


def _power(numbers: ComplexNumbers, exponent: int) -> ComplexNumbers:
    """Powers by repeated squaring, which takes less time than logarithms of complex numbers."""
    power = np.ones_like(numbers)
    while exponent:
        if exponent % 2:
            power *= numbers
        exponent //= 2
        if exponent:
            numbers = numbers * numbers
    return power
