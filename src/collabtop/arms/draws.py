"""Where an agent's chance comes from: one seed, and a stream of its own for every agent."""

from __future__ import annotations

import numpy as np

_COORDINATOR, _AGENT, _PULL = 0, 1, 2


def coordinator_rng(seed: int) -> np.random.Generator:
    """The coordinator's generator of a run with that seed."""
    return _generator(seed, _COORDINATOR)


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

    def for_pull(self, number: int, attempt: int = 0) -> np.random.Generator:
        """The generator of this agent's pull with that number, at that attempt."""
        return _generator(self.seed, _PULL, self.agent, number, attempt)


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
