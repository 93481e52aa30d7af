"""Intervals of means of rewards in [0, 1] that hold at all times at once, whatever decides when to stop pulling.

docs/intervals.md has the theorems and their proofs. The first function is for rewards that are drawn independently, the
second for those whose expectations drift, because examples are used only once or rewards are compared in pairs.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collabtop.stats import Z_95

Reals = NDArray[np.float64]

LEVEL = 0.95
"""The level of the intervals in tables."""

_COUNT = 16
_STAKES = 0.9 * 0.5 ** np.arange(_COUNT)
"""Bets against a mean, as shares of the largest one: small ones win slowly and surely, large ones if noise is small."""
_NUMBERS = np.arange(1.0, _COUNT + 1)
_LOG_SHARES = -np.log(_NUMBERS) - math.log(float((1 / _NUMBERS).sum()))
"""Logarithms of the shares of the error that the stakes get; the shares add up to 1."""
_MANY = 1_000
"""Arms from which on it is worth looking for equal ones."""
_LARGEST_SQUARED = 0.58
"""The largest stake for which evidence against a mean grows with its distance, if squares are taken around it."""


def mean_bounds(pulls: Reals, sums: Reals, squares: Reals, error: float) -> tuple[Reals, Reals]:
    """The ends of intervals that contain each mean at all times, except with probability `error`.

    Args:
        pulls: how many rewards were drawn, one number per arm.
        sums: their sums.
        squares: the sums of their squares, or upper bounds of these: rewards in [0, 1] have squares of at most `sums`.
        error: the probability that an interval misses its mean at some time.

    >>> low, high = mean_bounds(np.array([100.0]), sums=np.array([50.0]), squares=np.array([50.0]), error=0.05)
    >>> low.round(3), high.round(3)
    (array([0.331]), array([0.669]))
    >>> low, high = mean_bounds(np.array([100.0]), sums=np.array([50.0]), squares=np.array([25.04]), error=0.05)
    >>> low.round(3), high.round(3)
    (array([0.472]), array([0.528]))
    """
    if len(pulls) > _MANY and (pulls == pulls[0]).all():
        # Few sums are distinct after equally many pulls.
        distinct_sums, distinct_squares, index = _distinct(sums, squares)
        if len(distinct_sums) < len(pulls):
            low, high = mean_bounds(pulls[: len(distinct_sums)], distinct_sums, distinct_squares, error)
            return low[index], high[index]
    return 1 - _upper_end(pulls, pulls - sums, pulls - 2 * sums + squares, error), _upper_end(
        pulls, sums, squares, error
    )


def _distinct(sums: Reals, squares: Reals) -> tuple[Reals, Reals, NDArray[np.int64]]:
    """The distinct pairs of a sum and its squares, and which of them each arm has."""
    are_counts = (sums == squares).all() and (np.floor(sums) == sums).all()
    if are_counts and sums.max() < 4 * len(sums):  # numbers of successes, which need not be sorted
        counts = sums.astype(np.int64)
        occurs = np.bincount(counts) > 0
        distinct = np.flatnonzero(occurs).astype(np.float64)
        return distinct, distinct, (np.cumsum(occurs) - 1)[counts]
    pairs, index = np.unique(sums + 1j * squares, return_inverse=True)  # complex numbers are compared as pairs
    return pairs.real, pairs.imag, index


def weighted_bounds(pulls: Reals, sums: Reals, largest: float, error: float) -> tuple[Reals, Reals]:
    """`mean_bounds` for rewards that count with weights of 1 on average, up to `largest`; `sums` are weighted.

    Divided by the largest weight, weighted rewards lie in [0, 1], so their squares are no larger than they are.

    >>> low, high = weighted_bounds(np.array([100.0]), sums=np.array([50.0]), largest=1.5, error=0.05)
    >>> low.round(3), high.round(3)
    (array([0.277]), array([0.764]))
    """
    scaled = sums / largest
    low, high = mean_bounds(pulls, scaled, scaled, error)
    return low * largest, np.minimum(1.0, high * largest)


def _upper_end(pulls: Reals, sums: Reals, squares: Reals, error: float) -> Reals:
    means = sums / pulls
    variances = np.clip(squares / pulls - means**2, 0.0, means * (1 - means))
    # Of all rewards with this mean and variance, bets gain least from those of 1 and one smaller value.
    room = np.maximum(1 - means, 1e-100)
    ones = (variances / (variances + room**2))[:, np.newaxis]
    smaller = (means - variances / room)[:, np.newaxis]
    needed = (math.log(2 / error) - _LOG_SHARES) / pulls[:, np.newaxis] - ones * np.log1p(-_STAKES)
    gains = np.expm1(np.minimum(needed / np.maximum(1 - ones, 1e-300), 700.0))
    ends: Reals = ((gains + _STAKES * smaller) / (gains + _STAKES)).min(axis=1)
    return np.minimum(np.maximum(ends, means), 1.0)


def normal_bounds(pulls: Reals, means: Reals, squares: Reals, population: int | None = None) -> tuple[Reals, Reals]:
    """Approximate 95% intervals of means of rewards without bounds, from their estimated variances (Student).

    They are for a number of pulls that does not depend on the rewards. NaN for a single pull, or without squares.

    >>> low, high = normal_bounds(np.array([25.0]), means=np.array([10.0]), squares=np.array([2600.0]))
    >>> low.round(2), high.round(2)
    (array([9.16]), array([10.84]))
    """
    freedom = np.where(pulls > 1, pulls - 1, np.nan)
    variances = np.maximum(squares / pulls - means**2, 0.0) / freedom
    if population is not None:
        variances = variances * np.maximum(0.0, 1 - pulls / population)
    quantile = Z_95 + (Z_95**3 + Z_95) / (4 * freedom) + (5 * Z_95**5 + 16 * Z_95**3 + 3 * Z_95) / (96 * freedom**2)
    half = quantile * np.sqrt(variances)
    return means - half, means + half


def noisy_bounds(
    means: Reals, pulls: Reals, batches: Reals, deviation: float | Reals, error: float
) -> tuple[Reals, Reals]:
    """Intervals of means whose sums have noise: `batches` of it per arm, each with this standard deviation.

    They hold if the number of pulls after each round of a run is fixed, whatever decides when an arm is settled: the
    proof is in docs/privacy.md.

    >>> low, high = noisy_bounds(np.array([0.5]), np.array([1e4]), np.array([2.0]), deviation=30.0, error=0.05)
    >>> low.round(3), high.round(3)
    (array([0.468]), array([0.532]))
    """
    evidence = np.log(4 * batches * (batches + 1) / error)
    half = np.sqrt(evidence / (2 * pulls)) + deviation * np.sqrt(2 * batches * evidence) / pulls
    return np.maximum(0.0, means - half), np.minimum(1.0, means + half)


class Evidence(NamedTuple):
    """What rewards with drifting expectations say about the means of arms, one number per arm in each column.

    For rewards X_1, X_2, ... of an arm with mean mu let C_1, C_2, ... be their expectations given the earlier ones,
    which are linear in mu. For every mu,

        total - weight mu  is the sum of X_i - C_i,  and  square - 2 cross mu + curve mu^2  that of (X_i - c_i)^2,

    in which c_i is C_i, or any number that does not depend on mu (then cross and curve are 0).
    """

    total: Reals
    weight: Reals
    square: Reals
    cross: Reals
    curve: Reals

    @property
    def mirrored(self) -> "Evidence":
        """The same for rewards 1 - X."""
        square = self.square - 2 * self.cross + self.curve
        return Evidence(self.weight - self.total, self.weight, square, self.curve - self.cross, self.curve)


def drift_bounds(evidence: Evidence, error: float) -> tuple[Reals, Reals]:
    """`mean_bounds` from `Evidence`: wider, but valid if expectations drift.

    >>> column = np.array([50.0]), np.array([100.0])
    >>> low, high = drift_bounds(Evidence(*column, column[0], *column), error=0.05)
    >>> low.round(3), high.round(3)
    (array([0.264]), array([0.736]))
    """
    total, weight, square, cross, curve = (column[:, np.newaxis] for column in evidence)
    stakes = _STAKES if not curve.any() else _STAKES * (_LARGEST_SQUARED / _STAKES[0])
    prices = -np.log1p(-stakes) - stakes
    needed = math.log(2 / error) - _LOG_SHARES
    bent = prices * curve
    # The roots of  stake (total - weight mu) - price (square - 2 cross mu + curve mu^2) = needed,  and for the other
    # side, in the form that does not lose digits where curve is small or zero.
    slope, constant = stakes * weight - 2 * prices * cross, stakes * total - prices * square - needed
    inner = slope**2 + 4 * bent * constant
    low = np.where(inner >= 0, 2 * constant / (slope + np.sqrt(np.maximum(inner, 0.0))), 0.0).max(axis=1)
    slope, constant = stakes * weight + 2 * prices * cross, stakes * total + prices * square + needed
    inner = slope**2 - 4 * bent * constant
    high = np.where(inner >= 0, 2 * constant / (slope + np.sqrt(np.maximum(inner, 0.0))), 1.0).min(axis=1)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


class FiniteEvidence:
    """`Evidence` from examples of which each is used once: what is left to draw shifts as they are used up.

    Args:
        n: the number of arms.
        population: the number of examples of each arm; None if there is no limit.

    >>> evidence = FiniteEvidence(n=1, population=100)
    >>> for _ in range(2):
    ...     evidence.add(np.array([0]), pulls=45, sums=np.array([9.0]), squares=np.array([9.0]))
    >>> low, high = drift_bounds(evidence.evidence, error=0.05)
    >>> low.round(2), high.round(2)
    (array([0.06]), array([0.34]))
    """

    def __init__(self, n: int, population: int | None) -> None:
        self._population = population
        self._columns = np.zeros((5, n))
        self._sums, self._pulls = np.zeros(n), np.zeros(n)

    def add(self, arms: NDArray[np.int64], pulls: int | Reals, sums: Reals, squares: Reals) -> None:
        """Add a batch of pulls of each of these arms: so many each, or as many as there are in a column."""
        unused = math.inf if self._population is None else self._population - self._pulls[arms]
        factor = 1.0 if self._population is None else self._population / unused  # C is factor mu - used
        used = self._sums[arms] / unused
        self._columns[0, arms] += sums + pulls * used
        self._columns[1, arms] += pulls * factor
        self._columns[2, arms] += squares + 2 * used * sums + pulls * used**2
        self._columns[3, arms] += factor * (sums + pulls * used)
        self._columns[4, arms] += pulls * factor**2
        self._sums[arms] += sums
        self._pulls[arms] += pulls

    @property
    def evidence(self) -> Evidence:
        """The evidence about all arms."""
        return Evidence(*self._columns.copy())
