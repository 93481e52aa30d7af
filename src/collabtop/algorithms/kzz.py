"""KZZ (Karpov, Zhang and Zhou 2020), as the authors of the paper ran it, and with balanced pulls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import balanced_time, pull_balanced, pull_in_turn
from collabtop.algorithms.shared.elimination import eliminate, settle_rest
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import InputError
from collabtop.problem import Problem


@dataclass(frozen=True)
class KZZ(Algorithm):
    """Halve the arms round by round; all agents see all live arms, and the whole horizon is spent.

    Args:
        balanced: deal the pulls with BalancedPullDist (`kzz-balanced`): about 2 (|I_r| + K) words a round
            instead of 2 K |I_r|, since most arms are pulled by one agent only.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9] + [0.4] * 99)
    >>> all_see_all = ct.identify(arms, m=1, agents=4, horizon=2_000, algorithm="kzz", seed=1)
    >>> balanced = ct.identify(arms, m=1, agents=4, horizon=2_000, algorithm=ct.KZZ(balanced=True), seed=1)
    >>> all_see_all.words, balanced.words
    (1168, 312)
    """

    name: ClassVar[str] = "kzz"
    summary: ClassVar[str] = "Halves the arms round by round; all agents pull all open arms, whole horizon spent."
    iid_only: ClassVar[bool] = True
    balanced: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.balanced, bool | np.bool_):
            raise InputError(f"balanced is {self.balanced!r:.80}, but True or False is needed", argument="balanced")

    @property
    def title(self) -> str:
        """Balanced pulls make it `kzz-balanced`."""
        return "kzz-balanced" if self.balanced else "kzz"

    @property
    def options(self) -> dict[str, Any]:
        """None under the name `kzz-balanced`, which says it already."""
        return {} if self.balanced else super().options

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull an arm before the first elimination, and as many pulls in every later round."""
        return _time(problem, alpha=problem.n)

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """Every round's live arms equally often."""
        alpha = largest_alpha(problem)
        return [(size, alpha // size) for size in sizes_of(problem.n)[:-1]]

    def most_words(self, problem: Problem) -> int:
        """An arm's number and mean for every agent that pulls it: all K, or K - 1 more than one an arm in a round.

        That all arms are open at first nobody has to be told.
        """
        agents = problem.agents
        rounds = sizes_of(problem.n)[:-1]
        pulled = [size + agents - 1 if self.balanced else agents * size for size in rounds]
        return 2 * sum(pulled) - pulled[0]

    def most_round_trips(self, problem: Problem) -> int:
        """One a round."""
        return len(sizes_of(problem.n)) - 1

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Halve until all is settled."""
        pull = pull_balanced if self.balanced else pull_in_turn
        sizes, alpha = sizes_of(problem.n), largest_alpha(problem)
        board, live = coordinator.scoreboard, np.arange(problem.n)
        r, to_accept = 0, problem.m
        while 0 < to_accept < len(live):
            coordinator.begin_round("shared", live=len(live))
            pulls = alpha // sizes[r]
            board.add(live, pull(coordinator, live, pulls, all_live=r == 0), pulls)
            live = eliminate(board, live, to_accept, sizes[r + 1], r, "shared", rng)
            r, to_accept = r + 1, problem.m - board.accepted
        settle_rest(board, live, to_accept, r - 1, "shared")


def sizes_of(n: int) -> list[int]:
    """Live arms at the start of each round: halved while above 1, then none.

    >>> sizes_of(588)
    [588, 294, 147, 73, 36, 18, 9, 4, 2, 0]
    """
    sizes = []
    while n > 1:
        sizes.append(n)
        n //= 2
    return [*sizes, 0]


def largest_alpha(problem: Problem) -> int:
    """The most pulls over all arms that a round can have without going past the horizon in the end.

    >>> largest_alpha(Problem(n=588, m=1, agents=10, horizon=30_000))
    33425
    """
    low, high = problem.n, problem.horizon * problem.agents + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _time(problem, middle) <= problem.horizon else (low, middle)
    return low


def _time(problem: Problem, alpha: int) -> int:
    return sum(balanced_time(size, alpha // size, problem.agents) for size in sizes_of(problem.n)[:-1])
