"""The price of error .01: the horizon and the communication that each algorithm needs for it."""

import math
from collections.abc import Sequence
from itertools import permutations
from statistics import NormalDist

import msgspec

from collabtop.crossing import RARE, Crossing, NotReached
from collabtop.reproduction.evidence import IID, NON_IID, NSAR, Evidence, Line, fit_points
from collabtop.reproduction.experiments import AGENTS, data_kind
from collabtop.stats import Z_95, holm, smaller_mean_p_value
from collabtop.studies.table import PointSummary

CAPTION = (
    "Cost of error .01: horizon and communication, in words for IID arms and in bits for non-IID arms (the table has "
    "both)"
)
NOTE = (
    "Lower left is better. Bars are 95% intervals. A dotted bar with a pale mark shows an algorithm whose horizon the "
    "runs do not locate: beyond its ends the horizon cannot lie (with probability .9999), an arrow means that no such "
    "end is known, and a line below the panel says why. For non-IID arms, communication is measured in bits: a one-bit "
    "flag counts as one word, and so does a 64-bit mean, so words would not distinguish short messages from long ones. "
    "Horizons come from many runs near the crossing where these were made, and otherwise from the panels. "
    "Communication is that of the panels' horizon nearest to the crossing. One algorithm beats another only if its "
    "horizon is shorter and its communication is less, both beyond chance. Holm's method corrects for the number of "
    "pairs compared: with probability .95 no entry of the last column is wrong, so the bars of a pair may lie apart "
    "without an entry. BatchedSAR (Karpov and Zhang 2020), TZZ (Tao, Zhang and Zhou 2019), HKK (Hillel "
    "et al. 2013) and NSAR (Shahrampour and Tarokh 2017) are the literature's other algorithms, where they apply. NSAR "
    "is for one agent: the vertical line, in its 95% interval, is the horizon of ten agents that share everything for "
    "free."
)
"""How to read the figure and its table."""
SETTINGS = ((IID, 1), (IID, 8), (NON_IID, 1), (NON_IID, 8))


def left_out(arms: str, m: int) -> dict[str, list[str]]:
    """The literature's algorithms that do not apply in a setting, by the reason.

    >>> left_out("movies", 8)
    {'for m = 1 only': ['TZZ', 'HKK']}
    """
    if arms == IID:
        return {} if m == 1 else {"for m = 1 only": ["TZZ", "HKK"]}
    return {
        "for IID arms only": ["BatchedSAR", "TZZ", "HKK"],
        "for one agent, which sees only its own means": ["NSAR"],
        "for a confidence, not for a horizon": ["FedElim"],
    }


class Price(msgspec.Struct, frozen=True):
    """What one algorithm needs in one setting."""

    line: Line
    arms: str
    m: int
    at: Crossing | NotReached
    swept: tuple[int, int]
    """The first and last horizon of the panels."""
    studied: bool
    """Whether the horizon comes from runs near it, and not from the panels."""
    runs: int
    """Number of runs behind the mean words and bits."""
    words: float
    """Mean words at the measured horizon nearest to the crossing; NaN if the algorithm was not run."""
    words_sd: float
    bits: float
    """Mean bits at the same horizon."""
    bits_sd: float

    @property
    def is_free(self) -> bool:
        """Whether communication is not counted, because one agent makes the pulls of all."""
        return self.line == NSAR

    @property
    def communication(self) -> tuple[float, float, float]:
        """The mean and its 95% interval: words for IID arms; bits for non-IID arms, where messages differ in length."""
        mean, deviation, runs = self._costs
        half = Z_95 * deviation / math.sqrt(max(1, runs))
        return mean, mean - half, mean + half

    @property
    def limits(self) -> tuple[float, float]:
        """The 95% interval of the horizon, or what is known of it."""
        return self.at.low, self.at.high

    def beaten_p_value(self, other: "Price") -> float:
        """The p-value that the other algorithm needs a shorter horizon and less communication.

        Both must be shown, so it is the larger of the two p-values (an intersection-union test).
        """
        return max(_shorter_p_value(other.at, self.at), smaller_mean_p_value(*other._costs, *self._costs))

    @property
    def _costs(self) -> tuple[float, float, int]:
        """Mean and standard deviation of the communication that is compared, and the number of runs."""
        mean, deviation = (self.words, self.words_sd) if self.arms == IID else (self.bits, self.bits_sd)
        return mean, deviation, self.runs


def beaten_pairs(rows: Sequence[Price], level: float = 0.05) -> set[tuple[int, int]]:
    """The pairs (i, j) of rows of which i is beaten by j; with probability 1 - level, none of them is wrong.

    All ordered pairs of the same setting are compared, with Holm's method. Free communication is not compared.

    >>> def row(horizon, words):
    ...     at = Crossing(horizon, horizon / 1.1, horizon * 1.1, 0.01, "T", 1_000)
    ...     return Price(Line("kzz"), IID, 1, at, (1_000, 9_000), False, 100, words, 10.0, 64 * words, 640.0)
    >>> sorted(beaten_pairs([row(30_000, 2_000), row(20_000, 1_000), row(19_000, 3_000)]))
    [(0, 1)]
    """
    pairs = [
        (loser, winner)
        for loser, winner in permutations(range(len(rows)), 2)
        if (rows[loser].arms, rows[loser].m) == (rows[winner].arms, rows[winner].m)
        and not (rows[loser].is_free or rows[winner].is_free)
    ]
    shown = holm([rows[loser].beaten_p_value(rows[winner]) for loser, winner in pairs], level)
    return {pair for pair, is_shown in zip(pairs, shown, strict=True) if is_shown}


