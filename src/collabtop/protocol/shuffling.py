"""The shuffle that deals arms to agents: determined by one seed, with hand sizes that differ by at most one."""

from functools import lru_cache

import numpy as np

from collabtop.protocol.messages import Ints


def hand(seed: int, n: int, agents: int, agent: int) -> Ints:
    """The arms that the shuffle with this seed deals to one agent, in random order.

    >>> sorted(arm for agent in range(3) for arm in hand(seed=1, n=7, agents=3, agent=agent).tolist())
    [0, 1, 2, 3, 4, 5, 6]
    """
    return _shuffled(seed, n)[agent::agents]


# All agents of a process share the shuffle.
@lru_cache(maxsize=1)
def _shuffled(seed: int, n: int) -> Ints:
    order = np.random.Generator(np.random.PCG64(seed)).permutation(n)
    order.setflags(write=False)
    return order
