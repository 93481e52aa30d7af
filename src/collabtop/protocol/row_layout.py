"""Values of several agents in rows, one per agent, so that all rows are ranked at once."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collabtop.protocol.messages import Flags


class RowLayout:
    """A layout in rows of given lengths; shorter rows are padded at their end.

    >>> rows = RowLayout([2, 1])
    >>> rows.of(np.array([0.3, 0.1, 0.2]), padding=np.inf)
    array([[0.3, 0.1],
           [0.2, inf]])
    >>> rows.flat(np.array([[1, 2], [3, 4]]))
    array([1, 2, 3])
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self.lengths = lengths
        """How many values each row has."""
        self.width = max(lengths)
        self._is_even = min(lengths) == self.width

    @cached_property
    def _filled(self) -> Flags:
        return np.arange(self.width) < np.array(self.lengths)[:, np.newaxis]

    def of(self, values: NDArray[Any], padding: float) -> NDArray[Any]:
        """Values that are one row after the other, in rows."""
        if self._is_even:
            return values.reshape(len(self.lengths), self.width)
        rows = np.full(self._filled.shape, padding, values.dtype)
        rows[self._filled] = values
        return rows

    def flat(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The values of all rows, one row after the other, without the padding."""
        return rows.ravel() if self._is_even else rows[self._filled]
