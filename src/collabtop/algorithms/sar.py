"""Successive Accepts and Rejects (Bubeck, Wang and Viswanathan 2013): a baseline for one agent."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.algorithms.shared.elimination import eliminate
from collabtop.algorithms.shared.schedules import capped, new_pulls, stretched
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import SettingError
from collabtop.problem import Problem


@dataclass(frozen=True)
class SAR(Algorithm):
    """One agent settles the arm with the largest gap, n - 1 times.

    With a horizon of T K it shows what K agents could do if they shared everything for free.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1, 0.2])
    >>> ct.identify(arms, m=2, agents=1, horizon=400, algorithm="sar", seed=1).top
    [0, 1]
    """

    name: ClassVar[str] = "sar"
    summary: ClassVar[str] = "One agent settles the arm with the largest gap, n - 1 times."
    fixed_schedule: ClassVar[bool] = True

    def check(self, problem: Problem) -> None:
        """Raise `SettingError` unless there is one agent."""
        one_agent_only(self, problem)

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm before the first verdict."""
        return problem.n + 1

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The live arms of every phase equally often."""
        return [(problem.n - r, new) for r, new in enumerate(_pulls(_spending_all(problem)))]

    def most_words(self, problem: Problem) -> int:
        """The live arms and their means in every phase, with n, ..., 2 live arms; the first list is free."""
        return problem.n**2 - 2

    def most_round_trips(self, problem: Problem) -> int:
        """One per phase."""
        return problem.n - 1

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Run n - 1 phases, each of which settles one arm; the last settles both that are left."""
        agents, board = AllAgents(coordinator), coordinator.scoreboard
        pulls = _pulls(_spending_all(problem))  # N_k - N_{k-1}
        phase, live = 1, np.arange(problem.n)  # k
        while len(live):
            coordinator.begin_round("shared", live=len(live))
            if pulls[phase - 1]:
                board.add(live, *agents.pull(live, pulls[phase - 1], all_live=phase == 1))
            keep = len(live) - 1 if phase < problem.n - 1 else 0
            live = eliminate(board, live, problem.m, keep, phase - 1, "shared", rng)
            phase += 1


def total_pulls(phase: int, problem: Problem) -> int:
    """N_k: how often a live arm has been pulled at the end of phase k = 1, 2, ...

    >>> [total_pulls(phase, Problem(n=4, m=2, agents=1, horizon=100)) for phase in (1, 2, 3)]
    [16, 21, 31]
    """
    return math.ceil((problem.horizon - problem.n) / (_log_bar(problem.n) * (problem.n + 1 - phase)))


def _pulls(problem: Problem) -> list[int]:
    """New pulls of each live arm in each phase."""
    totals = [total_pulls(phase, problem) for phase in range(1, problem.n)]
    return capped(new_pulls(totals), problem.pull_limit)


def _spending_all(problem: Problem) -> Problem:
    return stretched(problem, lambda longer: sum((problem.n - r) * new for r, new in enumerate(_pulls(longer))))


def _log_bar(n: int) -> float:
    return 0.5 + sum(1 / i for i in range(2, n + 1))


def one_agent_only(algorithm: Algorithm, problem: Problem) -> None:
    """Raise `SettingError` unless there is one agent."""
    if problem.agents != 1:
        raise SettingError(
            f"agents is {problem.agents}, but {algorithm.name} runs with 1 agent "
            f"(for the same number of pulls use agents=1 with horizon={problem.horizon * problem.agents})",
            argument="agents",
        )
