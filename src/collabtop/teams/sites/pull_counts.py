"""What a `Pull` asks for: checked and counted once for all agents that get it, and the checks themselves."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from collabtop.errors import ProtocolError
from collabtop.problem import Problem
from collabtop.protocol import messages as msg
from collabtop.protocol.messages import Ints, Reals

FEW = 64
"""NumPy's per-call overhead exceeds the cost of so many comparisons in Python."""
_LAST_PULL = 1 << 53


class PullCounts(NamedTuple):
    """What a `Pull` asks for."""

    pulls: int
    """Pulls in total."""
    arms: int
    """Arms that are pulled at least once."""
    fewest: int
    """The fewest pulls of one of them."""


def pull_counts(message: msg.Pull, problem: Problem) -> PullCounts:
    """Count what a `Pull` asks for; raise `ProtocolError` if no coordinator would send it.

    >>> pull_counts(msg.Pull(np.array([4, 2]), np.array([5])), Problem(n=9, m=1, agents=2, horizon=50))
    PullCounts(pulls=10, arms=2, fewest=5)
    """
    return _counts(_ById(message), problem.n, problem.horizon)


class _ById:
    """A message as a key: it has arrays, so it has no hash of its own."""

    __slots__ = ("message",)

    def __init__(self, message: msg.Pull) -> None:
        self.message = message

    def __hash__(self) -> int:
        return id(self.message)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.message is other.message


@lru_cache(maxsize=2)  # all agents get the same question in most exchanges
def _counts(key: _ById, n: int, horizon: int) -> PullCounts:
    arms, times, starts = key.message.arms, key.message.times, key.message.starts
    count = n if arms is None else len(arms)
    need(len(times) in (1, count), "not one number of pulls per arm")
    need(within(times, 0, horizon), "a number of pulls out of range")
    if arms is not None:
        need(within(arms, 0, n - 1) and distinct(arms), "unknown or repeated arms")
    if starts is not None:
        need(len(starts) in (1, count), "not one first pull per arm")
        need(within(starts, 0, _LAST_PULL), "a number of a pull out of range")
    copies = count if len(times) == 1 else 1
    pulled = int(np.count_nonzero(times))
    return PullCounts(int(times.sum()) * copies, pulled * copies, int(times[times > 0].min(initial=2**31)))


def need(holds: bool, otherwise: str) -> None:
    """Raise `ProtocolError` unless this holds."""
    if not holds:
        raise ProtocolError(otherwise)


def within(numbers: Ints | Reals, low: float, high: float) -> bool:
    """Whether all numbers are in this range; NaN is not.

    >>> within(np.array([0.5, 1.0]), 0, 1), within(np.array([0.5, np.nan]), 0, 1)
    (True, False)
    """
    if len(numbers) < FEW:
        return all(low <= number <= high for number in numbers.tolist())
    return bool(numbers.min() >= low and numbers.max() <= high)


def distinct(numbers: Ints) -> bool:
    """Whether no number occurs twice."""
    unique = set(numbers.tolist()) if len(numbers) < FEW else np.unique(numbers)
    return len(unique) == len(numbers)
