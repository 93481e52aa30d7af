"""The 95% intervals of all candidates, computed anew only where a mean or a number of pulls has changed."""

import math

import numpy as np
from numpy.typing import NDArray

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
        """Both ends of the interval of every mean of so many pulls; NaN where one of them is unknown."""
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


_SMALL, _MOST_DIGITS = 1e-3, 290


def as_reals(values: NDArray[np.float64], digits: int = 9) -> list[float | None]:
    """Rounded numbers as JSON has them: None instead of NaN. Very small numbers keep more digits after the point.

    >>> as_reals(np.array([0.123456789012, np.nan])), as_reals(np.array([1.23456789012e-7]))
    ([0.123456789, None], [1.23456789e-07])
    """
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    if 0 < largest < _SMALL:
        digits = min(digits - math.floor(math.log10(largest)), _MOST_DIGITS)
    return [None if value != value else value for value in np.round(values, digits).tolist()]
