"""Bounds on sorted values at a site, from its answers: a dishonest site must not contradict itself."""

import math

import numpy as np

from collabtop.errors import ProtocolError
from collabtop.protocol.messages import Ints, Reals


class SortedValues:
    """Lower and upper bounds on `count` values in ascending order.

    A search combines the answers of all agents, so answers that fit no set of values could mislead it arbitrarily.

    >>> values = SortedValues(5)
    >>> values = values.with_values(np.array([1, 3]), np.array([0.2, 0.6]))
    >>> values = values.with_split(4, 0.7, equal_below=True)         # four of them are 0.7 or less
    >>> values.with_split(3, 0.7, equal_below=True)
    Traceback (most recent call last):
        ...
    collabtop.errors.ProtocolError: an answer that contradicts an earlier one
    """

    def __init__(self, count: int) -> None:
        self._low: Reals = np.full(count, -np.inf)
        self._high: Reals = np.full(count, np.inf)

    def with_values(self, positions: Ints, values: Reals) -> "SortedValues":
        """Add that these positions hold these values."""
        low, high = self._low.copy(), self._high.copy()
        low[positions] = np.maximum(low[positions], values)
        high[positions] = np.minimum(high[positions], values)
        return _sorted_values(low, high)

    def with_split(self, position: int, bound: float, *, equal_below: bool) -> "SortedValues":
        """Add that values before this position lie below the bound, and the others above it.

        `equal_below` tells on which side values equal to the bound lie.
        """
        low, high = self._low.copy(), self._high.copy()
        np.minimum(high[:position], bound if equal_below else math.nextafter(bound, -math.inf), out=high[:position])
        np.maximum(low[position:], math.nextafter(bound, math.inf) if equal_below else bound, out=low[position:])
        return _sorted_values(low, high)


def _sorted_values(low: Reals, high: Reals) -> "SortedValues":
    values = SortedValues(0)
    values._low = np.maximum.accumulate(low)
    values._high = np.minimum.accumulate(high[::-1])[::-1]
    if (values._low > values._high).any():
        raise ProtocolError("an answer that contradicts an earlier one")
    return values
