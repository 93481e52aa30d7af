"""What a budget buys: how likely the answer is right, how much a wrong one loses, and the time and money it takes."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from rich.console import Group

from collabtop.algorithms.base import Algorithm
from collabtop.arms import BernoulliArms
from collabtop.arms.base import Reals
from collabtop.arms.unit import Unit
from collabtop.errors import BudgetError, SettingError
from collabtop.planning.beliefs import Beliefs
from collabtop.planning.effort import Effort
from collabtop.planning.grids import Grid, shown
from collabtop.planning.setting import all_that_fit, full_title, named_algorithms, wanted_below, with_noise
from collabtop.privacy import Privacy
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags
from collabtop.runs.budget import Cost, costs_of, horizon_for, worst_case
from collabtop.runs.printing import plain_text
from collabtop.stats import Z_95
from collabtop.validation import positive_number, real_number, wrong_value

_WORLDS, _RUNS = 60, 40  # sets of true means, and runs with each of them
_LIKELY = 0.95
_TOLERANCE = 0.02
_SAME = 1e-12


class Estimated(msgspec.Struct, frozen=True):
    """A mean over plausible true means, and the interval that holds 95% of them."""

    mean: float
    low: float
    high: float


class BudgetRow(msgspec.Struct, frozen=True):
    """What one algorithm makes of the budget."""

    algorithm: str
    options: dict[str, Any]
    horizon: int
    """The horizon (T) that the budget pays for, whichever candidates stay open."""
    time: int
    """Time steps that the run takes: fewer than the horizon if the algorithm does not spend all of it."""
    pulls: int
    """The most pulls of all agents together."""
    cost: float
    """The most that the run can cost, in the unit of the budget."""
    seconds: float | None
    """How long the run takes if a pull takes as long as in the pilot, or as stated; None if unknown."""
    exact: Estimated
    """The probability that the answer is exactly the best m."""
    close: Estimated
    """The probability that every candidate of the answer is within the tolerance of the m-th best."""
    regret: Estimated
    """How far the answer's mean reward is below that of the best m, in the unit of rewards."""
    resolution: float
    """The smallest difference that shows: in 95% of runs, nothing in the answer is further below the m-th best."""
    runs: int
    """Simulated runs behind this row."""

    @property
    def title(self) -> str:
        """The algorithm, with its schedule or its number of round trips if it has one."""
        return full_title(self.algorithm, self.options)


class BudgetPlan(msgspec.Struct, frozen=True):
    """What each algorithm makes of a budget, best first."""

    n: int
    m: int
    agents: int
    budget: float
    tolerance: float
    instance: str
    """What is known about the candidates."""
    rows: tuple[BudgetRow, ...]

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
        return Group(self._title, "", self._grid().rich())

    def _repr_html_(self) -> str:
        return f"<p>{self._title}</p>{self._grid().html()}"

    @property
    def _title(self) -> str:
        team = f" with {self.agents:,} agents" if self.agents > 1 else ""
        return f"The best {self.m:,} of {self.n:,} candidates{team} for a budget of {self.budget:,g}: {self.instance}"

    def _grid(self) -> Grid:
        close = f"within {self.tolerance:g}"
        columns = ("<algorithm", "exactly right", close, "regret", "resolution", "time", "pulls", "cost")
        rows = [
            (
                row.title,
                _percent(row.exact),
                _percent(row.close),
                f"{row.regret.mean:.3g} ({row.regret.low:.2g} to {row.regret.high:.2g})",
                f"{row.resolution:.2g}",
                shown(row.time) if row.seconds is None else _duration(row.seconds),
                shown(row.pulls),
                f"{row.cost:,.6g}",
            )
            for row in self.rows
        ]
        caption = (
            "Means, with the range for 95% of plausible candidates. Regret: how far the answer's mean is below that "
            "of the best. Resolution: the smallest difference that shows in 95% of runs."
        )
        return Grid("What the budget buys", columns, rows, caption)


def _percent(value: Estimated) -> str:
    return f"{100 * value.mean:.0f}% ({100 * value.low:.0f} to {100 * value.high:.0f})"


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def plan_budget(
    budget: Any,
    m: Any,
    *,
    known: Beliefs,
    cost: Cost | None,
    tolerance: Any,
    pull_seconds: Any,
    algorithms: Sequence[str | Algorithm] | None,
    privacy: Privacy | None,
    effort: Effort,
) -> BudgetPlan:
    """Simulate what each algorithm makes of the budget; those that it does not pay for are left out."""
    budget, unit = positive_number("budget", budget), known.unit
    problem = with_noise(Problem(known.n, wanted_below(m, known.n), known.agents, horizon=1), privacy)
    stand_in = BernoulliArms(np.full(known.n, 0.5))  # only their number matters
    costs = costs_of(stand_in, cost)
    allowed = _tolerance(tolerance, unit)
    pace = known.seconds_per_pull if pull_seconds is None else positive_number("pull_seconds", pull_seconds)
    horizons = _horizons(_algorithms(algorithms, stand_in, problem, privacy), problem, budget, costs)
    rows = []
    with effort.watch(len(horizons)):
        for algorithm, horizon in horizons:
            effort.turn_to(algorithm.title)
            outcomes = _outcomes(algorithm, known, problem.at_horizon(horizon), allowed, effort)
            inner = problem.inner.at_horizon(horizon)
            pulls = round(worst_case(algorithm, inner, [1.0] * problem.n))
            time = min(horizon, math.ceil(pulls / problem.agents))
            rows.append(
                BudgetRow(
                    algorithm=algorithm.title,
                    options=algorithm.options,
                    horizon=horizon,
                    time=time,
                    pulls=pulls,
                    cost=worst_case(algorithm, inner, costs),
                    seconds=None if pace is None else pace * time,
                    exact=outcomes.exact,
                    close=outcomes.close,
                    regret=_in_unit(outcomes.regret, unit),
                    resolution=unit.shown_difference(outcomes.resolution),
                    runs=outcomes.runs,
                )
            )
    rows.sort(key=lambda row: row.regret.mean)
    return BudgetPlan(
        problem.n, problem.m, problem.agents, budget, unit.shown_difference(allowed), known.text, tuple(rows)
    )


