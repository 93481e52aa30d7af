"""The open arms of agents that all pull the same ones, and send means as precise as their noise allows."""

from collections.abc import Sequence
from copy import copy
from functools import lru_cache

import numpy as np

from collabtop.protocol.messages import CoarseMeans, Flags, Ints, Reals
from collabtop.protocol.rounding import NoiseGauge, all_coarse_means


@lru_cache(maxsize=1)
def all_arms(n: int) -> Ints:
    """The numbers of all arms, which the agents of a process share."""
    arms = np.arange(n)
    arms.setflags(write=False)
    return arms


class OpenArms:
    """The arms that are open for one agent, or for several whose pulls are made together, with a row for each.

    >>> open_arms = OpenArms(n=3, agents=1)
    >>> open_arms.keep(np.array([True, False, True]))
    >>> [answer] = open_arms.answers([np.array([[4.0, 1.0]])], [5], 0.05, [np.random.default_rng(0)])
    >>> open_arms.arms, answer.means()
    (array([0, 2]), array([0.8, 0.2]))
    """

    def __init__(self, n: int, agents: int) -> None:
        self.arms = all_arms(n)
        """The arms that are open."""
        self.pulls = 0
        """Pulls of each open arm, by all agents of the run."""
        self._gauge = NoiseGauge(n, agents)

    def by_agent(self) -> list["OpenArms"]:
        """The same for each agent by itself."""
        alone = [copy(self) for _ in self._gauge.noise]
        for open_arms, gauge in zip(alone, self._gauge.by_agent(), strict=True):
            open_arms._gauge = gauge
        return alone

    def keep(self, survived: Flags | None) -> None:
        """Continue with the arms that survived; None: with all."""
        if survived is not None:
            self.arms = self.arms[survived]
            self._gauge.keep(survived)

    def answers(
        self, parts: Sequence[Reals], times: Sequence[int], coarseness: float, rngs: Sequence[np.random.Generator]
    ) -> list[CoarseMeans]:
        """The answer of each agent, from the sums of one batch of pulls, or of two halves of it."""
        if len(parts) == 2:
            self._gauge.add(parts[0], times[0], parts[1], times[1])
        sums = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return all_coarse_means(sums, sum(times), self._gauge.noise, coarseness, rngs)


def halves(times: int) -> list[int]:
    """The two batches into which so many pulls are divided, to see how noisy they are; one, if there is only one pull.

    >>> halves(5), halves(1)
    ([3, 2], [1])
    """
    return [times - times // 2, times // 2] if times > 1 else [times]
