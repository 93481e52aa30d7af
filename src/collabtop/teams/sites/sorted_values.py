"""What is known of values that somebody else holds in order: a site may lie about them, but not contradict itself."""

from __future__ import annotations

import math

import numpy as np

from collabtop.errors import ProtocolError
from collabtop.protocol.messages import Ints, Reals


class SortedValues:
    """Bounds on each of so many values in ascending order, from what was told of some of them.

    A search is over what all agents told, so answers of one that fit no values at all could lead it anywhere.

    >>> values = SortedValues(5)
    >>> values = values.shown(np.array([1, 3]), np.array([0.2, 0.6]))
    >>> values = values.split(4, 0.7, equal_below=True)         # four of them are 0.7 or less
    >>> values.split(3, 0.7, equal_below=True)
    Traceback (most recent call last):
        ...
    collabtop.errors.ProtocolError: an answer that contradicts an earlier one
    """

    def __init__(self, count: int) -> None:
        self._low: Reals = np.full(count, -np.inf)
        self._high: Reals = np.full(count, np.inf)

    def shown(self, places: Ints, values: Reals) -> SortedValues:
        """These places hold these values."""
        low, high = self._low.copy(), self._high.copy()
        low[places] = np.maximum(low[places], values)
        high[places] = np.minimum(high[places], values)
        return _fitting(low, high)

    def split(self, place: int, bound: float, *, equal_below: bool) -> SortedValues:
        """The values before this place lie below the bound, the others above it; those equal to it where it says."""
        low, high = self._low.copy(), self._high.copy()
        np.minimum(high[:place], bound if equal_below else math.nextafter(bound, -math.inf), out=high[:place])
        np.maximum(low[place:], math.nextafter(bound, math.inf) if equal_below else bound, out=low[place:])
        return _fitting(low, high)


def _fitting(low: Reals, high: Reals) -> SortedValues:
    fitting = SortedValues(0)
    fitting._low = np.maximum.accumulate(low)
    fitting._high = np.minimum.accumulate(high[::-1])[::-1]
    if (fitting._low > fitting._high).any():
        raise ProtocolError("an answer that contradicts an earlier one")
    return fitting
