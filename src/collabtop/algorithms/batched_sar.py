"""Batched SAR (Karpov and Zhang 2020): successive accepts and rejects in a given number of rounds."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import balanced_time, pull_balanced
from collabtop.algorithms.shared.batched_runs import BatchedRuns
from collabtop.algorithms.shared.elimination import eliminate
from collabtop.algorithms.shared.frugal_bound import rounds_error_bound
from collabtop.algorithms.shared.schedules import capped, new_pulls
from collabtop.coordination.coordinator import Coordinator
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Reals
from collabtop.validation import whole_number


@dataclass(frozen=True)
class BatchedSAR(Algorithm):
    """A fixed number of rounds, in which the open arms shrink by the same factor n^(1/R), and one round trip for each.

    Args:
        rounds: the number of rounds (R). Fewer are made if n is small: two rounds never begin with the same number of
            open arms.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9] + [0.4] * 99)
    >>> result = ct.identify(arms, m=1, agents=4, horizon=2_000, algorithm=ct.BatchedSAR(rounds=2), seed=1)
    >>> result.top, result.words, result.round_trips
    ([0], 124, 2)
    """

    name: ClassVar[str] = "batched-sar"
    summary: ClassVar[str] = "A fixed number of rounds, in which the open arms shrink by the same factor."
    fixed_schedule: ClassVar[bool] = True
    private: ClassVar[bool] = True
    iid_only: ClassVar[bool] = True
    rounds: int = 3

    def __post_init__(self) -> None:
        whole_number("rounds", self.rounds, least=1, most=1_000)

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm in the first round, and the time that the later rounds then take."""
        return self._time(problem, alpha=problem.n)

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The open arms of every round equally often."""
        return list(zip(sizes_of(problem.n, self.rounds), self.pulls(problem), strict=False))

    def most_words(self, problem: Problem) -> int:
        """In each round an arm's number and mean per arm and agent that pulls it; the first list of arms is free."""
        pulled = [size + problem.agents - 1 for size in sizes_of(problem.n, self.rounds)[:-1]]
        return 2 * sum(pulled) - pulled[0]

    def most_round_trips(self, problem: Problem) -> int:
        """One per round."""
        return len(sizes_of(problem.n, self.rounds)) - 1

    def error_bound(self, means: ArrayLike, problem: Problem) -> float:
        """Part (c) of the bound of docs/frugal-top.md, which holds for all rounds that settle arms by their gaps."""
        if problem.horizon < self.smallest_horizon(problem):
            return 1.0
        totals = list(accumulate(self.pulls(problem)))
        return rounds_error_bound(means, problem, sizes_of(problem.n, self.rounds)[:-1], totals)

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Pull all open arms equally often, and keep those nearest to the border, in each round."""
        sizes, pulls = sizes_of(problem.n, self.rounds), self.pulls(problem)  # S_r; c_r - c_{r-1}
        board, r, live = coordinator.scoreboard, 0, np.arange(problem.n)  # I_0
        while len(live):
            coordinator.begin_round("shared", live=len(live))
            board.add(live, *pull_balanced(coordinator, live, pulls[r], all_live=r == 0))
            live = eliminate(board, live, problem.m, sizes[r + 1], r, "shared", rng)  # I_{r+1}
            r += 1

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once; who pulls an arm makes no difference to them."""
        batch = BatchedRuns(problem, means, runs, rng)
        for new, keep in zip(self.pulls(problem), sizes_of(problem.n, self.rounds)[1:], strict=True):
            batch.pull(new)
            batch.eliminate(keep)
        return batch.answers

    def pulls(self, problem: Problem) -> list[int]:
        """New pulls of each open arm in each round, with the largest alpha for which the time suffices.

        >>> BatchedSAR(rounds=3).pulls(Problem(n=588, m=1, agents=10, horizon=20_000))
        [122, 911, 8007]
        """
        alphas = range(problem.horizon * problem.agents + 1)
        beyond = bisect_left(
            alphas, True, lo=problem.n + 1, key=lambda alpha: self._time(problem, alpha) > problem.horizon
        )
        return self._pulls(problem, beyond - 1)

    def _time(self, problem: Problem, alpha: int) -> int:
        rounds = zip(sizes_of(problem.n, self.rounds), self._pulls(problem, alpha), strict=False)
        return sum(balanced_time(size, new, problem.agents) for size, new in rounds)

    def _pulls(self, problem: Problem, alpha: int) -> list[int]:
        totals = [alpha // size for size in sizes_of(problem.n, self.rounds)[:-1]]  # c_r
        return capped(new_pulls(totals), problem.pull_limit)


@lru_cache(maxsize=256)
def sizes_of(n: int, rounds: int) -> list[int]:
    """S_r: open arms at the start of each round, at least 2, and none after the last.

    >>> sizes_of(588, 3), sizes_of(1_000, 3), sizes_of(5, 10)
    ([588, 70, 8, 0], [1000, 100, 10, 0], [5, 4, 3, 2, 0])
    """
    exponents = ((rounds - r) / rounds for r in range(rounds))
    sizes = [max(2, int(n**exponent + 1e-9)) for exponent in exponents]  # floor, of roots that are not quite whole
    return [*sorted({*sizes, n}, reverse=True), 0]
