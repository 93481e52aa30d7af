"""Finds the horizon for an error by simulation: a bracket first, then a fit of log error within it."""

from __future__ import annotations

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
from collabtop.stats import fit_crossing
from collabtop.studies.grid import Study
from collabtop.studies.table import PointSummary, StudyTable

_BRACKET_RUNS = 60
_DOUBLINGS = 24
_POINTS = 4
_AROUND = (0.85, 1.15)
_SURE_RUNS = 20
_TELLING = 0.35  # above this share of wrong answers log error is no longer near a straight line
_START = 0.5  # times H / K
_SMALLEST = "the smallest horizon that works"


class Found(msgspec.Struct, frozen=True):
    """What the search for one horizon came to."""

    horizon: int | None = None
    low: int | None = None
    high: int | None = None
    words: float | None = None
    bits: float | None = None
    round_trips: float | None = None
    runs: int = 0
    note: str = ""


class Effort:
    """How much may be simulated, and how far that has got; time is shared equally between what is left to do."""

    def __init__(self, *, runs: int, seconds: float, seed: int, jobs: int | None, progress: bool) -> None:
        self.runs, self.seed, self.jobs = runs, seed, jobs
        self._seconds, self._shown = seconds, progress
        self._parts = self._left = 0
        self._ends = self._turn_ends = math.inf

    @contextmanager
    def watch(self, parts: int) -> Iterator[None]:
        """Begin: so many algorithms are to be tried."""
        self._ends = time.monotonic() + self._seconds
        self._parts = self._left = parts
        # Drawn between studies only: a thread that draws is no good company for processes that fork.
        with Progress(console=Console(stderr=True), disable=not self._shown, auto_refresh=False) as bar:
            self._bar, self._task = bar, bar.add_task("planning", total=parts)
            yield
            bar.update(self._task, completed=parts, refresh=True)

    def turn_to(self, title: str) -> None:
        """The next algorithm's turn."""
        now = time.monotonic()
        self._turn_ends = now + max(0.0, self._ends - now) / self._left
        self._bar.update(self._task, description=title, completed=self._parts - self._left, refresh=True)
        self._left -= 1

    @property
    def spent(self) -> bool:
        """Whether the time of this algorithm is up."""
        return time.monotonic() > self._turn_ends

    def simulate(
        self, algorithm: Algorithm, arms: SimulatedArms, m: int, agents: int, horizons: Sequence[int], runs: int
    ) -> list[PointSummary]:
        """What runs at each of these horizons come to."""
        return self.make_runs(algorithm, arms, m, agents, horizons, runs).points()

    def make_runs(
        self, algorithm: Algorithm, arms: SimulatedArms, m: int, agents: int, horizons: Sequence[int], runs: int
    ) -> StudyTable:
        """Runs at each of these horizons, one by one."""
        study = Study(arms=arms, algorithms=algorithm, m=m, agents=agents, horizon=horizons, runs=runs, seed=self.seed)
        return study.run(jobs=self.jobs)


