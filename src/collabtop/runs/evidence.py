"""What the rewards of a run say about its candidates: intervals, places within the answer, and thin evidence."""

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import msgspec
import numpy as np

from collabtop.arms.unit import Unit
from collabtop.coordination.scoreboard import Columns, Estimates, Noisy
from collabtop.intervals import (
    LEVEL,
    Evidence,
    drift_bounds,
    mean_bounds,
    noisy_bounds,
    normal_bounds,
    weighted_bounds,
)
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Ints, Reals
from collabtop.runlog.tally import Tally

ENOUGH = 3.0
"""Standard errors between two means from which on their order is right 999 times in 1,000."""
_FEW = 10
"""Fewer pulls do not show how much rewards vary."""
_ROUNDS = 6
"""Fewer rounds do not show how much differences between paired candidates vary."""
NO_ERROR = 1e-12  # instead of 0, so that two exact means that differ are clear of each other

_DIGITS = 10


class Seen(NamedTuple):
    """What all agents together saw of each arm, whatever their weights."""

    pulls: Ints
    squares: Reals
    """Sums of the squared rewards."""
    means: Reals

    @classmethod
    def of(cls, tally: Tally) -> Self:
        """What a tally of their rewards holds."""
        return cls(tally.pulls, tally.squares, tally.pooled_means)

    def variances(self, problem: Problem) -> Reals:
        """The variances of the rewards, or an upper bound of how they count in a mean if agents have weights."""
        pulls = np.maximum(self.pulls, 1)
        spread = np.maximum(self.squares / pulls - self.means**2, 0.0) * pulls / np.maximum(pulls - 1, 1)
        largest: Reals = spread * problem.largest_weight**2
        return largest


def shown_places(place: int | None, last_place: int | None) -> str:
    """One place or several as text.

    >>> shown_places(1, 1), shown_places(2, 4), shown_places(None, None)
    ('1', '2-4', '-')
    """
    if place is None:
        return "-"
    return str(place) if place == last_place else f"{place}-{last_place}"


class Standing(msgspec.Struct, frozen=True):
    """The place of an accepted candidate in the answer, and the evidence for it."""

    arm: int
    place: int
    """The best place in the answer that the evidence leaves open for it: one more than there are candidates that are
    clearly better ..."""
    last_place: int
    """... and the last one. The order of candidates whose places overlap means nothing."""
    low: float | None
    """Lower end of the 95% interval of its mean; None if the coordinator does not know the pulls behind it."""
    high: float | None
    pulls: int | None
    thin: bool | None
    """Whether it was accepted on thin evidence: fewer than 10 pulls, or fewer than 3 standard errors above the best
    rejected mean; in a run with a confidence, its verdict is a guess. None if the coordinator does not know."""

    @property
    def places(self) -> str:
        """The places as text, such as "1" or "2-4"."""
        return shown_places(self.place, self.last_place)


def intervals(
    columns: Columns,
    problem: Problem,
    seen: Seen | None = None,
    failed: Ints | None = None,
    arms: Ints | None = None,
) -> tuple[Reals, Reals]:
    """The 95% intervals of all means, NaN where they are unknown.

    Args:
        columns: what the coordinator knows.
        problem: the problem, which tells how many distinct rewards there are.
        seen: what the agents saw, if the team shows it.
        failed: pulls of each arm that failed: they gave no reward, so they do not make an interval shorter.
        arms: compute only the intervals of these, and leave the others NaN.
    """
    low, high = np.full(len(columns.pulls), np.nan), np.full(len(columns.pulls), np.nan)
    arms = np.flatnonzero(columns.pulls > 0) if arms is None else arms[columns.pulls[arms] > 0]
    if len(arms):
        ends = _intervals(arms, columns, problem, seen, failed)
        # Teams and logs add up the same squares in a different order, with different last digits.
        low[arms], high[arms] = np.round(ends, _DIGITS) if problem.bounded else ends
    return low, high


