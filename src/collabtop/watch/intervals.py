"""The 95% intervals of all candidates, computed anew only where a mean or a number of pulls has changed."""

import numpy as np

from collabtop.protocol.messages import Ints, Reals
from collabtop.stats import wilson_interval


class IntervalColumns:
    """Remembers means, pulls and intervals between two views of a run.

    >>> columns = IntervalColumns()
    >>> low, high = columns.update(np.array([0.5, np.nan]), np.array([10, 0]))
    >>> low.round(3), high.round(3)
    (array([0.237,   nan]), array([0.763,   nan]))
    """

    def __init__(self) -> None:
        self._means, self._pulls = np.zeros(0), np.zeros(0, np.int64)
        self._low, self._high = np.zeros(0), np.zeros(0)

    def update(self, means: Reals, pulls: Ints, population: int | None = None) -> tuple[Reals, Reals]:
        """Both ends of the interval of every mean of so many rewards in [0, 1]; NaN where one of them is unknown."""
        if len(self._means) != len(means):
            self._means, self._pulls = np.full(len(means), np.nan), np.zeros(len(means), np.int64)
            self._low, self._high = np.full(len(means), np.nan), np.full(len(means), np.nan)
        changed = (self._pulls != pulls) | ((self._means != means) & ~(np.isnan(means) & np.isnan(self._means)))
        for arm in np.flatnonzero(changed).tolist():
            self._low[arm], self._high[arm] = _interval(float(means[arm]), int(pulls[arm]), population)
        self._means, self._pulls = means.copy(), pulls.copy()
        return self._low.copy(), self._high.copy()


def _interval(mean: float, pulls: int, population: int | None) -> tuple[float, float]:
    if pulls < 1 or np.isnan(mean):
        return np.nan, np.nan
    return wilson_interval(mean, pulls, population=population)
