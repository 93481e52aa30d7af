"""What agents have pulled, batch by batch, for those who may look at it: `Result.observed`."""

from collections.abc import Iterable, Iterator
from threading import Lock

import numpy as np

from collabtop.arms.base import Ints, Reals

Batch = tuple[Ints, Ints, Reals, Reals | None]
"""Pulls that an agent made at once: arms, times (one per arm, or one for all), sums, and sums of squares (NaN if
unknown; None if all are unknown)."""

_FEW_ARMS = 1 << 17


class ArmTotals:
    """The pulls of each arm, the sums of their rewards, and the sums of squares.

    >>> totals = ArmTotals(n=3, batches=[(np.array([0, 2]), np.array([5]), np.array([4.0, 1.0]), None)])
    >>> totals.pulls, totals.sums, totals.squares
    (array([5, 0, 5]), array([4., 0., 1.]), None)
    """

    def __init__(self, n: int, batches: Iterable[Batch] = ()) -> None:
        self.pulls, self.sums = np.zeros(n, np.int64), np.zeros(n)
        self.squares: Reals | None = None
        """NaN where they are unknown; None if all are."""
        for batch in batches:
            self.add(batch)

    def add(self, batch: Batch) -> None:
        """Add a batch."""
        arms, times, sums, squares = batch
        if squares is not None and self.squares is None:
            self.squares = np.where(self.pulls > 0, np.nan, 0.0)
        if self.squares is not None:
            self.squares[arms] += np.nan if squares is None else squares
        self.pulls[arms] += times
        self.sums[arms] += sums


class Batches:
    """Batches of pulls; when there are many they are added up, so that their memory is limited.

    >>> batches = Batches(n=3)
    >>> batches.append((np.array([0, 2]), np.array([5]), np.array([4.0, 1.0]), np.array([4.0, 1.0])))
    >>> list(batches)
    [(array([0, 2]), array([5]), array([4., 1.]), array([4., 1.]))]
    """

    def __init__(self, n: int) -> None:
        self._n, self._lock = n, Lock()  # agents in different threads may share it
        # Rounds that halve the arms pull 2 n of them in total, and some of these in two batches.
        self._most_recent_arms = max(_FEW_ARMS, 2 * n + n // 16)
        self._recent: list[Batch] = []
        self._recent_arms = 0
        self._totals: ArmTotals | None = None

    def append(self, batch: Batch) -> None:
        """Add a batch."""
        with self._lock:
            self._recent.append(batch)
            self._recent_arms += len(batch[0])
            if self._recent_arms > self._most_recent_arms:
                self._add_up()

    def __iter__(self) -> Iterator[Batch]:
        with self._lock:
            older: list[Batch] = []
            if self._totals is not None:
                older = [(np.arange(self._n), self._totals.pulls, self._totals.sums, self._totals.squares)]
            return iter(older + self._recent)

    def _add_up(self) -> None:
        self._totals = self._totals or ArmTotals(self._n)
        for batch in self._recent:
            self._totals.add(batch)
        self._recent, self._recent_arms = [], 0