def _intervals(
    arms: Ints, columns: Columns, problem: Problem, seen: Seen | None, failed: Ints | None
) -> tuple[Reals, Reals]:
    pulls, means, squares = columns.pulls[arms].astype(np.float64), columns.means[arms], columns.squares[arms]
    same = False if seen is None else seen.pulls[arms] == columns.pulls[arms]
    if seen is not None and problem.weights is None:
        squares = np.where(same, np.fmin(seen.squares[arms], squares), squares)
    if not problem.bounded:
        if seen is not None and problem.weights is not None:
            squares = np.where(same, (seen.variances(problem)[arms] + means**2) * pulls, squares)
        return normal_bounds(pulls, means, squares, problem.population)
    if columns.noise is not None:
        return _noisy_intervals(arms, columns, columns.noise, problem)
    if columns.finite is not None and problem.population is not None:
        saved = squares - columns.squares[arms]
        evidence = Evidence(*(column[arms] for column in columns.finite))
        ends = drift_bounds(evidence._replace(square=evidence.square + saved), 1 - LEVEL)
        return _finite(pulls, means, ends, problem)
    distinct = np.maximum(1.0, pulls - (0 if failed is None else failed[arms]))
    if problem.sample_size is not None:
        distinct = np.minimum(distinct, problem.sample_size)
    if problem.weights is not None:
        ends = weighted_bounds(distinct, means * distinct, problem.largest_weight, 1 - LEVEL)
        return ends if problem.population is None else _finite(pulls, means, ends, problem)
    return mean_bounds(distinct, means * distinct, squares / pulls * distinct, 1 - LEVEL)


def _finite(pulls: Reals, means: Reals, ends: tuple[Reals, Reals], problem: Problem) -> tuple[Reals, Reals]:
    """Intervals that take into account that unused examples are all 0 at least, and all 1 at most."""
    assert problem.population is not None
    used = np.minimum(pulls / problem.population, 1.0)
    low, high = np.maximum(ends[0], means * used), np.minimum(ends[1], means * used + 1 - used)
    return np.minimum(low, means), np.maximum(high, means)


def _noisy_intervals(arms: Ints, columns: Columns, noise: Noisy, problem: Problem) -> tuple[Reals, Reals]:
    means, weight = columns.means[arms], problem.largest_weight
    distinct = _distinct(columns.pulls[arms], problem).astype(np.float64)
    batches = noise.batches[arms].astype(np.float64)
    low, high = noisy_bounds(means / weight, distinct, batches, noise.deviation, 1 - LEVEL)
    return low * weight, np.minimum(1.0, high * weight)


def _distinct(pulls: Ints, problem: Problem) -> Ints:
    """The pulls of each arm that gave distinct rewards, at most."""
    return np.minimum(pulls, problem.sample_size or problem.population or np.inf)


def shown_ends(ends: tuple[Reals, Reals], unit: Unit) -> tuple[Reals, Reals]:
    """Intervals of internal values in the user's unit, the smaller ends first.

    >>> shown_ends((np.array([0.5]), np.array([0.75])), Unit("minimize", (0, 500)))
    (array([125.]), array([250.]))
    """
    low, high = (unit.shown(end) for end in ends)
    return (high, low) if unit.direction == "minimize" else (low, high)