def _tolerance(tolerance: Any, unit: Unit) -> float:
    """The tolerance as a difference of internal values."""
    width = unit.shown_difference(1.0)
    if tolerance is None:
        return _TOLERANCE
    if not 0 <= real_number("tolerance", tolerance) < width:
        raise wrong_value("tolerance", tolerance, f"at least 0 and less than {width:g} is needed")
    return float(tolerance) / width


def _algorithms(
    algorithms: Sequence[str | Algorithm] | None, arms: BernoulliArms, problem: Problem, privacy: Privacy | None
) -> list[Algorithm]:
    if algorithms is None:
        return [algorithm for algorithm in all_that_fit(arms, problem, 0.01, privacy) if algorithm.batched]
    chosen = named_algorithms(algorithms, arms, problem, privacy)
    for algorithm in chosen:
        if not algorithm.batched:
            raise SettingError(
                f"{algorithm.title} has no batched simulation, so what it makes of a budget cannot be planned",
                argument="algorithms",
            )
    return chosen


def _horizons(
    algorithms: Sequence[Algorithm], problem: Problem, budget: float, costs: Sequence[float]
) -> list[tuple[Algorithm, int]]:
    horizons: list[tuple[Algorithm, int]] = []
    too_small: list[BudgetError] = []
    for algorithm in algorithms:
        try:
            horizons.append((algorithm, horizon_for(algorithm, problem, budget, costs)))
        except BudgetError as error:
            too_small.append(error)
    if not horizons:
        raise min(too_small, key=lambda error: error.smallest)
    return horizons


def _in_unit(value: Estimated, unit: Unit) -> Estimated:
    return Estimated(*(unit.shown_difference(number) for number in (value.mean, value.low, value.high)))


class _Outcomes(msgspec.Struct, frozen=True):
    exact: Estimated
    close: Estimated
    regret: Estimated
    resolution: float
    runs: int


def _outcomes(algorithm: Algorithm, beliefs: Beliefs, problem: Problem, tolerance: float, effort: Effort) -> _Outcomes:
    # Rewards with less noise than 0/1 rewards act like more of these.
    longer = problem.at_horizon(round(problem.horizon / beliefs.noise))
    longer = msgspec.structs.replace(longer, noise=problem.noise / beliefs.noise)
    certain = beliefs.means is not None
    rng = np.random.default_rng([effort.seed, 1])
    by_world: list[tuple[Reals, Reals]] = []  # regret and shortfall of each run
    for world in range(_WORLDS):
        means = beliefs.draw(rng)
        flags = effort.answers(algorithm, BernoulliArms(means), longer, _RUNS, first=world * _RUNS)
        by_world.append(_losses(means, np.concatenate(flags)))
        if effort.spent and world > 0:
            break
    regrets, shortfalls = ([losses[index] for losses in by_world] for index in (0, 1))
    return _Outcomes(
        exact=_estimated([regret <= _SAME for regret in regrets], certain=certain),
        close=_estimated([shortfall <= tolerance + _SAME for shortfall in shortfalls], certain=certain),
        regret=_estimated(regrets, certain=certain),
        resolution=float(np.quantile(np.concatenate(shortfalls), _LIKELY)),
        runs=sum(map(len, regrets)),
    )


def _losses(means: Reals, answers: Flags) -> tuple[Reals, Reals]:
    """For each answer, how far its mean is below the best, and its worst candidate below the m-th best."""
    m = int(answers[0].sum())
    best = np.sort(means)[-m:]
    chosen = means[np.nonzero(answers)[1]].reshape(len(answers), m)
    return np.maximum(0.0, best.mean() - chosen.mean(axis=1)), np.maximum(0.0, best[0] - chosen.min(axis=1))


def _estimated(values: Sequence[Any], *, certain: bool) -> Estimated:
    """The mean, and what holds 95% of plausible candidates; for certain means, the error of the simulation."""
    by_world = np.array([np.mean(of_world) for of_world in values], np.float64)
    mean = float(by_world.mean())
    if certain:
        everything = np.concatenate(values).astype(np.float64)
        half = Z_95 * float(everything.std()) / np.sqrt(len(everything))
        return Estimated(mean, max(0.0, mean - half), mean + half)
    low, high = np.quantile(by_world, [0.025, 0.975])
    return Estimated(mean, float(low), float(high))
