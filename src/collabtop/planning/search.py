"""The horizon for an error, found by simulation: a quick approach, then most runs close to the crossing."""

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.arms import SimulatedArms
from collabtop.crossing import Crossing, NotReached, fit_crossing
from collabtop.planning.effort import Effort
from collabtop.problem import Problem, complexity
from collabtop.runs.spec import DEFAULT_MAX_HORIZON
from collabtop.stats import Z_95, wilson_interval

_START = 0.5  # times H / K
_FIRST_RUNS, _MORE = 60, 1.3  # runs of the first step, and by how much each further step has more
_STEPS = 60
_INFORMATIVE = 0.35  # above this share of wrong answers, an error says little about the crossing
_STEP = 1.6  # from an error that is informative to a longer horizon
_AROUND = (0.9, 1.1)
_WINDOW = 2.2  # the curves of the fit describe the error within this factor of the crossing
_PRECISE = 0.18  # standard deviation of the logarithm of the error at the crossing
_CAUTION = 1.0  # standard deviations by which the planned horizon lies above the estimate
_STOPPING_RUNS = 20
_ENOUGH_WRONG = 10  # about so many wrong answers at the target show roughly where the crossing is
_COST_RUNS, _COSTS_KNOWN = (2, 10), 0.02
_SMALLEST = "the smallest horizon that works"
_LATE = "not found in the time given"

CountWrong = Callable[[int, int, int], tuple[int, int]]
"""Makes runs: horizon, runs and the number of the first one; returns how many were wrong, and how many were made."""


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


class Point(msgspec.Struct):
    """The runs made so far at one horizon."""

    horizon: int
    wrong: int = 0
    runs: int = 0

    @property
    def error(self) -> float:
        """The share of wrong answers, with half a wrong and half a right one added."""
        return (self.wrong + 0.5) / (self.runs + 1)


class ErrorCurve:
    """All runs made so far of one algorithm, and where their errors cross a target.

    >>> rng = np.random.default_rng(1)
    >>> def count_wrong(horizon, runs, first):
    ...     return int(rng.binomial(runs, min(1.0, 2 * math.exp(-horizon / 100)))), runs
    >>> curve = ErrorCurve(count_wrong, least=10, most_runs=20_000)
    >>> crossing = curve.locate(start=50, target=0.01)
    >>> crossing.low < 100 * math.log(200) < crossing.high
    True
    """

    def __init__(self, count_wrong: CountWrong, least: int, most_runs: int) -> None:
        self._count_wrong, self.least, self._most_runs = count_wrong, least, most_runs
        self._points: dict[int, Point] = {}
        self.late = False
        """Whether time ran out."""

    @property
    def runs(self) -> int:
        """All runs made so far."""
        return sum(point.runs for point in self._points.values())

    def point(self, horizon: float, runs: int) -> Point:
        """Make more runs at this horizon, or at the smallest one if it is larger."""
        point = self._points.setdefault(max(self.least, round(horizon)), Point(max(self.least, round(horizon))))
        wrong, made = self._count_wrong(point.horizon, runs, point.runs)
        point.wrong, point.runs = point.wrong + wrong, point.runs + made
        self.late |= made < runs
        return point

    def locate(self, start: float, target: float) -> Crossing | NotReached:
        """Go from `start` to where the error is about the target, then make runs there until it is well known."""
        step_runs, centre = float(_FIRST_RUNS), start
        fit, used = self._fit(target, centre)
        for _ in range(_STEPS):
            if self.late or used >= self._most_runs or self._is_known(fit, target):
                break
            if isinstance(fit, Crossing):
                # Three times as many as so far in total, or as many as will be enough.
                enough = used * ((fit.fall * fit.log_deviation / _PRECISE) ** 2 - 1)
                new = min(self._most_runs - used, max(_FIRST_RUNS, min(2 * used, 1.1 * enough)))
                for factor in _AROUND:
                    self.point(fit.horizon * factor, math.ceil(new / len(_AROUND)))
                centre = fit.horizon
            else:
                step_runs *= _MORE
                centre = self._next_horizon(start, target)
                self.point(centre, round(step_runs))
            fit, used = self._fit(target, centre)
        return fit

    def _next_horizon(self, start: float, target: float) -> float:
        """A step towards the crossing: between an error above the target and one below it, if there are both."""
        made = [point for _, point in sorted(self._points.items()) if point.runs]
        if not made:
            return start
        above = [point for point in made if point.wrong > 1 and point.error > target]
        if not above:
            return made[0].horizon / 2
        last = above[-1]
        below = [point for point in made if point.horizon > last.horizon]
        if below:
            return math.sqrt(last.horizon * below[0].horizon)
        return last.horizon * (4.0 if last.error > 0.8 else 2.0 if last.error > _INFORMATIVE else _STEP)

    def is_smallest(self, target: float) -> bool:
        """Whether the smallest horizon is enough already, as far as its runs show."""
        first = self._points.get(self.least)
        return (
            first is not None and first.runs > 0 and wilson_interval(first.wrong / first.runs, first.runs)[1] <= target
        )

    def _is_known(self, fit: Crossing | NotReached, target: float) -> bool:
        return self.is_smallest(target) or (isinstance(fit, Crossing) and fit.fall * fit.log_deviation <= _PRECISE)

    def _fit(self, target: float, centre: float) -> tuple[Crossing | NotReached, int]:
        """The fit to the points around `centre`, and how many runs it uses."""
        informative = max(_INFORMATIVE, 1.5 * target)
        points = [
            point
            for _, point in sorted(self._points.items())
            if centre / _WINDOW <= point.horizon <= centre * _WINDOW and point.runs and point.error <= informative
        ]
        errors = [point.error for point in points]
        if len(points) < 2 or max(errors) < target / 2 or min(errors) > 3 * target:  # not worth the time of a fit
            return NotReached(_LATE), sum(point.runs for point in points)
        counts = [point.wrong for point in points], [point.runs for point in points]
        return fit_crossing([point.horizon for point in points], *counts, target), sum(counts[1])


