"""Statistics used by several packages: intervals, exact tests, and corrections for many tests."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from collabtop.validation import wrong_value

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

Z_95 = 1.959963984540054
"""Half-width of a two-sided 95% interval, in standard deviations of a normal distribution."""


def wilson_interval(share: float, count: int, z: float = Z_95, population: int | None = None) -> tuple[float, float]:
    """The Wilson interval of a share of `count` trials, or of a mean of `count` rewards in [0, 1]; 95% by default.

    For a given mean, 0/1 rewards have the largest variance, so the interval is valid for all rewards in [0, 1]. If the
    trials are drawn without replacement from a finite `population`, the interval is shorter, and a point if they are
    all of it.

    >>> [round(end, 3) for end in wilson_interval(3 / 100, 100)]
    [0.01, 0.085]
    >>> [round(end, 3) for end in wilson_interval(3 / 100, 100, population=150)]
    [0.016, 0.056]
    >>> wilson_interval(0.25, 100, population=100)
    (0.25, 0.25)
    """
    if count < 1:
        raise wrong_value("count", count, "an interval needs at least 1 observation")
    if population is not None and count >= population:
        return share, share
    trials = count if population is None else count * (population - 1) / (population - count)
    weight = z * z / trials
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(max(0.0, share * (1 - share)) / trials + weight / (4 * trials))
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


_FAR = 40.0  # standard deviations


def hypergeometric(n: int, marked: int, drawn: int, counts: Integers) -> Reals:
    """P(exactly c of the `marked` among n items are among `drawn` random ones) for each c of `counts`.

    Every c must be possible: at most `marked` and `drawn`, and at least `marked + drawn - n`.

    >>> hypergeometric(n=4, marked=2, drawn=2, counts=np.array([0, 1, 2])).round(3)
    array([0.167, 0.667, 0.167])
    """
    logs = _log_factorials(n)
    ways = logs[marked] - logs[counts] - logs[marked - counts]
    ways += logs[n - marked] - logs[drawn - counts] - logs[n - marked - drawn + counts]
    return np.asarray(np.exp(ways - (logs[n] - logs[drawn] - logs[n - drawn])), np.float64)


def hypergeometric_tail(n: int, marked: int, drawn: int, above: int) -> float:
    """P(more than `above` of the `marked` among n items are among `drawn` random ones).

    >>> round(hypergeometric_tail(n=4, marked=2, drawn=2, above=1), 6)     # both: 1 of 6 draws
    0.166667
    """
    first, last = max(above + 1, marked + drawn - n, 0), min(marked, drawn)
    if first > last:
        return 0.0
    # Terms far from the most likely one, or from the first if that is larger, do not change the sum.
    mean = marked * drawn / n
    far = _FAR * (1 + math.sqrt(mean * (1 - marked / n) * (1 - drawn / n)))
    first, last = max(first, math.floor(mean - far)), min(last, math.ceil(max(mean, first) + far))
    return min(1.0, float(hypergeometric(n, marked, drawn, np.arange(first, last + 1)).sum()))


def fewer_wrong_p_value(wrong: int, runs: int, other_wrong: int, other_runs: int) -> float:
    """The one-sided p-value of Fisher's exact test that the first probability is the smaller one.

    >>> round(fewer_wrong_p_value(1, 9, other_wrong=11, other_runs=12), 6)
    0.000371
    """
    total, all_wrong = runs + other_runs, wrong + other_wrong
    return hypergeometric_tail(total, all_wrong, other_runs, above=other_wrong - 1)


def smaller_mean_p_value(
    mean: float, deviation: float, runs: int, other_mean: float, other_deviation: float, other_runs: int
) -> float:
    """The one-sided p-value of Welch's t-test that the first true mean is the smaller one.

    It is 1 if a mean is of fewer than 2 runs. Means without any deviation are taken as exact.

    >>> round(smaller_mean_p_value(100.0, 10.0, 5, other_mean=120.0, other_deviation=10.0, other_runs=5), 4)
    0.0067
    >>> smaller_mean_p_value(100.0, 0.0, 5, other_mean=101.0, other_deviation=0.0, other_runs=5)
    0.0
    """
    if min(runs, other_runs) < 2:
        return 1.0
    variance, other_variance = deviation**2 / runs, other_deviation**2 / other_runs
    both = variance + other_variance
    if not both > 0:
        return float(not mean < other_mean)
    freedom = both**2 / (variance**2 / (runs - 1) + other_variance**2 / (other_runs - 1))
    return _student_tail((other_mean - mean) / math.sqrt(both), math.floor(freedom + 1e-9))


def _student_tail(t: float, freedom: int) -> float:
    """P(a variable with Student's distribution is larger than t), for a whole number of degrees of freedom."""
    # Abramowitz and Stegun, 26.7.3 and 26.7.4: a finite sum.
    cosine_squared = freedom / (freedom + t * t)
    odd = freedom % 2
    term, total = 1.0, 0.0
    for used in range(odd, freedom - 1, 2):
        total += term
        term *= cosine_squared * (used + 1) / (used + 2)
    sine = t / math.sqrt(freedom + t * t)
    inside = sine * total  # P(between -t and t), with the sign of t
    if odd:
        inside = 2 / math.pi * (math.atan(t / math.sqrt(freedom)) + inside * math.sqrt(cosine_squared))
    return (1 - inside) / 2


def holm(p_values: Sequence[float], level: float = 0.05) -> list[bool]:
    """Which hypotheses Holm's method rejects: it rejects no true one with probability at least 1 - level.

    >>> holm([0.001, 0.04, 0.02])
    [True, True, True]
    >>> holm([0.001, 0.04, 0.03])
    [True, False, False]
    """
    rejected = [False] * len(p_values)
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] > level / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected


