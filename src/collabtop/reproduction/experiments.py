"""Which studies the paper's experimental section needs, and where each panel finds its points."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import Literal

import msgspec

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.algorithms.kzz import KZZ
from collabtop.algorithms.registry import available_algorithms, make_algorithm
from collabtop.algorithms.uniform import Uniform
from collabtop.arms import BernoulliArms, HeterogeneousArms, SimulatedArms
from collabtop.errors import HorizonError, InputError
from collabtop.runs.spec import make_spec
from collabtop.studies.grid import Study

AGENTS = 10
"""K of the paper's figures against T."""
PAPER_HORIZON = 30_000
"""T of the paper's figures against K."""
IID, NON_IID = "movies", "groups"

# The printed schedule needs three times kzz's horizon: the sweeps reach to where its error is gone as well.
_HORIZONS = {
    (IID, 1): (5_000, 10_000, 20_000, 30_000, 80_000),
    (IID, 8): (60_000, 120_000, 240_000, 600_000, 2_000_000),
    (NON_IID, 1): (3_000, 6_000, 12_000, 30_000, 200_000),
    (NON_IID, 8): (80_000, 120_000, 200_000, 500_000, 1_400_000),
}
_CREWS = (2, 10, 20, 30)
_QUICK_HORIZONS = {
    (IID, 1): (5_000, 30_000, 80_000),
    (IID, 8): (60_000, 600_000, 2_000_000),
    (NON_IID, 1): (10_000, 50_000, 200_000),
    (NON_IID, 8): (60_000, 240_000, 1_400_000),
}
_QUICK_CREWS = (2, 10, 30)
_FIXED_HORIZON = {1: PAPER_HORIZON, 8: 600_000}

Axis = Literal["horizon", "agents"]
Measure = Literal["error", "words"]


def fixed_horizon(m: int) -> int:
    """T of the sweep over K: the paper's for m = 1, and for m = 8 one at which the error can fall."""
    return _FIXED_HORIZON[m]


class Panel(msgspec.Struct, frozen=True):
    """One panel of a figure: what is drawn against what, at which points."""

    letter: str
    measure: Measure
    against: Axis
    arms: str
    m: int
    fixed: int
    """K where T varies, T where K varies."""

    @property
    def title(self) -> str:
        """What is drawn, in words."""
        what = "Error" if self.measure == "error" else "Communication"
        if self.against == "horizon":
            return f"{what} against T, K = {self.fixed}"
        return f"{what} against K, T = {self.fixed:,}"


class FigurePlan(msgspec.Struct, frozen=True):
    """One figure of the paper."""

    number: int
    arms: str
    m: int
    panels: tuple[Panel, ...]

    @property
    def title(self) -> str:
        """The paper's caption."""
        kind = "IID" if self.arms == IID else "non-IID"
        return f"Performance of algorithms for top-{self.m} arm identification, {kind} data"


def figure_plans(agents: int) -> tuple[FigurePlan, ...]:
    """The paper's four figures, twelve panels; `agents` is K of the non-IID arms.

    >>> [len(plan.panels) for plan in figure_plans(10)]
    [4, 4, 2, 2]
    """
    iid = (("a", "error", "horizon"), ("b", "error", "agents"), ("c", "words", "horizon"), ("d", "words", "agents"))
    plans = []
    for number, m in ((1, 1), (2, 8)):
        fixed = {"horizon": AGENTS, "agents": _FIXED_HORIZON[m]}
        panels = tuple(Panel(letter, what, axis, IID, m, fixed[axis]) for letter, what, axis in iid)  # type: ignore[arg-type]
        plans.append(FigurePlan(number, IID, m, panels))
    for number, m in ((3, 1), (4, 8)):
        words = Panel("a", "words", "horizon", NON_IID, m, agents)
        error = Panel("b", "error", "horizon", NON_IID, m, agents)
        plans.append(FigurePlan(number, NON_IID, m, (words, error)))
    return tuple(plans)


def iid_algorithms() -> list[Algorithm]:
    """The paper's two, with both schedules and balanced pulls, and what the package has beyond them.

    >>> [algorithm.title for algorithm in iid_algorithms()][:4]
    ['collab-top-iid', 'collab-top-iid', 'kzz', 'kzz-balanced']
    """
    ours = [CollabTopIID(), CollabTopIID(schedule="full"), KZZ(), KZZ(balanced=True)]
    return ours + _beyond("frugal-top")


def noniid_algorithms() -> list[Algorithm]:
    """The paper's two, with both schedules, and what the package has beyond them.

    >>> [algorithm.title for algorithm in noniid_algorithms()][:3]
    ['collab-top-noniid', 'collab-top-noniid', 'uniform']
    """
    return [CollabTopNonIID(), CollabTopNonIID(schedule="full"), Uniform(), *_beyond("frugal-top-noniid")]


def _beyond(name: str) -> list[Algorithm]:
    return [make_algorithm(name)] if name in available_algorithms() else []


def panels_study(iid: BernoulliArms, groups: HeterogeneousArms, *, runs: int, seed: int, quick: bool) -> Study:
    """All runs behind the twelve panels, and the points at T = 30,000 that m = 8 is judged by as well."""
    for name, arms in (("means", iid), ("group means", groups)):
        if arms.n <= 16:
            raise InputError(f"{name} hold {arms.n} arms, but the best 8 of at most 16 is not what the paper asks")
    horizons, crews = (_QUICK_HORIZONS, _QUICK_CREWS) if quick else (_HORIZONS, _CREWS)
    studies: list[Study] = []
    for m in (1, 8):
        for algorithm in iid_algorithms():
            for horizon in horizons[IID, m]:
                studies += _fitting(IID, iid, algorithm, m, AGENTS, horizon, runs, seed)
            for crew in crews:
                studies += _fitting(IID, iid, algorithm, m, crew, _FIXED_HORIZON[m], runs, seed)
        for algorithm in noniid_algorithms():
            for horizon in horizons[NON_IID, m]:
                studies += _fitting(NON_IID, groups, algorithm, m, groups.agents, horizon, runs, seed)
    for algorithm in iid_algorithms()[:3]:
        for crew in (crews[0], crews[-1]):
            studies += _fitting(IID, iid, algorithm, 8, crew, PAPER_HORIZON, runs, seed)
    return added(studies)


def _fitting(
    name: str, arms: SimulatedArms, algorithm: Algorithm, m: int, agents: int | None, horizon: int, runs: int, seed: int
) -> list[Study]:
    """A study of one point, or none where the horizon does not pay for the algorithm's first step."""
    try:
        make_spec(arms, m, agents=agents, horizon=horizon, algorithm=algorithm)
    except HorizonError:
        return []
    return [Study(arms={name: arms}, algorithms=algorithm, m=m, agents=agents, horizon=horizon, runs=runs, seed=seed)]


def added(studies: Iterable[Study]) -> Study:
    """Several studies as one."""
    return reduce(add, studies)
