"""The bounds and the studies for the theorems T1 (error bound) and T4 (set disjointness)."""

import math
from bisect import bisect_left

import numpy as np

from collabtop import datasets
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.arms import BernoulliArms, HeterogeneousArms, SimulatedArms
from collabtop.problem import complexity, error_bound
from collabtop.reproduction.evidence import Disjointness, Line
from collabtop.reproduction.experiments import combined, noniid_algorithms
from collabtop.studies.grid import Study
from collabtop.studies.runner import run_again
from collabtop.studies.table import Row, StudyTable

EASY = "easy"
_DISJOINT = "disjoint"
_AGENTS, _ELEMENTS = 4, 32
_LEVELS = (1.0, 0.1, 0.01)
# With fewer runs, the upper end of a simultaneous interval is above .01 even if no run is wrong.
_RUNS = 1_600


def easy_arms() -> BernoulliArms:
    """Arms for which the bound is below 1 at a feasible horizon.

    >>> bound_horizon(easy_arms(), m=1, agents=4, level=1)
    51970
    """
    return datasets.equal_gaps(n=16, m=1, gap=0.5)


def bound_study(*, seed: int, quick: bool) -> Study:
    """The printed schedules at the smallest horizons where the bound is below 1, .1 and .01."""
    arms = easy_arms()
    levels = _LEVELS[:2] if quick else _LEVELS
    horizons = [bound_horizon(arms, 1, _AGENTS, level) for level in levels]
    algorithms = [CollabTopIID(), CollabTopNonIID()]
    runs = _RUNS // 4 if quick else _RUNS
    return Study(
        arms={EASY: arms},
        algorithms=algorithms,
        agents=_AGENTS,
        horizon=horizons,
        runs=runs,
        seed=seed,
        engine="batched",
    )


def disjointness_study(*, runs: int, seed: int) -> Study:
    """Sets without a common element, and the same sets with one element added to all of them."""
    studies = []
    for name, arms in _sets().items():
        horizon = bound_horizon(arms, 1, _AGENTS, 0.01)
        algorithms = noniid_algorithms()
        studies.append(Study(arms={name: arms}, algorithms=algorithms, horizon=horizon, runs=runs, seed=seed))
    return combined(studies)


def _sets() -> dict[str, HeterogeneousArms]:
    # Every element is missing from exactly one set, the hardest case without a common element.
    bits = np.ones((_ELEMENTS, _AGENTS), np.int64)
    bits[np.arange(_ELEMENTS), np.arange(_ELEMENTS) % _AGENTS] = 0
    shared = bits.copy()
    shared[_ELEMENTS // 3] = 1
    return {_DISJOINT: datasets.set_disjointness(bits), "one in common": datasets.set_disjointness(shared)}


def disjointness(study: Study, table: StudyTable) -> tuple[Disjointness, ...]:
    """The answers of each algorithm: a run that missed the best arm may still have answered correctly."""
    results = []
    for algorithm in noniid_algorithms():
        line = Line(algorithm.title, algorithm.options.get("schedule"))
        points = [point for point in table.points() if Line(point.algorithm, point.schedule) == line]
        rows = [row for row in table.rows if (row.algorithm, row.options) == (points[0].algorithm, points[0].options)]
        wrong = sum(_wrong_answer(study, row) for row in rows if not row.correct)
        bits = np.array([row.bits for row in rows], np.float64)
        mean, deviation = float(bits.mean()), float(bits.std(ddof=1))
        results.append(Disjointness(line, len(rows), wrong, mean, deviation, _ELEMENTS, _AGENTS))
    return tuple(results)


def _wrong_answer(study: Study, row: Row) -> bool:
    """Whether the answer is wrong. A row does not hold the arm that was returned, so the run is repeated."""
    arms = study.arms[row.arms]
    assert isinstance(arms, HeterogeneousArms)
    return datasets.says_disjoint(arms, run_again(study, row).top_indices) != (row.arms == _DISJOINT)


def bound_horizon(arms: SimulatedArms, m: int, agents: int, level: float) -> int:
    """The smallest horizon at which the paper's bound on the error is below `level`.

    >>> import collabtop as ct
    >>> bound_horizon(ct.BernoulliArms([0.9, 0.5, 0.25]), m=1, agents=10, level=1)
    1349
    """
    low, high = 0, 1
    while error_bound(arms, m, agents, high) >= level:
        low, high = high, 2 * high
    return bisect_left(range(high), True, lo=low + 1, key=lambda horizon: error_bound(arms, m, agents, horizon) < level)


def corollary_bound(n: int) -> float:
    """The bound at T = 500 H log^2 n / K, where the paper states an error of .01; H and K cancel out.

    >>> corollary_bound(4) > 0.01 > corollary_bound(8)
    True
    """
    arms = datasets.equal_gaps(n, m=1, gap=0.1)
    return error_bound(arms, 1, 1, math.ceil(500 * complexity(arms, 1) * math.log2(n) ** 2))


def corollary_holds_from(most: int = 64) -> int:
    """The smallest n from which on the corollary holds.

    >>> corollary_holds_from()
    8
    """
    return max(n for n in range(2, most) if corollary_bound(n) > 0.01) + 1


def printed_special_arm_wins_from(most: int = 64) -> int:
    """The smallest n from which on the special arm, as printed, beats an element that is in all sets.

    >>> printed_special_arm_wins_from()
    5
    """
    # A common element's mean is 2/3 + i / n^2, at most 2/3 + 1/n; the special arm's is 1 - 1/(2n).
    return max(n for n in range(1, most) if 2 / 3 + 1 / n >= 1 - 1 / (2 * n)) + 1
