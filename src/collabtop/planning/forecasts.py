"""What a run would do, before anything is pulled."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from collabtop.algorithms.base import Algorithm
from collabtop.arms import Arms, Draws
from collabtop.arms.base import Ints, Reals
from collabtop.arms.function import as_candidates, candidate_label
from collabtop.problem import Problem
from collabtop.runs.budget import Cost, costs_of, worst_case
from collabtop.runs.identification import identify
from collabtop.runs.result import Result
from collabtop.runs.spec import make_spec


class ForecastRound(msgspec.Struct, frozen=True):
    """One round of a forecast."""

    round: int
    phase: str
    live: int
    """Candidates open when it begins."""
    pulls: float
    """Pulls that each of them gets in it, on average."""
    so_far: float
    """Pulls that each of them has had when it ends."""
    time: int
    words: int


class Forecast(msgspec.Struct, frozen=True):
    """What a run would do if the candidates differed evenly: other candidates move the details, not the limits."""

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
    """Pulls in all."""
    most_cost: float
    """What the run can cost at most, whichever candidates stay open (in pulls where no cost was given)."""
    costs: tuple[float, ...]
    """The price of a pull of each candidate."""

    def by_candidate(self) -> list[dict[str, Any]]:
        """For each candidate the fewest and the most pulls it would get, and their price."""
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
        title = f"A dry run of {self.algorithm}: the best {self.m} of {self.n:,}, {self.agents} agents"
        caption = (
            f"horizon {self.horizon:,} (at least {self.smallest_horizon:,})   pulls about {self.pulls:,}   "
            f"cost at most {self.most_cost:,.10g}   a candidate gets {self.fewest:,} to {self.most:,} pulls"
        )
        table = Table(title=title, caption=caption)
        for name in ("round", "phase", "open", "pulls each", "so far", "time", "words"):
            table.add_column(name, justify="left" if name == "phase" else "right")
        for it in self.rounds:
            numbers = f"{it.live:,}", f"{it.pulls:,.4g}", f"{it.so_far:,.4g}", f"{it.time:,}", f"{it.words:,}"
            table.add_row(str(it.round), it.phase, *numbers)
        return table

    def __str__(self) -> str:
        console = Console(width=100, force_terminal=False, color_system=None, highlight=False)
        with console.capture() as captured:
            console.print(self)
        return captured.get().rstrip()


def dry_run(
    arms: Any,
    m: int,
    *,
    agents: int | None = None,
    horizon: int | None = None,
    budget: float | None = None,
    cost: Cost | None = None,
    algorithm: str | Algorithm = "auto",
    options: dict[str, Any] | None = None,
    seed: int = 0,
) -> Forecast:
    """Say how often each candidate would be pulled, and what that may cost, without pulling anything.

    It takes the arguments of `identify` and raises the errors that it would. `arms` may be a list of
    candidates; no function is needed.

    >>> import collabtop as ct
    >>> forecast = ct.dry_run(["a", "b", "c", "d"], m=1, agents=2, budget=1_000, algorithm="kzz")
    >>> forecast.horizon, forecast.fewest, forecast.most, forecast.most_cost
    (500, 125, 375, 1000.0)
    """
    arms = arms if isinstance(arms, Arms) else _Candidates(as_candidates(arms))
    spec = make_spec(
        arms,
        m,
        agents=agents,
        horizon=horizon,
        budget=budget,
        cost=None if budget is None else cost,
        algorithm=algorithm,
        options=options,
        seed=seed,
    )
    return _forecast(spec.algorithm, arms, spec.problem, spec.costs or costs_of(arms, cost), seed)


def _forecast(algorithm: Algorithm, arms: Arms, problem: Problem, costs: tuple[float, ...], seed: int) -> Forecast:
    n, m, agents = problem.n, problem.m, problem.agents
    stand_in = _Stairs(n, None if arms.iid else agents)
    result = identify(stand_in, m, agents=agents, horizon=problem.horizon, algorithm=algorithm, seed=seed)
    assert result.observed is not None  # it ran in this process
    inner = Problem(n, min(m, n - m), agents, problem.horizon)
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
        most_cost=worst_case(algorithm, inner, costs),
        costs=costs,
    )


def _rounds(result: Result) -> tuple[ForecastRound, ...]:
    rounds, so_far = [], 0.0
    for it in result.rounds:
        each = it.pulls / it.live if it.live else 0.0
        so_far += each
        rounds.append(ForecastRound(it.round, it.phase, it.live, each, so_far, it.time, it.words))
    return tuple(rounds)


class _Candidates(Arms):
    """Candidates that nobody can pull."""

    def __init__(self, candidates: list[Any]) -> None:
        self.candidates = candidates
        super().__init__(len(candidates), labels=[candidate_label(it, place) for place, it in enumerate(candidates)])

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        raise NotImplementedError


class _Stairs(Arms):
    """Arms without noise whose means differ evenly: none is settled early, so that every round takes place."""

    def __init__(self, n: int, agents: int | None) -> None:
        super().__init__(n, agents=agents)

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        return np.asarray((self.n - arms) / self.n * times, np.float64)
