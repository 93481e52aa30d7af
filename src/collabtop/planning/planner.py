"""Plan a run before anything is pulled: which horizon gives which error, and what each algorithm would cost."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.batched_sar import BatchedSAR
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.algorithms.confident_top import ConfidentTop, ConfidentTopNonIID
from collabtop.algorithms.frugal_top import FrugalTop
from collabtop.algorithms.frugal_top_noniid import FrugalTopNonIID
from collabtop.algorithms.hkk import HKK
from collabtop.algorithms.kzz import KZZ
from collabtop.algorithms.nsar import NSAR
from collabtop.algorithms.registry import make_algorithm
from collabtop.algorithms.sar import SAR
from collabtop.algorithms.sequential_halving import SequentialHalving
from collabtop.algorithms.tzz import TZZ
from collabtop.algorithms.uniform import Uniform
from collabtop.arms import BernoulliArms, HeterogeneousArms, SimulatedArms
from collabtop.datasets import equal_gaps
from collabtop.errors import InputError, SettingError
from collabtop.planning.effort import Effort
from collabtop.planning.search import SearchResult, find_horizons, stopping_time
from collabtop.problem import Problem, as_means, complexity
from collabtop.runs.result import plain_text
from collabtop.validation import real_number, whole_number, wrong_value

_MOST_HORIZON = 10**15
_FEW_ARMS = 1_000


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

    There is none for an algorithm that stops early, and only the order K log2(n)^2 + m for collab-top-iid.
    """
    bound_round_trips: int | None
    """The most round trips that a run can take, at any horizon."""
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
        """The algorithm, with its schedule or its number of round trips or rounds if it has one."""
        schedule, counts = self.options.get("schedule"), {"round_trips": "trips", "rounds": "rounds"}
        given = [f"{self.options[option]} {word}" for option, word in counts.items() if self.options.get(option)]
        detail = schedule or ", ".join(given)
        return f"{self.algorithm}, {detail}" if detail else self.algorithm


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
        title = f"The best {self.m:,} of {self.n:,} arms with {self.agents:,} agents: {self.instance}"
        simulated = _table("By simulation", "horizon", "95% interval", "words", "bits", "trips")
        simulated.add_column("note")
        proved = _table("By proof", "enough horizon", "most words", "most trips")
        proved.caption = (
            f"gap at the border {self.gap:.3g}   H {self.complexity:,.4g}   H / K {self.complexity / self.agents:,.4g}"
        )
        for row in self.rows:
            interval = "-" if row.horizon_low is None else f"{row.horizon_low:,} to {row.horizon_high:,}"
            head = row.title, f"{row.error:g}"
            numbers = (row.horizon, interval, row.words, row.bits, row.round_trips)
            simulated.add_row(*head, *map(_shown, numbers), row.note)
            proved.add_row(*head, *map(_shown, (row.bound_horizon, row.bound_words, row.bound_round_trips)))
        if not any(row.runs for row in self.rows):
            return Group(title, "", proved)
        return Group(title, "", simulated, "", proved)


def _table(title: str, *numbers: str) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("algorithm", no_wrap=True)
    for column in ("error", *numbers):
        table.add_column(column, justify="right")
    return table


def _shown(number: float | str | None) -> str:
    if number is None:
        return "-"
    return number if isinstance(number, str) else f"{number:,.0f}"


