"""T2: do words grow no faster with n, K and m than the paper says?

That a cost is O(f) says that cost / f stays below some constant, however large n, K and m become. No finite number of
runs can refute that, but they can tell how cost / f grows where it was measured farthest out: not at all, or by one
more logarithm or worse. A ratio that rises towards a constant has stopped growing there; one that does not is still at
it. So, over the far half of the values of n and K, log(cost / f) is fitted as

    constant of the horizon + a log log2(n) + b log log2(1 + K) + c log log2(1 + m)

and an exponent of 0 means that f is right, one of 1 that a logarithm is missing. The verdict lies half-way between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec
import numpy as np

from collabtop.reproduction.evidence import PRINTED, PRINTED_NON_IID, Evidence, Growth, RoundCost
from collabtop.reproduction.growth import ROOMS
from collabtop.reproduction.names import paper_name
from collabtop.reproduction.verdicts import Statement, Verdict, together
from collabtop.stats import Z_95

_HALF = 0.5


class Cost(msgspec.Struct, frozen=True):
    """What one point or run cost, beside the formula that is to bound it."""

    n: int
    agents: int
    m: int
    horizon: int
    spent: float
    formula: float

    @property
    def ratio(self) -> float:
        """The formula's constant, here."""
        return self.spent / self.formula


