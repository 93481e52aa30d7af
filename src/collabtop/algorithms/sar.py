"""Successive Accepts and Rejects (Bubeck, Wang and Viswanathan 2013): a baseline for one agent."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.algorithms.shared.batched_runs import BatchedRuns
from collabtop.algorithms.shared.elimination import eliminate
from collabtop.algorithms.shared.frugal_bound import rounds_error_bound
from collabtop.algorithms.shared.schedules import capped, new_pulls, stretched
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import SettingError
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Reals


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
    private: ClassVar[bool] = True

    @property
    def _power(self) -> float:
        """The p for which an arm has been pulled in proportion to s^-p by the time that s arms are open."""
        return 1.0

    def check(self, problem: Problem) -> None:
        """Raise `SettingError` unless there is one agent."""
        one_agent_only(self, problem)

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm before the first verdict."""
        return problem.n + 1

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The live arms of every phase equally often."""
        return [(problem.n - r, new) for r, new in enumerate(self._pulls(problem))]

    def most_words(self, problem: Problem) -> int:
        """The live arms and their means in every phase, with n, ..., 2 live arms; the first list is free."""
        return problem.n**2 - 2

    def most_round_trips(self, problem: Problem) -> int:
        """One per phase."""
        return problem.n - 1

    def error_bound(self, means: ArrayLike, problem: Problem) -> float:
        """Part (c) of the bound of docs/frugal-top.md, which holds for all rounds that settle arms by their gaps."""
        if problem.horizon < self.smallest_horizon(problem):
            return 1.0
        totals = list(accumulate(self._pulls(problem)))
        return rounds_error_bound(means, problem, range(problem.n, 1, -1), totals)

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Run n - 1 phases, each of which settles one arm; the last settles both that are left."""
        agents, board = AllAgents(coordinator), coordinator.scoreboard
        pulls = self._pulls(problem)  # N_k - N_{k-1}
        phase, live = 1, np.arange(problem.n)  # k
        while len(live):
            coordinator.begin_round("shared", live=len(live))
            if pulls[phase - 1]:
                board.add(live, *agents.pull(live, pulls[phase - 1], all_live=phase == 1))
            keep = len(live) - 1 if phase < problem.n - 1 else 0
            live = eliminate(board, live, problem.m, keep, phase - 1, "shared", rng)
            phase += 1

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once."""
        batch = BatchedRuns(problem, means, runs, rng)
        for phase, new in enumerate(self._pulls(problem), 1):
            if new:
                batch.pull_by_all(new)
            batch.eliminate(problem.n - phase if phase < problem.n - 1 else 0)
        return batch.answers

    def _pulls(self, problem: Problem) -> list[int]:
        """New pulls of each live arm in each phase."""

        def pulls(longer: Problem) -> list[int]:
            totals = [total_pulls(phase, longer, self._power) for phase in range(1, longer.n)]
            return capped(new_pulls(totals), longer.pull_limit)

        def time(longer: Problem) -> int:
            return sum((problem.n - r) * new for r, new in enumerate(pulls(longer)))

        return pulls(stretched(problem, time))


def total_pulls(phase: int, problem: Problem, power: float = 1.0) -> int:
    """N_k: how often a live arm has been pulled at the end of phase k = 1, 2, ...

    >>> [total_pulls(phase, Problem(n=4, m=2, agents=1, horizon=100)) for phase in (1, 2, 3)]
    [16, 21, 31]
    """
    live = problem.n + 1 - phase
    return math.ceil((problem.horizon - problem.n) / (_normalizer(problem.n, power) * math.pow(live, power)))


@lru_cache(maxsize=64)
def _normalizer(n: int, power: float) -> float:
    """C_p = 2^-p + 2^-p + 3^-p + ... + n^-p, with which all pulls are within the horizon."""
    return 1 / math.pow(2, power) + sum(1 / math.pow(i, power) for i in range(2, n + 1))


def one_agent_only(algorithm: Algorithm, problem: Problem) -> None:
    """Raise `SettingError` unless there is one agent."""
    if problem.agents != 1:
        raise SettingError(
            f"agents is {problem.agents}, but {algorithm.name} runs with 1 agent "
            f"(for the same number of pulls use agents=1 with horizon={problem.horizon * problem.agents})",
            argument="agents",
        )
