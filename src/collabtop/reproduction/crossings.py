"""The study of horizons for error .01: the panels or a pilot find the region, and many runs there find the horizon.

All horizons are looked for together, one stage after the other, so that all processes are busy until the last ones.
"""

from collections.abc import Callable, Generator, Sequence
from itertools import count
from typing import NamedTuple

import msgspec

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.kzz import KZZ
from collabtop.arms import SimulatedArms
from collabtop.crossing import Crossing, NotReached
from collabtop.problem import Problem
from collabtop.reproduction.evidence import IID, NON_IID, Crossed, Evidence, Line, fit_points
from collabtop.reproduction.experiments import AGENTS, baselines, combined, iid_algorithms, noniid_algorithms
from collabtop.studies.grid import Study
from collabtop.studies.table import PointSummary, StudyTable

RunStudy = Callable[[str, Study], StudyTable]
"""Runs a study under a name, or loads its rows if it was run before."""

_PILOT = tuple(0.5 * 2**step for step in range(7))  # times H / K
_NARROW = (0.7, 1.0, 1.4)
_AROUND, _CLOSELY_AROUND = (0.78, 0.88, 1.0, 1.13, 1.28), (0.88, 0.94, 1.0, 1.07, 1.14)
_FINE_STAGES, _EXACT = 3, 1.1  # at most so many, until the horizon is known to within this factor
_RARE = 0.3  # log error is close to a line only where errors are rarer than this


class CrossingRuns(msgspec.Struct, frozen=True):
    """How many runs a crossing takes, per horizon of each stage."""

    pilot: int
    narrow: int
    fine: int
    around: tuple[float, ...] = _AROUND
    """The horizons of the last stage, as multiples of what the stage before found."""

    def times(self, factor: int) -> "CrossingRuns":
        """The same with `factor` times the runs near the crossing."""
        return msgspec.structs.replace(self, fine=factor * self.fine)


_DECISIVE = {m: CrossingRuns(100, 2_000, fine, _CLOSELY_AROUND) for m, fine in ((1, 60_000), (8, 15_000))}
"""For C2 (m = 1) and C3 (m = 8), which depend on ratios of horizons that have to be known to 3% and to 8%."""
_LOCATED = CrossingRuns(100, 500, 1_000)
"""For horizons that only have to be known to within 10%."""
_LOCATED_NON_IID = CrossingRuns(100, 200, 500)
"""The same for non-IID arms, as each run draws for every arm and agent."""
_DEEP, _DEEP_DECISIVE = 10, 2
"""How many times as many runs `--deep` makes near a crossing."""
_AGENT_COUNTS, _DEEP_AGENT_COUNTS = (1, 100), (1, 2, 5, 20, 50, 100)


class CrossingTarget(msgspec.Struct, frozen=True):
    """An algorithm and a setting for which the crossing is to be found."""

    algorithm: Algorithm
    m: int
    agents: int
    runs: CrossingRuns
    arms: str = IID

    @property
    def line(self) -> Line:
        """The algorithm and its schedule."""
        return Line(self.algorithm.title, self.algorithm.options.get("schedule"))

    @property
    def name(self) -> str:
        """The name of the target."""
        schedule = f"-{self.line.schedule}" if self.line.schedule else ""
        return f"{self.line.algorithm}{schedule}-m{self.m}-k{self.agents}"


def crossing_targets(agents: int, *, deep: bool) -> list[CrossingTarget]:
    """All algorithms at K = 10 for C2 and C3, the baselines, those other than kzz at other K for T3, the non-IID ones.

    `agents` is K of the non-IID arms. uniform is left out: its horizon is far longer than all others.
    """
    factor = _DEEP if deep else 1
    located, non_iid = _LOCATED.times(factor), _LOCATED_NON_IID.times(factor)
    decisive = {m: runs.times(_DEEP_DECISIVE if deep else 1) for m, runs in _DECISIVE.items()}
    iid = [a for a in iid_algorithms() if not (isinstance(a, KZZ) and a.balanced)]  # it errs as often as kzz
    noniid = [a for a in noniid_algorithms() if a.title != "uniform"]
    targets = [
        CrossingTarget(algorithm, m, AGENTS, decisive[m] if _is_compared(algorithm) else located)
        for m in (1, 8)
        for algorithm in iid
    ]
    # nsar takes ten times as long as the others, so the horizons of the panels have to do.
    targets += [CrossingTarget(a, m, AGENTS, located) for m in (1, 8) for a in baselines(m) if a.name != "nsar"]
    targets += [
        CrossingTarget(algorithm, 1, k, located)
        for k in (_DEEP_AGENT_COUNTS if deep else _AGENT_COUNTS)
        for algorithm in iid
        if not isinstance(algorithm, KZZ)
    ]
    return targets + [CrossingTarget(a, m, agents, non_iid, NON_IID) for m in (1, 8) for a in noniid]


