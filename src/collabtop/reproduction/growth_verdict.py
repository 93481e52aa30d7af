"""The verdict on T2: words grow no faster with n, K and m than the paper states.

A cost is O(f) if cost / f stays below a constant for all n, K and m. No finite number of runs can refute this, but runs
can show how cost / f grows at the largest sizes: not at all, or by another logarithm or more. A ratio that approaches a
constant has stopped growing there; any other ratio is still growing. Therefore log(cost / f) is fitted, over the larger
half of the values of n and K, as

    constant of the horizon + a log log2(n) + b log log2(1 + K) + c log log2(1 + m)

An exponent of 0 means that f is right, and 1 that a logarithm is missing. The limit between the verdicts is 1/2.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec
import numpy as np

from collabtop.reproduction.evidence import PRINTED, PRINTED_NON_IID, Evidence, Growth, RoundCost, paper_name
from collabtop.reproduction.growth_study import HORIZON_FACTORS
from collabtop.reproduction.verdicts import Statement, Verdict, all_of
from collabtop.stats import Z_95

_HALF = 0.5


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
    half: float
    """Half the width of its 95% interval."""

    @property
    def low(self) -> float:
        """Lower end of the 95% interval."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """Upper end of the 95% interval."""
        return self.value + self.half


_AXES: dict[str, tuple[str, Callable[[float], float]]] = {
    "n": ("n", math.log2),
    "K": ("agents", lambda k: math.log2(1 + k)),
    "m": ("m", lambda m: math.log2(1 + m)),
}


def t2(evidence: Evidence) -> Statement:
    """T2: how words grow with n and K."""
    says = (
        "CollabTopIID sends O(K log^2 n + m) words and CollabTopNIID O(K n log n); CollabSearch, LocalElim and "
        "GlobalElim cost O(K log n) words each; the partition stays balanced while n_r >= 100 K log n"
    )
    growth = evidence.growth
    if growth is None:
        return Statement(
            "T2", says, (), "undecided", "Deciding this needs wide ranges of n and K (collabtop reproduce --deep)"
        )
    findings: list[str] = []
    verdicts: list[Verdict] = []
    for name, formula, costs in (*_totals(growth), *_steps(growth)):
        text, verdict = bounded_by(costs, formula)
        findings.append(f"{name}: {text} ({verdict})")
        verdicts.append(verdict)
    text, verdict = _balance(growth.rounds)
    findings.append(f"{text} ({verdict})")
    verdicts.append(verdict)
    findings += local_phase(growth)
    return Statement(
        "T2",
        says,
        tuple(findings),
        all_of(verdicts),
        "The cost is divided by the formula, for the larger half of the values of n and K. The exponent of this ratio "
        "along an axis is 0 if the ratio does not grow, and 1 if it grows by another logarithm of n, K or m. Holds: "
        "along every axis the 95% interval of the exponent lies below 1/2. Does not hold: it lies above 1/2 along n, "
        "or along K or m even after the decrease along n is taken into account (K and m are at most n, so they cannot "
        "grow without it). For a step, the most expensive round of each run is used. Words are those in the ledger, in "
        f"both directions. Regime: horizons of {' and '.join(f'{factor:,}' for factor in HORIZON_FACTORS)} times the "
        "smallest",
    )


def bounded_by(costs: Iterable[Cost], formula: str) -> tuple[str, Verdict]:
    """The constant of the formula, how it grows along each axis, and whether this counts as no growth.

    >>> costs = [Cost(n, k, 1, 100, 3.0 * k * n, k * n) for n in (8, 32, 128) for k in (2, 10, 50)]
    >>> bounded_by(costs, "K n")
    ('3.00 K n fitted, 3.00 K n at most; growth exponent 0.00 ± 0.00 along n, 0.00 ± 0.00 along K', 'holds')
    """
    rows = list(costs)
    if not rows:
        return "no measurements", "undecided"
    spent, value = (np.array([getattr(cost, name) for cost in rows]) for name in ("spent", "formula"))
    fitted, most = float(spent @ value / (value @ value)), max(cost.ratio for cost in rows)
    text = f"{fitted:.2f} {formula} fitted, {most:.2f} {formula} at most; "
    axes = {exponent.axis: exponent for exponent in growth_exponents(rows)}
    if not axes:
        return f"{text}too few sizes to measure the growth", "undecided"
    # Two axes together are of interest only if one of them alone may grow.
    shown = [e for e in axes.values() if e.axis in _AXES or axes[e.axis.removeprefix("n and ")].high >= _HALF]
    exponents = ", ".join(f"{round(e.value, 2) + 0.0:.2f} ± {e.half:.2f} along {e.axis}" for e in shown)
    return f"{text}growth exponent {exponents}", _verdict(axes)


def _verdict(axes: dict[str, Exponent]) -> Verdict:
    if "n" not in axes or "K" not in axes:
        return "undecided"
    lasting = [axes["n"]]
    for axis in axes.keys() & {"K", "m"}:
        # The smaller of the two, because a decrease along n offsets growth along the other axis.
        lasting.append(min(axes[axis], axes[f"n and {axis}"], key=lambda exponent: exponent.low))
    if any(exponent.low > _HALF for exponent in lasting):
        return "does not hold"
    return "holds" if all(axes[axis].high < _HALF for axis in axes.keys() & _AXES.keys()) else "undecided"


def growth_exponents(costs: Sequence[Cost]) -> list[Exponent]:
    """How cost / formula grows along n, K and m, and along n with K or m; empty if the costs do not determine it."""
    large = _larger_half(costs)
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
    for name in [*axes, *(f"n and {axis}" for axis in axes[1:] if axes[0] == "n")]:
        weights = np.array([0.0] * len(columns) + [float(axis in name.split(" and ")) for axis in axes])
        deviation = math.sqrt(max(0.0, float(weights @ covariance @ weights)))
        exponents.append(Exponent(name, float(weights @ best), _student(freedom) * deviation))
    return exponents


def _larger_half(costs: Sequence[Cost]) -> list[Cost]:
    """The costs at the larger half of the values of n and K, including the middle; m has only two, both are kept."""
    sizes, agents = (sorted({getattr(cost, name) for cost in costs}) for name in ("n", "agents"))
    n, k = sizes[(len(sizes) - 1) // 2], agents[(len(agents) - 1) // 2]
    return [cost for cost in costs if cost.n >= n and cost.agents >= k]


def _horizon_ranks(costs: Sequence[Cost]) -> list[int]:
    """The rank of each cost's horizon among the horizons measured at the same n, K and m."""
    horizons: dict[tuple[int, int, int], set[int]] = {}
    for cost in costs:
        horizons.setdefault((cost.n, cost.agents, cost.m), set()).add(cost.horizon)
    return [sorted(horizons[cost.n, cost.agents, cost.m]).index(cost.horizon) for cost in costs]


