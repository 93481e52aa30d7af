"""Warnings about a result: was the horizon too short? Judged only by what the coordinator learnt."""

from typing import NamedTuple

import numpy as np

from collabtop.arms.unit import DEFAULT_UNIT, Unit
from collabtop.coordination.scoreboard import Estimates
from collabtop.protocol.messages import Ints, Reals

_LEAST = 1.0
_ENOUGH = 3.0
"""Standard errors between two means: below the first their order is close to a coin toss, from the second on it is
right 999 times in 1,000."""
_NO_ERROR = 1e-12  # instead of 0, so that two exact means that differ are clear of each other


class Border(NamedTuple):
    """The two arms on either side of the border that are hardest to separate."""

    accepted: int
    rejected: int
    gap: float
    """The difference of their estimated means."""
    standard_error: float

    @property
    def clear_by(self) -> float:
        """The gap in standard errors."""
        return self.gap / max(self.standard_error, _NO_ERROR)


def border(estimates: Estimates, population: int | None = None) -> Border | None:
    """The weakest accepted arm, and the rejected arm that is hardest to separate from it; None if no means are known.

    `population` is the number of examples if each is used once. Means over all of them have no error.

    >>> import collabtop as ct
    >>> run = ct.identify(ct.BernoulliArms([0.9, 0.5, 0.4]), m=1, agents=2, horizon=300, algorithm="uniform", seed=1)
    >>> pair = border(run.estimates)
    >>> pair.rejected, round(pair.gap, 2), round(pair.standard_error, 2)
    (1, 0.38, 0.04)
    """
    accepted, good_means, good_pulls = estimates.known("accepted")
    rejected, bad_means, bad_pulls = estimates.known("rejected")
    if not len(accepted) or not len(rejected):
        return None
    weakest = int(good_means.argmin())
    gaps = good_means[weakest] - bad_means
    good, bad = _variance(good_means, good_pulls, population), _variance(bad_means, bad_pulls, population)
    errors = np.sqrt(good[weakest] + bad)
    hardest = int((gaps / np.maximum(errors, _NO_ERROR)).argmin())
    return Border(int(accepted[weakest]), int(rejected[hardest]), float(gaps[hardest]), float(errors[hardest]))


def horizon_warnings(
    estimates: Estimates,
    horizon: int,
    labels: tuple[str, ...] | None,
    unit: Unit = DEFAULT_UNIT,
    *,
    sure: bool | None = None,
    population: int | None = None,
    complete: bool = True,
) -> tuple[str, ...]:
    """Warnings that the horizon was too short, with the numbers.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.501, 0.5, 0.2])
    >>> for line in ct.identify(arms, m=1, agents=2, horizon=300, algorithm="uniform", seed=1).warnings: print(line)
    the horizon of 300 is too short to separate the two sides of the border: arm 0 (in) and arm 1 (out) differ by ...
    """
    if sure or not unit.bounded:
        return ()
    pair = border(estimates, population)
    lines = []
    if not complete:
        return () if pair is None or pair.clear_by >= _ENOUGH else (_difference(pair, labels, unit),)
    if sure is False:
        still_open = len(estimates.guesses)
        lines.append(f"not sure: {still_open} of {len(estimates)} arms are still open at the limit of {horizon:,}")
    if pair is not None and pair.standard_error == 0 and pair.gap == 0:
        names = [labels[arm] if labels else f"arm {arm}" for arm in (pair.accepted, pair.rejected)]
        lines.append(f"{names[0]} (in) and {names[1]} (out) have the same mean over all {population:,} examples")
    elif pair is not None and (pair.clear_by < _LEAST or sure is False):
        lines.append(_describe(pair, horizon, labels, unit, sure))
    return tuple(lines)


def _describe(pair: Border, horizon: int, labels: tuple[str, ...] | None, unit: Unit, sure: bool | None) -> str:
    start = (
        "" if sure is False else f"the horizon of {horizon:,} is too short to separate the two sides of the border: "
    )
    return f"{start}{_difference(pair, labels, unit)}; {_needed(pair, horizon)}"


def _difference(pair: Border, labels: tuple[str, ...] | None, unit: Unit) -> str:
    gap, error = unit.shown_difference(pair.gap), unit.shown_difference(pair.standard_error)
    names = [labels[arm] if labels else f"arm {arm}" for arm in (pair.accepted, pair.rejected)]
    return (
        f"{names[0]} (in) and {names[1]} (out) differ by {gap:.2g} +- {error:.2g}, {pair.clear_by:.1f} standard errors"
    )


def _needed(pair: Border, horizon: int) -> str:
    if pair.gap <= 0:
        return "the observed gap is zero, so no horizon can be suggested"
    # A standard error falls with the square root of the horizon. The observed gap is noisy, so this is an order of
    # magnitude only.
    needed = horizon * (_ENOUGH / pair.clear_by) ** 2
    return f"a gap of that size needs a horizon of about {_rounded(needed):,}"


def _rounded(number: float) -> int:
    return int(float(f"{number:.2g}"))


def _variance(means: Reals, pulls: Ints, population: int | None) -> Reals:
    """An upper bound on the variance of a mean of rewards in [0, 1]; smaller if they are drawn without replacement."""
    # With one success and one failure added, so that a mean of 0 or 1 does not have variance 0.
    shares = (means * pulls + 1) / (pulls + 2)
    not_drawn = 1.0 if population is None else 1 - pulls / population
    return np.asarray(shares * (1 - shares) / pulls * not_drawn, np.float64)
