"""Computes with long arrays block by block, so that temporary arrays stay in the processor's cache."""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

_BLOCK = 1 << 15


def in_blocks(work: Callable[..., object], *arrays: NDArray[Any]) -> None:
    """Call `work` with the arrays, which have the same length; with one block of each at a time if they are long.

    It changes some of them in place, element by element.

    >>> import numpy as np
    >>> def add_squares(sums, values):
    ...     sums += values**2
    >>> sums = np.ones(100_000)
    >>> in_blocks(add_squares, sums, np.full(100_000, 2.0))
    >>> sums[:3]
    array([5., 5., 5.])
    """
    length = len(arrays[0])
    if length <= _BLOCK:
        work(*arrays)
        return
    for start in range(0, length, _BLOCK):
        work(*[array[start : start + _BLOCK] for array in arrays])
