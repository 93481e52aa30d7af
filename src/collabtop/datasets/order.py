"""A fixed, patternless order of the arms: in arms sorted by mean, ties broken by index reveal the answer."""

import numpy as np
from numpy.typing import NDArray

# Constants of splitmix64 (Steele, Lea, Flood 2014): integers only, so every platform gives the same order.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIXES = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))


def scrambled_order(n: int) -> NDArray[np.int64]:
    """The numbers 0 ... n - 1 in an order that looks random and is always the same.

    >>> scrambled_order(6)
    array([2, 4, 5, 1, 0, 3])
    """
    return np.argsort(mixed_keys(n)).astype(np.int64)


def mixed_keys(n: int) -> NDArray[np.uint64]:
    """Return n distinct 64-bit numbers, evenly spread and without a pattern.

    >>> len(set(mixed_keys(1000).tolist()))
    1000
    """
    keys = np.arange(1, n + 1, dtype=np.uint64) * _STEP  # overflow is intended
    for shift, factor in _MIXES:
        keys = (keys ^ (keys >> np.uint64(shift))) * factor
    return keys ^ (keys >> np.uint64(31))
