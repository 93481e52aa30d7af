"""Successive Accepts and Rejects (Bubeck, Wang and Viswanathan 2013): a yardstick for one agent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.algorithms.shared.elimination import eliminate, settle_rest
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import SettingError
from collabtop.problem import Problem


@dataclass(frozen=True)
class SAR(Algorithm):
    """One agent settles the arm with the largest gap, n - 1 times.

    A comparison "as if K agents shared everything for free" is a run with horizon T K.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1, 0.2])
    >>> ct.identify(arms, m=2, agents=1, horizon=400, algorithm="sar", seed=1).top
    [0, 1]
    """

    name: ClassVar[str] = "sar"
    summary: ClassVar[str] = "One agent settles the arm with the largest gap, n - 1 times."

    def check(self, problem: Problem) -> None:
        """One agent only."""
        one_agent_only(self, problem)

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull an arm before the first verdict."""
        return problem.n + 1

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """Every phase's live arms equally often."""
        so_far = [0, *(pulls_before(phase, problem) for phase in range(1, problem.n))]
        return [(problem.n - r, after - before) for r, (before, after) in enumerate(pairwise(so_far))]

    def most_words(self, problem: Problem) -> int:
        """The open arms and their means in every phase, n of them, then one fewer each time, down to 2."""
        return problem.n**2 - 2

    def most_round_trips(self, problem: Problem) -> int:
        """One a phase."""
        return problem.n - 1

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Go through n - 1 phases, each of which settles one arm."""
        board, live = coordinator.scoreboard, np.arange(problem.n)
        agents = AllAgents(coordinator)
        phase, so_far, to_accept = 0, 0, problem.m
        while 0 < to_accept < len(live):
            phase += 1
            coordinator.begin_round("shared", live=len(live))
            times = pulls_before(phase, problem) - so_far  # N_k - N_{k-1}
            if times:
                board.add(live, *agents.pull(live, times, all_live=phase == 1))
            so_far += times
            keep = len(live) - 1 if phase < problem.n - 1 else 0
            live = eliminate(board, live, to_accept, keep, phase - 1, "shared", rng)
            to_accept = problem.m - board.accepted
        settle_rest(board, live, to_accept, phase - 1, "shared")


def pulls_before(phase: int, problem: Problem) -> int:
    """N_k: how often a live arm has been pulled at the end of phase k.

    >>> [pulls_before(k, Problem(n=4, m=2, agents=1, horizon=100)) for k in (1, 2, 3)]
    [16, 21, 31]
    """
    return math.ceil((problem.horizon - problem.n) / (_log_bar(problem.n) * (problem.n + 1 - phase)))


def _log_bar(n: int) -> float:
    return 0.5 + sum(1 / i for i in range(2, n + 1))


def one_agent_only(algorithm: Algorithm, problem: Problem) -> None:
    """Refuse more agents than one."""
    if problem.agents != 1:
        raise SettingError(
            f"agents is {problem.agents}, but {algorithm.name} runs with 1 agent "
            f"(as if agents shared for free: agents=1 with horizon={problem.horizon * problem.agents})",
            argument="agents",
        )