def simultaneous_z(count: int, level: float = 0.05) -> float:
    """Half-width, in standard deviations, of `count` intervals that all hold with probability 1 - level (Bonferroni).

    >>> round(simultaneous_z(1), 2), round(simultaneous_z(100), 2)
    (1.96, 3.48)
    """
    return NormalDist().inv_cdf(1 - level / (2 * max(1, count)))


@lru_cache(maxsize=1)  # one run asks for many tails with the same n, and a table for a large n is large
def _log_factorials(n: int) -> Reals:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])


_HALVINGS = 24


def divergence(p: Reals, q: Reals) -> Reals:
    """The Kullback-Leibler divergence kl(p, q) of two coins with these probabilities of heads.

    >>> divergence(np.array([0.5, 0.0]), np.array([0.5, 0.5])).round(4)
    array([0.    , 0.6931])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(p > 0, p * np.log(p / q), 0.0)
        tails = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return np.asarray(heads + tails, np.float64)


def trimmed_mean(values: Reals, trim: int) -> Reals:
    """The mean over the first axis, without the `trim` smallest and the `trim` largest values.

    >>> trimmed_mean(np.array([[0.5, 0.0], [0.6, 1.0], [0.7, 0.2]]), 1)
    array([0.6, 0.2])
    """
    return np.asarray(np.sort(values, axis=0)[trim : len(values) - trim].mean(axis=0), np.float64)


def bounds(means: Reals, pulls: Reals, evidence: float) -> tuple[Reals, Reals]:
    """The smallest and largest true means q with pulls * kl(mean, q) <= evidence.

    A true mean lies below the first with probability at most exp(-evidence), and likewise above the second.

    >>> low, high = bounds(np.array([0.5]), np.array([100.0]), evidence=3.0)
    >>> float(low[0]).__round__(3), float(high[0]).__round__(3)
    (0.379, 0.621)
    """
    ends = np.repeat([0.0, 1.0], len(means))  # both sides in one call, which takes half the time
    low, high = np.split(interval_end(np.tile(means, 2), np.tile(pulls, 2), evidence, ends), 2)
    return low, high


def interval_end(means: Reals, pulls: Reals, evidence: float, end: float | Reals) -> Reals:
    """One side of `bounds`: towards 0 or towards 1, the same for all means or one `end` per mean.

    >>> interval_end(np.array([0.5]), np.array([100.0]), evidence=3.0, end=1.0).round(3)
    array([0.621])
    """
    inside, outside = means.copy(), np.full(len(means), end)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        fits = pulls * divergence(means, middle) <= evidence
        inside, outside = np.where(fits, middle, inside), np.where(fits, outside, middle)
    return outside  # just outside, so that rounding never makes the interval too short
