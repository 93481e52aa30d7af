"""How the pulls of one exchange are divided over the agents."""

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Division:
    """The parts of agents 0, 1, ... in the pulls of some arms, one part after the other.

    >>> division = Division(arms=3, positions=np.array([0, 1, 1, 2]), times=np.array([5, 3, 2, 5]), sizes=[2, 2])
    >>> division.pulls, division.owners
    ([8, 7], [0, 0, 1, 1])
    >>> division.add_up(np.array([4.0, 1.0, 2.0, 0.0]))
    array([4., 3., 0.])
    """

    def __init__(self, arms: int, positions: NDArray[np.int64], times: NDArray[np.int64], sizes: Sequence[int]) -> None:
        self.arms = arms
        """The number of arms."""
        self.positions = positions
        """The arms of the parts, as positions among all arms; each part has some, all distinct."""
        self.times = times
        """How often each of them is pulled, at least once; an `EqualDivision` may have a single number."""
        self.sizes = sizes
        """How many arms each part has."""

    @cached_property
    def _spans(self) -> list[slice]:
        """Where each part is."""
        ends = list(accumulate(self.sizes))
        return list(map(slice, [0, *ends[:-1]], ends))

    def parts_of(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """The values of each part."""
        return [values[span] for span in self._spans]

    @cached_property
    def pulls(self) -> list[int]:
        """The pulls of each part."""
        starts = [0, *accumulate(self.sizes[:-1])]
        pulls: list[int] = np.add.reduceat(self.times, starts).tolist()
        return pulls

    @cached_property
    def divisors(self) -> NDArray[np.float64] | float:
        """`times` as floats, with which NumPy divides faster; one number if there is only one."""
        return float(self.times[0]) if len(self.times) == 1 else self.times.astype(np.float64)

    @cached_property
    def agents(self) -> NDArray[np.int64]:
        """The agent of each position."""
        return np.arange(len(self.sizes)).repeat(self.sizes)

    @cached_property
    def owners(self) -> list[int]:
        """`agents` as a list."""
        owners: list[int] = self.agents.tolist()
        return owners

    @cached_property
    def counts(self) -> list[int]:
        """How often each position is pulled, as a list."""
        counts: list[int] = self.times.tolist()
        return counts * sum(self.sizes) if len(counts) == 1 else counts

    def arms_of(self, arms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of these arms each position is."""
        return arms[self.positions]

    def look_up(self, table: NDArray[np.float64], arms: NDArray[np.int64]) -> NDArray[np.float64]:
        """The value of each position's arm at its agent, in a table with one row per agent; `arms` as from `arms_of`.

        >>> division = Division(arms=2, positions=np.array([1, 0, 1]), times=np.array([5, 3, 2]), sizes=[1, 2])
        >>> division.look_up(np.array([[0.1, 0.2], [0.3, 0.4]]), arms=np.array([1, 0, 1]))
        array([0.2, 0.3, 0.4])
        """
        values: NDArray[np.float64] = table[self.agents, arms]
        return values

    @cached_property
    def times_by_arm(self) -> NDArray[np.int64]:
        """How often each arm is pulled by all agents together."""
        return self.add_up(self.times).astype(np.int64)

    def add_up(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The sum over the parts of each arm's values."""
        return np.bincount(self.positions, values, self.arms).astype(np.float64, copy=False)


class EqualDivision(Division):
    """A division in which each of several agents pulls every arm equally often, in one batch of pulls or more.

    >>> division = EqualDivision(arms=3, agents=2, times=[5])
    >>> division.pulls, division.times_by_arm
    ([15, 15], array([10]))
    >>> division.add_up(np.array([4.0, 1.0, 2.0, 3.0, 5.0, 0.0]))
    array([7., 6., 2.])
    """

    def __init__(self, arms: int, agents: int, times: Sequence[int]) -> None:
        self.arms, self.sizes = arms, [arms * len(times)] * agents
        if len(times) == 1:
            self.times, self.divisors = np.array(times), float(times[0])
        else:
            self.times = np.array([*times] * agents).repeat(arms)
        self._batches = agents * len(times)
        self.times_by_arm = self.times if self._batches == 1 else np.array([sum(times) * agents])
        self.pulls = [arms * sum(times)] * agents

    def parts_of(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """The values of each part, or a single one that all parts have."""
        agents = len(self.sizes)
        return [values] * agents if len(values) == 1 else list(values.reshape(agents, -1))

    def arms_of(self, arms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of these arms each position is."""
        return arms if self._batches == 1 else np.concatenate([arms] * self._batches)

    def look_up(self, table: NDArray[np.float64], arms: NDArray[np.int64]) -> NDArray[np.float64]:
        """The same by rows, as all agents have the same arms.

        >>> division, arms = EqualDivision(arms=2, agents=2, times=[5]), np.array([1, 0])
        >>> division.look_up(np.array([[0.1, 0.2], [0.3, 0.4]]), division.arms_of(arms))
        array([0.2, 0.1, 0.4, 0.3])
        """
        values = table[: len(self.sizes), arms[: self.arms]]
        return np.concatenate([values] * (self._batches // len(self.sizes)), axis=1).ravel()

    def add_up(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The sum over the parts of each arm's values."""
        sums: NDArray[np.float64] = np.add.reduce(values.reshape(-1, self.arms)) if self._batches > 1 else values
        return sums


class HandDivision(Division):
    """A division in which each arm is pulled by one agent, and all are pulled equally often.

    >>> division = HandDivision(sizes=[2, 1], times=5)
    >>> division.pulls, division.owners
    ([10, 5], [0, 0, 1])
    """

    def __init__(self, sizes: Sequence[int], times: int) -> None:
        self.sizes, self.times, self.divisors = sizes, np.array([times]), float(times)
        self.pulls, self.times_by_arm = [size * times for size in sizes], self.times

    def parts_of(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """The values of each part, or a single one that all parts have."""
        return [values] * len(self.sizes) if len(values) == 1 else super().parts_of(values)

    def arms_of(self, arms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of these arms each position is: they are in the same order."""
        return arms

    def add_up(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The values of each arm, of which each has one."""
        return values
