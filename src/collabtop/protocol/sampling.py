"""Which of its sorted values an agent shows in a search: known to both sides, so only values cross."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from collabtop.protocol.messages import Ints

SAMPLES = 12
"""Most values an agent shows at once. Chosen by `benchmarks/selection.py`: few words and few round trips."""

_SPREAD = 1.6


@lru_cache(maxsize=1024)
def around(rank: int, total: int, held: int) -> Ints:
    """Places to show when `held` of `total` values, dealt at random, hold about their share below `rank`.

    >>> around(rank=294, total=588, held=58)
    array([21, 22, 23, 25, 26, 27, 29, 30, 31, 33, 34, 36])
    >>> around(rank=587, total=588, held=58)
    array([55, 56, 57])
    """
    share = rank / total
    middle = share * held
    reach = _SPREAD * math.sqrt(middle * (1 - share)) + 1.5
    first = max(0, math.floor(middle - reach))
    return _spread(first, min(held, math.ceil(middle + reach)))


@lru_cache(maxsize=1024)
def between(start: int, stop: int) -> Ints:
    """Places to show of those from `start` to `stop`: all, or evenly spread ones with both ends.

    >>> between(3, 9)
    array([3, 4, 5, 6, 7, 8])
    """
    return _spread(start, stop)


def _spread(start: int, stop: int) -> Ints:
    count = stop - start
    places = np.arange(start, stop)
    if count > SAMPLES:
        places = start + np.arange(SAMPLES) * (count - 1) // (SAMPLES - 1)
    places.setflags(write=False)
    return places
