"""KZZ (Karpov, Zhang and Zhou 2020), as the authors of the paper ran it, or with balanced pulls."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import balanced_time, pull_balanced, pull_in_turn
from collabtop.algorithms.shared.batched_runs import BatchedRuns
from collabtop.algorithms.shared.elimination import eliminate
from collabtop.algorithms.shared.schedules import capped, decisive, halving
from collabtop.coordination.coordinator import Coordinator
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Reals
from collabtop.validation import wrong_value


@dataclass(frozen=True)
class KZZ(Algorithm):
    """Halve the arms in each round; all agents pull all live arms, and the whole horizon is spent.

    Args:
        balanced: divide the pulls with BalancedPullDist (`kzz-balanced`): about 2 (|I_r| + K) words per round
            instead of 2 K |I_r|, since most arms are pulled by only one agent.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9] + [0.4] * 99)
    >>> all_pull_all = ct.identify(arms, m=1, agents=4, horizon=2_000, algorithm="kzz", seed=1)
    >>> balanced = ct.identify(arms, m=1, agents=4, horizon=2_000, algorithm=ct.KZZ(balanced=True), seed=1)
    >>> all_pull_all.words, balanced.words
    (1168, 312)
    """

    name: ClassVar[str] = "kzz"
    summary: ClassVar[str] = (
        "Halves the arms in each round; all agents pull all open arms, and the whole horizon is spent."
    )
    fixed_schedule: ClassVar[bool] = True
    private: ClassVar[bool] = True
    iid_only: ClassVar[bool] = True
    balanced: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.balanced, bool | np.bool_):
            raise wrong_value("balanced", self.balanced, "True or False is needed")

    @property
    def title(self) -> str:
        """`kzz-balanced` with balanced pulls, else `kzz`."""
        return "kzz-balanced" if self.balanced else "kzz"

    @property
    def options(self) -> dict[str, Any]:
        """None under the name `kzz-balanced`, which implies the option."""
        return {} if self.balanced else super().options

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm before the first elimination, and as many pulls in every later round."""
        return _time(problem, alpha=problem.n)

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The live arms of every round equally often."""
        return list(zip(sizes_of(problem.n), _pulls(problem, largest_alpha(problem)), strict=False))

    def most_words(self, problem: Problem) -> int:
        """In each round an arm's number and mean per arm and agent that pulls it; the first list of arms is free.

        All K agents pull each arm, or with balanced pulls all but K - 1 arms are pulled by one agent.
        """
        agents = problem.agents
        pulled = [size + agents - 1 if self.balanced else agents * size for size in sizes_of(problem.n)[:-1]]
        return 2 * sum(pulled) - pulled[0]

    def most_round_trips(self, problem: Problem) -> int:
        """One per round."""
        return len(sizes_of(problem.n)) - 1

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Halve the live arms until all are settled."""
        pull = pull_balanced if self.balanced else pull_in_turn
        sizes, pulls = sizes_of(problem.n), _pulls(problem, largest_alpha(problem))
        board, r, live = coordinator.scoreboard, 0, np.arange(problem.n)  # I_0
        while len(live):
            coordinator.begin_round("shared", live=len(live))
            board.add(live, *pull(coordinator, live, pulls[r], all_live=r == 0))
            live = eliminate(board, live, problem.m, sizes[r + 1], r, "shared", rng)  # I_{r+1}
            r += 1

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once; who pulls an arm matters for noise only."""
        batch, pulls = BatchedRuns(problem, means, runs, rng), _pulls(problem, largest_alpha(problem))
        for new, keep in zip(pulls, sizes_of(problem.n)[1:], strict=True):
            batch.pull(new, batches=None if self.balanced else min(new, problem.agents))
            batch.eliminate(keep)
        return batch.answers


def sizes_of(n: int) -> list[int]:
    """Live arms at the start of each round: halved while above 1, then none.

    >>> sizes_of(588)
    [588, 294, 147, 73, 36, 18, 9, 4, 2, 0]
    """
    return [*decisive(halving(n)), 0]


@lru_cache(maxsize=256)
def largest_alpha(problem: Problem) -> int:
    """The most pulls of all arms together in a round with which the run stays within the horizon.

    >>> largest_alpha(Problem(n=588, m=1, agents=10, horizon=30_000))
    33425
    """
    alphas = range(problem.horizon * problem.agents + 1)
    return bisect_left(alphas, True, lo=problem.n + 1, key=lambda alpha: _time(problem, alpha) > problem.horizon) - 1


def _time(problem: Problem, alpha: int) -> int:
    rounds = zip(sizes_of(problem.n), _pulls(problem, alpha), strict=False)
    return sum(balanced_time(size, pulls, problem.agents) for size, pulls in rounds)


def _pulls(problem: Problem, alpha: int) -> list[int]:
    """New pulls of each live arm in each round."""
    return capped((alpha // size for size in sizes_of(problem.n)[:-1]), problem.pull_limit)
