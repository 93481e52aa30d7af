"""Was the horizon hopeless? Judged after a run, by nothing but what the coordinator learnt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from collabtop.coordination.scoreboard import Estimates
from collabtop.protocol.messages import Ints, Reals

_LEAST = 1.0
_ENOUGH = 3.0
"""Standard errors that tell two means apart: below the first a coin might as well be tossed, from the second on the
order is right 999 times in 1,000."""


class Border(NamedTuple):
    """The two arms on either side of the border that are hardest to tell apart."""

    accepted: int
    rejected: int
    gap: float
    """How much better the accepted one looks."""
    standard_error: float

    @property
    def clear_by(self) -> float:
        """The gap in standard errors."""
        return self.gap / self.standard_error


def border(estimates: Estimates) -> Border | None:
    """The weakest accepted arm, and the rejected one that is hardest to tell from it; None if none are known.

    >>> import collabtop as ct
    >>> run = ct.identify(ct.BernoulliArms([0.9, 0.5, 0.4]), m=1, agents=2, horizon=300, algorithm="uniform", seed=1)
    >>> found = border(run.estimates)
    >>> found.rejected, round(found.gap, 2), round(found.standard_error, 2)
    (1, 0.38, 0.04)
    """
    accepted, good_means, good_pulls = estimates.known("accepted")
    rejected, bad_means, bad_pulls = estimates.known("rejected")
    if not len(accepted) or not len(rejected):
        return None
    weakest = int(good_means.argmin())
    gaps = good_means[weakest] - bad_means
    errors = np.sqrt(_variance(good_means, good_pulls)[weakest] + _variance(bad_means, bad_pulls))
    hardest = int((gaps / errors).argmin())
    return Border(int(accepted[weakest]), int(rejected[hardest]), float(gaps[hardest]), float(errors[hardest]))


def horizon_warnings(
    estimates: Estimates, horizon: int, labels: tuple[str, ...] | None, *, sure: bool | None = None
) -> tuple[str, ...]:
    """What a reader of the result has to know: that the horizon did not suffice, with the numbers.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.501, 0.5, 0.2])
    >>> for line in ct.identify(arms, m=1, agents=2, horizon=300, algorithm="uniform", seed=1).warnings: print(line)
    the horizon of 300 is too small to tell the border: arm 0 (in) and arm 1 (out) differ by ...
    """
    if sure:
        return ()
    found = border(estimates)
    lines = []
    if sure is False:
        still_open = len(estimates.guesses)
        lines.append(f"not sure: {still_open} of {len(estimates)} arms are still open at the limit of {horizon:,}")
    if found is not None and (found.clear_by < _LEAST or sure is False):
        lines.append(_told(found, horizon, labels, sure))
    return tuple(lines)


def _told(found: Border, horizon: int, labels: tuple[str, ...] | None, sure: bool | None) -> str:
    names = [labels[arm] if labels else f"arm {arm}" for arm in (found.accepted, found.rejected)]
    start = "" if sure is False else f"the horizon of {horizon:,} is too small to tell the border: "
    return (
        f"{start}{names[0]} (in) and {names[1]} (out) differ by {found.gap:.2g} +- {found.standard_error:.2g}, "
        f"{found.clear_by:.1f} standard errors; {_needed(found, horizon)}"
    )


def _needed(found: Border, horizon: int) -> str:
    if found.gap <= 0:
        return "no horizon can be named for a gap of nothing"
    # A standard error falls with the root of the horizon. A gap found small by chance makes this too large,
    # one found large by choice of the best makes it too small: it is an order of magnitude.
    needed = horizon * (_ENOUGH / found.clear_by) ** 2
    return f"a gap of that size takes a horizon of about {_rounded(needed):,}"


def _rounded(number: float) -> int:
    return int(float(f"{number:.2g}"))


def _variance(means: Reals, pulls: Ints) -> Reals:
    """The most that the variance of a mean of rewards in [0, 1] can be."""
    # One success and one failure more than were seen, so that a mean of 0 or 1 is not taken for certain.
    shares = (means * pulls + 1) / (pulls + 2)
    return np.asarray(shares * (1 - shares) / pulls, np.float64)
