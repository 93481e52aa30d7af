"""The rewards of a batch of pulls, which may come in any order, and their sums."""

import math

import numpy as np

from collabtop.arms.base import Drawn, Ints, Reals
from collabtop.arms.draws import Draws


class PullBatch:
    """The rewards of an agent's next pulls, and what they cost."""

    def __init__(self, arms: Ints, times: Ints, draws: Draws) -> None:
        self.arms, self.times, self.starts = arms, times, draws.next_pulls(arms)
        self.rewards = np.empty(int(times.sum()))
        self._costs = None if draws.prices is None else np.repeat(draws.prices[arms], times)
        self._first = draws.pulls_made

    def put_reward(self, number: int, reward: float) -> None:
        """Add the reward of the pull with this number."""
        self.rewards[number - self._first] = reward

    def put(self, number: int, drawn: Drawn) -> None:
        """Add what was drawn from the pull with this number on."""
        position = number - self._first
        span = slice(position, position + len(drawn.rewards))
        self.rewards[span] = drawn.rewards
        if self._costs is not None and drawn.costs is not None:
            known = ~np.isnan(drawn.costs)
            self._costs[span][known] = drawn.costs[known]

    def charged(self) -> list[float]:
        """What the pulls of each arm were charged, if the run has a budget."""
        if self._costs is None:
            return []
        return [math.fsum(costs.tolist()) for costs in np.split(self._costs, np.cumsum(self.times)[:-1])]


def sums_of_rows(rewards: Reals, times: Ints) -> tuple[Reals, Reals]:
    """Sums of the first `times[0]` rewards, of the next `times[1]`, and so on, and sums of their squares.

    All rows of the same length are added up at once, with the same result as one by one.

    >>> sums_of_rows(np.array([1.0, 0.5, 0.5, 1.0]), np.array([1, 3]))
    (array([1., 2.]), array([1. , 1.5]))
    """
    sums, squares, ends = np.empty(len(times)), np.empty(len(times)), np.cumsum(times)
    for count in np.unique(times).tolist():
        same = times == count
        rows = rewards[(ends[same] - count)[:, np.newaxis] + np.arange(count)]
        sums[same] = rows.sum(axis=1)
        squares[same] = (rows[:, np.newaxis, :] @ rows[:, :, np.newaxis])[:, 0, 0]
    return sums, squares


def sum_of_squares(rewards: Reals) -> float:
    """The sum of the squared rewards; failed pulls count as their average, or as 0 if all failed."""
    total = float(rewards @ rewards)
    if not math.isnan(total):
        return total
    valid = rewards[~np.isnan(rewards)]
    return float(valid @ valid) / len(valid) * len(rewards) if len(valid) else 0.0
