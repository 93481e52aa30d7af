"""The horizon at which an error falls below a target, fitted to wrong answers at several horizons."""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from collabtop.errors import InputError
from collabtop.stats import Z_95, Reals
from collabtop.validation import whole_number, wrong_value

_FORMS = {"T": 1.0, "sqrt T": 0.5, "log T": 0.0}
_MOST = 0.98  # a curve that is linear in log error has no upper limit, so probabilities are capped here
_BEYOND = 8.0  # the crossing is looked for up to this factor outside the measured horizons
_FALLS = (0.2, 5.0)  # d / log(1 / target), which is 1 if the error falls from 1 at T = 0 like exp(-T)
_CELLS = (72, 48)  # of the grid of log t and log d
_NEGLIGIBLE = 14.0  # a cell whose log posterior is lower than the best one's by this much is left out
_ZOOMS = 12
_CLEARLY = 6.0  # twice the log likelihood by which a constant error must fit better than one that falls
_EXTRAPOLATED = 2.5  # further outside the measured horizons, a curve that fits is no evidence
_Z_99 = NormalDist().inv_cdf(0.99)
_LIKE_OTHERS = (0.7, 0.3)  # standard deviations of log t and log d around those of similar arms
_MOST_SPREAD = 16.0  # high / low: an interval from a quarter of the horizon to four times it locates nothing

RARE = 0.0001
"""A limit of a crossing that was not located is wrong with this probability."""


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
    fall: float = math.nan
    """By how many percent the error falls, at the crossing, if the horizon grows by 1%."""

    @property
    def log_deviation(self) -> float:
        """Standard deviation of the logarithm of the horizon."""
        return math.log(self.high / self.low) / (2 * Z_95)

    def interval(self, z: float) -> tuple[float, float]:
        """An interval of `z` standard deviations to each side of the horizon, on a log scale."""
        scale = z / Z_95
        return self.horizon * (self.low / self.horizon) ** scale, self.horizon * (self.high / self.horizon) ** scale


class NotReached(msgspec.Struct, frozen=True):
    """The runs do not show at which horizon the error falls to the target."""

    reason: str
    """Why not, such as "the error is still above 0.01 at the longest horizon, 30,000"."""
    low: float = 0.0
    """The crossing lies above this horizon with probability .9999; 0 if nothing is known."""
    high: float = math.inf
    """The crossing lies below this horizon with probability .9999; infinite if nothing is known."""


def fit_crossing(
    horizons: Sequence[int],
    wrong: Sequence[int],
    runs: Sequence[int],
    target: float = 0.01,
    *,
    similar: Crossing | None = None,
) -> Crossing | NotReached:
    """The horizon at which the error falls to `target`, from counts of wrong answers at several horizons.

    Near the target, log error is close to a linear function of T, sqrt T or log T. With t the crossing and d > 0 how
    fast the error falls there, the three forms are

        p(T) = target * exp(-d ((T / t)^c - 1) / c),    c = 1, 1/2 and 0 (the limit: target * (t / T)^d)

    Counts of wrong answers are binomial. The estimate is the posterior median of t, and the interval holds 95% of the
    posterior, over all three forms, with t and d uniform on a log scale. So it is finite for all counts, also where
    no curve fits best: with 7 wrong answers of 60 at one horizon and none at the next, every fall that is steep enough
    fits equally well. The interval is widened where the points scatter more than binomial counts do.

    Where few runs say little, `similar` helps, a crossing of similar arms: t and d are then log-normal around its own,
    with standard deviations of .7 and .3.

    The result is `NotReached`, with the reason, if the error hardly falls or the points do not locate the crossing.

    >>> fit = fit_crossing([10_000, 20_000, 30_000], wrong=[670, 90, 12], runs=[10_000] * 3)
    >>> fit.form, round(fit.horizon, -3)
    ('T', 19000.0)
    >>> fit_crossing([1000, 2000], wrong=[30, 21], runs=[60, 60]).reason
    'the error is still above 0.01 at the longest horizon, 2,000'
    """
    if not len(horizons) == len(wrong) == len(runs):
        raise InputError(
            f"{len(horizons)} horizons, {len(wrong)} counts of wrong answers and {len(runs)} counts of runs do not "
            "match: give one of each per point"
        )
    if not 0 < target < _MOST:
        raise wrong_value("target", target, f"a probability between 0 and {_MOST} is needed")
    for horizon, count, total in zip(horizons, wrong, runs, strict=True):
        whole_number("horizons", horizon, least=1)
        whole_number("wrong", count, least=0, most=whole_number("runs", total, least=1))
    return _fit(tuple(horizons), tuple(wrong), tuple(runs), target, similar)


