"""What agents have pulled, batch by batch, for those who may look at it: `Result.observed`."""

from collections.abc import Iterator
from threading import Lock

import numpy as np

from collabtop.arms.base import Ints, Reals

Batch = tuple[Ints, Ints, Reals, Reals]
"""Pulls that an agent made at once: arms, times (one per arm, or one for all), sums, and sums of squares (NaN if
unknown)."""

_FEW_ARMS = 1 << 15


class Batches:
    """Batches of pulls; when there are many they are added up, so that their memory is limited.

    >>> batches = Batches(n=3)
    >>> batches.append((np.array([0, 2]), np.array([5]), np.array([4.0, 1.0]), np.array([4.0, 1.0])))
    >>> list(batches)
    [(array([0, 2]), array([5]), array([4., 1.]), array([4., 1.]))]
    """

    def __init__(self, n: int) -> None:
        self._n, self._lock = n, Lock()  # agents in different threads may share it
        self._most_recent_arms = max(_FEW_ARMS, 2 * n)
        self._recent: list[Batch] = []
        self._recent_arms = 0
        self._totals: tuple[Ints, Reals, Reals] | None = None

    def append(self, batch: Batch) -> None:
        """Add a batch."""
        with self._lock:
            self._recent.append(batch)
            self._recent_arms += len(batch[0])
            if self._recent_arms > self._most_recent_arms:
                self._add_up()

    def __iter__(self) -> Iterator[Batch]:
        with self._lock:
            totals = [] if self._totals is None else [(np.arange(self._n), *self._totals)]
            return iter(totals + self._recent)

    def _add_up(self) -> None:
        if self._totals is None:
            self._totals = np.zeros(self._n, np.int64), np.zeros(self._n), np.zeros(self._n)
        pulls, sums, squares = self._totals
        for arms, times, batch_sums, batch_squares in self._recent:
            pulls[arms] += times
            sums[arms] += batch_sums
            squares[arms] += batch_squares
        self._recent, self._recent_arms = [], 0
