"""Random streams of a run: all follow from one seed, and every agent has its own."""

import hmac
from collections.abc import Sequence
from functools import lru_cache
from sys import getrefcount
from threading import Event, Lock, local
from typing import Any, cast

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence
from numpy.typing import NDArray

_COORDINATOR, _AGENT, _PULL, _ORDER, _ROWS, _LEG = 0, 1, 2, 3, 4, 5
_HALTING = Lock()


def coordinator_rng(seed: int) -> np.random.Generator:
    """The coordinator's generator in a run with this seed."""
    return _generator(seed, _COORDINATOR)


def pull_rng(seed: int, agent: int, number: int, attempt: int = 0) -> np.random.Generator:
    """The generator of one attempt at one pull of one agent, with its own counter range: no two streams overlap."""
    generator: _PullGenerator | None = getattr(_OF_THREAD, "generator", None)
    if generator is None or generator.references() != generator.own_references:
        generator = _OF_THREAD.generator = _PullGenerator()
    return generator.restart(seed, agent, number, attempt)


_OF_THREAD = local()
"""The generator of the last pull in each thread."""


class _PullGenerator:
    """A generator that is used for one pull after the other: that takes a fraction of the time of making one.

    It is free when nothing else holds it or a part of it. A function that keeps its `rng`, or has not ended yet because
    it is a coroutine, leaves it to no other pull.
    """

    def __init__(self) -> None:
        self._seed = _PullSeed()
        self._bits = np.random.Philox(cast(Any, self._seed))
        self._rng = np.random.Generator(self._bits)
        begin: Any = self._bits.state  # of a generator that has drawn nothing
        self._stream = self._seed.stream
        self._state: Any = {**begin, "buffer": begin["buffer"].tolist(), "state": self._stream}
        self.own_references = self.references()

    def references(self) -> int:
        """How often it is referred to: `own_references` if it may be used for a different pull."""
        return getrefcount(self._rng) + getrefcount(self._bits) + getrefcount(self._seed)

    def restart(self, seed: int, agent: int, number: int, attempt: int) -> np.random.Generator:
        """The generator, at the beginning of the stream of a pull."""
        if seed != self._seed.run_seed:
            self._seed.run_seed, self._stream["key"] = seed, _pull_key(seed)
        self._stream["counter"] = 0, number, attempt, agent
        self._bits.state = self._state
        return self._rng


class _PullSeed(ISpawnableSeedSequence):
    """The key that all pulls of a run share.

    With a plain key, NumPy would gather entropy from the operating system for every generator.
    """

    def __init__(self) -> None:
        self.run_seed = 0
        self.stream: dict[str, tuple[int, ...]] = {"key": _pull_key(0), "counter": (0, 0, 0, 0)}
        """The key and the counter of the pull, as the state of a generator has them."""
        self._children: tuple[tuple[int, ...], np.random.SeedSequence] | None = None  # of the pull with this counter

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> NDArray[np.uint64]:
        """The key."""
        return np.array(self.stream["key"], np.uint64)

    def spawn(self, n_children: int) -> Any:
        """Seeds for a function that needs several generators; they depend only on the pull."""
        counter = self.stream["counter"]
        if self._children is None or self._children[0] is not counter:
            _, number, attempt, agent = counter
            self._children = counter, np.random.SeedSequence(self.run_seed, spawn_key=(_PULL, agent, number, attempt))
        return self._children[1].spawn(n_children)


@lru_cache(maxsize=16)
def _pull_key(seed: int) -> tuple[int, ...]:
    return tuple(np.random.SeedSequence(seed, spawn_key=(_PULL,)).generate_state(2, np.uint64).tolist())


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


# How NumPy's `SeedSequence` mixes a word into its pool, and makes a state of it. These constants never change: streams
# depend on them.
_INIT_A, _MULTIPLY_A, _INIT_B, _MULTIPLY_B = 0x43B0D7E5, 0x931E8875, 0x8B51F9DD, 0x58F38DED
_MIX_LEFT, _MIX_RIGHT, _SHIFT, _POOL = np.uint32(0xCA01F9DD), np.uint32(0x4973F715), np.uint32(16), 4
_AGENTS_AT_ONCE = 128


class _AgentSeed(ISpawnableSeedSequence):
    """The seed of an agent's generator: the same state as `SeedSequence(seed, spawn_key=(_AGENT, agent))`.

    That is made agent by agent in Python, which takes longer than some runs with many agents.
    """

    def __init__(self, seed: int, agent: int) -> None:
        self._seed, self._agent = seed, agent
        self._children: np.random.SeedSequence | None = None

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> NDArray[np.uint64]:
        """The state of PCG64: four words."""
        block, row = divmod(self._agent, _AGENTS_AT_ONCE)
        state: NDArray[np.uint64] = agent_states(self._seed, block)[row]
        return state

    def spawn(self, n_children: int) -> Any:
        """Seeds for arms that need several generators."""
        if self._children is None:
            self._children = np.random.SeedSequence(self._seed, spawn_key=(_AGENT, self._agent))
        return self._children.spawn(n_children)