def _is_compared(algorithm: Algorithm) -> bool:
    """Whether C2 and C3 depend on its horizon; that of the printed schedule is far longer than the paper states."""
    return isinstance(algorithm, KZZ) or (isinstance(algorithm, CollabTopIID) and algorithm.schedule == "full")


class _Stage(NamedTuple):
    """Runs that a search asks for."""

    horizons: list[float]
    runs: int


_Search = Generator[_Stage, list[PointSummary], Crossing | NotReached]
"""Asks for the runs of a stage, receives their points, and returns the horizon, or why it was not found."""


def find_crossings(
    evidence: Evidence, targets: Sequence[CrossingTarget], run: RunStudy, *, seed: int
) -> tuple[Crossed, ...]:
    """The horizon for error .01 of each target, or why it was not found."""
    searches: dict[CrossingTarget, _Search] = {}
    found: dict[CrossingTarget, Crossing | NotReached] = {}
    received: dict[CrossingTarget, list[PointSummary] | None] = dict.fromkeys(targets)
    for number in count(1):
        stages: dict[CrossingTarget, Study] = {}
        for target, points in received.items():
            search = searches.setdefault(target, _search(evidence, target))
            try:
                stage = next(search) if points is None else search.send(points)
                stages[target] = _study(evidence.arms[target.arms], target, stage, seed)
            except StopIteration as end:
                found[target] = end.value
        if not stages:
            break
        table = run(f"crossings-{number}", combined(stages.values()))
        summaries = {point.setting: point for point in table.points()}
        received = {target: [summaries[point.setting] for point in study.points] for target, study in stages.items()}
    return tuple(Crossed(t.line, t.m, t.agents, found[t], t.arms) for t in targets)


def _study(arms: SimulatedArms, target: CrossingTarget, stage: _Stage, seed: int) -> Study:
    least = target.algorithm.smallest_horizon(Problem(arms.n, target.m, target.agents, 1))
    return Study(
        arms={target.arms: arms},
        algorithms=target.algorithm,
        m=target.m,
        agents=target.agents,
        horizon=sorted({max(least, round(horizon)) for horizon in stage.horizons}),
        runs=stage.runs,
        seed=seed,
        engine="batched",
    )


def _search(evidence: Evidence, target: CrossingTarget) -> _Search:
    """Look for the horizon of one target."""
    runs = target.runs
    tried = evidence.sweep(target.line, target.arms, target.m, agents=target.agents)
    rough = fit_points(tried, most=_RARE)
    near_enough = isinstance(rough, Crossing) and _is_within(rough, runs.around)
    if isinstance(rough, NotReached):  # the panels have other numbers of agents
        unit = evidence.complexity(target.arms, target.m) / target.agents
        tried = yield _Stage([unit * factor for factor in _PILOT], runs.pilot)
        rough = fit_points(tried, most=_RARE)
    if isinstance(rough, NotReached):
        return rough
    for _ in range(0 if near_enough else 2):
        narrow = yield _Stage([rough.horizon * factor for factor in _NARROW], runs.narrow)
        tried = [*tried, *narrow]
        closer = fit_points(narrow, most=_RARE)
        if isinstance(closer, NotReached):
            break
        rough = closer
        if narrow[0].horizon <= rough.horizon <= narrow[-1].horizon:
            break
    return (yield from _fine_search(rough, tried, runs))


def _is_within(rough: Crossing, around: Sequence[float]) -> bool:
    """Whether the interval lies within the horizons of the last stage."""
    return around[0] * rough.horizon <= rough.low and rough.high <= around[-1] * rough.horizon


def _fine_search(rough: Crossing, tried: Sequence[PointSummary], runs: CrossingRuns) -> _Search:
    """Make many runs near the horizon, and again if the rough estimate was off or the horizon is not known to 10%."""
    near: Crossing | NotReached = rough
    fine: list[PointSummary] = []
    for _ in range(_FINE_STAGES):
        last = yield _Stage([rough.horizon * factor for factor in runs.around], runs.fine)
        fine = [*fine, *last]
        near = fit_points(fine, most=_RARE)
        if isinstance(near, Crossing) and _is_exact(near, last[0].horizon, last[-1].horizon):
            break
        closer = near if isinstance(near, Crossing) else fit_points([*tried, *fine], most=_RARE)
        if isinstance(closer, NotReached):
            break
        rough = closer
    return near


def _is_exact(near: Crossing, shortest: int, longest: int) -> bool:
    return shortest <= near.horizon <= longest and near.high <= _EXACT**2 * near.low