def _shorter_p_value(at: Crossing | NotReached, other: Crossing | NotReached) -> float:
    """The p-value that the first horizon is the shorter one, or an upper bound on it.

    Of a horizon that was not located, only a limit is known: it is compared instead, and may be wrong.
    """
    first, deviation, rare = _log_horizon(at, at.high)
    second, other_deviation, other_rare = _log_horizon(other, other.low)
    spread = math.hypot(deviation, other_deviation)
    chance = NormalDist().cdf((first - second) / spread) if spread > 0 else float(not first < second)
    return min(1.0, chance + rare + other_rare)


def _log_horizon(at: Crossing | NotReached, limit: float) -> tuple[float, float, float]:
    """The logarithm of the horizon or of its limit, its standard deviation, and how likely the limit is wrong."""
    if isinstance(at, Crossing):
        return math.log(at.horizon), at.log_deviation, 0.0
    return (math.log(limit) if limit > 0 else -math.inf), 0.0, RARE


def prices(evidence: Evidence) -> "list[Price]":
    """The price of every algorithm in every setting."""
    return [
        _price(evidence, line, arms, m)
        for arms, m in SETTINGS
        for line in (*evidence.lines(arms), *evidence.baseline_lines(arms, m))
    ]


def _price(evidence: Evidence, line: Line, arms: str, m: int) -> Price:
    agents = evidence.arms[arms].agents or AGENTS
    if line == NSAR:
        shared = [
            msgspec.structs.replace(point, horizon=point.horizon // agents) for point in evidence.sweep(line, arms, m)
        ]
        return Price(
            line, arms, m, fit_points(shared), (shared[0].horizon, shared[-1].horizon), False, 0, *[math.nan] * 4
        )
    sweep = evidence.sweep(line, arms, m, agents=agents)
    if not sweep:
        reason = "every horizon of the sweep is below its smallest one"
        return Price(line, arms, m, NotReached(reason), (0, 0), False, 0, *[math.nan] * 4)
    at = evidence.best_crossing(line, arms, m, agents)
    near = _nearest(sweep, at)
    studied = evidence.crossing(line, arms, m, agents) is not None
    costs = near.words_mean, near.words_sd, near.bits_mean, near.bits_sd
    return Price(line, arms, m, at, (sweep[0].horizon, sweep[-1].horizon), studied, near.message_runs, *costs)


def _nearest(sweep: list[PointSummary], at: Crossing | NotReached) -> PointSummary:
    """The point nearest to the crossing; if it was not located, the one nearest to its known limit."""
    if isinstance(at, Crossing):
        horizon = at.horizon
    else:
        horizon = at.low if math.isinf(at.high) else math.sqrt(max(at.low, 1.0) * at.high)
    return min(sweep, key=lambda point: abs(math.log(point.horizon / max(horizon, 1.0))))


def describe_prices(evidence: Evidence) -> str:
    """A text alternative for the figure."""
    parts = [
        f"top-{price.m}, {data_kind(price.arms)}, {price.line.name}: horizon {_horizon_text(price)}"
        f" ({_interval_text(price)}), "
        + ("free communication" if price.is_free else f"{price.words:,.0f} words, {price.bits:,.0f} bits")
        for price in prices(evidence)
    ]
    parts += [
        f"top-{m}, {data_kind(arms)}: not {', '.join(names)} ({reason})"
        for arms, m in SETTINGS
        for reason, names in left_out(arms, m).items()
    ]
    return f"{CAPTION}. {'; '.join(parts)}."


def _horizon_text(price: Price) -> str:
    return f"{price.at.horizon:,.0f}" if isinstance(price.at, Crossing) else f"not located: {price.at.reason}"


def _interval_text(price: Price) -> str:
    low, high = price.limits
    return f"{low:,.0f} to {'any' if math.isinf(high) else f'{high:,.0f}'}"


def price_rows(evidence: Evidence) -> list[tuple[str, ...]]:
    """The prices as the rows of a table, starting with its header."""
    header = (
        "algorithm",
        "arms",
        "m",
        "horizon",
        "interval",
        "source",
        "words",
        "bits",
        "beaten beyond chance on horizon and words (IID) or bits (non-IID) by",
    )
    all_prices = prices(evidence)
    beaten = beaten_pairs(all_prices)
    rows: list[tuple[str, ...]] = [header]
    for index, price in enumerate(all_prices):
        winners = [other.line.name for rival, other in enumerate(all_prices) if (index, rival) in beaten]
        rows.append(
            (
                price.line.name,
                data_kind(price.arms),
                str(price.m),
                _horizon_text(price),
                _interval_text(price),
                "runs near it" if price.studied else "panels",
                "free" if price.is_free else _mean_text(price.words, price.words_sd, price.runs),
                "free" if price.is_free else _mean_text(price.bits, price.bits_sd, price.runs),
                "; ".join(winners) or "none",
            )
        )
    return rows


def _mean_text(mean: float, deviation: float, runs: int) -> str:
    return "-" if runs == 0 else f"{mean:,.0f} ± {Z_95 * deviation / math.sqrt(runs):,.0f}"