class _Search:
    """All runs made so far of one algorithm."""

    def __init__(self, algorithm: Algorithm, arms: SimulatedArms, m: int, agents: int, effort: Effort) -> None:
        self._runs_of = (algorithm, arms, m, agents)
        self._effort = effort
        self.least = algorithm.smallest_horizon(Problem(arms.n, m, agents, 1))
        self.points: dict[int, PointSummary] = {}

    def try_out(self, horizons: Sequence[int], runs: int) -> list[PointSummary]:
        made = self._effort.simulate(*self._runs_of, horizons, runs)
        for point in made:
            known = self.points.get(point.horizon)
            if known is None or point.runs > known.runs:
                self.points[point.horizon] = point
        return made

    def look_at(self, horizons: Sequence[float], runs: int) -> None:
        """Try out these horizons while there is time, the longest first: they are the ones in question."""
        for horizon in sorted({max(self.least, round(horizon)) for horizon in horizons}, reverse=True):
            if not self._effort.spent:
                self.try_out([horizon], runs)

    def bracket(self, start: int, target: float) -> tuple[int, int] | None:
        """A horizon with more than a telling share of errors (or the smallest), and one that seems to do."""
        runs = min(self._effort.runs, _BRACKET_RUNS)
        low = high = max(self.least, start)
        while self._error(low, runs) < _TELLING and low > self.least and not self._effort.spent:
            low = max(self.least, low // 2)
        for _ in range(_DOUBLINGS):
            if self._error(high, runs) <= target:
                return low, high
            if self._error(high, runs) > _TELLING:
                low = high
            if self._effort.spent:
                return None
            high *= 2
        return None

    def _error(self, horizon: int, runs: int) -> float:
        if horizon not in self.points:
            self.try_out([horizon], runs)
        return self.points[horizon].error

    def crossing(self, target: float) -> Found:
        """The fit of log error to all telling points."""
        some = [point for _, point in sorted(self.points.items()) if point.error <= _TELLING]
        fit = fit_crossing([p.horizon for p in some], [p.wrong for p in some], [p.runs for p in some], target)
        total = sum(point.runs for point in self.points.values())
        if fit is None and some and some[0].horizon == self.least and some[0].error <= target:
            return _with_costs(some[0], total, _SMALLEST, self.least, None, None)
        if fit is None:
            return Found(runs=total, note="too few runs to tell where the error crosses")
        horizon = max(self.least, round(fit.horizon))
        nearest = min(self.points.values(), key=lambda point: abs(math.log(point.horizon / horizon)))
        note = _SMALLEST if horizon == self.least else ""
        return _with_costs(nearest, total, note, horizon, max(self.least, round(fit.low)), round(fit.high))


def find_horizons(
    algorithm: Algorithm, arms: SimulatedArms, m: int, agents: int, targets: Sequence[float], effort: Effort
) -> dict[float, Found]:
    """The horizon for each error, from one set of runs."""
    search = _Search(algorithm, arms, m, agents, effort)
    start = math.ceil(_START * complexity(arms, m) / agents)
    ends = search.bracket(start, min(targets))
    if ends is None:
        total = sum(point.runs for point in search.points.values())
        return dict.fromkeys(targets, Found(runs=total, note="not found in the time given"))
    low, high = ends
    search.look_at(np.geomspace(low, 1.2 * high, _POINTS).tolist(), max(1, effort.runs // 2))
    rough = [search.crossing(target).horizon for target in targets]
    search.look_at([place * near for place in rough if place is not None for near in _AROUND], effort.runs)
    return {target: _enough_or_crossing(search, target) for target in targets}


def _enough_or_crossing(search: _Search, target: float) -> Found:
    first = search.points.get(search.least)
    if first is not None and first.error_high <= target:
        return _with_costs(first, first.runs, _SMALLEST, search.least, None, None)
    return search.crossing(target)


def time_to_be_sure(algorithm: Algorithm, arms: SimulatedArms, m: int, agents: int, effort: Effort) -> Found:
    """How long an algorithm that stops by itself takes: the mean, and where 95% of runs lie."""
    runs = min(effort.runs, _SURE_RUNS)
    made = effort.make_runs(algorithm, arms, m, agents, [DEFAULT_MAX_HORIZON], runs)
    # One that could not pull every arm once more had no time left: it gave up, or was about to.
    longest = DEFAULT_MAX_HORIZON - algorithm.smallest_horizon(Problem(arms.n, m, agents, 1))
    unsure = sum(row.time > longest for row in made.rows)
    if unsure:
        return Found(runs=runs, note=f"not sure at the limit of {DEFAULT_MAX_HORIZON:,} in {unsure} of {runs} runs")
    (point,) = made.points()
    low, high = (max(0.0, point.time_mean + side * 1.96 * point.time_sd) for side in (-1, 1))
    return _with_costs(point, runs, "stops by itself", round(point.time_mean), round(low), round(high))


def _with_costs(point: PointSummary, runs: int, note: str, horizon: int, low: int | None, high: int | None) -> Found:
    return Found(
        horizon=horizon,
        low=low,
        high=high,
        words=point.words_mean,
        bits=point.bits_mean,
        round_trips=point.round_trips_mean,
        runs=runs,
        note=note,
    )