def find_horizons(
    algorithm: Algorithm, arms: SimulatedArms, problem: Problem, targets: Sequence[float], effort: Effort
) -> dict[float, SearchResult]:
    """The horizon for each error, from one set of runs."""

    def count_wrong(horizon: int, runs: int, first: int) -> tuple[int, int]:
        return effort.wrong(algorithm, arms, problem.at_horizon(horizon), runs, first)

    curve = ErrorCurve(count_wrong, algorithm.smallest_horizon(problem), effort.runs)
    start = _START * complexity(arms, problem.m) / problem.agents
    costs = _costs(algorithm, arms, problem.at_horizon(max(curve.least, round(start))), effort)
    results: dict[float, SearchResult] = {}
    for target in sorted(targets, reverse=True):
        results[target] = _result(curve, target, curve.locate(start, target))
        start = results[target].horizon or start
    if curve.late:
        results = {target: _with_advice(result, target, curve, effort) for target, result in results.items()}
    return {target: msgspec.structs.replace(result, runs=curve.runs, **costs) for target, result in results.items()}


def _result(curve: ErrorCurve, target: float, fit: Crossing | NotReached) -> SearchResult:
    if curve.is_smallest(target):
        return SearchResult(horizon=curve.least, note=_SMALLEST)
    if isinstance(fit, NotReached):
        return SearchResult(note=_LATE if curve.late else fit.reason)
    horizon = max(curve.least, math.ceil(fit.interval(_CAUTION)[1]))
    note = _SMALLEST if horizon == curve.least else ""
    return SearchResult(
        horizon, max(curve.least, math.floor(fit.low)), max(curve.least, math.ceil(fit.high)), note=note
    )


def _with_advice(result: SearchResult, target: float, curve: ErrorCurve, effort: Effort) -> SearchResult:
    """The result of a search that ran out of time, with about how long the whole plan has to take to find it."""
    if result.horizon is not None or not curve.runs:
        return result
    needed = max(1.0, effort.seconds * max(2.0, _ENOUGH_WRONG / target / curve.runs))
    advice = f"try {_rounded(needed)} seconds"
    if effort.parts > 1:
        advice += f", or {_rounded(max(1.0, needed / effort.parts))} for this algorithm alone"
    return msgspec.structs.replace(result, note=f"{_LATE}; {advice}")


def _rounded(seconds: float) -> str:
    return f"{float(f'{seconds:.1g}'):,.0f}"


def _costs(algorithm: Algorithm, arms: SimulatedArms, problem: Problem, effort: Effort) -> dict[str, float]:
    """The mean words, bits and round trips of a few runs with messages; they hardly depend on the horizon."""
    rows: list[tuple[int, int, int]] = []
    fewest, most = (1, 1) if algorithm.fixed_schedule and arms.iid else _COST_RUNS
    for result in effort.results(algorithm, arms, problem, most):
        rows.append((result.words, result.bits, result.round_trips))
        costs = np.array(rows, np.float64)
        if len(rows) >= fewest and (costs.std(axis=0) <= _COSTS_KNOWN * costs.mean(axis=0)).all():
            break
    return _mean_costs(rows)


def _mean_costs(rows: Sequence[tuple[int, int, int]]) -> dict[str, float]:
    return dict(zip(("words", "bits", "round_trips"), np.mean(rows, axis=0).tolist(), strict=True)) if rows else {}


def stopping_time(algorithm: Algorithm, arms: SimulatedArms, problem: Problem, effort: Effort) -> SearchResult:
    """How long an algorithm that stops early takes: the mean, and the interval that holds 95% of runs."""
    limit = problem.at_horizon(DEFAULT_MAX_HORIZON)
    results = list(effort.results(algorithm, arms, limit, min(effort.runs, _STOPPING_RUNS)))
    if not results:
        return SearchResult(note=_LATE)
    # A run with too little time left to pull every arm once more was stopped by the limit, or was about to be.
    longest = DEFAULT_MAX_HORIZON - algorithm.smallest_horizon(problem)
    unsure = sum(result.time > longest for result in results)
    if unsure:
        note = f"not sure at the limit of {DEFAULT_MAX_HORIZON:,} in {unsure} of {len(results)} runs"
        return SearchResult(runs=len(results), note=note)
    times = np.array([result.time for result in results])
    mean = float(times.mean())
    low = high = None
    if len(times) > 1:
        spread = Z_95 * float(times.std(ddof=1))
        low, high = round(max(0.0, mean - spread)), round(mean + spread)
    costs = _mean_costs([(result.words, result.bits, result.round_trips) for result in results])
    made = SearchResult(round(mean), low, high, runs=len(results), note="stops early")
    return msgspec.structs.replace(made, **costs)