def _student(freedom: int) -> float:
    """Half-width of a 95% interval of Student's t, by an expansion that is accurate from 3 degrees of freedom.

    >>> round(_student(10), 2), round(_student(1000), 2)
    (2.23, 1.96)
    """
    z = Z_95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


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


def _steps(growth: Growth) -> list[_Bound]:
    unit = "K log2(n)"
    return [
        ("CollabSearch, both calls of a round", unit, _most_expensive(growth.rounds, "local", "searches")),
        ("LocalElim", unit, _most_expensive(growth.rounds, "local", "words")),
        ("GlobalElim", unit, _most_expensive(growth.rounds, "shared", "words")),
    ]


def _most_expensive(rounds: Iterable[RoundCost], phase: str, field: str) -> list[Cost]:
    """The most expensive round of each run: a lemma on every round also bounds this one."""

    def run(cost: RoundCost) -> tuple[Any, ...]:
        return cost.n, cost.agents, cost.m, cost.horizon, cost.seed

    ordered = sorted((cost for cost in rounds if cost.phase == phase), key=run)
    return [
        Cost(n, k, m, horizon, max(getattr(cost, field) for cost in costs), k * math.log2(n))
        for (n, k, m, horizon, _), costs in groupby(ordered, key=run)
    ]


def _balance(rounds: Iterable[RoundCost]) -> tuple[str, Verdict]:
    large = [cost for cost in rounds if cost.live >= 100 * cost.agents * math.log(cost.n)]
    shared = sum(cost.phase == "shared" for cost in large)
    if not large:
        return "No round began with at least 100 K log n arms", "undecided"
    text = f"The partition was out of balance in {shared} of {len(large):,} rounds with n_r >= 100 K log n"
    return text, "does not hold" if shared else "holds"


def local_phase(growth: Growth | None) -> list[str]:
    """The share of runs of CollabTopIID with a local phase by K, if it was measured."""
    if growth is None or not growth.local:
        return []
    n = growth.local[0].n
    shares = ", ".join(f"{row.local / row.runs:.0%} at K = {row.agents}" for row in growth.local)
    return [f"Runs of CollabTopIID with a local phase at n = {n:,}: {shares}"]
