"""The study behind the paper's experimental section, and the panels of its figures."""

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
"""K in the paper's figures over T."""
PAPER_HORIZON = 30_000
"""T in the paper's figures over K."""
IID, NON_IID = "movies", "groups"

# The printed schedule needs three times the horizon of kzz, so the sweeps extend to where its error is zero as well.
_HORIZONS = {
    (IID, 1): (5_000, 10_000, 20_000, 30_000, 80_000),
    (IID, 8): (60_000, 120_000, 240_000, 600_000, 2_000_000),
    (NON_IID, 1): (3_000, 6_000, 12_000, 30_000, 200_000),
    (NON_IID, 8): (80_000, 120_000, 200_000, 500_000, 1_400_000),
}
_AGENT_COUNTS = (2, 10, 20, 30)
_QUICK_HORIZONS = {
    (IID, 1): (5_000, 30_000, 80_000),
    (IID, 8): (60_000, 600_000, 2_000_000),
    (NON_IID, 1): (10_000, 50_000, 200_000),
    (NON_IID, 8): (60_000, 240_000, 1_400_000),
}
_QUICK_AGENT_COUNTS = (2, 10, 30)
_FIXED_HORIZON = {1: PAPER_HORIZON, 8: 600_000}

Axis = Literal["horizon", "agents"]
Measure = Literal["error", "words"]


def fixed_horizon(m: int) -> int:
    """T of the sweep over K: the paper's for m = 1, and for m = 8 a longer one at which the error can fall."""
    return _FIXED_HORIZON[m]


def data_kind(arms: str) -> str:
    """IID or non-IID, by the name of the arms."""
    return "IID" if arms == IID else "non-IID"


class Panel(msgspec.Struct, frozen=True):
    """One panel of a figure: a measure over T or K."""

    letter: str
    measure: Measure
    against: Axis
    arms: str
    m: int
    fixed: int
    """K where T varies, T where K varies."""

    @property
    def title(self) -> str:
        """The title of the panel."""
        measure = "Error" if self.measure == "error" else "Communication"
        if self.against == "horizon":
            return f"{measure} over T, K = {self.fixed}"
        return f"{measure} over K, T = {self.fixed:,}"


class FigurePlan(msgspec.Struct, frozen=True):
    """One figure of the paper."""

    number: int
    arms: str
    m: int
    panels: tuple[Panel, ...]

    @property
    def title(self) -> str:
        """The paper's caption."""
        return f"Performance of algorithms for top-{self.m} arm identification, {data_kind(self.arms)} data"


def figure_plans(agents: int) -> tuple[FigurePlan, ...]:
    """The paper's four figures with twelve panels; `agents` is K of the non-IID arms.

    >>> [len(plan.panels) for plan in figure_plans(10)]
    [4, 4, 2, 2]
    """
    iid = (("a", "error", "horizon"), ("b", "error", "agents"), ("c", "words", "horizon"), ("d", "words", "agents"))
    plans = []
    for number, m in ((1, 1), (2, 8)):
        fixed = {"horizon": AGENTS, "agents": _FIXED_HORIZON[m]}
        panels = tuple(Panel(letter, measure, axis, IID, m, fixed[axis]) for letter, measure, axis in iid)  # type: ignore[arg-type]
        plans.append(FigurePlan(number, IID, m, panels))
    for number, m in ((3, 1), (4, 8)):
        words = Panel("a", "words", "horizon", NON_IID, m, agents)
        error = Panel("b", "error", "horizon", NON_IID, m, agents)
        plans.append(FigurePlan(number, NON_IID, m, (words, error)))
    return tuple(plans)


def iid_algorithms() -> list[Algorithm]:
    """The paper's two algorithms, with both schedules and balanced pulls, and this package's own.

    >>> [algorithm.title for algorithm in iid_algorithms()][:4]
    ['collab-top-iid', 'collab-top-iid', 'kzz', 'kzz-balanced']
    """
    return [CollabTopIID(), CollabTopIID(schedule="full"), KZZ(), KZZ(balanced=True), *_if_available("frugal-top")]


def noniid_algorithms() -> list[Algorithm]:
    """The paper's two algorithms, with both schedules, and this package's own.

    >>> [algorithm.title for algorithm in noniid_algorithms()][:3]
    ['collab-top-noniid', 'collab-top-noniid', 'uniform']
    """
    return [CollabTopNonIID(), CollabTopNonIID(schedule="full"), Uniform(), *_if_available("frugal-top-noniid")]


def _if_available(name: str) -> list[Algorithm]:
    return [make_algorithm(name)] if name in available_algorithms() else []


def panels_study(iid: BernoulliArms, groups: HeterogeneousArms, *, runs: int, seed: int, quick: bool) -> Study:
    """All runs for the twelve panels, and the points at T = 30,000 that the verdicts for m = 8 also use."""
    for kind, arms in (("IID", iid), ("non-IID", groups)):
        if arms.n <= 16:
            raise InputError(
                f"the number of {kind} arms is {arms.n}, but the paper's top-8 experiments need at least 17"
            )
    horizons, agent_counts = (_QUICK_HORIZONS, _QUICK_AGENT_COUNTS) if quick else (_HORIZONS, _AGENT_COUNTS)
    studies: list[Study] = []
    for m in (1, 8):
        for algorithm in iid_algorithms():
            for horizon in horizons[IID, m]:
                studies += _point_study(IID, iid, algorithm, m, AGENTS, horizon, runs, seed)
            for agents in agent_counts:
                studies += _point_study(IID, iid, algorithm, m, agents, _FIXED_HORIZON[m], runs, seed)
        for algorithm in noniid_algorithms():
            for horizon in horizons[NON_IID, m]:
                studies += _point_study(NON_IID, groups, algorithm, m, groups.agents, horizon, runs, seed)
    for algorithm in iid_algorithms()[:3]:
        for agents in (agent_counts[0], agent_counts[-1]):
            studies += _point_study(IID, iid, algorithm, 8, agents, PAPER_HORIZON, runs, seed)
    return combined(studies)


def _point_study(
    name: str, arms: SimulatedArms, algorithm: Algorithm, m: int, agents: int | None, horizon: int, runs: int, seed: int
) -> list[Study]:
    """A study of one point, or none if the horizon is below the smallest one of the algorithm."""
    try:
        make_spec(arms, m, agents=agents, horizon=horizon, algorithm=algorithm)
    except HorizonError:
        return []
    return [Study(arms={name: arms}, algorithms=algorithm, m=m, agents=agents, horizon=horizon, runs=runs, seed=seed)]


def combined(studies: Iterable[Study]) -> Study:
    """Several studies as one study."""
    return reduce(add, studies)