class Comparisons:
    """Compares the arms of a run by their means, on the same examples where they are paired.

    Args:
        estimates: what the coordinator learnt.
        problem: the problem, which tells how many distinct rewards there are.
        seen: what the agents saw, if the team shows it. Otherwise variances are at their upper bound, mean (1 - mean)
            or, if agents have weights, the largest that local means with this weighted mean allow.
    """

    def __init__(self, estimates: Estimates, problem: Problem, seen: Seen | None = None) -> None:
        self._population = problem.population
        columns = estimates.columns
        self.means, self.pulls = columns.means, columns.pulls
        known = columns.pulls > 0
        pulls, means = np.where(known, columns.pulls, 1), np.where(known, columns.means, 0.0)
        # With one success and one failure added, so that a mean of 0 or 1 does not have variance 0.
        shares = (np.clip(means, 0.0, 1.0) * pulls + 1) / (pulls + 2) if problem.bounded else means
        variances = _largest_variances(shares, problem) if problem.bounded else np.full(len(pulls), np.nan)
        if seen is not None:
            spread = seen.variances(problem)
            spread = np.fmin(variances, spread + (pulls + 2.0) ** -2) if problem.bounded else spread
            variances = np.where((seen.pulls == pulls) & (pulls >= _FEW), spread, variances)
        distinct = pulls if problem.sample_size is None else np.minimum(pulls, problem.sample_size)
        unused = 1.0 if self._population is None else np.maximum(0.0, 1 - pulls / self._population)
        sampling: Reals = variances / distinct * unused
        if columns.noise is not None:
            sampling += columns.noise.batches * (columns.noise.deviation / _distinct(pulls, problem)) ** 2
        self.variances: Reals = np.where(known, sampling, np.nan)
        """The variance of each mean; NaN where the pulls are unknown."""

        self._pulls_by_round = np.array([batch.pulls for batch in estimates.history], np.float64)
        self._sums_by_round = np.full((len(estimates.history), len(pulls)), np.nan)
        for row, batch in zip(self._sums_by_round, estimates.history, strict=True):
            row[batch.arms] = batch.sums

    def compare(self, arm: int, others: Ints) -> tuple[Reals, Reals]:
        """By how much the mean of an arm is above those of others, and the standard errors; NaN if unknown."""
        gaps = self.means[arm] - self.means[others]
        errors = np.sqrt(self.variances[arm] + self.variances[others])
        differences = self._sums_by_round[:, [arm]] - self._sums_by_round[:, others]
        common = ~np.isnan(differences)
        rounds = common.sum(axis=0)
        if not (rounds >= _ROUNDS).any():
            return gaps, errors
        pulls = np.where(common, self._pulls_by_round[:, np.newaxis], 0.0)
        totals, differences = np.maximum(pulls.sum(axis=0), 1.0), np.where(common, differences, 0.0)
        means, shares = differences.sum(axis=0) / totals, np.where(common, pulls, 1.0)
        # How much the differences vary between rounds. The factor makes up for few rounds, as Student's distribution
        # does; the last term keeps a few equal differences from counting as certain.
        freedom = np.maximum(rounds - 1, 1)
        variances = ((differences - means * pulls) ** 2 / shares).sum(axis=0) / freedom
        unused = 1.0 if self._population is None else np.maximum(0.0, 1 - totals / self._population)
        paired = np.sqrt(variances / totals * unused) * (1 + 3 / freedom)
        paired += 2 * np.abs(differences / shares).max(axis=0) / totals * unused
        better = (rounds >= _ROUNDS) & (paired < errors)
        return np.where(better, means, gaps), np.where(better, paired, errors)

    def better_than(self, arm: int, others: Ints) -> Flags:
        """Which of the others the evidence shows to be worse than this arm; not those that are unknown."""
        gaps, errors = self.compare(arm, others)
        exact = self.variances[arm] + self.variances[others] == 0
        enough = exact | (np.minimum(self.pulls[arm], self.pulls[others]) >= _FEW)
        return np.asarray(enough & (gaps >= ENOUGH * np.maximum(errors, NO_ERROR)), np.bool_)


def _largest_variances(means: Reals, problem: Problem) -> Reals:
    """The largest average of w^2 p (1 - p) over agents with weights w and local means p, if that of w p is `means`.

    Without the limits 0 and 1 it is largest for p = (1 - (1 - 2 mean) / w) / 2. And w^2 p (1 - p) is at most the
    largest weight times w p, or times w (1 - p).

    >>> _largest_variances(np.array([0.5, 0.25]), Problem(n=2, m=1, agents=2, horizon=9))
    array([0.25  , 0.1875])
    >>> _largest_variances(np.array([0.5, 0.01]), Problem(n=2, m=1, agents=2, horizon=9, weights=(1.5, 0.5)))
    array([0.3125, 0.015 ])
    """
    variances: Reals = means * (1 - means) + (problem.mean_squared_weight - 1) / 4
    if problem.weights is not None:
        variances = np.minimum(variances, problem.largest_weight * np.minimum(means, 1 - means))
    return variances


def standings(
    estimates: Estimates, top: Sequence[int], low: Reals, high: Reals, comparisons: Comparisons, *, confident: bool
) -> list[Standing]:
    """The accepted arms, best first, with their places and the evidence for them.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.6, 0.59, 0.2, 0.1])
    >>> run = ct.identify(arms, m=3, agents=2, horizon=2_000, algorithm="uniform", seed=1)
    >>> [(standing.arm, standing.places, standing.thin) for standing in run.standings]
    [(0, '1', False), (1, '2-3', False), (2, '2-3', False)]
    """
    rejected, means, _ = estimates.known("rejected")
    runner_up = rejected[[means.argmax()]] if len(rejected) else rejected
    arms = np.array(top, np.int64)
    worse = np.zeros((2, len(top)), np.int64)  # how many of the answer are surely worse, and surely better
    for index, arm in enumerate(top):
        is_worse = comparisons.better_than(arm, arms)
        worse[0, index] += np.count_nonzero(is_worse)
        worse[1] += is_worse
    found = []
    for arm, below, above in zip(top, *worse.tolist(), strict=True):
        known = not math.isnan(low[arm])
        ends = (float(low[arm]), float(high[arm])) if known else (None, None)
        thin: bool | None = arm in estimates.guesses
        if not confident:
            thin = not comparisons.better_than(arm, runner_up).any() if known else None
        found.append(Standing(arm, 1 + above, len(top) - below, ends[0], ends[1], estimates[arm].pulls, thin))
    return found
