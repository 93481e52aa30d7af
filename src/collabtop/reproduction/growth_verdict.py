"""The verdict on T2: words grow no faster with n, K and m than the paper states.

A cost is O(f) if cost / f stays below a constant for all n, K and m. No finite number of runs can refute this, but runs
can show how cost / f grows at the largest sizes: not at all, or by another logarithm or more. A ratio that approaches a
constant has stopped growing there; any other ratio is still growing. Therefore, where n >= 2^10, K >= 10 and
n >= 4 K log2 n (with fewer arms per agent there is no local phase), log(cost / f) is fitted as

    constant of the horizon + a log log2(n) + b log log2(1 + K) + c log log2(1 + m)

An exponent of 0 means that f is right, and 1 that a logarithm is missing. K and m are at most n, so they cannot grow
without it: the ratio is bounded if it does not grow along n alone (a) and along n and K (a + b) or n and m (a + c)
together. The tolerance of each of these ends at 1/2.

The theorem bounds the words of a run, and the lemmas those of each call of a step. How a step grows is judged by its
mean over rounds: the most expensive of more rounds is larger even if no call grows. Cheap rounds could hide an
expensive one in that mean, so every round is also compared with the most words that the printed pseudo-code can take.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

import msgspec
import numpy as np

from collabtop.reproduction.evidence import PRINTED, PRINTED_NON_IID, Evidence, Growth, RoundCost, paper_name
from collabtop.reproduction.growth_study import HORIZON_FACTORS
from collabtop.reproduction.verdicts import Claim, Draft, Estimate, share

_HALF = 0.5
_SELDOM = 0.05
"""The largest share of runs or rounds that may be exceptions to what the paper states of all, or of nearly all."""
_LARGE_N, _LARGE_K, _LARGE_HANDS = 2**10, 10, 4
"""Sizes from which on the growth of a cost is measured: n, K, and n / (K log2 n). Below, terms of lower order count."""


class Cost(msgspec.Struct, frozen=True):
    """The cost of one point or run, and the value of the formula that should bound it."""

    n: int
    agents: int
    m: int
    horizon: int
    spent: float
    formula: float

    @property
    def ratio(self) -> float:
        """Cost / formula."""
        return self.spent / self.formula


class Exponent(msgspec.Struct, frozen=True):
    """How cost / formula grows along an axis: 0 means not at all, 1 by another logarithm."""

    axis: str
    value: float
    deviation: float
    freedom: int

    def ends(self, z: float) -> tuple[float, float]:
        """The interval that corresponds to so many standard deviations of a normal distribution to each side."""
        half = student(z, self.freedom) * self.deviation
        return self.value - half, self.value + half


_AXES: dict[str, tuple[str, Callable[[float], float]]] = {
    "n": ("n", math.log2),
    "K": ("agents", lambda k: math.log2(1 + k)),
    "m": ("m", lambda m: math.log2(1 + m)),
}


def t2(evidence: Evidence) -> Draft:
    """T2: how words grow with n and K."""
    growth = evidence.growth
    claims: list[Claim] = []
    notes: list[str] = []
    if growth is None:
        notes.append("The wide ranges of n and K that this needs are not measured with --quick")
    else:
        for name, formula, costs in (*_totals(growth), *_steps(growth)):
            claims += growth_claims(name, costs)
            notes.append(f"{name}: {constants(costs, formula)}")
        notes.append(_most_expensive(growth.rounds))
        claims += [
            _expensive(growth.rounds, name, phase) for name, phase in (("LocalElim", "local"), ("GlobalElim", "shared"))
        ]
        claims.append(_balance(growth.rounds))
        notes += local_phase(growth)
    return Draft(
        "T2",
        "CollabTopIID sends O(K log^2 n + m) words and CollabTopNIID O(K n log n); CollabSearch, LocalElim and "
        "GlobalElim cost O(K log n) words each; the partition stays balanced while n_r >= 100 K log n",
        tuple(claims),
        f"The cost is divided by the formula, where n >= {_LARGE_N:,}, K >= {_LARGE_K}, n >= {_LARGE_HANDS} K log2 n "
        "(with fewer arms there is no local phase). The exponent of this ratio along an axis is 0 if the ratio does "
        "not grow, and 1 if it grows by another logarithm of n, K or m. The "
        "tolerance is an exponent of at most 1/2, along n alone and along n together with K or m (these are at most n, "
        "so they cannot grow without it). The cost of a step is its mean over the rounds of all runs with the same n, "
        "K, m and T; the notes have its most expensive round. Words are those in the ledger, in both directions. In at "
        f"most {_SELDOM:.0%} of the runs may a round take more words than the printed pseudo-code can, which is "
        f"{_PRINTED_WORDS}: in a mean, cheap rounds could hide an expensive one. The partition: out of balance in at "
        f"most {_SELDOM:.0%} of the rounds with n_r >= 100 K log2 n (all logarithms of the paper are to base 2). "
        "Regime: horizons of "
        f"{' and '.join(f'{f:,}' for f in HORIZON_FACTORS)} times the smallest",
        tuple(notes),
    )


def constants(costs: Sequence[Cost], formula: str) -> str:
    """The constant of the formula, fitted and at most.

    >>> constants([Cost(n, k, 1, 100, 3.0 * k * n, k * n) for n in (8, 32) for k in (2, 10)], "K n")
    '3.00 K n fitted, 3.00 K n at most'
    """
    if not costs:
        return "no measurements"
    spent, value = (np.array([getattr(cost, name) for cost in costs]) for name in ("spent", "formula"))
    fitted, most = float(spent @ value / (value @ value)), max(cost.ratio for cost in costs)
    return f"{fitted:.2f} {formula} fitted, {most:.2f} {formula} at most"


def growth_claims(name: str, costs: Sequence[Cost]) -> list[Claim]:
    """That cost / formula does not grow along n, along n and K together, and along n and m if m varies.

    >>> from collabtop.reproduction.verdicts import judge
    >>> costs = [Cost(n, k, 1, 100, 3.0 * k * n, k * n) for n in (2**10, 2**12, 2**14) for k in (10, 50)]
    >>> [judge(claim, z=2).verdict for claim in growth_claims("steps", costs)]
    ['supported', 'supported']
    """
    exponents = {exponent.axis: exponent for exponent in growth_exponents(costs)}
    axes = ["n", "n and K", *(axis for axis in exponents if axis == "n and m")]
    return [
        Claim(f"{name}: growth exponent along {axis}", _estimate(exponents.get(axis)), most=_HALF, remark=remark)
        for axis in axes
        for remark in ["" if axis in exponents else "too few sizes to measure the growth"]
    ]


def _estimate(exponent: Exponent | None) -> Estimate | None:
    return None if exponent is None else Estimate(exponent.value, exponent.ends)


def growth_exponents(costs: Sequence[Cost]) -> list[Exponent]:
    """How cost / formula grows along n, and along n with K or m; empty if the costs do not determine it."""
    large = [cost for cost in costs if _is_large(cost)]
    if not large:
        return []
    levels = {axis: [level(getattr(cost, field)) for cost in large] for axis, (field, level) in _AXES.items()}
    axes = [axis for axis, values in levels.items() if len(set(values)) > 1]
    ranks = _horizon_ranks(large)
    columns = [[float(rank == column) for rank in ranks] for column in sorted(set(ranks))]
    design = np.array([*columns, *(np.log(levels[axis]) for axis in axes)]).T
    freedom = len(large) - design.shape[1]
    if freedom < 1 or not axes:
        return []
    y = np.log([cost.ratio for cost in large])
    best, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    if rank < design.shape[1]:
        return []
    residuals = y - design @ best
    covariance = float(residuals @ residuals) / freedom * np.linalg.inv(design.T @ design)
    exponents = []
    for name in [axis if axis == "n" else f"n and {axis}" for axis in axes if axes[0] == "n"]:
        weights = np.array([0.0] * len(columns) + [float(axis in name.split(" and ")) for axis in axes])
        deviation = math.sqrt(max(0.0, float(weights @ covariance @ weights)))
        exponents.append(Exponent(name, float(weights @ best), deviation, freedom))
    return exponents


def _is_large(cost: Cost) -> bool:
    hands = cost.n / (cost.agents * math.log2(cost.n))
    return cost.n >= _LARGE_N and cost.agents >= _LARGE_K and hands >= _LARGE_HANDS


def _horizon_ranks(costs: Sequence[Cost]) -> list[int]:
    """The rank of each cost's horizon among the horizons measured at the same n, K and m."""
    horizons: dict[tuple[int, int, int], set[int]] = {}
    for cost in costs:
        horizons.setdefault((cost.n, cost.agents, cost.m), set()).add(cost.horizon)
    return [sorted(horizons[cost.n, cost.agents, cost.m]).index(cost.horizon) for cost in costs]


