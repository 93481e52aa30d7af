"""Collab-Top-m-NonIID (algorithm 6 of the paper)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.algorithms.shared.batched_runs import BatchedRuns
from collabtop.algorithms.shared.elimination import eliminate
from collabtop.algorithms.shared.schedules import (
    ScheduleName,
    capped,
    check_schedule,
    decisive,
    halving,
    new_pulls,
    smallest_that,
    stretched,
)
from collabtop.coordination.coordinator import Coordinator
from collabtop.problem import Problem, error_bound
from collabtop.protocol.messages import Flags, Reals


@dataclass(frozen=True)
class CollabTopNonIID(Algorithm):
    """The paper's algorithm for non-IID arms: all agents pull all live arms.

    Args:
        schedule: how often arms are pulled. `"paper"` is T_r as printed; `"full"` divides the whole horizon
            equally over the rounds.

    >>> import collabtop as ct
    >>> arms = ct.HeterogeneousArms([[0.9, 0.1], [0.6, 0.7], [0.2, 0.2]])
    >>> ct.identify(arms, m=1, horizon=4_000, algorithm="collab-top-noniid", seed=1).top
    [1]
    """

    name: ClassVar[str] = "collab-top-noniid"
    summary: ClassVar[str] = "The paper's algorithm for non-IID arms: all agents pull all open arms."
    fixed_schedule: ClassVar[bool] = True
    private: ClassVar[bool] = True
    survives_loss: ClassVar[bool] = True
    schedule: ScheduleName = "paper"

    def __post_init__(self) -> None:
        check_schedule(self.schedule)

    def smallest_horizon(self, problem: Problem) -> int:
        """Every agent pulls every arm once before the first elimination."""
        sizes = decisive(halving(problem.n))

        def works(horizon: int) -> bool:
            pulls = self.pulls(problem.at_horizon(horizon))
            time = sum(size * new for size, new in zip(sizes, pulls, strict=True))
            return pulls[0] >= 1 and time <= horizon

        rounds = problem.rounds if self.schedule == "paper" else len(sizes)
        return smallest_that(works, problem.n * rounds)  # with less, the first round has no pull for every arm

    def pulls(self, problem: Problem) -> list[int]:
        """New pulls per live arm and agent in each round that has something to decide."""
        sizes = decisive(halving(problem.n))

        def time(longer: Problem) -> int:
            return sum(size * new for size, new in zip(sizes, self._pulls(longer, sizes), strict=True))

        return self._pulls(stretched(problem, time), sizes)

    def _pulls(self, problem: Problem, sizes: list[int]) -> list[int]:
        limit = None if problem.pull_limit is None else -(-problem.pull_limit // problem.agents)
        if self.schedule == "full":
            return capped(_equal_spending(sizes, problem.horizon), limit)
        n, agents, rounds = problem.n, problem.agents, problem.rounds
        # floor(T_r / K) with T_r = floor(T K 2^r / (2 n R))
        totals = [problem.horizon * agents * 2**r // (2 * n * rounds) // agents for r in range(1, len(sizes) + 1)]
        return capped(new_pulls(totals), limit)

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The live arms of every round equally often, by all agents."""
        sizes = decisive(halving(problem.n))
        return [(size, new * problem.agents) for size, new in zip(sizes, self.pulls(problem), strict=True)]

    def most_words(self, problem: Problem) -> int:
        """Every agent gets the list of live arms in every round but the first, and sends their means."""
        return problem.agents * (2 * sum(decisive(halving(problem.n))) - problem.n)

    def most_round_trips(self, problem: Problem) -> int:
        """One per round that has something to decide."""
        return len(decisive(halving(problem.n)))

    def error_bound(self, means: ArrayLike, problem: Problem) -> float | None:
        """The paper's bound, which is proved for the paper's schedule."""
        if self.schedule != "paper":
            return None
        return error_bound(means, problem.m, problem.agents, problem.horizon, weights=problem.weights)

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Algorithm 6: all agents pull all live arms; average, and keep the half nearest to the border."""
        sizes, pulls = halving(problem.n), self.pulls(problem)  # n_r; (T_{r+1} - T_r) / K
        agents, board = AllAgents(coordinator), coordinator.scoreboard
        r, live = 0, np.arange(problem.n)  # I_0
        while len(live):
            coordinator.begin_round("shared", live=len(live))
            board.add(live, *agents.pull(live, pulls[r], all_live=r == 0))
            live = eliminate(board, live, problem.m, sizes[r + 1], r, "shared", rng)  # I_{r+1}
            r += 1

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once."""
        batch = BatchedRuns(problem, means, runs, rng)
        for pulls, keep in zip(self.pulls(problem), halving(problem.n)[1:], strict=False):
            batch.pull_by_all(pulls)
            batch.eliminate(keep)
        return batch.answers


def _equal_spending(sizes: list[int], horizon: int) -> list[int]:
    pulls = []
    for r, size in enumerate(sizes):
        share = horizon // (len(sizes) - r)
        pulls.append(share // size)
        horizon -= pulls[-1] * size
    return pulls
