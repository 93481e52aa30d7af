"""The horizon for an error, found by simulation: first a bracket, then a fit of log error within it."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import numpy as np
from rich.console import Console
from rich.progress import Progress

from collabtop.algorithms.base import Algorithm
from collabtop.arms import SimulatedArms
from collabtop.problem import Problem, complexity
from collabtop.runs.spec import DEFAULT_MAX_HORIZON
from collabtop.stats import Crossing, NotReached, fit_crossing
from collabtop.studies.grid import Engine, Study
from collabtop.studies.table import PointSummary, StudyTable

_BRACKET_RUNS = 60
_DOUBLINGS = 24
_POINTS = 4
_AROUND = (0.85, 1.15)
_STOPPING_RUNS = _COST_RUNS = 20
_INFORMATIVE = 0.35  # above this share of wrong answers, log error is no longer close to a straight line
_START = 0.5  # times H / K
_SMALLEST = "the smallest horizon that works"


class SearchResult(msgspec.Struct, frozen=True):
    """The horizon that a search led to, and what runs near it cost."""

    horizon: int | None = None
    low: int | None = None
    high: int | None = None
    words: float | None = None
    bits: float | None = None
    round_trips: float | None = None
    runs: int = 0
    note: str = ""


class Effort:
    """How much may be simulated, and how much has been; the algorithms that are left share the time equally."""

    def __init__(self, *, runs: int, seconds: float, seed: int, jobs: int | None, progress: bool) -> None:
        self.runs, self.seed, self.jobs = runs, seed, jobs
        self._seconds, self._shown = seconds, progress
        self._parts = self._left = 0
        self._ends = self._turn_ends = math.inf

    @contextmanager
    def watch(self, parts: int) -> Iterator[None]:
        """Start the clock and the progress bar for so many algorithms."""
        self._ends = time.monotonic() + self._seconds
        self._parts = self._left = parts
        # Drawn between studies only: a thread that draws must not run while processes are forked.
        with Progress(console=Console(stderr=True), disable=not self._shown, auto_refresh=False) as bar:
            self._bar, self._task = bar, bar.add_task("planning", total=parts)
            yield
            bar.update(self._task, completed=parts, refresh=True)

    def turn_to(self, title: str) -> None:
        """Start the next algorithm's share of the time."""
        now = time.monotonic()
        self._turn_ends = now + max(0.0, self._ends - now) / self._left
        self._bar.update(self._task, description=title, completed=self._parts - self._left, refresh=True)
        self._left -= 1

    @property
    def spent(self) -> bool:
        """Whether the time of this algorithm is up."""
        return time.monotonic() > self._turn_ends

    def simulate(
        self, algorithm: Algorithm, arms: SimulatedArms, problem: Problem, horizon: int, runs: int, engine: Engine
    ) -> StudyTable:
        """Make so many runs at this horizon."""
        study = Study(
            arms=arms,
            algorithms=algorithm,
            m=problem.m,
            agents=problem.agents,
            horizon=horizon,
            runs=runs,
            seed=self.seed,
            engine=engine,
        )
        return study.run(jobs=self.jobs)