def student(z: float, freedom: int) -> float:
    """The quantile of Student's t that corresponds to `z`, by an expansion that is accurate from 5 degrees of freedom.

    >>> round(student(1.96, 10), 2), round(student(1.96, 1000), 2)
    (2.23, 1.96)
    """
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    return z + (z**3 + z) / (4 * freedom) + second + third


_Bound = tuple[str, str, list[Cost]]


def _totals(growth: Growth) -> list[_Bound]:
    iid: list[Cost] = []
    noniid: list[Cost] = []
    for p in growth.points:
        n, k = growth.sizes[p.arms], p.agents
        if p.algorithm == PRINTED.algorithm:
            iid.append(Cost(n, k, p.m, p.horizon, p.words_mean, k * math.log2(n) ** 2 + p.m))
        else:
            noniid.append(Cost(n, k, p.m, p.horizon, p.words_mean, k * n * math.log2(n)))
    return [
        (paper_name(PRINTED.algorithm), "(K log2(n)^2 + m)", iid),
        (paper_name(PRINTED_NON_IID.algorithm), "K n log2(n)", noniid),
    ]


_STEPS = (
    ("CollabSearch, both calls of a round", "local", "searches"),
    ("LocalElim", "local", "words"),
    ("GlobalElim", "shared", "words"),
)


