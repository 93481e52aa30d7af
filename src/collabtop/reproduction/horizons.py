"""Horizons for error .01: a pilot finds the neighbourhood, many runs there find the horizon."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.kzz import KZZ
from collabtop.arms import BernoulliArms
from collabtop.problem import Problem, complexity
from collabtop.reproduction.evidence import Crossed, Line
from collabtop.reproduction.experiments import AGENTS, IID, iid_algorithms
from collabtop.stats import Crossing, fit_crossing
from collabtop.studies.grid import Study
from collabtop.studies.table import PointSummary, StudyTable

RunStudy = Callable[[str, Study], StudyTable]
"""Makes a study's runs under a name, or finds them made."""

_PILOT = tuple(0.5 * 2**step for step in range(7))  # times H / K
_NARROW = (0.7, 1.0, 1.4)
_AROUND = (0.78, 0.88, 1.0, 1.13, 1.28)
_RUNS = (100, 400, 2_000)  # five horizons around the crossing: 10,000 runs near it
_CREWS = (1, 2, 5, 20, 50, 100)
# One horizon with wrong answers makes no line: a pilot that has no second one takes one where they are less rare.
_RARE, _NOT_SO_RARE = 0.3, 0.6


class Place:
    """One algorithm in one setting whose crossing is wanted."""

    def __init__(self, algorithm: Algorithm, m: int, agents: int) -> None:
        self.algorithm, self.m, self.agents = algorithm, m, agents
        self.line = Line(algorithm.title, algorithm.options.get("schedule"))

    @property
    def name(self) -> str:
        """For a folder."""
        schedule = f"-{self.line.schedule}" if self.line.schedule else ""
        return f"{self.line.algorithm}{schedule}-m{self.m}-k{self.agents}"


def wanted_places() -> list[Place]:
    """C2 and C3: the paper's K = 10. T3: collab-top-iid, and what the package has beyond it, at other K."""
    compared = [one for one in iid_algorithms() if not (isinstance(one, KZZ) and one.balanced)]
    others = [one for one in compared if not isinstance(one, KZZ)]
    places = [Place(algorithm, m, AGENTS) for m in (1, 8) for algorithm in compared]
    return places + [Place(algorithm, 1, k) for k in _CREWS for algorithm in others]


def find_crossings(
    arms: BernoulliArms,
    places: Sequence[Place],
    run: RunStudy,
    *,
    seed: int,
    runs: tuple[int, int, int] = _RUNS,
) -> tuple[Crossed, ...]:
    """The horizon for error .01 of each place, or None where it is not within reach."""
    return tuple(
        Crossed(place.line, place.m, place.agents, _crossing(arms, place, run, seed, runs)) for place in places
    )


def _crossing(
    arms: BernoulliArms, place: Place, run: RunStudy, seed: int, runs: tuple[int, int, int]
) -> Crossing | None:
    unit = complexity(arms, place.m) / place.agents
    least = place.algorithm.smallest_horizon(Problem(arms.n, place.m, place.agents, 1))

    def points(stage: str, horizons: Sequence[float], each: int) -> list[PointSummary]:
        whole = sorted({max(least, round(horizon)) for horizon in horizons})
        study = Study(
            arms={IID: arms},
            algorithms=place.algorithm,
            m=place.m,
            agents=place.agents,
            horizon=whole,
            runs=each,
            seed=seed,
        )
        return run(f"{place.name}-{stage}", study).points()

    pilot = points("pilot", [unit * factor for factor in _PILOT], runs[0])
    rough = _fit(pilot) or _fit(pilot, _NOT_SO_RARE)
    if rough is None:
        return None
    narrow = points("narrow", [rough.horizon * factor for factor in _NARROW], runs[1])
    rough = _fit(narrow) or rough
    fine = points("fine", [rough.horizon * factor for factor in _AROUND], runs[2])
    near = _fit(fine)
    if near is not None and fine[0].horizon <= near.horizon <= fine[-1].horizon:
        return near
    # What led here was off: once more, around what the many runs say.
    rough = near or _fit([*narrow, *fine])
    if rough is None:
        return None
    return _fit([*fine, *points("again", [rough.horizon * factor for factor in _AROUND], runs[2])])


def _fit(points: Sequence[PointSummary], most: float = _RARE) -> Crossing | None:
    """Only where errors are rare is log error anything like a line."""
    some = sorted((point for point in points if point.error <= most), key=lambda point: point.horizon)
    # Of several points without a wrong answer the first says it all.
    last = next((place for place, point in enumerate(some) if point.wrong == 0), len(some)) + 2
    some = some[:last]
    if len(some) < 2:
        return None
    return fit_crossing([it.horizon for it in some], [it.wrong for it in some], [it.runs for it in some])