class _Search:
    """All runs made so far of one algorithm."""

    def __init__(self, algorithm: Algorithm, arms: SimulatedArms, problem: Problem, effort: Effort) -> None:
        self._algorithm, self._arms, self._problem, self._effort = algorithm, arms, problem, effort
        self.least = algorithm.smallest_horizon(problem)
        self.points: dict[int, PointSummary] = {}

    @property
    def runs(self) -> int:
        return sum(point.runs for point in self.points.values())

    def simulate(self, horizon: int, runs: int) -> None:
        """Make runs at this horizon; they replace earlier ones if they are more."""
        [point] = self._simulate(horizon, runs, "batched" if self._algorithm.batched else "messages").points()
        earlier = self.points.get(horizon)
        if earlier is None or point.runs > earlier.runs:
            self.points[horizon] = point

    def _simulate(self, horizon: int, runs: int, engine: Engine) -> StudyTable:
        return self._effort.simulate(self._algorithm, self._arms, self._problem, horizon, runs, engine)

    def look_at(self, horizons: Sequence[float], runs: int) -> None:
        """Simulate these horizons while there is time, the longest first, as they matter most."""
        for horizon in sorted({max(self.least, round(horizon)) for horizon in horizons}, reverse=True):
            if not self._effort.spent:
                self.simulate(horizon, runs)

    def bracket(self, start: int, target: float) -> tuple[int, int] | None:
        """A horizon with more errors than are informative (or the smallest one), and one that seems to be enough."""
        runs = min(self._effort.runs, _BRACKET_RUNS)
        low = high = max(self.least, start)
        while self._error(low, runs) < _INFORMATIVE and low > self.least and not self._effort.spent:
            low = max(self.least, low // 2)
        for _ in range(_DOUBLINGS):
            if self._error(high, runs) <= target:
                return low, high
            if self._error(high, runs) > _INFORMATIVE:
                low = high
            if self._effort.spent:
                return None
            high *= 2
        return None

    def _error(self, horizon: int, runs: int) -> float:
        if horizon not in self.points:
            self.simulate(horizon, runs)
        return self.points[horizon].error

    def fit(self, target: float) -> Crossing | NotReached:
        """Where the error crosses the target, or why the informative points do not locate it."""
        points = self._informative()
        return fit_crossing([p.horizon for p in points], [p.wrong for p in points], [p.runs for p in points], target)

    def _informative(self) -> list[PointSummary]:
        return [point for _, point in sorted(self.points.items()) if point.error <= _INFORMATIVE]

    def crossing(self, target: float) -> SearchResult:
        """Where the fit of log error to all informative points crosses the target."""
        points, fit = self._informative(), self.fit(target)
        if isinstance(fit, NotReached):
            if points and points[0].horizon == self.least and points[0].error <= target:
                return self.with_costs(_SMALLEST, self.least, None, None)
            return SearchResult(runs=self.runs, note=fit.reason)
        horizon = max(self.least, round(fit.horizon))
        note = _SMALLEST if horizon == self.least else ""
        return self.with_costs(note, horizon, max(self.least, round(fit.low)), round(fit.high))

    def with_costs(self, note: str, horizon: int, low: int | None, high: int | None) -> SearchResult:
        """The result, with the costs at the nearest horizon of the search, which take a few runs with messages."""
        nearest = min(self.points.values(), key=lambda point: abs(math.log(point.horizon / horizon)))
        if not nearest.message_runs:
            [nearest] = self._simulate(nearest.horizon, _COST_RUNS, "auto").points()
        return _with_costs(nearest, self.runs, note, horizon, low, high)


def find_horizons(
    algorithm: Algorithm, arms: SimulatedArms, problem: Problem, targets: Sequence[float], effort: Effort
) -> dict[float, SearchResult]:
    """The horizon for each error, from one set of runs."""
    search = _Search(algorithm, arms, problem, effort)
    start = math.ceil(_START * complexity(arms, problem.m) / problem.agents)
    ends = search.bracket(start, min(targets))
    if ends is None:
        return dict.fromkeys(targets, SearchResult(runs=search.runs, note="not found in the time given"))
    low, high = ends
    search.look_at(np.geomspace(low, 1.2 * high, _POINTS).tolist(), max(1, effort.runs // 2))
    rough = [fit.horizon for fit in map(search.fit, targets) if isinstance(fit, Crossing)]
    search.look_at([horizon * factor for horizon in rough for factor in _AROUND], effort.runs)
    return {target: _smallest_or_crossing(search, target) for target in targets}


def _smallest_or_crossing(search: _Search, target: float) -> SearchResult:
    first = search.points.get(search.least)
    if first is not None and first.error_high <= target:
        return search.with_costs(_SMALLEST, search.least, None, None)
    return search.crossing(target)


def stopping_time(algorithm: Algorithm, arms: SimulatedArms, problem: Problem, effort: Effort) -> SearchResult:
    """How long an algorithm that stops early takes: the mean, and the interval that holds 95% of runs."""
    runs = min(effort.runs, _STOPPING_RUNS)
    table = effort.simulate(algorithm, arms, problem, DEFAULT_MAX_HORIZON, runs, "messages")
    # A run with too little time left to pull every arm once more was stopped by the limit, or was about to be.
    longest = DEFAULT_MAX_HORIZON - algorithm.smallest_horizon(problem)
    unsure = sum(row.time is not None and row.time > longest for row in table.rows)
    if unsure:
        note = f"not sure at the limit of {DEFAULT_MAX_HORIZON:,} in {unsure} of {runs} runs"
        return SearchResult(runs=runs, note=note)
    (point,) = table.points()
    low, high = (max(0.0, point.time_mean + side * 1.96 * point.time_sd) for side in (-1, 1))
    return _with_costs(point, runs, "stops early", round(point.time_mean), round(low), round(high))


def _with_costs(
    point: PointSummary, runs: int, note: str, horizon: int, low: int | None, high: int | None
) -> SearchResult:
    return SearchResult(
        horizon=horizon,
        low=low,
        high=high,
        words=point.words_mean,
        bits=point.bits_mean,
        round_trips=point.round_trips_mean,
        runs=runs,
        note=note,
    )
