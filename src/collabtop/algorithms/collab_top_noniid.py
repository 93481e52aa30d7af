"""Collab-Top-m-NonIID (algorithm 6 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.algorithms.shared.elimination import eliminate, settle_rest
from collabtop.algorithms.shared.schedules import ScheduleName, halving, smallest_that
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import InputError
from collabtop.problem import Problem, error_bound


@dataclass(frozen=True)
class CollabTopNonIID(Algorithm):
    """The paper's algorithm for arms that look different to each agent: all pull all live arms.

    Args:
        schedule: how often arms are pulled. `"paper"` is T_r as printed; `"full"` spends the horizon,
            equally over the rounds.

    >>> import collabtop as ct
    >>> arms = ct.HeterogeneousArms([[0.9, 0.1], [0.6, 0.7], [0.2, 0.2]])
    >>> ct.identify(arms, m=1, horizon=4_000, algorithm="collab-top-noniid", seed=1).top
    [1]
    """

    name: ClassVar[str] = "collab-top-noniid"
    summary: ClassVar[str] = "The paper's algorithm for non-IID arms: all agents pull all open arms."
    survives_loss: ClassVar[bool] = True
    schedule: ScheduleName = "paper"

    def __post_init__(self) -> None:
        if self.schedule not in ("paper", "full"):
            raise InputError(f"schedule is {self.schedule!r}, but ['full', 'paper'] are known", argument="schedule")

    def smallest_horizon(self, problem: Problem) -> int:
        """Every agent pulls every arm once before the first elimination."""

        def works(horizon: int) -> bool:
            tried = problem.at_horizon(horizon)
            new = self.pulls(tried)
            return new[0] >= 1 and sum(n * t for n, t in zip(halving(tried.n), new, strict=False)) <= horizon

        rounds = problem.rounds if self.schedule == "paper" else len(self.pulls(problem))
        return smallest_that(works, problem.n * rounds)  # with less, the first round has no pull for every arm

    def pulls(self, problem: Problem) -> list[int]:
        """New pulls of each live arm that each agent makes in every round with something to decide."""
        sizes = _decisive(problem.n)
        if self.schedule == "full":
            return _equal_spending(sizes, problem.horizon)
        n, k, rounds = problem.n, problem.agents, problem.rounds
        so_far = [problem.horizon * k * 2**r // (2 * n * rounds) // k for r in range(1, len(sizes) + 1)]
        return [so_far[0], *(after - before for before, after in pairwise(so_far))]

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """Every round's live arms equally often, by all agents."""
        return [
            (size, new * problem.agents) for size, new in zip(halving(problem.n), self.pulls(problem), strict=False)
        ]

    def most_words(self, problem: Problem) -> int:
        """Every agent is told the open arms of a round, but for the first, and sends their means."""
        return problem.agents * (2 * sum(_decisive(problem.n)) - problem.n)

    def most_round_trips(self, problem: Problem) -> int:
        """One a round with something to decide."""
        return len(_decisive(problem.n))

    def error_bound(self, means: ArrayLike, problem: Problem) -> float | None:
        """The bound of the paper, which is proved for its own schedule."""
        return error_bound(means, problem.m, problem.agents, problem.horizon) if self.schedule == "paper" else None

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Algorithm 6: pull all live arms everywhere, average, keep the half nearest to the border."""
        sizes, new = halving(problem.n), self.pulls(problem)
        board, live = coordinator.scoreboard, np.arange(problem.n)  # I_0
        agents = AllAgents(coordinator)
        r, to_accept = 0, problem.m  # m_0
        while 0 < to_accept < len(live):
            coordinator.begin_round("shared", live=len(live))
            board.add(live, *agents.pull(live, new[r], all_live=r == 0))
            live = eliminate(board, live, to_accept, sizes[r + 1], r, "shared", rng)
            r, to_accept = r + 1, problem.m - board.accepted
        settle_rest(board, live, to_accept, r - 1, "shared")


def _decisive(n: int) -> list[int]:
    """The sizes of the rounds that have something to decide."""
    return [size for size in halving(n) if size >= 2]


def _equal_spending(sizes: list[int], horizon: int) -> list[int]:
    pulls = []
    for r, size in enumerate(sizes):
        share = horizon // (len(sizes) - r)
        pulls.append(share // size)
        horizon -= pulls[-1] * size
    return pulls
