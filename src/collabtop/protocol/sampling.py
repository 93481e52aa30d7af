"""Which of its sorted values an agent sends in a search; both sides compute this, so only values are sent."""

import math
from functools import lru_cache

import numpy as np

from collabtop.protocol.messages import Ints

SAMPLES = 12
"""The most values an agent sends in one reply: a compromise between few words and few round trips."""

_STANDARD_DEVIATIONS = 1.6
"""Half the width of the sampled range, in standard deviations of the position."""


@lru_cache(maxsize=1024)
def around(rank: int, total: int, held: int) -> Ints:
    """Positions to send if an agent holds `held` of `total` values, dealt at random, and `rank` is searched.

    >>> around(rank=294, total=588, held=58)
    array([21, 22, 23, 25, 26, 27, 29, 30, 31, 33, 34, 36])
    >>> around(rank=587, total=588, held=58)
    array([55, 56, 57])
    """
    share = rank / total
    middle = share * held
    reach = _STANDARD_DEVIATIONS * math.sqrt(middle * (1 - share)) + 1.5
    first = max(0, math.floor(middle - reach))
    return _evenly_spaced(first, min(held, math.ceil(middle + reach)))


@lru_cache(maxsize=1024)
def between(start: int, stop: int) -> Ints:
    """Positions to send from the range `start` to `stop`: all, or evenly spaced ones that include both ends.

    >>> between(3, 9)
    array([3, 4, 5, 6, 7, 8])
    """
    return _evenly_spaced(start, stop)


def _evenly_spaced(start: int, stop: int) -> Ints:
    count = stop - start
    positions = np.arange(start, stop)
    if count > SAMPLES:
        positions = start + np.arange(SAMPLES) * (count - 1) // (SAMPLES - 1)
    positions.setflags(write=False)
    return positions
