"""The studies that the theorems ask for: where the bound says something, and set disjointness."""

from __future__ import annotations

import numpy as np

from collabtop import datasets
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.arms import BernoulliArms, HeterogeneousArms
from collabtop.reproduction.bounds import bound_horizon
from collabtop.reproduction.evidence import Disjointness, Line
from collabtop.reproduction.experiments import added, noniid_algorithms
from collabtop.studies.grid import Study
from collabtop.studies.runner import run_again
from collabtop.studies.table import Row, StudyTable

EASY = "easy"
_DISJOINT = "disjoint"
_AGENTS, _ELEMENTS = 4, 32
_LEVELS = (1.0, 0.1, 0.01)
# With fewer runs, none of them wrong, the upper end of a 95% interval stays above .01.
_RUNS = 400


def easy_arms() -> BernoulliArms:
    """Arms so easy that the bound says something at a horizon that is not astronomical.

    >>> bound_horizon(easy_arms(), m=1, agents=4, level=1)
    51970
    """
    return datasets.equal_gaps(n=16, m=1, gap=0.5)


def bound_study(*, seed: int, quick: bool) -> Study:
    """The printed schedules at the first horizons where the bound is below 1, .1 and .01."""
    arms = easy_arms()
    levels = _LEVELS[:2] if quick else _LEVELS
    horizons = [bound_horizon(arms, 1, _AGENTS, level) for level in levels]
    algorithms = [CollabTopIID(), CollabTopNonIID()]
    runs = _RUNS // 4 if quick else _RUNS
    return Study(arms={EASY: arms}, algorithms=algorithms, agents=_AGENTS, horizon=horizons, runs=runs, seed=seed)


def disjointness_study(*, runs: int, seed: int) -> Study:
    """Sets that share no element, and the same sets with one element put into all of them."""
    studies = []
    for name, arms in _sets().items():
        horizon = bound_horizon(arms, 1, _AGENTS, 0.01)
        algorithms = noniid_algorithms()
        studies.append(Study(arms={name: arms}, algorithms=algorithms, horizon=horizon, runs=runs, seed=seed))
    return added(studies)


def _sets() -> dict[str, HeterogeneousArms]:
    # Every element is missing from one set only: as close to common as an element can be without being it.
    bits = np.ones((_ELEMENTS, _AGENTS), np.int64)
    bits[np.arange(_ELEMENTS), np.arange(_ELEMENTS) % _AGENTS] = 0
    shared = bits.copy()
    shared[_ELEMENTS // 3] = 1
    return {_DISJOINT: datasets.set_disjointness(bits), "one in common": datasets.set_disjointness(shared)}


def disjointness(study: Study, table: StudyTable) -> tuple[Disjointness, ...]:
    """How each algorithm answered: a run that missed the best arm may still have given the right answer."""
    found = []
    for algorithm in noniid_algorithms():
        line = Line(algorithm.title, algorithm.options.get("schedule"))
        points = [point for point in table.points() if Line(point.algorithm, point.schedule) == line]
        rows = [row for row in table.rows if (row.algorithm, row.options) == (points[0].algorithm, points[0].options)]
        wrong = sum(_wrong_answer(study, row) for row in rows if not row.correct)
        bits = float(np.mean([row.bits for row in rows]))
        found.append(Disjointness(line, len(rows), wrong, bits, _ELEMENTS, _AGENTS))
    return tuple(found)


def _wrong_answer(study: Study, row: Row) -> bool:
    """A row says whether the best arm was found, not which arm was: the run again tells."""
    arms = study.arms[row.arms]
    assert isinstance(arms, HeterogeneousArms)
    return datasets.says_disjoint(arms, run_again(study, row).top_indices) != (row.arms == _DISJOINT)
