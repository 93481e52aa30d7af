"""Arms with agents that lie about them: a small zoo, tuned against the algorithms."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

import collabtop as ct
from collabtop.arms import Arms, Draws
from collabtop.arms.base import Ints, Reals

Lie = Callable[[Ints, Ints, Reals], Reals]
"""Given arms, times and honest sums, the sums that a liar reports."""

N, M = 40, 4
MEANS = np.linspace(0.2, 0.8, N)
BEST = frozenset(range(N - M, N))
WORST_OF_BEST, BEST_OF_REST = N - M, N - M - 1


class LyingArms(Arms):
    """N arms of which the agents see the same, but some agents report something else."""

    def __init__(self, lie: Lie, liars: Iterable[int] = (0,)) -> None:
        super().__init__(N)
        self._honest, self._lie, self._liars = ct.BernoulliArms(MEANS), lie, frozenset(liars)

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        sums = self._honest.pull(arms, times, draws)
        if draws.agent not in self._liars:
            return sums
        return np.asarray(self._lie(arms, np.broadcast_to(times, arms.shape), sums), np.float64)


def honest(arms: Ints, times: Ints, sums: Reals) -> Reals:
    return sums


def own_arm(arms: Ints, times: Ints, sums: Reals) -> Reals:
    """1 for the worst arm, 0 for all others."""
    return np.where(arms == 0, times, 0)


def hide_best(arms: Ints, times: Ints, sums: Reals) -> Reals:
    """0 for the truly best."""
    return np.where(arms >= N - M, 0, sums)


def oppose(arms: Ints, times: Ints, sums: Reals) -> Reals:
    """0 for the truly best, 1 for all others: moves every trimmed mean as far as one agent can."""
    return np.where(arms >= N - M, 0, times)


def invert(arms: Ints, times: Ints, sums: Reals) -> Reals:
    return times - sums


def swap_at_border(arms: Ints, times: Ints, sums: Reals) -> Reals:
    """1 for the best of the others, 0 for the worst of the best."""
    return np.where(arms == BEST_OF_REST, times, np.where(arms == WORST_OF_BEST, 0, sums))


def nudge_at_border(arms: Ints, times: Ints, sums: Reals) -> Reals:
    """The same, by little enough to stay among the means of honest agents: two standard errors."""
    shift = 2 * np.sqrt(times) * 0.43
    moved = np.where(arms == BEST_OF_REST, sums + shift, np.where(arms == WORST_OF_BEST, sums - shift, sums))
    return np.clip(moved, 0, times)


LIES: dict[str, Lie] = {
    "honest": honest,
    "1 for one arm, 0 for all others": own_arm,
    "0 for the best": hide_best,
    "0 for the best, 1 for all others": oppose,
    "inverted": invert,
    "swapped at the border": swap_at_border,
    "nudged at the border": nudge_at_border,
}


def is_right(result: ct.Result) -> bool:
    """Whether the answer is the best M arms."""
    return set(result.top_indices) == BEST
