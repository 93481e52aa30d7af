"""How finely a mean deserves to be told: as finely as its own sampling error, which the agent measures."""

from __future__ import annotations

import math

import numpy as np

from collabtop.protocol.messages import CoarseMeans, Reals
from collabtop.protocol.packing import Packed

_MOST_STEPS = 2**31 - 1
"""The largest integer of a message."""


class NoiseGauge:
    """The variance of a single reward, judged by how much two halves of the same pulls differ.

    >>> gauge = NoiseGauge()
    >>> gauge.take(np.array([3.0, 1.0]), 4, np.array([1.0, 3.0]), 4)
    >>> gauge.variance
    0.5
    """

    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0

    def take(self, first: Reals, first_times: int, second: Reals, second_times: int) -> None:
        """Take in the sums of two batches of pulls of the same arms."""
        differences = first / first_times - second / second_times
        self._sum += float((differences**2).sum()) / (1 / first_times + 1 / second_times)
        self._count += len(differences)

    @property
    def variance(self) -> float | None:
        """The variance of one reward, or None while nothing has been pulled twice."""
        return self._sum / self._count if self._count else None


def coarse_means(
    sums: Reals, times: int, variance: float | None, coarseness: float, rng: np.random.Generator
) -> CoarseMeans:
    """Means in steps so fine that rounding adds at most a share `coarseness` to their sampling variance.

    Rewards without noise deserve all their bits; a whole number of successes needs no more than `times` steps.

    >>> rng = np.random.default_rng(0)
    >>> coarse_means(np.array([7.0, 12.0]), 20, 0.16, 0.05, rng).steps
    20
    >>> coarse_means(np.array([700.0, 912.0]), 1_000, 0.16, 0.05, rng).steps
    255
    >>> coarse_means(np.array([5.0, 2.5]), 10, 0.0, 0.05, rng)
    CoarseMeans(steps=0, packed=None, exact=array([0.5 , 0.25]), free=())
    """
    means = sums / times
    steps = _steps(sums, times, variance, coarseness)
    if not steps:
        return CoarseMeans(0, None, means)
    exact = means * steps
    told = np.floor(exact + 1e-9)
    told += rng.random(len(told)) < exact - told  # up as often as the mean is nearer to it: right on average
    return CoarseMeans(steps, Packed.of(told.astype(np.int64), steps), None)


def _steps(sums: Reals, times: int, variance: float | None, coarseness: float) -> int:
    """The number of steps from 0 to 1, or 0 to send the means as they are."""
    counts_suffice = bool((np.floor(sums) == sums).all())
    if not variance or not coarseness:
        return times if counts_suffice and variance != 0 else 0
    # Rounding to steps of width w at random adds a variance of at most w^2 / 4; no reward has more than 1/4.
    width = math.sqrt(4 * coarseness * min(variance, 0.25) / times)
    if width < 1 / _MOST_STEPS:  # next to no noise: steps would be no shorter to tell than the means themselves
        return times if counts_suffice else 0
    steps = (1 << math.ceil(1 / width).bit_length()) - 1  # as many as the same bits can tell
    return min(steps, times) if counts_suffice else steps
