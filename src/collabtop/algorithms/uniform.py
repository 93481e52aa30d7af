"""Uniform, the paper's baseline for non-IID arms: one round and no elimination."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.algorithms.shared.batched_runs import BatchedRuns
from collabtop.algorithms.shared.elimination import eliminate
from collabtop.algorithms.shared.schedules import capped
from collabtop.coordination.coordinator import Coordinator
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Reals


@dataclass(frozen=True)
class Uniform(Algorithm):
    """Every agent pulls every arm equally often and sends its means: K n words, one round trip.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1])
    >>> ct.identify(arms, m=1, agents=2, horizon=300, algorithm="uniform", seed=1).words
    6
    """

    name: ClassVar[str] = "uniform"
    summary: ClassVar[str] = "Every agent pulls every arm equally often and sends its means: one round trip."
    fixed_schedule: ClassVar[bool] = True
    private: ClassVar[bool] = True
    survives_loss: ClassVar[bool] = True

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm."""
        return problem.n

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """All arms equally often."""
        (pulls,) = capped([problem.horizon // problem.n * problem.agents], problem.pull_limit)
        return [(problem.n, pulls)]

    def most_words(self, problem: Problem) -> int:
        """One mean per arm and agent."""
        return problem.n * problem.agents

    def most_round_trips(self, problem: Problem) -> int:
        """One."""
        return 1

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Pull all arms, average, and accept the best m."""
        board, arms = coordinator.scoreboard, np.arange(problem.n)
        times = problem.horizon // problem.n
        coordinator.begin_round("shared", live=problem.n)
        board.add(arms, *AllAgents(coordinator).pull(arms, times, all_live=True))
        eliminate(board, arms, problem.m, keep=0, round=0, phase="shared", rng=rng)

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once."""
        batch = BatchedRuns(problem, means, runs, rng)
        batch.pull_by_all(problem.horizon // problem.n)
        batch.eliminate(keep=0)
        return batch.answers
