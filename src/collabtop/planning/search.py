"""The horizon for an error, found by simulation: a quick approach, then most runs close to the crossing."""

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.arms import SimulatedArms
from collabtop.crossing import Crossing, NotReached, fit_crossing
from collabtop.errors import SettingError
from collabtop.planning.effort import Effort
from collabtop.planning.thinning import FEWEST, thinned
from collabtop.problem import Problem, complexity
from collabtop.runs.spec import DEFAULT_MAX_HORIZON
from collabtop.stats import Z_95, wilson_interval

_START = 0.5  # times H / K
_PROBE_SHARE, _LEAST_PROBE = 100, 2  # runs that show whether an error is informative: such a part of all
_FIRST_RUNS, _MORE = 60, 1.3  # runs of the first informative step, and by how much each further step has more
_FIRST_SHARE, _LEAST_RUNS = 6, 4  # at most such a part of all runs, and no fewer than so many
_PROMISING = 0.55  # above this share of wrong answers among few runs, the error is hardly informative
_FEW_WRONG = 6  # expected among the next runs; with few runs left, they are made where the error is larger
_STEPS = 60
_INFORMATIVE = 0.35  # above this share of wrong answers, an error says little about the crossing
_STEP = 1.6  # from an error that is informative to a longer horizon
_AROUND, _FALLING = (0.9, 1.1), (0.65, 1.0)  # times the crossing: where it is, and how fast the error falls
_WINDOW = 2.2  # the curves of the fit describe the error within this factor of the crossing
_PRECISE = 0.18  # standard deviation of the logarithm of the error at the crossing
_CAUTION = 1.0  # standard deviations by which the planned horizon lies above the estimate
_STOPPING_RUNS = 20
_ENOUGH_RUNS = 200  # about so many show roughly where the crossing is
_COST_RUNS, _COST_ARMS, _COSTS_KNOWN = (2, 10), 10_000, 0.02  # with many arms, so many arms in all runs
_THIN_RUNS, _THIN_SHARE = 1_500, 0.2  # of fewer arms, and their part of the work
_MANY_RUNS, _THINNED = 3_000, 2  # fewer arms are not needed for so many runs, nor if they are not so many times fewer
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

    def __init__(self, count_wrong: CountWrong, least: int, most_runs: int, around: Sequence[float] = _AROUND) -> None:
        self._count_wrong, self.least, self.most_runs = count_wrong, least, most_runs
        self._around = around
        self._points: dict[int, Point] = {}
        self._guess: Crossing | None = None
        self.limit = math.inf
        """The most runs in all; `most_runs` are those of one fit."""
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

    def locate(self, start: float, target: float, guess: Crossing | None = None) -> Crossing | NotReached:
        """Go from `start` to where the error is about the target, then make runs there until it is well known.

        With a guess, begin there, and expect the error to fall as fast as it says.
        """
        self._guess = guess
        most = min(self.most_runs, self.limit - self.runs)
        first_runs = float(min(_FIRST_RUNS, max(_LEAST_RUNS, most // _FIRST_SHARE)))
        step_runs, centre = first_runs, start
        if guess is not None:
            centre = guess.horizon
            if most > 0:
                self._make_around(guess, round(first_runs))
        fit, used = self._fit(target, centre)
        for _ in range(_STEPS):
            left = min(self.most_runs - used, self.limit - self.runs)
            if self.late or left <= 0 or self._is_known(fit, target):
                break
            if isinstance(fit, Crossing):
                # Three times as many as so far in total, or as many as will be enough.
                enough = used * ((fit.fall * fit.log_deviation / _PRECISE) ** 2 - 1)
                new = math.ceil(min(left, max(first_runs, min(2 * used, 1.1 * enough))))
                self._make_around(fit, new)
                centre = fit.horizon
            else:
                centre = self._next_horizon(start, target)
                step_runs *= self._probe(centre, step_runs)
            fit, used = self._fit(target, centre)
        return fit

    def _probe(self, horizon: float, runs: float) -> float:
        """Make few runs, and more only if they are not nearly all wrong; returns by how much the next step grows."""
        few = min(round(runs), max(_LEAST_PROBE, self.most_runs // _PROBE_SHARE))
        point = self.point(horizon, few)
        if point.error > _PROMISING or self.late:
            return 1.0
        if round(runs) > few:
            self.point(horizon, round(runs) - few)
        return _MORE

    def _make_around(self, crossing: Crossing, runs: int) -> None:
        """Make so many runs near the crossing, or, with a guess, where the error is large enough for so few runs."""
        horizons = [crossing.horizon * factor for factor in self._around]
        if self._guess is not None:
            error = max(crossing.target, min(_INFORMATIVE / 2, _FEW_WRONG / runs))
            shown = crossing.horizon * (crossing.target / error) ** (1 / max(1.0, crossing.fall))
            horizons = [shown, math.sqrt(shown * crossing.horizon)]
        for horizon in horizons:
            self.point(horizon, math.ceil(runs / len(horizons)))

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
        far = 4.0 if last.error > 0.8 and self._guess is None else 2.0
        return last.horizon * (far if last.error > _INFORMATIVE else _STEP)

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
        informative = max(_INFORMATIVE, 1.5 * target) if self._guess is None else 1.0
        window = _WINDOW if self._guess is None else _WINDOW**2
        points = [
            point
            for _, point in sorted(self._points.items())
            if centre / window <= point.horizon <= centre * window and point.runs and point.error <= informative
        ]
        used = sum(point.runs for point in points)
        if len(points) < 2 or (self._guess is None and not _is_near(points, target)):
            return NotReached(_LATE), used
        counts = [point.wrong for point in points], [point.runs for point in points]
        return fit_crossing([point.horizon for point in points], *counts, target, similar=self._guess), used


def _is_near(points: Sequence[Point], target: float) -> bool:
    """Whether the errors are near enough to the target for a fit to be worth its time."""
    errors = [point.error for point in points]
    return max(errors) >= target / 2 and min(errors) <= 3 * target


def find_horizons(
    algorithm: Algorithm, arms: SimulatedArms, problem: Problem, targets: Sequence[float], effort: Effort
) -> dict[float, SearchResult]:
    """The horizon for each error, from one set of runs."""
    start = _START * complexity(arms, problem.m) / problem.agents
    least = algorithm.smallest_horizon(problem)
    costs = _costs(algorithm, arms, problem.at_horizon(max(least, round(start))), effort)
    guesses = _guesses(algorithm, arms, problem, targets, effort)
    curve = _curve(algorithm, arms, problem, effort)
    results: dict[float, SearchResult] = {}
    for left, target in _countdown(targets):
        curve.limit = curve.runs + effort.affordable(algorithm, arms, problem) / left
        results[target] = _result(curve, target, curve.locate(start, target, guesses.get(target)))
        start = results[target].horizon or start
    if len(guesses) > 1:  # the few runs for each error say something about the others too
        curve.limit = curve.runs
        results |= {target: _result(curve, target, curve.locate(start, target, guesses[target])) for target in guesses}
    if curve.late or curve.limit <= curve.runs < effort.runs:
        results = {target: _with_advice(result, curve, effort) for target, result in results.items()}
    return {target: msgspec.structs.replace(result, runs=curve.runs, **costs) for target, result in results.items()}


def _countdown(targets: Sequence[float]) -> list[tuple[int, float]]:
    """The errors, the largest first, each with how many are left: they share what can be simulated."""
    return list(zip(range(len(targets), 0, -1), sorted(targets, reverse=True), strict=True))


def _curve(
    algorithm: Algorithm,
    arms: SimulatedArms,
    problem: Problem,
    effort: Effort,
    most_runs: int | None = None,
    around: Sequence[float] = _AROUND,
) -> ErrorCurve:
    def count_wrong(horizon: int, runs: int, first: int) -> tuple[int, int]:
        return effort.wrong(algorithm, arms, problem.at_horizon(horizon), runs, first)

    least, affordable = algorithm.smallest_horizon(problem), effort.affordable(algorithm, arms, problem)
    return ErrorCurve(count_wrong, least, min(effort.runs, affordable, most_runs or affordable), around)


def _guesses(
    algorithm: Algorithm, arms: SimulatedArms, problem: Problem, targets: Sequence[float], effort: Effort
) -> dict[float, Crossing]:
    """With more arms than can be simulated often, the crossings of fewer arms, scaled by the complexity."""
    affordable = effort.affordable(algorithm, arms, problem)
    size = max(FEWEST, round(_THIN_SHARE * affordable * problem.n / _THIN_RUNS))
    if not algorithm.batched or affordable > _MANY_RUNS or problem.n < _THINNED * size:
        return {}
    small, small_problem = thinned(arms, problem, size)
    try:
        algorithm.check(small_problem)
    except SettingError:
        return {}
    hardness, small_hardness = complexity(arms, problem.m), complexity(small, small_problem.m)
    curve = _curve(algorithm, small, small_problem, effort, _THIN_RUNS, _FALLING)
    start, guesses = _START * small_hardness / problem.agents, {}
    for left, target in _countdown(targets):
        curve.limit = curve.runs + (_THIN_RUNS - curve.runs) / left
        fit = curve.locate(start, target)
        if isinstance(fit, Crossing):
            start, scale = fit.horizon, hardness / small_hardness
            guesses[target] = msgspec.structs.replace(
                fit, horizon=fit.horizon * scale, low=fit.low * scale, high=fit.high * scale
            )
    return guesses


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


def _with_advice(result: SearchResult, curve: ErrorCurve, effort: Effort) -> SearchResult:
    """The result of a search that ran out of time, with about how long the whole plan has to take to find it."""
    if result.horizon is not None or not curve.runs:
        return result
    needed = max(1.0, effort.seconds * max(2.0, _ENOUGH_RUNS / curve.runs))
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
    for result in effort.results(algorithm, arms, problem, max(fewest, min(most, _COST_ARMS // arms.n))):
        rows.append((result.words, result.bits, result.round_trips))
        costs = np.array(rows, np.float64)
        deviation = costs.std(axis=0) / math.sqrt(len(rows))  # of the means
        if len(rows) >= fewest and (deviation <= _COSTS_KNOWN * costs.mean(axis=0)).all():
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
