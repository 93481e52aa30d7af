"""Rounds means before they are sent, with a precision that matches their sampling error."""

import math

import numpy as np

from collabtop.protocol.messages import CoarseMeans, Reals
from collabtop.protocol.packing import Packed

_MAX_STEPS = 2**31 - 1
"""The largest integer in a message."""


class NoiseGauge:
    """Estimates the variance of a single reward from the difference between two halves of the same pulls.

    >>> gauge = NoiseGauge()
    >>> gauge.add(np.array([3.0, 1.0]), 4, np.array([1.0, 3.0]), 4)
    >>> gauge.variance
    0.5
    """

    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0

    def add(self, first: Reals, first_times: int, second: Reals, second_times: int) -> None:
        """Add the sums of two batches of pulls of the same arms."""
        differences = first / first_times - second / second_times
        self._sum += float((differences**2).sum()) / (1 / first_times + 1 / second_times)
        self._count += len(differences)

    @property
    def variance(self) -> float | None:
        """The variance of one reward, or None before the first two batches."""
        return self._sum / self._count if self._count else None


def coarse_means(
    sums: Reals, times: int, variance: float | None, coarseness: float, rng: np.random.Generator
) -> CoarseMeans:
    """Round means so that rounding adds at most a share `coarseness` to their sampling variance.

    Rewards without noise are sent exactly; whole numbers of successes need at most `times` steps.

    >>> rng = np.random.default_rng(0)
    >>> coarse_means(np.array([7.0, 12.0]), 20, 0.16, 0.05, rng).steps
    20
    >>> coarse_means(np.array([700.0, 912.0]), 1_000, 0.16, 0.05, rng).steps
    255
    >>> coarse_means(np.array([5.0, 2.5]), 10, 0.0, 0.05, rng)
    CoarseMeans(steps=0, packed=None, exact=array([0.5 , 0.25]))
    """
    means = sums / times
    steps = _steps(sums, times, variance, coarseness)
    if not steps:
        return CoarseMeans(0, None, means)
    exact = means * steps
    rounded = np.floor(exact + 1e-9)
    rounded += rng.random(len(rounded)) < exact - rounded  # randomized rounding, so that it is unbiased
    return CoarseMeans(steps, Packed.of(rounded.astype(np.int64), steps), None)


def _steps(sums: Reals, times: int, variance: float | None, coarseness: float) -> int:
    """The number of steps from 0 to 1, or 0 to send the exact means."""
    are_counts = bool((np.floor(sums) == sums).all())
    if not variance or not coarseness:
        return times if are_counts and variance != 0 else 0
    # Randomized rounding to steps of width w adds a variance of at most w^2 / 4; that of a reward is at most 1/4.
    width = math.sqrt(4 * coarseness * min(variance, 0.25) / times)
    if width < 1 / _MAX_STEPS:  # hardly any noise: steps would take as many bits as the means
        return times if are_counts else 0
    steps = (1 << math.ceil(1 / width).bit_length()) - 1  # as many as fit into the same number of bits
    return min(steps, times) if are_counts else steps
