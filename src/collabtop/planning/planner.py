"""Plan a run before anything is pulled: which horizon gives which error, and what each algorithm would cost."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, overload

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from rich.console import Group

from collabtop.algorithms.base import Algorithm
from collabtop.arms import SimulatedArms
from collabtop.arms.logged import LoggedArms
from collabtop.errors import InputError
from collabtop.planning.beliefs import read_beliefs
from collabtop.planning.budget_plan import BudgetPlan, plan_budget
from collabtop.planning.effort import Effort
from collabtop.planning.grids import Grid, shown
from collabtop.planning.search import SearchResult, find_horizons, stopping_time
from collabtop.planning.setting import all_that_fit, full_title, named_algorithms, planned_arms, with_noise
from collabtop.privacy import Privacy
from collabtop.problem import Problem, complexity
from collabtop.runs.budget import Cost
from collabtop.runs.printing import plain_text
from collabtop.runs.spec import DEFAULT_MAX_HORIZON
from collabtop.validation import counted, real_number, whole_number, wrong_value

_MOST_HORIZON = 10**15
_FEW_ARMS, _MANY_ARMS = 1_000, 100_000


class PlanRow(msgspec.Struct, frozen=True):
    """What one algorithm needs for one error."""

    algorithm: str
    options: dict[str, Any]
    error: float
    """The probability of a wrong answer that is planned for."""
    bound_horizon: int | None
    """The smallest horizon for which that error is proved; None where there is no proof, or none that reaches it."""
    bound_words: int | None
    """The most words that a run can take, at any horizon; None where there is no such number.

    For fed-elim it is the number at the default `max_horizon`. There is none for the other algorithms that stop early,
    and only the order K log2(n)^2 + m for collab-top-iid.
    """
    bound_round_trips: int | None
    """The most round trips that a run can take, at any horizon; for fed-elim at the default `max_horizon`."""
    horizon: int | None
    """The horizon to use: simulated runs have at most that error there, as far as their number shows; None if it was
    not found. It is the estimate of the horizon with exactly that error plus one standard deviation.

    For an algorithm that stops early, the mean time it takes; None if the limit stopped some of the runs.
    """
    horizon_low: int | None
    """Lower end of the 95% interval of the horizon with exactly that error.

    For an algorithm that stops early, 95% of its runs lie between the two; None if only one run was made.
    """
    horizon_high: int | None
    words: float | None
    """Mean words of a run near that horizon."""
    bits: float | None
    round_trips: float | None
    runs: int
    """Simulated runs behind this row."""
    note: str
    """A remark on this row, or ""."""

    @property
    def title(self) -> str:
        """The algorithm, with its schedule or its number of round trips if it has one."""
        return full_title(self.algorithm, self.options)


class Plan(msgspec.Struct, frozen=True):
    """Which horizon gives which error, and what it costs, for each algorithm."""

    n: int
    m: int
    agents: int
    instance: str
    """The arms that were planned for."""
    gap: float
    """The gap between the m-th best arm and the next."""
    complexity: float
    """The sum of 1 / gap^2 over the arms (the paper's H<m>)."""
    rows: tuple[PlanRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain Python objects."""
        data: dict[str, Any] = msgspec.json.decode(self.to_json())
        return data

    def to_json(self) -> str:
        """The plan as JSON."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        return plain_text(self, width=120)

    def __rich__(self) -> Group:
        parts: list[Any] = [self._title]
        for grid in self._grids():
            parts += ["", grid.rich()]
        return Group(*parts)

    def _repr_html_(self) -> str:
        return f"<p>{self._title}</p>" + "".join(grid.html() for grid in self._grids())

    @property
    def _title(self) -> str:
        return f"The best {self.m:,} of {self.n:,} arms with {counted(self.agents, 'agent')}: {self.instance}"

    def _grids(self) -> list[Grid]:
        simulated, proved = [], []
        for row in self.rows:
            interval = "-" if row.horizon_low is None else f"{row.horizon_low:,} to {row.horizon_high:,}"
            head = row.title, f"{row.error:g}"
            numbers = (row.horizon, interval, row.words, row.bits, row.round_trips, row.note)
            simulated.append((*head, *map(shown, numbers)))
            proved.append((*head, *map(shown, (row.bound_horizon, row.bound_words, row.bound_round_trips))))
        caption = (
            f"gap at the border {self.gap:.3g}   H {self.complexity:,.4g}   H / K {self.complexity / self.agents:,.4g}"
        )
        by_proof = Grid("By proof", (*_HEAD, "enough horizon", "most words", "most trips"), proved, caption)
        if not any(row.runs for row in self.rows):
            return [by_proof]
        columns = (*_HEAD, "horizon", "95% interval", "words", "bits", "trips", "<note")
        return [Grid("By simulation", columns, simulated), by_proof]


_HEAD = ("<algorithm", "error")


@overload
def plan(
    n: int | None = ...,
    m: int | None = ...,
    agents: int | None = ...,
    *,
    budget: None = None,
    gap: float | None = ...,
    means: ArrayLike | None = ...,
    pilot: LoggedArms | str | PathLike[str] | None = ...,
    spread: tuple[float, float] | None = ...,
    error: float | Sequence[float] = ...,
    tolerance: float | None = ...,
    cost: Cost | None = ...,
    pull_seconds: float | None = ...,
    privacy: Privacy | None = ...,
    algorithms: Sequence[str | Algorithm] | None = ...,
    simulate: bool = ...,
    runs: int = ...,
    seconds: float | None = ...,
    seed: int = ...,
    jobs: int | None = ...,
    progress: bool = ...,
) -> Plan: ...


@overload
def plan(
    n: int | None = ...,
    m: int | None = ...,
    agents: int | None = ...,
    *,
    budget: float,
    gap: float | None = ...,
    means: ArrayLike | None = ...,
    pilot: LoggedArms | str | PathLike[str] | None = ...,
    spread: tuple[float, float] | None = ...,
    error: float | Sequence[float] = ...,
    tolerance: float | None = ...,
    cost: Cost | None = ...,
    pull_seconds: float | None = ...,
    privacy: Privacy | None = ...,
    algorithms: Sequence[str | Algorithm] | None = ...,
    simulate: bool = ...,
    runs: int = ...,
    seconds: float | None = ...,
    seed: int = ...,
    jobs: int | None = ...,
    progress: bool = ...,
) -> BudgetPlan: ...


def plan(
    n: int | None = None,
    m: int | None = None,
    agents: int | None = None,
    *,
    budget: float | None = None,
    gap: float | None = None,
    means: ArrayLike | None = None,
    pilot: LoggedArms | str | PathLike[str] | None = None,
    spread: tuple[float, float] | None = None,
    error: float | Sequence[float] = 0.01,
    tolerance: float | None = None,
    cost: Cost | None = None,
    pull_seconds: float | None = None,
    privacy: Privacy | None = None,
    algorithms: Sequence[str | Algorithm] | None = None,
    simulate: bool = True,
    runs: int = 20_000,
    seconds: float | None = None,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Plan | BudgetPlan:
    """Find out which horizon gives which error, or what a budget buys, before anything is pulled.

    Without a budget, the result is a `Plan`: the horizon for each error, from the bounds and by simulation. With a
    budget it is a `BudgetPlan`: how likely the answer is right or close, the regret, and the time and money.

    Args:
        n: number of arms (the paper's n); None takes it from `means` or `pilot`.
        m: how many are wanted (m).
        agents: number of agents (K); not needed with a table of means, which has one column per agent. With a budget
            1 if omitted, or as many as in the pilot.
        budget: what all pulls together may cost, in pulls or in the unit of `cost`, as for `identify`.
        gap: the gap you expect at the border. The stand-in is the hardest instance that has it: m arms at 1/2 + gap/2,
            all others at 1/2 - gap/2. Real arms with that gap need less.
        means: instead of a gap, means like the ones you expect; n x K for arms that differ between agents.
        pilot: with a budget, earlier rewards of some of the candidates: `LoggedArms`, a CSV file of rewards, or the
            checkpoint of an earlier run. Candidates that are not in it are taken to be of the same kind.
        spread: with a budget and without a pilot, two numbers between which about 95% of the true means lie.
        error: without a budget, the acceptable probability of a wrong answer, one or several.
        tolerance: with a budget, how far a candidate of a close answer may be below the m-th best; .02 of the range
            of rewards if omitted.
        cost: with a budget, the price of a pull, or one price per candidate.
        pull_seconds: with a budget, how long a pull takes, for the time of the run; from the pilot if it has times.
        privacy: differential privacy, as for `identify`: runs are simulated with its noise.
        algorithms: names or algorithm objects; all that fit if omitted.
        simulate: False gives the bounds only.
        runs: the most simulated runs per algorithm and error; fewer are made once the error is known to about 20%.
        seconds: about how much CPU time to simulate in total, shared equally by the algorithms. If omitted, 1 for up to
            10,000 arms and 10 for a million. With less time, intervals are wider and horizons longer; a horizon that
            was not found has a note.
        seed: the same seed gives the same plan, with any number of threads.
        jobs: number of threads; as many as there are cores if omitted.
        progress: show a progress bar.

    >>> import collabtop as ct
    >>> bounds = ct.plan(n=64, m=1, agents=4, gap=0.2, simulate=False)
    >>> [(row.title, row.bound_horizon) for row in bounds.rows if row.bound_horizon]
    [('frugal-top', 7700), ('collab-top-iid, paper', 4086875), ('batched-sar, 3 rounds', 6000)]
    """
    if budget is not None:
        return plan_budget(
            budget,
            m,
            known=read_beliefs(n, m, agents, gap=gap, means=means, pilot=pilot, spread=spread),
            cost=cost,
            tolerance=tolerance,
            pull_seconds=pull_seconds,
            algorithms=algorithms,
            privacy=privacy,
            effort=Effort(runs=runs, seconds=_seconds(seconds, n or 0), seed=seed, jobs=jobs, progress=progress),
        )
    for name, value in (
        ("pilot", pilot),
        ("spread", spread),
        ("tolerance", tolerance),
        ("cost", cost),
        ("pull_seconds", pull_seconds),
    ):
        if value is not None:
            raise InputError(f"{name}= only applies with budget=", argument=name)
    arms, problem, instance = planned_arms(n, m, agents, gap, means)
    errors = _errors(error)
    runs = whole_number("runs", runs, least=1)
    problem = with_noise(problem, privacy)
    effort = Effort(runs=runs, seconds=_seconds(seconds, problem.n), seed=seed, jobs=jobs, progress=progress)
    chosen = (
        named_algorithms(algorithms, arms, problem, privacy)
        if algorithms is not None
        else all_that_fit(arms, problem, min(errors), privacy)
    )
    difficulty = complexity(arms.values, problem.m)
    if math.isinf(difficulty):
        ranks = f"the arms ranked {problem.m} and {problem.m + 1} have the same mean"
        raise InputError(f"{ranks}: no horizon tells them apart", argument="means")
    results = _simulated(chosen, arms, problem, errors, effort) if simulate else {}
    rows = [
        _row(algorithm, level, arms, problem, results.get((index, level), SearchResult(note="not simulated")), privacy)
        for index, algorithm in enumerate(chosen)
        for level in errors
    ]
    ranked = np.sort(arms.values)[::-1]
    border = float(ranked[problem.m - 1] - ranked[problem.m])
    return Plan(arms.n, problem.m, problem.agents, instance, border, difficulty, tuple(rows))


def _simulated(
    chosen: Sequence[Algorithm], arms: SimulatedArms, problem: Problem, errors: Sequence[float], effort: Effort
) -> dict[tuple[int, float], SearchResult]:
    results: dict[tuple[int, float], SearchResult] = {}
    with effort.watch(len(chosen)):
        # Those that stop early take less than their share, or nothing if a run would take too long.
        for index, algorithm in sorted(enumerate(chosen), key=lambda each: not each[1].stops_early):
            effort.turn_to(algorithm.title)
            if algorithm.stops_early:
                by_error = {
                    level: stopping_time(_for_error(algorithm, level), arms, problem, effort) for level in errors
                }
            else:
                by_error = find_horizons(algorithm, arms, problem, errors, effort)
            results |= {(index, level): result for level, result in by_error.items()}
    return results


def _row(
    algorithm: Algorithm,
    error: float,
    arms: SimulatedArms,
    problem: Problem,
    result: SearchResult,
    privacy: Privacy | None,
) -> PlanRow:
    # No bound is proved for runs with noise.
    bound_horizon = _bound_horizon(algorithm, arms, problem, error) if privacy is None else None
    # One that stops early has no horizon of its own: what it can take depends on the limit.
    limited = problem.at_horizon(DEFAULT_MAX_HORIZON).inner if algorithm.stops_early else problem.inner
    return PlanRow(
        algorithm=algorithm.title,
        options=_for_error(algorithm, error).options,
        error=error,
        bound_horizon=bound_horizon,
        bound_words=algorithm.most_words(limited),
        bound_round_trips=algorithm.most_round_trips(limited),
        horizon=result.horizon,
        horizon_low=result.low,
        horizon_high=result.high,
        words=result.words,
        bits=result.bits,
        round_trips=result.round_trips,
        runs=result.runs,
        note=result.note,
    )


def _for_error(algorithm: Algorithm, error: float) -> Algorithm:
    """The same algorithm; one that stops early, with the confidence that corresponds to this error."""
    if not algorithm.stops_early:
        return algorithm
    options: dict[str, Any] = {"confidence": 1 - error}
    return replace(algorithm, **options)


def _bound_horizon(algorithm: Algorithm, arms: SimulatedArms, problem: Problem, error: float) -> int | None:
    """The first horizon at which this error is proved for the algorithm."""

    def is_proved(horizon: int) -> bool:
        bound = algorithm.error_bound(arms, problem.at_horizon(horizon))
        return bound is not None and bound <= error

    low = 0
    high = max(algorithm.smallest_horizon(problem), int(4 * complexity(arms, problem.m) / problem.agents))
    if algorithm.error_bound(arms, problem.at_horizon(high)) is None:
        return None
    while not is_proved(high):
        low, high = high, 2 * high
        if high > _MOST_HORIZON:
            return None
    # A bound for many arms takes a while to compute, and a percent or a few are precise enough.
    steps = high if problem.n <= _FEW_ARMS else 200 if problem.n <= _MANY_ARMS else 20
    precise = max(1, high // steps)
    index = bisect_left(range(low + precise, high, precise), True, key=is_proved)
    return min(high, low + precise * (index + 1))


def _errors(error: float | Sequence[float]) -> list[float]:
    levels = [error] if isinstance(error, int | float | str) else list(error)
    for level in levels:
        if not 0 < real_number("error", level) < 1:
            needed = "a probability between 0 and 1 is needed, such as 0.01"
            raise wrong_value("error", level, needed)
    if not levels:
        raise InputError("error is empty: give at least one", argument="error")
    return sorted({float(level) for level in levels}, reverse=True)


def _seconds(value: Any, n: int) -> float:
    if value is None:
        return max(1.0, math.sqrt(n / 10_000))
    if not real_number("seconds", value) > 0:
        needed = "more than 0 are needed (simulate=False gives the bounds only)"
        raise wrong_value("seconds", value, needed)
    return float(value)