class Exponent(msgspec.Struct, frozen=True):
    """How cost / formula grows along one axis: 0 not at all, 1 like one more logarithm."""

    axis: str
    value: float
    half: float
    """Half of its 95% interval."""

    @property
    def low(self) -> float:
        """Lower end."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """Upper end."""
        return self.value + self.half


_AXES: dict[str, tuple[str, Callable[[float], float]]] = {
    "n": ("n", math.log2),
    "K": ("agents", lambda k: math.log2(1 + k)),
    "m": ("m", lambda m: math.log2(1 + m)),
}


def t2(evidence: Evidence) -> Statement:
    """How words grow with n and K."""
    says = (
        "Words of CollabTopIID are O(K log^2 n + m), of CollabTopNIID O(K n log n); CollabSearch, LocalElim and "
        "GlobalElim cost O(K log n) each; the partition stays balanced while n_r >= 100 K log n"
    )
    growth = evidence.growth
    if growth is None:
        return Statement("T2", says, (), "undecided", "n and K are not varied enough here: collabtop reproduce --deep")
    found: list[str] = []
    verdicts: list[Verdict] = []
    for name, formula, costs in (*_totals(growth), *_steps(growth)):
        text, verdict = bounded_by(costs, formula)
        found.append(f"{name}: {text} ({verdict})")
        verdicts.append(verdict)
    text, verdict = _balance(growth.rounds)
    found.append(f"{text} ({verdict})")
    verdicts.append(verdict)
    found += local_phase(growth)
    return Statement(
        "T2",
        says,
        tuple(found),
        together(verdicts),
        "The cost divided by the formula, over the far half of the values of n and K: its exponent along an axis is 0 "
        "where it does not grow, and 1 where it grows like one more logarithm of n, K or m. Holds: below 1/2 along "
        "each axis, with its interval. Does not hold: above 1/2 with its interval, along n, or along K or m even with "
        "what it falls along n taken off: K and m are at most n, so they cannot grow without it. Of a step, each "
        "run's dearest is taken. Counted in the ledger, all numbers in both directions. Regime: horizons of "
        f"{' and '.join(f'{room:,}' for room in ROOMS)} times the smallest",
    )


def bounded_by(costs: Iterable[Cost], formula: str) -> tuple[str, Verdict]:
    """The constant, fitted and at most, how it grows along each axis, and whether that is no growth.

    >>> costs = [Cost(n, k, 1, 100, 3.0 * k * n, k * n) for n in (8, 32, 128) for k in (2, 10, 50)]
    >>> bounded_by(costs, "K n")
    ('3.00 K n fitted, 3.00 K n at most; grows with exponent 0.00 ± 0.00 along n, 0.00 ± 0.00 along K', 'holds')
    """
    rows = list(costs)
    if not rows:
        return "nothing measured", "undecided"
    spent, value = (np.array([getattr(it, name) for it in rows]) for name in ("spent", "formula"))
    fitted, most = float(spent @ value / (value @ value)), max(it.ratio for it in rows)
    text = f"{fitted:.2f} {formula} fitted, {most:.2f} {formula} at most; "
    axes = {it.axis: it for it in growth_exponents(rows)}
    if not axes:
        return f"{text}too few sizes to tell how it grows", "undecided"
    # Two axes together are of interest where one of them alone grows.
    shown = [it for it in axes.values() if it.axis in _AXES or axes[it.axis.removeprefix("n and ")].high >= _HALF]
    exponents = ", ".join(f"{round(it.value, 2) + 0.0:.2f} ± {it.half:.2f} along {it.axis}" for it in shown)
    return f"{text}grows with exponent {exponents}", _verdict(axes)


def _verdict(axes: dict[str, Exponent]) -> Verdict:
    if "n" not in axes or "K" not in axes:
        return "undecided"
    lasting = [axes["n"]]
    for axis in axes.keys() & {"K", "m"}:
        # The smaller of the two: where the ratio falls along n, that is taken off.
        lasting.append(min(axes[axis], axes[f"n and {axis}"], key=lambda it: it.low))
    if any(it.low > _HALF for it in lasting):
        return "does not hold"
    return "holds" if all(axes[axis].high < _HALF for axis in axes.keys() & _AXES.keys()) else "undecided"


def growth_exponents(costs: Sequence[Cost]) -> list[Exponent]:
    """How cost / formula grows along n, K and m, and along n together with K or m; none if that cannot be told."""
    some = _far(costs)
    levels = {axis: [level(getattr(it, field)) for it in some] for axis, (field, level) in _AXES.items()}
    axes = [axis for axis, values in levels.items() if len(set(values)) > 1]
    rooms = _rooms(some)
    columns = [[float(room == one) for room in rooms] for one in sorted(set(rooms))]
    design = np.array([*columns, *(np.log(levels[axis]) for axis in axes)]).T
    spare = len(some) - design.shape[1]
    if spare < 1 or not axes:
        return []
    y = np.log([it.ratio for it in some])
    best, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    if rank < design.shape[1]:
        return []
    left = y - design @ best
    covariance = float(left @ left) / spare * np.linalg.inv(design.T @ design)
    found = []
    for axis in [*axes, *(f"n and {axis}" for axis in axes[1:] if axes[0] == "n")]:
        pick = np.array([0.0] * len(columns) + [float(one in axis.split(" and ")) for one in axes])
        deviation = math.sqrt(max(0.0, float(pick @ covariance @ pick)))
        found.append(Exponent(axis, float(pick @ best), _student(spare) * deviation))
    return found


def _far(costs: Sequence[Cost]) -> list[Cost]:
    """Those at the larger half of the sizes, the middle one among them; m has two values only, and keeps both."""
    sizes, crews = (sorted({getattr(it, name) for it in costs}) for name in ("n", "agents"))
    n, k = sizes[(len(sizes) - 1) // 2], crews[(len(crews) - 1) // 2]
    return [it for it in costs if it.n >= n and it.agents >= k]


def _rooms(costs: Sequence[Cost]) -> list[int]:
    """Which horizon each had: the first, second, ... of those measured at its n, K and m."""
    known: dict[tuple[int, int, int], set[int]] = {}
    for it in costs:
        known.setdefault((it.n, it.agents, it.m), set()).add(it.horizon)
    return [sorted(known[it.n, it.agents, it.m]).index(it.horizon) for it in costs]


def _student(spare: int) -> float:
    """How many deviations make 95%, with so many values to spare (an expansion that is good from 3 on).

    >>> round(_student(10), 2), round(_student(1000), 2)
    (2.23, 1.96)
    """
    z = Z_95
    return z + (z**3 + z) / (4 * spare) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * spare**2)


_Bound = tuple[str, str, list[Cost]]


def _totals(growth: Growth) -> list[_Bound]:
    iid: list[Cost] = []
    other: list[Cost] = []
    for it in growth.points:
        n, k = growth.sizes[it.arms], it.agents
        if it.algorithm == PRINTED.algorithm:
            iid.append(Cost(n, k, it.m, it.horizon, it.words_mean, k * math.log2(n) ** 2 + it.m))
        else:
            other.append(Cost(n, k, it.m, it.horizon, it.words_mean, k * n * math.log2(n)))
    return [
        (paper_name(PRINTED.algorithm), "(K log2(n)^2 + m)", iid),
        (paper_name(PRINTED_NON_IID.algorithm), "K n log2(n)", other),
    ]


def _steps(growth: Growth) -> list[_Bound]:
    unit = "K log2(n)"
    return [
        ("CollabSearch, both of a round", unit, _dearest(growth.rounds, "local", lambda it: it.searches)),
        ("LocalElim", unit, _dearest(growth.rounds, "local", lambda it: it.words)),
        ("GlobalElim", unit, _dearest(growth.rounds, "shared", lambda it: it.words)),
    ]


def _dearest(rounds: Iterable[RoundCost], phase: str, words: Callable[[RoundCost], int]) -> list[Cost]:
    """The dearest round of each run: a lemma on each round says as much of the worst."""

    def run(it: RoundCost) -> tuple[Any, ...]:
        return it.n, it.agents, it.m, it.horizon, it.seed

    some = sorted((it for it in rounds if it.phase == phase), key=run)
    return [
        Cost(n, k, m, horizon, max(map(words, its)), k * math.log2(n))
        for (n, k, m, horizon, _), its in groupby(some, key=run)
    ]


def _balance(rounds: Iterable[RoundCost]) -> tuple[str, Verdict]:
    large = [it for it in rounds if it.live >= 100 * it.agents * math.log(it.n)]
    shared = sum(it.phase == "shared" for it in large)
    if not large:
        return "No round began with 100 K log n arms or more", "undecided"
    text = f"Of {len(large):,} rounds with n_r >= 100 K log n, {shared} found the partition out of balance"
    return text, "does not hold" if shared else "holds"


def local_phase(growth: Growth | None) -> list[str]:
    """At which K the local phase of CollabTopIID runs at all, if that was measured."""
    if growth is None or not growth.local:
        return []
    n = growth.local[0].n
    shares = ", ".join(f"{it.local / it.runs:.0%} at K = {it.agents}" for it in growth.local)
    return [f"Runs of CollabTopIID with a local phase at n = {n:,}: {shares}"]
