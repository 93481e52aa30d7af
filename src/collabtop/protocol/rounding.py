"""Rounds means before they are sent, each with a precision that matches its own sampling error."""

import math
from collections.abc import Sequence
from copy import copy
from functools import lru_cache

import msgspec
import numpy as np

from collabtop.protocol.messages import CoarseMeans, Flags, Ints, Reals, arcsine_levels
from collabtop.protocol.packing import Packed

_MAX_STEPS = 2**31 - 1
"""The largest integer in a message."""

_FEW_STEPS = 2**12


class NoiseGauge:
    """Estimates how noisy the rewards of the open arms are, from the difference between two halves of the same pulls.

    Agents whose pulls are made together share a gauge; it has a row for each.

    >>> gauge = NoiseGauge(arms=2)
    >>> gauge.add(np.array([3.0, 1.0]), 4, np.array([1.0, 3.0]), 4)
    >>> gauge.noise
    array([1.])
    """

    def __init__(self, arms: int, agents: int = 1) -> None:
        # Every agent has these for every open arm, and only their totals matter.
        self._variances, self._limits = np.zeros((2, agents, arms), np.float32)
        self._batches = 0

    def by_agent(self) -> list["NoiseGauge"]:
        """A gauge for each agent."""
        alone = [copy(self) for _ in self._limits]
        for agent, gauge in enumerate(alone):
            gauge._variances, gauge._limits = self._variances[[agent]], self._limits[[agent]]
        return alone

    def keep(self, survived: Flags) -> None:
        """Continue with these arms: those that are no longer open say nothing about the others."""
        self._variances = self._variances.compress(survived, axis=1)
        self._limits = self._limits.compress(survived, axis=1)

    def add(self, first: Reals, first_times: int, second: Reals, second_times: int) -> None:
        """Add the sums of two batches of pulls of the open arms, one row per agent."""
        differences = first / first_times
        differences -= second / second_times
        differences *= differences
        differences /= 1 / first_times + 1 / second_times
        self._variances += differences
        means = first + second
        means /= first_times + second_times
        means *= 1 - means
        self._limits += means
        self._batches += 1

    @property
    def noise(self) -> Reals:
        """The variance of a reward as a share of mean (1 - mean), its limit; NaN before the first two batches.

        Rewards of 0 and 1 have the variance mean (1 - mean), so the share is 1 for them, whatever their mean.
        """
        if not self._batches:
            return np.full(len(self._limits), np.nan)
        variances, limits = (rows.astype(np.float64).sum(axis=1) for rows in (self._variances, self._limits))
        noise: Reals = np.minimum(1.0, np.divide(variances, limits, out=np.zeros_like(limits), where=limits > 0))
        return noise


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
    share = np.array([np.nan if noise is None else noise])
    return all_coarse_means(sums[np.newaxis], times, share, coarseness, [rng])[0]


def all_coarse_means(
    sums: Reals, times: int, noise: Reals, coarseness: float, rngs: Sequence[np.random.Generator]
) -> list[CoarseMeans]:
    """The `coarse_means` of several agents: a row of sums, an estimate of noise and a generator for each.

    Those of the same precision are packed together.
    """
    steps = coarse_steps(times, noise, coarseness).astype(np.int64)
    counted = (np.floor(sums) == sums).all(axis=1) & ((steps == 0) | (steps >= times))
    scales = np.where(counted, times, steps).tolist(), (~counted & (steps > 0)).tolist()
    rows_by_scale: dict[tuple[int, bool], list[int]] = {}
    for row, form in enumerate(zip(*scales, strict=True)):
        rows_by_scale.setdefault(form, []).append(row)
    answers: dict[int, CoarseMeans] = {}
    for (scale, arcsine), rows in rows_by_scale.items():
        if not scale:
            answers.update((row, CoarseMeans(0, False, None, sums[row] / times)) for row in rows)
            continue
        numbers = sums if len(rows) == len(sums) else sums[rows]
        if arcsine:
            chance = np.array([rngs[row].random(numbers.shape[1]) for row in rows])
            means = numbers / times
            below, low, high = _levels(means, scale)
            numbers = below + (chance < (means - low) / (high - low))  # so that its expectation is the mean
        packed = Packed.rows(numbers.astype(np.int64), scale)
        answers.update((row, CoarseMeans(scale, arcsine, part, None)) for row, part in zip(rows, packed, strict=True))
    return [answers[row] for row in range(len(sums))]


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


@lru_cache(maxsize=16)
def _all_levels(steps: int) -> Reals:
    """All levels of the arcsine scale: for many arms, looking them up takes less time than computing each."""
    levels = arcsine_levels(np.arange(steps + 1), steps)
    levels.setflags(write=False)
    return levels


def _levels(means: Reals, steps: Reals | int) -> tuple[Reals, Reals, Reals]:
    """The last step on the arcsine scale that is not above each mean, its level, and the next level."""
    below = np.floor(np.arcsin(np.sqrt(means)) * (2 / math.pi * steps) + 1e-9).clip(0, steps - 1)
    if isinstance(steps, int) and steps < _FEW_STEPS:
        number, levels = below.astype(np.int64), _all_levels(steps)
        return below, levels[number], levels[number + 1]
    return below, arcsine_levels(below, steps), arcsine_levels(below + 1, steps)


def coarse_counts(sums: Reals, times: int, noise: Reals, coarseness: float, rng: np.random.Generator) -> Reals:
    """The sums that follow from the `coarse_means` of many agents at once: a row of counts of successes for each.

    `noise` has the gauge's estimate for each row, 0 where there is none yet.

    >>> rng = np.random.default_rng(0)
    >>> coarse_counts(np.array([[7.0, 12.0]]), 20, np.array([1.0]), 0.05, rng)
    array([[ 7., 12.]])
    """
    steps = coarse_steps(times, noise, coarseness)
    rounded = sums
    for width in np.unique(steps[(steps > 0) & (steps < times)]).tolist():
        rows = np.flatnonzero(steps == width)
        counts = sums[rows].astype(np.int64)
        rounded = sums.copy() if rounded is sums else rounded
        rounded[rows] = _rounded_counts(counts, times, int(width), rng.random(counts.shape))
    return rounded


def _rounded_counts(counts: Ints, times: int, width: int, chances: Reals) -> Reals:
    """The counts after rounding to so many steps: upwards where the chance is small enough."""
    tabulated = times < counts.size  # arcsines take far longer than lookups
    means = np.arange(times + 1) / times if tabulated else counts / times
    _, low, high = _levels(means, width)
    upwards = (means - low) / (high - low)
    if tabulated:
        low, high, upwards = (table.take(counts) for table in (low, high, upwards))
    return np.where(chances < upwards, high, low) * times


def coarse_steps(times: int, noise: Reals, coarseness: float) -> Reals:
    """The number of steps on the arcsine scale for each estimate of noise; 0 to send the means as they are.

    >>> coarse_steps(1_000, np.array([1.0, 0.0, np.nan]), 0.05)
    array([255.,   0.,   0.])
    """
    # Randomized rounding of a mean p to steps of angle a adds a variance of at most sin^2(a) p (1 - p). The sampling
    # variance is noise p (1 - p) / times.
    angles = np.sqrt(coarseness * noise / times)
    # With hardly any noise, steps would take as many bits as the means. False for NaN.
    coarse = angles >= 2 / _MAX_STEPS
    bits = np.frexp(np.ceil(math.pi / 2 / np.where(coarse, angles, 1.0)))[1]
    return np.where(coarse, np.ldexp(1.0, bits) - 1, 0.0)  # as many as fit into the same number of bits