@lru_cache(maxsize=16)
def agent_states(seed: int, block: int) -> NDArray[np.uint64]:
    """The states of the generators of 128 agents, those of this block.

    >>> states = agent_states(seed=7, block=0)
    >>> (states[3] == np.random.SeedSequence(7, spawn_key=(1, 3)).generate_state(4, np.uint64)).all()
    np.True_
    """
    agents = np.arange(block * _AGENTS_AT_ONCE, (block + 1) * _AGENTS_AT_ONCE).astype(np.uint32)
    pool = np.random.SeedSequence(seed, spawn_key=(_AGENT,)).pool  # all words but the last are mixed into it
    words = max(_POOL, -(-seed.bit_length() // 32)) + 1
    constants = _powers(_INIT_A, _MULTIPLY_A, _POOL * words, _POOL + 1)
    mixed = [_mixed(word, _hashed(agents, *constants[i : i + 2])) for i, word in enumerate(pool)]
    constants = _powers(_INIT_B, _MULTIPLY_B, 0, 2 * _POOL + 1)
    state = [_hashed(mixed[i % _POOL], *constants[i : i + 2]) for i in range(2 * _POOL)]
    return np.stack(state, axis=1).astype("<u4").view("<u8").astype(np.uint64)


@lru_cache(maxsize=16)
def _powers(start: int, factor: int, first: int, count: int) -> list[np.uint32]:
    return [np.uint32(start * pow(factor, first + i, 2**32) % 2**32) for i in range(count)]


def _hashed(words: NDArray[np.uint32], before: np.uint32, after: np.uint32) -> NDArray[np.uint32]:
    hashed = (words ^ before) * after
    return hashed ^ (hashed >> _SHIFT)


def _mixed(word: np.uint32, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    mixed: NDArray[np.uint32] = np.full_like(words, word) * _MIX_LEFT - words * _MIX_RIGHT
    return mixed ^ (mixed >> _SHIFT)


def leg_seed(seed: int, extensions: int) -> int:
    """The seed of the draws of a run that was extended so often; the seed itself for one that was not.

    >>> leg_seed(7, extensions=0), leg_seed(7, extensions=1) == leg_seed(7, extensions=2)
    (7, False)
    """
    if not extensions:
        return seed
    return int(np.random.SeedSequence(seed, spawn_key=(_LEG, extensions)).generate_state(1, np.uint64)[0])


class AgentHalted(Exception):  # noqa: N818  (not an error: another agent failed, or the user stops the run)
    """An agent was asked to stop pulling."""


class RewardsMissing(Exception):  # noqa: N818  (not an error: the run continues when they are there)
    """A pull of arms whose rewards come from outside has no reward yet."""


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

    def __init__(self, seed: int, agent: int, prices: Sequence[float] = ()) -> None:
        self.seed = seed
        self.agent = agent
        self.prices: NDArray[np.float64] | None = np.array(prices) if prices else None
        """The price of a pull of each arm, if the run has a budget."""
        self.charged = 0.0
        """What this agent's pulls were charged, if the run has a budget."""
        self.bulk = np.random.Generator(np.random.PCG64(_AgentSeed(seed, agent)))  # type: ignore[arg-type]
        self.pulls_made = 0
        """Pulls that this agent has made; the number of its next pull."""
        self._halted: Event | None = None
        self._pulls_by_arm: NDArray[np.int64] = np.zeros(0, np.int64)
        self.starts: NDArray[np.int64] | None = None
        """The number of the next pull of each arm of this batch, counted over all agents, if the arms are paired."""
        self.squares: NDArray[np.float64] | None = None
        """Sums of the squared rewards of the last batch, set by arms that see single rewards; None: unknown."""
        self.rewards_by_arm: dict[int, tuple[float, int]] = {}
        """Sum and number of each arm's rewards so far; maintained by arms that skip failed pulls."""

    @property
    def halted(self) -> Event:
        """Set when this agent should stop after the current pull."""
        if self._halted is None:
            with _HALTING:  # the agent and the one that halts it may be in different threads
                self._halted = self._halted or Event()
        return self._halted

    @property
    def is_halted(self) -> bool:
        """Whether this agent should stop."""
        return self._halted is not None and self._halted.is_set()

    def next_pulls(self, arms: NDArray[np.int64]) -> list[int]:
        """The number of the next pull of each of these arms: over all agents if they share examples, else per agent."""
        if self.starts is None:
            self._make_room(arms)
        numbers: list[int] = (self._pulls_by_arm[arms] if self.starts is None else self.starts).tolist()
        return numbers

    def count_pulls(self, arms: NDArray[np.int64], times: NDArray[np.int64]) -> None:
        """Count pulls of these arms (all distinct) for `next_pulls`; called by arms that need it."""
        self._make_room(arms)
        self._pulls_by_arm[arms] += times

    def _make_room(self, arms: NDArray[np.int64]) -> None:
        missing = int(arms.max(initial=-1)) + 1 - len(self._pulls_by_arm)
        if missing > 0:
            self._pulls_by_arm = np.append(self._pulls_by_arm, np.zeros(missing, np.int64))

    def for_pull(self, number: int, attempt: int = 0) -> np.random.Generator:
        """The generator of one attempt at this agent's pull with this number."""
        return pull_rng(self.seed, self.agent, number, attempt)


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