def _steps(growth: Growth) -> list[_Bound]:
    return [(name, "K log2(n)", _mean_costs(growth.rounds, phase, field)) for name, phase, field in _STEPS]


def _mean_costs(rounds: Iterable[RoundCost], phase: str, field: str) -> list[Cost]:
    """The mean cost of a round, by n, K, m and T."""

    def setting(cost: RoundCost) -> tuple[int, int, int, int]:
        return cost.n, cost.agents, cost.m, cost.horizon

    ordered = sorted((cost for cost in rounds if cost.phase == phase), key=setting)
    return [
        Cost(n, k, m, horizon, float(np.mean([getattr(cost, field) for cost in costs])), k * math.log2(n))
        for (n, k, m, horizon), costs in groupby(ordered, key=setting)
    ]


def _most_expensive(rounds: Iterable[RoundCost]) -> str:
    rounds = list(rounds)
    most = {
        name: max((getattr(c, field) / (c.agents * math.log2(c.n)) for c in rounds if c.phase == phase), default=0.0)
        for name, phase, field in _STEPS
    }
    return f"The most expensive round, over K log2(n): {', '.join(f'{name} {cost:.1f}' for name, cost in most.items())}"


_PRINTED_WORDS = "K (9 log2 n_r + 8) for LocalElim and 3 (n_r + 2 K) for GlobalElim"


def printed_words(cost: RoundCost) -> float:
    """The most words that the printed pseudo-code can take for a round with these live arms and agents.

    LocalElim calls CollabSearch three times. Each call halves the values of an agent, at most log2(n_r) times, for a
    median, a count and an answer per agent, and ends with one value per agent. Besides, an agent receives two means
    and a gap, and sends how many arms it accepted and how many it holds. GlobalElim assigns at most 2 + n_r / K arms to
    an agent, each for an arm, a number of pulls and a mean.

    >>> printed_words(RoundCost(64, 2, 1, 1_000, seed=1, round=0, phase="local", live=64, words=0, searches=0))
    124.0
    >>> printed_words(RoundCost(64, 2, 1, 1_000, seed=1, round=1, phase="shared", live=32, words=0, searches=0))
    108
    """
    if cost.phase == "local":
        return cost.agents * (9 * math.log2(cost.live) + 8)
    return 3 * (cost.live + 2 * cost.agents)


def _expensive(rounds: Iterable[RoundCost], name: str, phase: str) -> Claim:
    """That no round of a step is more expensive than the printed pseudo-code, however cheap the others are."""
    runs: dict[tuple[int, ...], bool] = {}
    for cost in rounds:
        if cost.phase == phase:
            run = cost.n, cost.agents, cost.m, cost.horizon, cost.seed
            runs[run] = runs.get(run, False) or cost.words > printed_words(cost)
    estimand = f"{name}: runs with a round of more words than the printed pseudo-code can take"
    if not runs:
        return Claim(estimand, None, most=_SELDOM, remark="no such rounds")
    above = sum(runs.values())
    return Claim(estimand, share(above, len(runs)), most=_SELDOM, digits=".3f", remark=f"{above} of {len(runs):,}")


def _balance(rounds: Iterable[RoundCost]) -> Claim:
    large = [cost for cost in rounds if cost.live >= 100 * cost.agents * math.log2(cost.n)]
    shared = sum(cost.phase == "shared" for cost in large)
    estimand = "rounds with n_r >= 100 K log2 n whose partition is out of balance"
    if not large:
        return Claim(estimand, None, most=_SELDOM, remark="no round began with so many arms")
    remark = f"{shared} of {len(large):,}"
    return Claim(estimand, share(shared, len(large)), most=_SELDOM, digits=".3f", remark=remark)


def local_phase(growth: Growth | None) -> list[str]:
    """The share of runs of CollabTopIID with a local phase by K, if it was measured."""
    if growth is None or not growth.local:
        return []
    n = growth.local[0].n
    shares = ", ".join(f"{row.local / row.runs:.0%} at K = {row.agents}" for row in growth.local)
    return [f"Runs of CollabTopIID with a local phase at n = {n:,}: {shares}"]
