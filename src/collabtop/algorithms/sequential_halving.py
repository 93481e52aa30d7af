"""Sequential Halving (Karnin, Koren and Somekh 2013): a baseline for one agent and m = 1."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.sar import one_agent_only
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.algorithms.shared.batched_runs import BatchedRuns
from collabtop.algorithms.shared.schedules import capped, stretched
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import SettingError
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Reals
from collabtop.protocol.ties import perturbed, smallest


@dataclass(frozen=True)
class SequentialHalving(Algorithm):
    """One agent divides its horizon equally over ceil(log2 n) rounds, and keeps the better half in each.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1, 0.2])
    >>> ct.identify(arms, m=1, agents=1, horizon=400, algorithm="sequential-halving", seed=1).top
    [0]
    """

    name: ClassVar[str] = "sequential-halving"
    summary: ClassVar[str] = (
        "One agent divides its horizon equally over ceil(log2 n) rounds, and keeps the better half in each."
    )
    fixed_schedule: ClassVar[bool] = True
    private: ClassVar[bool] = True

    def check(self, problem: Problem) -> None:
        """Raise `SettingError` unless there is one agent and m = 1."""
        one_agent_only(self, problem)
        best_arm_only(self, problem)

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm in every round."""
        return problem.n * problem.rounds

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The live arms of every round equally often."""
        return list(zip(_sizes(problem), _pulls(_spending_all(problem)), strict=True))

    def most_words(self, problem: Problem) -> int:
        """The live arms of every round but the first, and the means of every round."""
        return 2 * sum(_sizes(problem)) - problem.n

    def most_round_trips(self, problem: Problem) -> int:
        """One per round."""
        return problem.rounds

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Keep the better half, by the means of the round alone, until one arm is left."""
        agents, board = AllAgents(coordinator), coordinator.scoreboard
        live = np.arange(problem.n)
        for r, times in enumerate(_pulls(_spending_all(problem))):  # t_r
            coordinator.begin_round("shared", live=len(live))
            sums, pulls = agents.pull(live, times, all_live=r == 0)
            board.add(live, sums, pulls)
            # With a pull limit, the rounds share their examples, and all of them together say more than the last.
            means = sums / times if problem.pull_limit is None else board.means(live)
            worse = smallest(perturbed(means, rng, bounded=problem.bounded), len(live) // 2)
            board.reject(live[worse], r, "shared")
            live = live[~worse]
        board.accept(live, problem.rounds - 1, "shared")

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once."""
        batch = BatchedRuns(problem, means, runs, rng)
        for size, times in zip(_sizes(problem), _pulls(problem), strict=True):
            batch.sums = np.zeros_like(batch.sums)
            batch.pull_by_all(times)
            batch.keep_best(size - size // 2)
        return batch.answers


def _pulls(problem: Problem) -> list[int]:
    """New pulls of each live arm in each round."""
    new = (problem.horizon // (live * problem.rounds) for live in _sizes(problem))
    return capped(new, problem.pull_limit)


def _spending_all(problem: Problem) -> Problem:
    sizes = _sizes(problem)
    return stretched(problem, lambda longer: sum(live * new for live, new in zip(sizes, _pulls(longer), strict=True)))


def _sizes(problem: Problem) -> list[int]:
    sizes = [problem.n]
    while len(sizes) < problem.rounds:
        sizes.append(sizes[-1] - sizes[-1] // 2)
    return sizes


def best_arm_only(algorithm: Algorithm, problem: Problem) -> None:
    """Raise `SettingError` unless m = 1."""
    if problem.m != 1:
        raise SettingError(f"m is {problem.m}, but {algorithm.name} finds the best arm only (m = 1)", argument="m")
