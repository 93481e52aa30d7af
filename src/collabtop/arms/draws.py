"""Random streams of a run: all follow from one seed, and every agent has its own."""

import hmac
from collections import Counter
from functools import lru_cache
from threading import Event
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

_COORDINATOR, _AGENT, _PULL, _ORDER, _ROWS = 0, 1, 2, 3, 4


def coordinator_rng(seed: int) -> np.random.Generator:
    """The coordinator's generator in a run with this seed."""
    return _generator(seed, _COORDINATOR)


def pull_rng(seed: int, agent: int, number: int, attempt: int = 0) -> np.random.Generator:
    """The generator of one attempt at one pull of one agent, with its own counter range: no two streams overlap."""
    counter = np.array([0, number, attempt, agent], np.uint64)
    key: Any = _PullSeed(seed, agent, number, attempt)
    return np.random.Generator(np.random.Philox(key, counter=counter))


class _PullSeed(ISpawnableSeedSequence):
    """The key that all pulls of a run share.

    With a plain key, NumPy would gather entropy from the operating system for every generator.
    """

    def __init__(self, *pull: int) -> None:
        self._pull = pull
        self._children: np.random.SeedSequence | None = None

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> NDArray[np.uint64]:
        """The key."""
        return _pull_key(self._pull[0])

    def spawn(self, n_children: int) -> Any:
        """Seeds for a function that needs several generators; they depend only on the pull."""
        if self._children is None:
            seed, *pull = self._pull
            self._children = np.random.SeedSequence(seed, spawn_key=(_PULL, *pull))
        return self._children.spawn(n_children)


@lru_cache(maxsize=16)
def _pull_key(seed: int) -> NDArray[np.uint64]:
    return np.random.SeedSequence(seed, spawn_key=(_PULL,)).generate_state(2, np.uint64).astype(np.uint64)


ALL_AGENTS = 2**32 - 1
"""Stands for the agent in the key of a random stream that all agents share."""


@lru_cache(maxsize=64)
def example_order(seed: int, agent: int, lap: int, examples: int) -> NDArray[np.int64]:
    """The order in which the examples are used for every candidate, in one lap through all of them.

    `agent` is the agent whose examples they are, or `ALL_AGENTS` if all share them.

    >>> example_order(seed=7, agent=ALL_AGENTS, lap=0, examples=5)
    array([3, 0, 4, 2, 1])
    """
    order = _generator(seed, _ORDER, agent, lap).permutation(examples)
    order.setflags(write=False)
    return order


@lru_cache(maxsize=256)
def row_order(seed: int, arm: int, agent: int, rows: int) -> NDArray[np.int64]:
    """The order in which the logged rewards of an arm are used: a different one for every arm.

    >>> row_order(seed=7, arm=1, agent=0, rows=5)
    array([3, 0, 2, 1, 4])
    """
    order = _generator(seed, _ROWS, arm, agent).permutation(rows)
    order.setflags(write=False)
    return order


def mixed_seed(seed: int, secret: bytes) -> int:
    """The seed of the draws of an agent whose owner mixes a secret into them; the run's own seed if it is empty.

    >>> mixed_seed(7, b"")
    7
    >>> mixed_seed(7, b"a secret") == mixed_seed(7, b"another one")
    False
    """
    if not secret:
        return seed
    return int.from_bytes(hmac.digest(secret, b"collabtop draws %d" % seed, "sha256"))


class AgentHalted(Exception):  # noqa: N818  (not an error: another agent failed, or the user stops the run)
    """An agent was asked to stop pulling."""


class Draws:
    """The random generators of one agent: one for bulk draws, and a separate one for each single pull.

    A bulk draw depends on the seed, the agent and that agent's earlier requests. A single pull's
    generator depends only on (seed, agent, pull number, attempt), so replaying, retrying or parallelizing
    a pull does not change any other pull.

    >>> Draws(seed=7, agent=0).for_pull(3).random() == Draws(seed=7, agent=0).for_pull(3).random()
    True
    >>> Draws(seed=7, agent=0).for_pull(3).random() == Draws(seed=7, agent=1).for_pull(3).random()
    False
    """

    def __init__(self, seed: int, agent: int) -> None:
        self.seed = seed
        self.agent = agent
        self.bulk = _generator(seed, _AGENT, agent)
        self.pulls_made = 0
        """Pulls that this agent has made; the number of its next pull."""
        self.halted = Event()
        """Set when this agent should stop after the current pull."""
        self.pulls_by_arm: Counter[int] = Counter()
        """This agent's pulls of each arm so far; maintained by arms that need it, such as those with examples."""
        self.starts: NDArray[np.int64] | None = None
        """The number of the next pull of each arm of this batch, counted over all agents, if the arms are paired."""
        self.squares: NDArray[np.float64] | None = None
        """Sums of the squared rewards of the last batch, set by arms that see single rewards; None: unknown."""
        self.rewards_by_arm: dict[int, tuple[float, int]] = {}
        """Sum and number of each arm's rewards so far; maintained by arms that skip failed pulls."""

    def next_pulls(self, arms: NDArray[np.int64]) -> list[int]:
        """The number of the next pull of each of these arms: over all agents if they share examples, else per agent."""
        return [self.pulls_by_arm[arm] for arm in arms.tolist()] if self.starts is None else self.starts.tolist()

    def for_pull(self, number: int, attempt: int = 0) -> np.random.Generator:
        """The generator of one attempt at this agent's pull with this number."""
        return pull_rng(self.seed, self.agent, number, attempt)


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