def plan(
    n: int | None,
    m: int,
    agents: int | None = None,
    *,
    gap: float | None = None,
    means: ArrayLike | None = None,
    error: float | Sequence[float] = 0.01,
    algorithms: Sequence[str | Algorithm] | None = None,
    simulate: bool = True,
    runs: int = 20_000,
    seconds: float | None = None,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Plan:
    """Find out which horizon gives which error, and at what cost, from the bounds and by simulation.

    Args:
        n: number of arms (the paper's n); None takes it from `means`.
        m: how many are wanted (m).
        agents: number of agents (K); not needed with a table of means, which has one column per agent.
        gap: the gap you expect at the border. The stand-in is the hardest instance that has it: m arms at 1/2 + gap/2,
            all others at 1/2 - gap/2. Real arms with that gap need less.
        means: instead of a gap, means like the ones you expect; n x K for arms that differ between agents.
        error: the acceptable probability of a wrong answer, one or several.
        algorithms: names or algorithm objects; all that fit if omitted.
        simulate: False gives the bounds only.
        runs: the most simulated runs per algorithm and error; fewer are made once the error is known to about 20%.
        seconds: about how long to simulate in total, shared equally by the algorithms. If omitted, 1 for up to 10,000
            arms and 10 for a million. With less time, intervals are wider; a horizon that was not found has a note.
        seed: the same seed gives the same plan, unless time runs out.
        jobs: number of threads; as many as there are cores if omitted.
        progress: show a progress bar.

    >>> import collabtop as ct
    >>> bounds = ct.plan(n=64, m=1, agents=4, gap=0.2, simulate=False)
    >>> [(row.title, row.bound_horizon) for row in bounds.rows if row.bound_horizon]
    [('frugal-top', 7700), ('collab-top-iid, paper', 4086875), ('batched-sar, 3 rounds', 6000)]
    """
    arms, problem, instance = _instance(n, m, agents, gap, means)
    errors = _errors(error)
    runs = whole_number("runs", runs, least=1)
    effort = Effort(runs=runs, seconds=_seconds(seconds, problem.n), seed=seed, jobs=jobs, progress=progress)
    chosen = _named(algorithms, arms, problem) if algorithms is not None else _all_that_fit(arms, problem, min(errors))
    difficulty = complexity(arms, problem.m)
    if math.isinf(difficulty):
        ranks = f"the arms ranked {problem.m} and {problem.m + 1} have the same mean"
        raise InputError(f"{ranks}: no horizon tells them apart", argument="means")
    results = _simulated(chosen, arms, problem, errors, effort) if simulate else {}
    rows = [
        _row(algorithm, level, arms, problem, results.get((index, level), SearchResult(note="not simulated")))
        for index, algorithm in enumerate(chosen)
        for level in errors
    ]
    ranked = np.sort(arms.means if arms.iid else arms.means.mean(axis=1))[::-1]
    border = float(ranked[problem.m - 1] - ranked[problem.m])
    return Plan(arms.n, problem.m, problem.agents, instance, border, difficulty, tuple(rows))


def _simulated(
    chosen: Sequence[Algorithm], arms: SimulatedArms, problem: Problem, errors: Sequence[float], effort: Effort
) -> dict[tuple[int, float], SearchResult]:
    results: dict[tuple[int, float], SearchResult] = {}
    with effort.watch(len(chosen)):
        for index, algorithm in enumerate(chosen):
            effort.turn_to(algorithm.title)
            if algorithm.stops_early:
                by_error = {
                    level: stopping_time(_for_error(algorithm, level), arms, problem, effort) for level in errors
                }
            else:
                by_error = find_horizons(algorithm, arms, problem, errors, effort)
            results |= {(index, level): result for level, result in by_error.items()}
    return results


def _row(algorithm: Algorithm, error: float, arms: SimulatedArms, problem: Problem, result: SearchResult) -> PlanRow:
    return PlanRow(
        algorithm=algorithm.title,
        options=_for_error(algorithm, error).options,
        error=error,
        bound_horizon=_bound_horizon(algorithm, arms, problem, error),
        bound_words=algorithm.most_words(problem.inner),
        bound_round_trips=algorithm.most_round_trips(problem.inner),
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
    high = max(algorithm.smallest_horizon(problem), int(complexity(arms, problem.m) / problem.agents))
    if algorithm.error_bound(arms, problem.at_horizon(high)) is None:
        return None
    while not is_proved(high):
        low, high = high, 2 * high
        if high > _MOST_HORIZON:
            return None
    # A bound for many arms takes a while to compute, and half a percent is precise enough.
    precise = 1 if problem.n <= _FEW_ARMS else max(1, high // 200)
    index = bisect_left(range(low + precise, high, precise), True, key=is_proved)
    return min(high, low + precise * (index + 1))


def _named(algorithms: Sequence[str | Algorithm], arms: SimulatedArms, problem: Problem) -> list[Algorithm]:
    listed = [algorithms] if isinstance(algorithms, str | Algorithm) else algorithms
    chosen = [make_algorithm(entry) if isinstance(entry, str) else entry for entry in listed]
    if not chosen:
        raise InputError("algorithms is empty: name at least one, or omit it", argument="algorithms")
    for algorithm in chosen:
        algorithm.check(problem)
        if algorithm.iid_only and not arms.iid:
            raise SettingError(
                f"{algorithm.title} needs arms that are the same for all agents, but these means differ",
                argument="algorithms",
            )
    return chosen


def _all_that_fit(arms: SimulatedArms, problem: Problem, error: float) -> list[Algorithm]:
    iid = [
        FrugalTop(),
        CollabTopIID(),
        CollabTopIID("full"),
        KZZ(),
        KZZ(balanced=True),
        BatchedSAR(),
        TZZ(),
        HKK(),
        Uniform(),
    ]
    mixed = [FrugalTopNonIID(), CollabTopNonIID(), CollabTopNonIID("full"), Uniform()]
    confident = ConfidentTop(1 - error) if arms.iid else ConfidentTopNonIID(1 - error)
    alone = [SAR(), NSAR(), SequentialHalving()] if arms.iid else []
    tried: list[Algorithm] = [*(iid if arms.iid else mixed), *alone, confident]
    return [algorithm for algorithm in tried if _fits(algorithm, problem)]


def _fits(algorithm: Algorithm, problem: Problem) -> bool:
    try:
        algorithm.check(problem)
    except SettingError:
        return False
    return True


def _instance(
    n: int | None, m: int, agents: int | None, gap: float | None, means: ArrayLike | None
) -> tuple[SimulatedArms, Problem, str]:
    """The arms to plan for, the problem (its horizon is to be found), and what to call the arms."""
    if (gap is None) == (means is None):
        given = "both were given" if gap is not None else "neither was given"
        raise InputError(f"give exactly one of gap and means: {given}")
    if means is None:
        if n is None:
            raise InputError("n is missing: a gap does not tell the number of arms", argument="n")
        n = whole_number("n", n, least=2)
        m = _below(m, n)
        arms: SimulatedArms = equal_gaps(n, m, real_number("gap", gap))
        instance = f"equal gaps of {gap:g}, the hardest arms with that gap"
    else:
        values = means.means if isinstance(means, SimulatedArms) else as_means(means)
        arms = HeterogeneousArms(values) if values.ndim == 2 else BernoulliArms(values)
        if n is not None and n != arms.n:
            raise wrong_value("n", n, f"there are {arms.n} means (n may be None)")
        m = _below(m, arms.n)
        instance = "the means given"
    if agents is None:
        agents = arms.agents
    if agents is None:
        raise InputError("agents is missing: give the number of agents", argument="agents")
    if arms.agents not in (None, agents):
        raise wrong_value("agents", agents, f"the means are for {arms.agents} agents")
    return arms, Problem(arms.n, m, whole_number("agents", agents, least=1), horizon=1), instance


def _below(m: Any, n: int) -> int:
    m = whole_number("m", m, least=1)
    if m >= n:
        raise wrong_value("m", m, f"at most {n - 1} of {n} arms can be planned for")
    return int(m)


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
