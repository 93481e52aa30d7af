"""Statistics that several packages need: intervals for means and shares, and the fit of a horizon to an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from collabtop.errors import InputError

Reals = NDArray[np.float64]

_HALVINGS = 24


def divergence(p: Reals, q: Reals) -> Reals:
    """kl(p, q) of two coins that show heads with these probabilities.

    >>> divergence(np.array([0.5, 0.0]), np.array([0.5, 0.5])).round(4)
    array([0.    , 0.6931])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(p > 0, p * np.log(p / q), 0.0)
        tails = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return np.asarray(heads + tails, np.float64)


def bounds(means: Reals, pulls: Reals, evidence: float) -> tuple[Reals, Reals]:
    """The smallest and largest true means q with pulls * kl(mean, q) <= evidence.

    A true mean lies below (above) them with probability at most exp(-evidence) each.

    >>> low, high = bounds(np.array([0.5]), np.array([100.0]), evidence=3.0)
    >>> float(low[0]).__round__(3), float(high[0]).__round__(3)
    (0.379, 0.621)
    """
    ends = np.repeat([0.0, 1.0], len(means))  # both sides in one go, which takes half the time
    low, high = np.split(edge(np.tile(means, 2), np.tile(pulls, 2), evidence, ends), 2)
    return low, high


def edge(means: Reals, pulls: Reals, evidence: float, end: float | Reals) -> Reals:
    """One side of `bounds`: the one towards 0 or the one towards 1, for all means or for each its own.

    >>> edge(np.array([0.5]), np.array([100.0]), evidence=3.0, end=1.0).round(3)
    array([0.621])
    """
    inside, outside = means.copy(), np.full(len(means), end)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        fits = pulls * divergence(means, middle) <= evidence
        inside, outside = np.where(fits, middle, inside), np.where(fits, outside, middle)
    return outside  # just outside, so that rounding never makes an interval too short


_Z = 1.959964
_MOST = 0.98  # a log link knows no ceiling: probabilities are kept below this one while the fit is sought
_MOST_SPREAD = math.log(4)  # an interval that reaches from a quarter to four times tells nothing
# What log error may be linear in: there, back, and how fast log T moves with it.
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
    """Runs behind the fit."""

    @property
    def log_deviation(self) -> float:
        """Standard deviation of the logarithm of the horizon."""
        return math.log(self.high / self.low) / (2 * _Z)


def fit_crossing(
    horizons: Sequence[int], wrong: Sequence[int], runs: Sequence[int], target: float = 0.01
) -> Crossing | None:
    """Fit log error against the horizon (or its root or logarithm) to counts of wrong answers.

    The counts are binomial, so points without a wrong answer say what they are worth. The interval is
    widened where the points scatter more than counts should. None if the error does not fall, or if the
    points do not tell where it crosses.

    >>> fit = fit_crossing([10_000, 20_000, 30_000], wrong=[670, 90, 12], runs=[10_000] * 3)
    >>> fit.form, round(fit.horizon, -2)
    ('T', 19500.0)
    """
    if not len(horizons) == len(wrong) == len(runs):
        raise InputError(f"{len(horizons)} horizons, {len(wrong)} counts of wrong answers and {len(runs)} of runs")
    return _best_fit(tuple(horizons), tuple(wrong), tuple(runs), target)


@lru_cache(maxsize=256)  # a report asks for the same crossing again and again
def _best_fit(
    horizons: tuple[int, ...], wrong: tuple[int, ...], runs: tuple[int, ...], target: float
) -> Crossing | None:
    t, w, n = (np.asarray(values, np.float64) for values in (horizons, wrong, runs))
    fits = [_fit(name, t, w, n, target) for name in _FORMS]
    found = [fit for fit in fits if fit is not None]
    return min(found, key=lambda fit: fit[0])[1] if found else None


def ratio_interval(one: Crossing, other: Crossing) -> tuple[float, float, float]:
    """How many times longer one horizon is than the other, with its 95% interval.

    >>> one = Crossing(26_000, 25_000, 27_040, 0.01, "T", 10_000)
    >>> other = Crossing(20_000, 19_000, 21_053, 0.01, "T", 10_000)
    >>> [round(end, 2) for end in ratio_interval(one, other)]
    [1.3, 1.22, 1.39]
    """
    ratio = one.horizon / other.horizon
    spread = math.exp(_Z * math.hypot(one.log_deviation, other.log_deviation))
    return ratio, ratio / spread, ratio * spread


def _fit(form: str, t: Reals, wrong: Reals, runs: Reals, target: float) -> tuple[float, Crossing] | None:
    forward, back, rate = _FORMS[form]
    raw = forward(t)
    centre, scale = float(raw.mean()), float(np.ptp(raw)) or 1.0
    x = (raw - centre) / scale
    solved = _log_binomial(x, wrong, runs)
    if solved is None:
        return None
    (a, b), covariance, deviance = solved
    spare = len(t) - 2
    if spare > 0:
        covariance = covariance * max(1.0, deviance / spare)
    at = (math.log(target) - a) / b
    slope = np.array([-1 / b, -at / b])  # how the crossing moves with a and b
    deviation = scale * math.sqrt(float(slope @ covariance @ slope))
    place = centre + scale * at
    if b >= 0 or place <= 0:
        return None
    spread = _Z * deviation * rate(place)  # of log T
    if not spread < _MOST_SPREAD:
        return None
    horizon = back(place)
    low, high = horizon * math.exp(-spread), horizon * math.exp(spread)
    return deviance, Crossing(horizon, low, high, target, form, int(runs.sum()))


def _log_binomial(x: Reals, wrong: Reals, runs: Reals) -> tuple[tuple[float, float], Reals, float] | None:
    """Most likely (a, b) of log p = a + b x, their covariance, and the deviance (Fisher scoring)."""
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
        gone = np.where(wrong > 0, wrong * np.log(wrong / (runs * p)), 0.0)
        rest = np.where(right > 0, right * np.log(right / (runs * (1 - p))), 0.0)
    return float(2 * (gone + rest).sum())