def ratio_interval(above: Crossing, below: Crossing, z: float = Z_95) -> tuple[float, float, float]:
    """The ratio of two horizons, `above` / `below`, and the ends of its interval, 95% by default.

    >>> long = Crossing(26_000, 25_000, 27_040, 0.01, "T", 10_000)
    >>> short = Crossing(20_000, 19_000, 21_053, 0.01, "T", 10_000)
    >>> [round(value, 2) for value in ratio_interval(long, short)]
    [1.3, 1.22, 1.39]
    """
    ratio = above.horizon / below.horizon
    spread = math.exp(z * math.hypot(above.log_deviation, below.log_deviation))
    return ratio, ratio / spread, ratio * spread


@lru_cache(maxsize=256)  # a report uses the same crossing many times
def _fit(
    horizons: tuple[int, ...], wrong: tuple[int, ...], runs: tuple[int, ...], target: float, similar: Crossing | None
) -> Crossing | NotReached:
    t, w, n = (np.asarray(values, np.float64) for values in (horizons, wrong, runs))
    order = np.argsort(t, kind="stable")
    t, w, n = t[order], w[order], n[order]
    if len(np.unique(t)) < 2:
        return NotReached(f"runs at {len(np.unique(t))} horizon, but at least 2 horizons are needed")
    posteriors = {form: _posterior(power, t, w, n, target, similar) for form, power in _FORMS.items()}
    best = max(posteriors, key=lambda form: posteriors[form].peak)
    peak = posteriors[best].peak
    dispersion = _dispersion(peak, w, n)
    if dispersion > 1:
        posteriors = {form: _posterior(power, t, w, n, target, similar, dispersion) for form, power in _FORMS.items()}
    least, low, middle, high, most = _quantiles(list(posteriors.values()), (RARE, 0.025, 0.5, 0.975, 1 - RARE))
    edge = 2 * math.log(_BEYOND) / _CELLS[0]  # two cells of the first grid
    falls = 2 * (_log_binomial(w, n, w.sum() / n.sum()) - peak) < _CLEARLY
    inside = falls and low > math.log(t[0] / _BEYOND) + edge and high < math.log(t[-1] * _BEYOND) - edge
    near = similar is not None or t[0] / _EXTRAPOLATED < math.exp(middle) < t[-1] * _EXTRAPOLATED
    if inside and near and high - low < math.log(_MOST_SPREAD):
        fall = posteriors[best].fall
        return Crossing(math.exp(middle), math.exp(low), math.exp(high), target, best, int(n.sum()), fall)
    least = 0.0 if least < math.log(t[0] / _BEYOND) + edge else math.exp(least)
    most = math.inf if most > math.log(t[-1] * _BEYOND) - edge else math.exp(most)
    if not falls:
        reason = "the error hardly falls as the horizon grows"
    elif math.exp(low) > 0.9 * t[-1]:
        reason = f"the error is still above {target:g} at the longest horizon, {t[-1]:,.0f}"
    elif math.exp(high) < 1.1 * t[0]:
        reason = f"the error is below {target:g} at the shortest horizon already, {t[0]:,.0f}"
    else:
        reason = f"{n.sum():,.0f} runs are too few to show where the error is {target:g}"
    return NotReached(reason, least, most)


