"""Before anything is pulled: which horizon for which error, and what each algorithm would cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.algorithms.confident_top import ConfidentTop, ConfidentTopNonIID
from collabtop.algorithms.frugal_top import FrugalTop
from collabtop.algorithms.frugal_top_noniid import FrugalTopNonIID
from collabtop.algorithms.kzz import KZZ
from collabtop.algorithms.registry import make_algorithm
from collabtop.algorithms.sar import SAR
from collabtop.algorithms.sequential_halving import SequentialHalving
from collabtop.algorithms.shared.frugal_bound import frugal_error_bound, frugal_noniid_error_bound
from collabtop.algorithms.uniform import Uniform
from collabtop.arms import BernoulliArms, HeterogeneousArms, SimulatedArms
from collabtop.datasets import equal_gaps
from collabtop.errors import InputError, SettingError
from collabtop.planning.search import Effort, Found, find_horizons, time_to_be_sure
from collabtop.problem import Problem, as_means, complexity, error_bound
from collabtop.validation import real_number, whole_number

_MOST_HORIZON = 10**15


class PlanRow(msgspec.Struct, frozen=True):
    """What one algorithm needs for one error."""

    algorithm: str
    options: dict[str, Any]
    error: float
    """The chance of a wrong answer that is planned for."""
    bound_horizon: int | None
    """The horizon from which on a proof promises that error; None where there is no proof, or none that reaches it."""
    bound_words: int | None
    """The most words that a run can take, at any horizon; None where there is no such number.

    There is none for an algorithm that stops by itself, and none but the order K log2(n)^2 + m for collab-top-iid.
    """
    bound_round_trips: int | None
    """The most round trips that a run can take, at any horizon."""
    horizon: int | None
    """The horizon at which simulated runs have that error; None if it was not found.

    For an algorithm that stops by itself, the mean time it takes; None if runs were stopped by their limit.
    """
    horizon_low: int | None
    """Lower end of its 95% interval; where an algorithm stops by itself, 95% of its runs lie between the two."""
    horizon_high: int | None
    words: float | None
    """Mean words of a run near that horizon."""
    bits: float | None
    round_trips: float | None
    runs: int
    """Simulated runs behind this row."""
    note: str
    """What to know of this row."""

    @property
    def title(self) -> str:
        """The algorithm, with the schedule where it has one."""
        schedule = self.options.get("schedule")
        return f"{self.algorithm}, {schedule}" if schedule else self.algorithm


class Plan(msgspec.Struct, frozen=True):
    """Which horizon for which error, and what it costs, algorithm by algorithm."""

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
        told: dict[str, Any] = msgspec.json.decode(self.to_json())
        return told

    def to_json(self) -> str:
        """The plan as JSON."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        console = Console(width=120, force_terminal=False, color_system=None, highlight=False)
        with console.capture() as captured:
            console.print(self)
        return captured.get().rstrip()

    def __rich__(self) -> Group:
        title = f"The best {self.m:,} of {self.n:,} arms with {self.agents:,} agents: {self.instance}"
        caption = f"gap at the border {self.gap:.3g}   H {self.complexity:,.4g}   H / K {self._share:,.4g}"
        simulated, proved = (
            _table("horizon", "95% interval", "words", "bits", "trips"),
            _table("enough horizon", "most words", "most trips"),
        )
        simulated.add_column("note")
        proved.title, proved.caption = "By proof", caption
        for row in self.rows:
            interval = "-" if row.horizon_low is None else f"{row.horizon_low:,} to {row.horizon_high:,}"
            head = row.title, f"{row.error:g}"
            numbers = (row.horizon, interval, row.words, row.bits, row.round_trips)
            simulated.add_row(*head, *map(_shown, numbers), row.note)
            proved.add_row(*head, *map(_shown, (row.bound_horizon, row.bound_words, row.bound_round_trips)))
        if not any(row.runs for row in self.rows):
            return Group(title, "", proved)
        simulated.title = "By simulation"
        return Group(title, "", simulated, "", proved)

    @property
    def _share(self) -> float:
        return self.complexity / self.agents


