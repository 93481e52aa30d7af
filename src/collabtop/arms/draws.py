"""Where an agent's chance comes from: one seed, and a stream of its own for every agent."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from threading import Event
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

_COORDINATOR, _AGENT, _PULL, _ORDER = 0, 1, 2, 3


def coordinator_rng(seed: int) -> np.random.Generator:
    """The coordinator's generator of a run with that seed."""
    return _generator(seed, _COORDINATOR)


def pull_rng(seed: int, agent: int, number: int, attempt: int = 0) -> np.random.Generator:
    """The generator of one attempt at one pull of one agent: a counter's own stretch, so that none meets another."""
    counter = np.array([0, number, attempt, agent], np.uint64)
    key: Any = _PullSeed(seed, agent, number, attempt)
    return np.random.Generator(np.random.Philox(key, counter=counter))


class _PullSeed(ISpawnableSeedSequence):
    """The key that all pulls of a run share. Given as a plain key, NumPy would ask the system for chance every time."""

    def __init__(self, *pull: int) -> None:
        self._pull = pull
        self._children: np.random.SeedSequence | None = None

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> NDArray[np.uint64]:
        """The key."""
        return _pull_key(self._pull[0])

    def spawn(self, n_children: int) -> Any:
        """Seeds for a function that wants several generators: they depend on the pull alone, too."""
        if self._children is None:
            seed, *place = self._pull
            self._children = np.random.SeedSequence(seed, spawn_key=(_PULL, *place))
        return self._children.spawn(n_children)


@lru_cache(maxsize=16)
def _pull_key(seed: int) -> NDArray[np.uint64]:
    return np.random.SeedSequence(seed, spawn_key=(_PULL,)).generate_state(2, np.uint64).astype(np.uint64)


def order_rng(seed: int, agent: int, arm: int, lap: int) -> np.random.Generator:
    """The generator of the order in which an agent goes through an arm's examples, lap by lap."""
    return _generator(seed, _ORDER, agent, arm, lap)


class Halted(Exception):  # noqa: N818  (nothing went wrong here: another agent failed, or somebody wants to stop)
    """An agent was told to stop pulling."""


class Draws:
    """The chance that one agent has: a generator for bulk draws, and one of its own for each single pull.

    A bulk draw depends on the seed, the agent and that agent's earlier requests. A single pull's
    generator depends on (seed, agent, pull number, attempt) alone, so a replayed, retried or parallel
    pull changes no other.

    >>> Draws(seed=7, agent=0).for_pull(3).random() == Draws(seed=7, agent=0).for_pull(3).random()
    True
    >>> Draws(seed=7, agent=0).for_pull(3).random() == Draws(seed=7, agent=1).for_pull(3).random()
    False
    """

    def __init__(self, seed: int, agent: int) -> None:
        self.seed = seed
        self.agent = agent
        self.bulk = _generator(seed, _AGENT, agent)
        self.made = 0
        """Pulls this agent has made; the number of its next pull."""
        self.halted = Event()
        """Set when this agent should stop after the pull under way."""
        self.made_of: Counter[int] = Counter()
        """Pulls of each arm so far, kept by the arms that go through something in order."""
        self.given: dict[int, tuple[float, int]] = {}
        """Sum and number of an arm's rewards so far, kept by arms whose failed pulls are left out."""

    def for_pull(self, number: int, attempt: int = 0) -> np.random.Generator:
        """The generator of this agent's pull with that number, at that attempt."""
        return pull_rng(self.seed, self.agent, number, attempt)


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
