"""The deep study of horizons for error .01: a pilot finds the region, and many runs there find the horizon."""

from collections.abc import Callable, Sequence

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.kzz import KZZ
from collabtop.arms import BernoulliArms
from collabtop.problem import Problem, complexity
from collabtop.reproduction.evidence import IID, Crossed, Line, fit_points
from collabtop.reproduction.experiments import AGENTS, iid_algorithms
from collabtop.stats import Crossing, NotReached
from collabtop.studies.grid import Study
from collabtop.studies.table import PointSummary, StudyTable

RunStudy = Callable[[str, Study], StudyTable]
"""Runs a study under a name, or loads its rows if it was run before."""

_PILOT = tuple(0.5 * 2**step for step in range(7))  # times H / K
_NARROW = (0.7, 1.0, 1.4)
_AROUND = (0.78, 0.88, 1.0, 1.13, 1.28)
_RUNS = (100, 400, 2_000)  # five horizons around the crossing: 10,000 runs in total
_AGENT_COUNTS = (1, 2, 5, 20, 50, 100)
_RARE = 0.3  # log error is close to a line only where errors are rarer than this


class CrossingTarget:
    """An algorithm and a setting for which the crossing is to be found."""

    def __init__(self, algorithm: Algorithm, m: int, agents: int) -> None:
        self.algorithm, self.m, self.agents = algorithm, m, agents
        self.line = Line(algorithm.title, algorithm.options.get("schedule"))

    @property
    def name(self) -> str:
        """The name of the target, for folders."""
        schedule = f"-{self.line.schedule}" if self.line.schedule else ""
        return f"{self.line.algorithm}{schedule}-m{self.m}-k{self.agents}"


def crossing_targets() -> list[CrossingTarget]:
    """All algorithms at K = 10 for C2 and C3, and those other than kzz at other K for T3."""
    compared = [a for a in iid_algorithms() if not (isinstance(a, KZZ) and a.balanced)]
    others = [a for a in compared if not isinstance(a, KZZ)]
    targets = [CrossingTarget(algorithm, m, AGENTS) for m in (1, 8) for algorithm in compared]
    return targets + [CrossingTarget(algorithm, 1, k) for k in _AGENT_COUNTS for algorithm in others]


def find_crossings(
    arms: BernoulliArms,
    targets: Sequence[CrossingTarget],
    run: RunStudy,
    *,
    seed: int,
    runs: tuple[int, int, int] = _RUNS,
) -> tuple[Crossed, ...]:
    """The horizon for error .01 of each target, or why it was not found."""
    return tuple(Crossed(t.line, t.m, t.agents, _crossing(arms, t, run, seed, runs)) for t in targets)


def _crossing(
    arms: BernoulliArms, target: CrossingTarget, run: RunStudy, seed: int, runs: tuple[int, int, int]
) -> Crossing | NotReached:
    unit = complexity(arms, target.m) / target.agents
    least = target.algorithm.smallest_horizon(Problem(arms.n, target.m, target.agents, 1))

    def points(stage: str, horizons: Sequence[float], each: int) -> list[PointSummary]:
        whole = sorted({max(least, round(horizon)) for horizon in horizons})
        study = Study(
            arms={IID: arms},
            algorithms=target.algorithm,
            m=target.m,
            agents=target.agents,
            horizon=whole,
            runs=each,
            seed=seed,
            engine="batched",
        )
        return run(f"{target.name}-{stage}", study).points()

    pilot = points("pilot", [unit * factor for factor in _PILOT], runs[0])
    rough = fit_points(pilot, most=_RARE)
    if isinstance(rough, NotReached):
        return rough
    narrow = points("narrow", [rough.horizon * factor for factor in _NARROW], runs[1])
    closer = fit_points(narrow, most=_RARE)
    rough = closer if isinstance(closer, Crossing) else rough
    fine = points("fine", [rough.horizon * factor for factor in _AROUND], runs[2])
    near = fit_points(fine, most=_RARE)
    if isinstance(near, Crossing) and fine[0].horizon <= near.horizon <= fine[-1].horizon:
        return near
    # The rough estimate was off, so repeat around the estimate from the many runs.
    again = near if isinstance(near, Crossing) else fit_points([*narrow, *fine], most=_RARE)
    if isinstance(again, NotReached):
        return again
    return fit_points([*fine, *points("again", [again.horizon * factor for factor in _AROUND], runs[2])], most=_RARE)