def _table(*numbers: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
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
    runs: int = 300,
    seconds: float = 60.0,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Plan:
    """Say which horizon gives which error, and at what cost, by the bounds and by simulation.

    Args:
        n: number of arms (the paper's n); None takes it from `means`.
        m: how many are wanted (m).
        agents: number of agents (K); a table of means, one column an agent, brings its own.
        gap: the gap you expect at the border. The stand-in is the hardest instance that has it: m arms at 1/2 + gap/2,
            all others at 1/2 - gap/2. Real arms with that gap need less.
        means: instead of a gap, means that are like the ones you expect; n x K for arms that differ between agents.
        error: the chance of a wrong answer that is acceptable, one or several.
        algorithms: names or algorithm objects; all that fit if left out.
        simulate: False gives the bounds only.
        runs: simulated runs a point of the search.
        seconds: about how long to simulate, in all; what is not found by then is left out, and the row says so.
        seed: the same seed gives the same plan, unless time runs out.
        jobs: how many processes share the work; all cores if left out.
        progress: show a bar.

    >>> import collabtop as ct
    >>> found = ct.plan(n=64, m=1, agents=4, gap=0.2, simulate=False)
    >>> [(row.title, row.bound_horizon) for row in found.rows if row.bound_horizon]
    [('frugal-top', 18636), ('collab-top-iid, paper', 4086912)]
    """
    arms, m, crew, instance = _instance(n, m, agents, gap, means)
    errors = _errors(error)
    effort = Effort(
        runs=whole_number("runs", runs, least=1), seconds=_seconds(seconds), seed=seed, jobs=jobs, progress=progress
    )
    chosen = _chosen(algorithms, arms, m, crew, min(errors))
    hard = complexity(arms, m)
    if math.isinf(hard):
        raise InputError(f"the arms ranked {m} and {m + 1} have the same mean: no horizon tells them apart")
    found = _simulated(chosen, arms, m, crew, errors, effort) if simulate else {}
    rows = [
        _row(algorithm, level, arms, m, crew, found.get((place, level)))
        for place, algorithm in enumerate(chosen)
        for level in errors
    ]
    ranked = np.sort(_values(arms))[::-1]
    return Plan(arms.n, m, crew, instance, float(ranked[m - 1] - ranked[m]), hard, tuple(rows))


def _simulated(
    chosen: Sequence[Algorithm], arms: SimulatedArms, m: int, agents: int, errors: Sequence[float], effort: Effort
) -> dict[tuple[int, float], Found]:
    found: dict[tuple[int, float], Found] = {}
    with effort.watch(len(chosen)):
        for place, algorithm in enumerate(chosen):
            effort.turn_to(algorithm.title)
            if "confidence" in algorithm.options:
                found |= {
                    (place, level): time_to_be_sure(_for_error(algorithm, level), arms, m, agents, effort)
                    for level in errors
                }
            else:
                by_level = find_horizons(algorithm, arms, m, agents, errors, effort)
                found |= {(place, level): one for level, one in by_level.items()}
    return found


def _row(algorithm: Algorithm, error: float, arms: SimulatedArms, m: int, agents: int, found: Found | None) -> PlanRow:
    found = found or Found(note="not simulated")
    inner = Problem(arms.n, min(m, arms.n - m), agents, 1)
    return PlanRow(
        algorithm=algorithm.title,
        options=_for_error(algorithm, error).options,
        error=error,
        bound_horizon=_bound_horizon(algorithm, arms, m, agents, error),
        bound_words=algorithm.most_words(inner),
        bound_round_trips=algorithm.most_round_trips(inner),
        horizon=found.horizon,
        horizon_low=found.low,
        horizon_high=found.high,
        words=found.words,
        bits=found.bits,
        round_trips=found.round_trips,
        runs=found.runs,
        note=found.note,
    )


def _for_error(algorithm: Algorithm, error: float) -> Algorithm:
    """The same algorithm; one that stops by itself, with the confidence that goes with this error."""
    if "confidence" not in algorithm.options:
        return algorithm
    settings: dict[str, Any] = {"confidence": 1 - error}
    return replace(algorithm, **settings)


def _bound_horizon(algorithm: Algorithm, arms: SimulatedArms, m: int, agents: int, error: float) -> int | None:
    """The first horizon at which the algorithm's own theorem promises this error."""
    bound: Callable[[int], float]
    if isinstance(algorithm, FrugalTop):
        risk = algorithm.risk
        bound = lambda horizon: frugal_error_bound(arms, m, agents, horizon, risk)  # noqa: E731
    elif isinstance(algorithm, FrugalTopNonIID):
        coarseness = algorithm.coarseness
        bound = lambda horizon: frugal_noniid_error_bound(arms, m, agents, horizon, coarseness)  # noqa: E731
    elif isinstance(algorithm, CollabTopIID | CollabTopNonIID) and algorithm.schedule == "paper":
        bound = lambda horizon: error_bound(arms, m, agents, horizon)  # noqa: E731
    else:
        return None
    low, high = 0, algorithm.smallest_horizon(Problem(arms.n, m, agents, 1))
    while bound(high) > error:
        low, high = high, 2 * high
        if high > _MOST_HORIZON:
            return None
    while high - low > max(1, high // 10_000):
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= error else (middle, high)
    return high


def _chosen(
    algorithms: Sequence[str | Algorithm] | None, arms: SimulatedArms, m: int, agents: int, error: float
) -> list[Algorithm]:
    if algorithms is not None:
        listed = [algorithms] if isinstance(algorithms, str | Algorithm) else algorithms
        made = [make_algorithm(one) if isinstance(one, str) else one for one in listed]
        for one in made:
            one.check(Problem(arms.n, m, agents, 1))
            if one.iid_only and not arms.iid:
                raise SettingError(f"{one.title} needs arms that are the same for all agents; these means differ")
        if not made:
            raise InputError("algorithms is empty: name at least one, or leave it out")
        return made
    iid = [FrugalTop(), CollabTopIID(), CollabTopIID("full"), KZZ(), KZZ(balanced=True), Uniform(), SAR()]
    mixed = [FrugalTopNonIID(), CollabTopNonIID(), CollabTopNonIID("full"), Uniform()]
    sure = ConfidentTop(1 - error) if arms.iid else ConfidentTopNonIID(1 - error)
    some: list[Algorithm] = [*(iid if arms.iid else mixed), SequentialHalving(), sure]
    return [one for one in some if (arms.iid or not one.iid_only) and _fits(one, Problem(arms.n, m, agents, 1))]


def _fits(algorithm: Algorithm, problem: Problem) -> bool:
    try:
        algorithm.check(problem)
    except SettingError:
        return False
    return True


def _instance(
    n: int | None, m: int, agents: int | None, gap: float | None, means: ArrayLike | None
) -> tuple[SimulatedArms, int, int, str]:
    if (gap is None) == (means is None):
        both = "both were given" if gap is not None else "neither was given"
        raise InputError(f"give exactly one of gap and means: {both}")
    if means is None:
        n = whole_number("n", n, least=2)
        m = _below(m, n)
        arms: SimulatedArms = equal_gaps(n, m, real_number("gap", gap))
        instance = f"equal gaps of {gap:g}, the hardest arms with that gap"
    else:
        values = means.means if isinstance(means, SimulatedArms) else as_means(means)
        arms = HeterogeneousArms(values) if values.ndim == 2 else BernoulliArms(values)
        if n is not None and n != arms.n:
            raise InputError(f"n is {n}, but there are {arms.n} means (leave n out: None)")
        m = _below(m, arms.n)
        instance = "the means given"
    if agents is None:
        agents = arms.agents
    if arms.agents not in (None, agents):
        raise InputError(f"agents is {agents}, but the means are for {arms.agents} agents")
    return arms, m, whole_number("agents", agents, least=1), instance


def _values(arms: SimulatedArms) -> Any:
    return arms.means if arms.iid else arms.means.mean(axis=1)


def _below(m: Any, n: int) -> int:
    m = whole_number("m", m, least=1)
    if m >= n:
        raise InputError(f"m is {m}, but of {n} arms at most {n - 1} can be planned for")
    return int(m)


def _errors(error: float | Sequence[float]) -> list[float]:
    levels = [error] if isinstance(error, int | float | str) else list(error)
    for level in levels:
        if not 0 < real_number("error", level) < 1:
            raise InputError(f"error is {level}, but a probability between 0 and 1 is needed, such as 0.01")
    if not levels:
        raise InputError("error is empty: give at least one")
    return sorted({float(level) for level in levels}, reverse=True)


def _seconds(value: Any) -> float:
    if not real_number("seconds", value) > 0:
        raise InputError(f"seconds is {value}, but more than 0 are needed (simulate=False gives the bounds only)")
    return float(value)
