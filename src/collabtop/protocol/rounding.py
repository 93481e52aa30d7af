"""Rounds means before they are sent, each with a precision that matches its own sampling error."""

import math

import msgspec
import numpy as np

from collabtop.protocol.messages import CoarseMeans, Flags, Ints, Reals, arcsine_levels
from collabtop.protocol.packing import Packed

_MAX_STEPS = 2**31 - 1
"""The largest integer in a message."""


class NoiseGauge:
    """Estimates how noisy the rewards of the open arms are, from the difference between two halves of the same pulls.

    >>> gauge = NoiseGauge(arms=2)
    >>> gauge.add(np.array([3.0, 1.0]), 4, np.array([1.0, 3.0]), 4)
    >>> gauge.noise
    1.0
    """

    def __init__(self, arms: int) -> None:
        # Every agent has these for every open arm, and only their totals matter.
        self._variances, self._limits, self._batches = np.zeros(arms, np.float32), np.zeros(arms, np.float32), 0

    def keep(self, survived: Flags) -> None:
        """Continue with these arms: those that are no longer open say nothing about the others."""
        self._variances, self._limits = self._variances[survived], self._limits[survived]

    def add(self, first: Reals, first_times: int, second: Reals, second_times: int) -> None:
        """Add the sums of two batches of pulls of the open arms."""
        differences = first / first_times - second / second_times
        means = (first + second) / (first_times + second_times)
        self._variances += differences**2 / (1 / first_times + 1 / second_times)
        self._limits += means * (1 - means)
        self._batches += 1

    @property
    def noise(self) -> float | None:
        """The variance of a reward as a share of mean (1 - mean), its limit; None before the first two batches.

        Rewards of 0 and 1 have the variance mean (1 - mean), so the share is 1 for them, whatever their mean.
        """
        if not self._batches:
            return None
        limit = float(self._limits.sum(dtype=np.float64))
        return min(1.0, float(self._variances.sum(dtype=np.float64)) / limit) if limit else 0.0


def coarse_means(
    sums: Reals, times: int, noise: float | None, coarseness: float, rng: np.random.Generator
) -> CoarseMeans:
    """Round means so that rounding adds at most a share `coarseness` to the sampling variance of each of them.

    Rewards without noise are sent exactly; whole numbers of successes need at most `times` even steps.

    >>> rng = np.random.default_rng(0)
    >>> coarse_means(np.array([7.0, 12.0]), 20, 1.0, 0.05, rng).steps
    20
    >>> coarse_means(np.array([700.0, 912.0]), 1_000, 1.0, 0.05, rng).steps
    255
    >>> coarse_means(np.array([5.0, 2.5]), 10, 0.0, 0.05, rng)
    CoarseMeans(steps=0, arcsine=False, packed=None, exact=array([0.5 , 0.25]))
    """
    means = sums / times
    steps = _arcsine_steps(times, noise, coarseness)
    are_counts = bool((np.floor(sums) == sums).all())
    if are_counts and (not steps or steps >= times):
        return CoarseMeans(times, False, Packed.of(sums.astype(np.int64), times), None)
    if not steps:
        return CoarseMeans(0, False, None, means)
    return CoarseMeans(steps, True, Packed.of(_rounded(means, steps, rng), steps), None)


def with_squares(answer: CoarseMeans, sums: Reals, squares: Reals | None, times: int) -> CoarseMeans:
    """Add mean squares to an answer with means: as whole numbers if both are whole numbers, otherwise both exactly.

    Squares that are unknown (NaN, or None: all) are those of 0/1 rewards, which are the largest possible.

    >>> answer = CoarseMeans(20, False, Packed.of(np.array([7, 12]), 20), None)
    >>> with_squares(answer, np.array([7.0, 12.0]), np.array([7.0, 12.0]), 20).squares()
    array([0.35, 0.6 ])
    >>> with_squares(answer, np.array([7.0, 12.0]), np.array([3.5, 12.0]), 20).means()
    array([0.35, 0.6 ])
    """
    known = sums if squares is None else np.where(np.isnan(squares), sums, squares)
    squares = np.clip(known, sums**2 / times, sums)
    counted = answer.packed is not None and not answer.arcsine
    if counted and bool((np.floor(squares) == squares).all()):
        return msgspec.structs.replace(answer, packed_squares=Packed.of(squares.astype(np.int64), times))
    return CoarseMeans(0, False, None, sums / times, None, squares / times)


def _arcsine_steps(times: int, noise: float | None, coarseness: float) -> int:
    """The number of steps on the arcsine scale, or 0 to send the means as they are."""
    if not noise or not coarseness:
        return 0
    # Randomized rounding of a mean p to steps of angle a adds a variance of at most sin^2(a) p (1 - p). The sampling
    # variance is noise p (1 - p) / times.
    angle = math.sqrt(coarseness * noise / times)
    if angle < 2 / _MAX_STEPS:  # hardly any noise: steps would take as many bits as the means
        return 0
    return (1 << math.ceil(math.pi / 2 / angle).bit_length()) - 1  # as many as fit into the same number of bits


def _rounded(means: Reals, steps: int, rng: np.random.Generator) -> Ints:
    """The level above or below each mean, chosen at random so that its expectation is the mean."""
    below = np.floor(np.arcsin(np.sqrt(means)) * (2 / math.pi * steps) + 1e-9).clip(0, steps - 1)
    low, high = arcsine_levels(below, steps), arcsine_levels(below + 1, steps)
    chosen = below + (rng.random(len(means)) < (means - low) / (high - low))
    rounded: Ints = chosen.astype(np.int64)
    return rounded


def coarse_counts(sums: Reals, times: int, noise: Reals, coarseness: float, rng: np.random.Generator) -> Reals:
    """The sums that follow from the `coarse_means` of many agents at once: a row of counts of successes for each.

    `noise` has the gauge's estimate for each row, 0 where there is none yet.

    >>> rng = np.random.default_rng(0)
    >>> coarse_counts(np.array([[7.0, 12.0]]), 20, np.array([1.0]), 0.05, rng)
    array([[ 7., 12.]])
    """
    steps = coarse_steps(times, noise, coarseness)
    rows = np.flatnonzero((steps > 0) & (steps < times))
    if not len(rows):
        return sums
    width, means = steps[rows, np.newaxis], sums[rows] / times
    below = np.floor(np.arcsin(np.sqrt(means)) * (2 / math.pi * width) + 1e-9).clip(0, width - 1)
    low, high = (np.sin(level * (np.pi / 2 / width)) ** 2 for level in (below, below + 1))  # `arcsine_levels`
    rounded = sums.copy()
    rounded[rows] = np.where(rng.random(means.shape) < (means - low) / (high - low), high, low) * times
    return rounded


def coarse_steps(times: int, noise: Reals, coarseness: float) -> Reals:
    """The number of steps on the arcsine scale for each estimate of noise; 0 to send the means as they are.

    >>> coarse_steps(1_000, np.array([1.0, 0.0, np.nan]), 0.05)
    array([255.,   0.,   0.])
    """
    angles = np.sqrt(coarseness * noise / times)
    coarse = angles >= 2 / _MAX_STEPS  # False for NaN
    bits = np.frexp(np.ceil(math.pi / 2 / np.where(coarse, angles, 1.0)))[1]
    return np.where(coarse, np.ldexp(1.0, bits) - 1, 0.0)
