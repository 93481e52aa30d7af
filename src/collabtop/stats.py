"""Statistics used by several packages: intervals, the hypergeometric distribution, and the fit of an error curve."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from collabtop.errors import InputError
from collabtop.validation import wrong_value

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

Z_95 = 1.959963984540054
"""Half-width of a two-sided 95% interval, in standard deviations of a normal distribution."""


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """The 95% Wilson interval of a share of `count` trials, or of a mean of `count` rewards in [0, 1].

    For a given mean, 0/1 rewards have the largest variance, so the interval is valid for all rewards in [0, 1].

    >>> [round(end, 3) for end in wilson_interval(3 / 100, 100)]
    [0.01, 0.085]
    """
    if count < 1:
        raise wrong_value("count", count, "an interval needs at least 1 observation")
    weight = Z_95 * Z_95 / count
    centre = (share + weight / 2) / (1 + weight)
    half = Z_95 / (1 + weight) * math.sqrt(max(0.0, share * (1 - share)) / count + weight / (4 * count))
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


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
    return min(1.0, float(hypergeometric(n, marked, drawn, np.arange(first, last + 1)).sum()))


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


_MOST = 0.98  # a log link has no upper limit, so probabilities are capped here during the fit
_MOST_SPREAD = math.log(4)  # an interval from a quarter of the horizon to four times it carries no information
# What log error may be linear in: x as a function of T, its inverse, and the derivative of log T by x.
_FORMS: dict[str, tuple[Callable[[Reals], Reals], Callable[[float], float], Callable[[float], float]]] = {
    "T": (lambda t: t, lambda x: x, lambda x: 1 / x),
    "sqrt T": (np.sqrt, lambda x: x * x, lambda x: 2 / x),
    "log T": (np.log, math.exp, lambda x: 1.0),
}


class Crossing(msgspec.Struct, frozen=True):
    """The horizon at which the error is `target`, with its 95% interval."""

    horizon: float
    low: float
    high: float
    target: float
    form: str
    """What log error is linear in: T, sqrt T or log T, whichever fits best."""
    runs: int
    """Number of runs that the fit uses."""

    @property
    def log_deviation(self) -> float:
        """Standard deviation of the logarithm of the horizon."""
        return math.log(self.high / self.low) / (2 * Z_95)


def fit_crossing(
    horizons: Sequence[int], wrong: Sequence[int], runs: Sequence[int], target: float = 0.01
) -> Crossing | None:
    """Fit log error as a linear function of the horizon, its square root or its logarithm.

    The counts of wrong answers are binomial, so points without a wrong answer carry their proper weight. The
    interval is widened where the points scatter more than binomial counts do. Returns None if the error does
    not fall, or if the points do not locate the crossing.

    >>> fit = fit_crossing([10_000, 20_000, 30_000], wrong=[670, 90, 12], runs=[10_000] * 3)
    >>> fit.form, round(fit.horizon, -2)
    ('T', 19500.0)
    """
    if not len(horizons) == len(wrong) == len(runs):
        raise InputError(
            f"{len(horizons)} horizons, {len(wrong)} counts of wrong answers and {len(runs)} counts of runs do not "
            "match: give one of each per point"
        )
    return _best_fit(tuple(horizons), tuple(wrong), tuple(runs), target)


@lru_cache(maxsize=256)  # a report uses the same crossing many times
def _best_fit(
    horizons: tuple[int, ...], wrong: tuple[int, ...], runs: tuple[int, ...], target: float
) -> Crossing | None:
    t, w, n = (np.asarray(values, np.float64) for values in (horizons, wrong, runs))
    fits = [_fit(name, t, w, n, target) for name in _FORMS]
    usable = [fit for fit in fits if fit is not None]
    return min(usable, key=lambda fit: fit[0])[1] if usable else None


def ratio_interval(above: Crossing, below: Crossing) -> tuple[float, float, float]:
    """The ratio of two horizons, `above` / `below`, and the ends of its 95% interval.

    >>> long = Crossing(26_000, 25_000, 27_040, 0.01, "T", 10_000)
    >>> short = Crossing(20_000, 19_000, 21_053, 0.01, "T", 10_000)
    >>> [round(value, 2) for value in ratio_interval(long, short)]
    [1.3, 1.22, 1.39]
    """
    ratio = above.horizon / below.horizon
    spread = math.exp(Z_95 * math.hypot(above.log_deviation, below.log_deviation))
    return ratio, ratio / spread, ratio * spread


def _fit(form: str, t: Reals, wrong: Reals, runs: Reals, target: float) -> tuple[float, Crossing] | None:
    forward, inverse, rate = _FORMS[form]
    raw = forward(t)
    centre, scale = float(raw.mean()), float(np.ptp(raw)) or 1.0
    x = (raw - centre) / scale
    solved = _log_binomial(x, wrong, runs)
    if solved is None:
        return None
    (a, b), covariance, deviance = solved
    freedom = len(t) - 2
    if freedom > 0:
        covariance = covariance * max(1.0, deviance / freedom)
    at = (math.log(target) - a) / b
    gradient = np.array([-1 / b, -at / b])  # of the crossing by a and b
    deviation = scale * math.sqrt(float(gradient @ covariance @ gradient))
    crossing = centre + scale * at
    if b >= 0 or crossing <= 0:
        return None
    spread = Z_95 * deviation * rate(crossing)  # of log T
    if not spread < _MOST_SPREAD:
        return None
    horizon = inverse(crossing)
    low, high = horizon * math.exp(-spread), horizon * math.exp(spread)
    return deviance, Crossing(horizon, low, high, target, form, int(runs.sum()))


def _log_binomial(x: Reals, wrong: Reals, runs: Reals) -> tuple[tuple[float, float], Reals, float] | None:
    """The maximum-likelihood (a, b) of log p = a + b x, their covariance, and the deviance (Fisher scoring)."""
    design = np.column_stack([np.ones_like(x), x])
    total = max(float(wrong.sum()), 0.5) / float(runs.sum())
    beta = np.array([math.log(min(total, _MOST)), 0.0])
    best = _deviance(design @ beta, wrong, runs)
    for _ in range(100):
        p = np.minimum(np.exp(design @ beta), _MOST)
        weight = runs * p / (1 - p)
        information = design.T @ (weight[:, np.newaxis] * design)
        score = design.T @ ((wrong - runs * p) / (1 - p))
        try:
            step = np.linalg.solve(information, score)
        except np.linalg.LinAlgError:
            return None
        while True:  # a full step may overshoot
            tried = _deviance(design @ (beta + step), wrong, runs)
            if tried <= best + 1e-12 or np.abs(step).max() < 1e-10:
                break
            step = step / 2
        beta, best = beta + step, tried
        if np.abs(step).max() < 1e-9:
            break
    if beta[1] == 0 or not np.isfinite(beta).all():
        return None
    p = np.minimum(np.exp(design @ beta), _MOST)
    information = design.T @ ((runs * p / (1 - p))[:, np.newaxis] * design)
    try:
        covariance = np.linalg.inv(information)
    except np.linalg.LinAlgError:
        return None
    return (float(beta[0]), float(beta[1])), covariance, best


def _deviance(log_p: Reals, wrong: Reals, runs: Reals) -> float:
    p = np.clip(np.exp(np.minimum(log_p, 0.0)), 1e-300, _MOST)
    right = runs - wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        of_wrong = np.where(wrong > 0, wrong * np.log(wrong / (runs * p)), 0.0)
        of_right = np.where(right > 0, right * np.log(right / (runs * (1 - p))), 0.0)
    return float(2 * (of_wrong + of_right).sum())
