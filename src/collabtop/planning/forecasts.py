"""A dry run: how often each candidate would be pulled, and what that may cost, without pulling anything."""

from typing import Any, ClassVar

import msgspec
import numpy as np
from rich.table import Table

from collabtop.algorithms.base import Algorithm
from collabtop.arms import Arms
from collabtop.arms.stand_ins import NoiselessArms, UnpullableArms
from collabtop.arms.tables import as_candidates, candidate_labels
from collabtop.arms.unit import Bounds, Direction, Unit
from collabtop.planning.grids import Grid
from collabtop.privacy import Privacy
from collabtop.problem import Problem
from collabtop.runs.budget import Cost, costs_of, worst_case
from collabtop.runs.identification import identify
from collabtop.runs.printing import plain_text
from collabtop.runs.result import Result
from collabtop.runs.spec import make_spec
from collabtop.validation import counted


class ForecastRound(msgspec.Struct, frozen=True):
    """One round of a forecast."""

    round: int
    phase: str
    live: int
    """Candidates that are open when it begins."""
    pulls: float
    """Pulls that each of them gets in this round, on average."""
    so_far: float
    """Pulls that each of them has had when it ends."""
    time: int
    words: int


class Forecast(msgspec.Struct, frozen=True):
    """What a run would do if the candidates' means were evenly spaced: real ones change the details, not the limits."""

    algorithm: str
    options: dict[str, Any]
    n: int
    m: int
    agents: int
    horizon: int
    smallest_horizon: int
    rounds: tuple[ForecastRound, ...]
    labels: tuple[str, ...]
    fewest: int
    """Pulls of a candidate that is settled first."""
    most: int
    """Pulls of a candidate that stays open to the end."""
    pulls: int
    """Pulls in total."""
    most_cost: float
    """What the run can cost at most, whichever candidates stay open (in pulls if no cost was given)."""
    costs: tuple[float, ...]
    """The price of a pull of each candidate."""

    def by_candidate(self) -> list[dict[str, Any]]:
        """The fewest and the most pulls of each candidate, and their price."""
        return [
            {
                "label": label,
                "fewest_pulls": self.fewest,
                "most_pulls": self.most,
                "least_cost": self.fewest * cost,
                "most_cost": self.most * cost,
            }
            for label, cost in zip(self.labels, self.costs, strict=True)
        ]

    def __rich__(self) -> Table:
        return self._grid().rich()

    def _repr_html_(self) -> str:
        return self._grid().html()

    def _grid(self) -> Grid:
        title = f"A dry run of {self.algorithm}: the best {self.m} of {self.n:,}, {counted(self.agents, 'agent')}"
        caption = (
            f"horizon {self.horizon:,} (at least {self.smallest_horizon:,})   pulls about {self.pulls:,}   "
            f"cost at most {self.most_cost:,.10g}   a candidate gets {self.fewest:,} to {self.most:,} pulls"
        )
        columns = ("round", "<phase", "open", "pulls each", "so far", "time", "words")
        rows = [
            (
                str(row.round),
                row.phase,
                f"{row.live:,}",
                f"{row.pulls:,.4g}",
                f"{row.so_far:,.4g}",
                f"{row.time:,}",
                f"{row.words:,}",
            )
            for row in self.rounds
        ]
        return Grid(title, columns, rows, caption)

    def __str__(self) -> str:
        return plain_text(self, width=100)


def dry_run(
    arms: Any,
    m: int,
    *,
    agents: int | None = None,
    horizon: int | None = None,
    budget: float | None = None,
    cost: Cost | None = None,
    robust: int = 0,
    privacy: Privacy | None = None,
    direction: Direction = "maximize",
    bounds: Bounds = (0.0, 1.0),
    algorithm: str | Algorithm = "auto",
    options: dict[str, Any] | None = None,
    seed: int = 0,
) -> Forecast:
    """Compute how often each candidate would be pulled, and what that may cost, without pulling anything.

    It takes the arguments of `identify` and raises the same errors. `arms` may be a list of candidates; no
    function is needed.

    >>> import collabtop as ct
    >>> forecast = ct.dry_run(["a", "b", "c", "d"], m=1, agents=2, budget=1_000, algorithm="kzz")
    >>> forecast.horizon, forecast.fewest, forecast.most, forecast.most_cost
    (500, 125, 375, 1000.0)
    """
    if not isinstance(arms, Arms):
        arms, direction, bounds = _Candidates(as_candidates(arms), Unit(direction, bounds)), "maximize", (0.0, 1.0)
    spec = make_spec(
        arms,
        m,
        agents=agents,
        horizon=horizon,
        budget=budget,
        cost=None if budget is None else cost,
        robust=robust,
        privacy=privacy,
        direction=direction,
        bounds=bounds,
        algorithm=algorithm,
        options=options,
        seed=seed,
    )
    return _forecast(spec.algorithm, arms, spec.problem, spec.costs or costs_of(arms, cost), seed)


def _forecast(algorithm: Algorithm, arms: Arms, problem: Problem, costs: tuple[float, ...], seed: int) -> Forecast:
    n, m, agents = problem.n, problem.m, problem.agents
    # Evenly spaced and without noise: no arm is settled early, so that every round takes place.
    stand_in = NoiselessArms((n - np.arange(n)) / n, agents=None if arms.iid else agents)
    result = identify(stand_in, m, agents=agents, horizon=problem.horizon, algorithm=algorithm, seed=seed)
    assert result.observed is not None  # it ran in this process
    return Forecast(
        algorithm=algorithm.title,
        options=algorithm.options,
        n=n,
        m=m,
        agents=agents,
        horizon=problem.horizon,
        smallest_horizon=1 if m == n else algorithm.smallest_horizon(problem),
        rounds=_rounds(result),
        labels=tuple(arms.label(arm) for arm in range(n)),
        fewest=int(result.observed.pulls.min()),
        most=int(result.observed.pulls.max()),
        pulls=result.pulls,
        most_cost=worst_case(algorithm, problem.inner, costs),
        costs=costs,
    )


def _rounds(result: Result) -> tuple[ForecastRound, ...]:
    rounds, so_far = [], 0.0
    for row in result.rounds:
        each = row.pulls / row.live if row.live else 0.0
        so_far += each
        rounds.append(ForecastRound(row.round, row.phase, row.live, each, so_far, row.time, row.words))
    return tuple(rounds)


class _Candidates(UnpullableArms):
    """A list of candidates without a function to pull them; a function for the cost may look at them."""

    calls_function: ClassVar[bool] = True

    def __init__(self, candidates: list[Any], unit: Unit) -> None:
        self.candidates, self.unit = candidates, unit
        super().__init__(len(candidates), labels=candidate_labels(candidates))