def _log_binomial(wrong: Reals, runs: Reals, p: Reals | float) -> float:
    """The log likelihood of counts with probability `p`, without the factors that do not depend on it."""
    p = np.broadcast_to(p, wrong.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_wrong = np.where(wrong > 0, wrong * np.log(p), 0.0)
        of_right = np.where(runs > wrong, (runs - wrong) * np.log1p(-p), 0.0)
    return float((of_wrong + of_right).sum())


class _Posterior(NamedTuple):
    """The posterior of log t for one form."""

    log_t: Reals
    log_weights: Reals
    peak: float
    """The largest log likelihood, divided by the dispersion."""
    fall: float
    """The mean of d."""


def _posterior(
    power: float,
    t: Reals,
    wrong: Reals,
    runs: Reals,
    target: float,
    similar: Crossing | None,
    dispersion: float = 1.0,
) -> _Posterior:
    """Evaluate the posterior on a grid, zooming in until the grid resolves it."""
    slowest, fastest = (math.log(fall * math.log(1 / target)) for fall in _FALLS)
    box = [(math.log(t[0] / _BEYOND), math.log(t[-1] * _BEYOND)), (slowest, fastest)]
    for _ in range(_ZOOMS):
        axes = [np.linspace(*ends, cells) for ends, cells in zip(box, _CELLS, strict=True)]
        logs = _log_likelihood(axes[0], axes[1], power, t, wrong, runs, target) / dispersion
        if similar is not None:
            centres = math.log(similar.horizon), math.log(similar.fall)
            of_t, of_d = (
                -(((axis - centre) / spread) ** 2) / 2
                for axis, centre, spread in zip(axes, centres, _LIKE_OTHERS, strict=True)
            )
            logs = logs + of_t[:, np.newaxis] + of_d
        inside = logs > logs.max() - _NEGLIGIBLE
        smaller = [_around(axis, inside.any(axis=1 - index)) for index, axis in enumerate(axes)]
        if all(new[1] - new[0] > 0.6 * (old[1] - old[0]) for new, old in zip(smaller, box, strict=True)):
            break
        box = smaller
    peak = float(logs.max())
    area = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])  # of a cell: the prior is uniform
    weights = np.exp(logs - peak)
    over_d = np.maximum(weights.sum(axis=1), np.finfo(np.float64).tiny)  # a weight of 0 has no logarithm
    fall = float(np.average(np.exp(axes[1]), weights=weights.sum(axis=0)))
    return _Posterior(axes[0], peak + np.log(over_d) + math.log(area), peak, fall)


def _around(axis: Reals, inside: NDArray[np.bool_]) -> tuple[float, float]:
    """The part of an axis that has weight, with one more cell to each side."""
    places = np.flatnonzero(inside)
    return float(axis[max(0, places[0] - 1)]), float(axis[min(len(axis) - 1, places[-1] + 1)])


def _log_likelihood(
    log_t: Reals, log_d: Reals, power: float, t: Reals, wrong: Reals, runs: Reals, target: float
) -> Reals:
    total = np.zeros((len(log_t), len(log_d)))
    for horizon, count, number in zip(t, wrong, runs, strict=True):
        ratio = math.log(horizon) - log_t  # log(T / t)
        fall = ratio if power == 0 else np.expm1(np.minimum(power * ratio, 50.0)) / power
        log_p = np.minimum(math.log(target) - np.outer(fall, np.exp(log_d)), math.log(_MOST))
        total += count * log_p + (number - count) * np.log1p(-np.exp(log_p))
    return total


def _dispersion(best: float, wrong: Reals, runs: Reals) -> float:
    """How much more the counts scatter around the best curve than binomial counts do; 1 if that may be chance."""
    right = runs - wrong
    # Points with a single wrong or right answer, or none, cannot show scatter.
    freedom = int(((wrong > 1) & (right > 1)).sum()) - 2
    deviance = 2 * (_log_binomial(wrong, runs, wrong / runs) - best)
    return deviance / freedom if freedom > 0 and deviance > _unusual(freedom) else 1.0


def _unusual(freedom: int) -> float:
    """What chi-squared with so many degrees of freedom exceeds with probability .01 (Wilson and Hilferty)."""
    spread = 2 / (9 * freedom)
    return freedom * (1 - spread + _Z_99 * math.sqrt(spread)) ** 3


def _quantiles(posteriors: Sequence[_Posterior], shares: Sequence[float]) -> list[float]:
    """Quantiles of log t under the mixture of the posteriors."""
    log_t = np.concatenate([posterior.log_t for posterior in posteriors])
    logs = np.concatenate([posterior.log_weights for posterior in posteriors])
    order = np.argsort(log_t, kind="stable")
    weights = np.exp(logs[order] - logs.max())
    cumulated = (np.cumsum(weights) - weights / 2) / weights.sum()
    return [float(np.interp(share, cumulated, log_t[order])) for share in shares]
