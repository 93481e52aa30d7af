"""Warnings about a result: was the horizon too short?"""

from typing import NamedTuple

import numpy as np

from collabtop.arms.unit import DEFAULT_UNIT, Unit
from collabtop.coordination.scoreboard import Estimates
from collabtop.problem import Problem
from collabtop.protocol.messages import Reals
from collabtop.runs.evidence import ENOUGH, NO_ERROR, Comparisons, Seen

_LEAST = 0.3
"""Standard errors between two means below which their order is a coin toss."""
_LEAST_PAIRED = 1.0
"""The same for paired arms, whose differences are judged one by one."""
_LIKELY = 0.4
"""The probability of a wrong answer from which on there is a warning."""
_DRAWS = 400
_MOST_RIVALS = 2_000
_REACH = 4.0  # standard errors: arms that are further from the border do not count


class Border(NamedTuple):
    """The two arms on either side of the border that are hardest to separate."""

    accepted: int
    rejected: int
    gap: float
    """The difference of their estimated means."""
    standard_error: float
    clear_by: float
    """The gap in standard errors."""


def border(estimates: Estimates, problem: Problem, seen: Seen | None = None) -> Border | None:
    """The weakest accepted arm, and the rejected arm that is hardest to separate from it; None if no means are known.

    >>> import collabtop as ct
    >>> run = ct.identify(ct.BernoulliArms([0.9, 0.5, 0.4]), m=1, agents=2, horizon=300, algorithm="uniform", seed=1)
    >>> pair = border(run.estimates, Problem(n=3, m=1, agents=2, horizon=300))
    >>> pair.rejected, round(pair.gap, 2), round(pair.standard_error, 2)
    (1, 0.38, 0.04)
    """
    accepted, good_means, _ = estimates.known("accepted")
    rejected, _, _ = estimates.known("rejected")
    if not len(accepted) or not len(rejected):
        return None
    weakest = int(accepted[good_means.argmin()])
    gaps, errors = Comparisons(estimates, problem, seen).compare(weakest, rejected)
    clear_by = gaps / np.maximum(errors, NO_ERROR)
    hardest = int(np.nan_to_num(clear_by, nan=np.inf).argmin())  # NaN: nothing is known about a variance
    return Border(
        weakest, int(rejected[hardest]), float(gaps[hardest]), float(errors[hardest]), float(clear_by[hardest])
    )


def probability_wrong(estimates: Estimates, problem: Problem, seen: Seen | None = None) -> float:
    """About how likely an arm outside the answer is better than one inside it, given the estimated means.

    It is the smaller of two probabilities. The first takes every estimate as it is. It is too large if many arms were
    dropped after few pulls: the estimates of some of these are far too low, but not of as many as their standard errors
    allow. The second therefore moves uncertain estimates towards the mean of all arms, as far as their spread suggests;
    it is too large if the best arms are unlike the others.

    >>> import collabtop as ct
    >>> run = ct.identify(ct.BernoulliArms([0.9, 0.5, 0.4]), m=1, agents=2, horizon=300, algorithm="uniform", seed=1)
    >>> probability_wrong(run.estimates, Problem(n=3, m=1, agents=2, horizon=300))
    0.0
    """
    accepted, good, _ = estimates.known("accepted")
    rejected, bad, _ = estimates.known("rejected")
    variances = Comparisons(estimates, problem, seen).variances[np.concatenate([accepted, rejected])]
    if not len(good) or not len(bad) or np.isnan(variances).any():
        return 0.0
    means = np.concatenate([good, bad])
    weights, centre = _shrinkage(means, variances)
    inside = len(good)
    as_estimated = _out_of_order(means, variances, inside)
    return min(as_estimated, _out_of_order(centre + (means - centre) * weights, variances * weights, inside))


def _shrinkage(means: Reals, variances: Reals) -> tuple[Reals, float]:
    """How much of each estimate's distance from the common mean is real, and that mean (empirical Bayes)."""
    spread = float(means.var())
    for _ in range(5):
        weights = 1 / (variances + max(spread, NO_ERROR))
        centre = float(np.average(means, weights=weights))
        spread = float(np.average((means - centre) ** 2 - variances, weights=weights**2))
    spread = max(spread, NO_ERROR)
    return spread / (spread + variances), centre


def _out_of_order(means: Reals, variances: Reals, inside: int) -> float:
    """The probability that the first `inside` of these normal variables are not all above all others."""
    errors = np.sqrt(variances)
    weakest = int(means[:inside].argmin())
    reach = means[inside:] + _REACH * errors[inside:] - (means[weakest] - _REACH * errors[weakest])
    rivals = inside + np.flatnonzero(reach > 0)
    if len(rivals) > _MOST_RIVALS:
        rivals = rivals[np.argpartition(-reach[rivals - inside], _MOST_RIVALS)[:_MOST_RIVALS]]
    if not len(rivals):
        return 0.0
    rng = np.random.default_rng(0)  # the same estimates have the same warnings
    first = rng.standard_normal((_DRAWS, inside)) * errors[:inside] + means[:inside]
    others = rng.standard_normal((_DRAWS, len(rivals))) * errors[rivals] + means[rivals]
    return float(np.mean(first.min(axis=1) < others.max(axis=1)))


def horizon_warnings(
    estimates: Estimates,
    horizon: int,
    labels: tuple[str, ...] | None,
    unit: Unit = DEFAULT_UNIT,
    *,
    sure: bool | None = None,
    problem: Problem,
    seen: Seen | None = None,
    complete: bool = True,
) -> tuple[str, ...]:
    """Warnings that the horizon was too short, with the numbers.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.54, 0.53, 0.52, 0.51, 0.5, 0.49])
    >>> for line in ct.identify(arms, m=2, agents=2, horizon=300, algorithm="uniform", seed=1).warnings: print(line)
    the horizon of 300 is too short to separate the two sides of the border: arm ... (in) and arm ... (out) differ ...
    """
    if sure:
        return ()
    pair = border(estimates, problem, seen)
    lines = []
    if not complete:
        return () if pair is None or pair.clear_by >= ENOUGH else (_difference(pair, labels, unit),)
    if sure is False:
        still_open = len(estimates.guesses)
        lines.append(f"not sure: {still_open} of {len(estimates)} arms are still open at the limit of {horizon:,}")
    if pair is not None and pair.standard_error == 0 and pair.gap == 0:
        names = [labels[arm] if labels else f"arm {arm}" for arm in (pair.accepted, pair.rejected)]
        lines.append(f"{names[0]} (in) and {names[1]} (out) have the same mean over all examples")
    elif pair is not None and (sure is False or _is_doubtful(estimates, pair, problem, seen)):
        lines.append(_describe(pair, horizon, labels, unit, sure))
    return tuple(lines)


def _is_doubtful(estimates: Estimates, pair: Border, problem: Problem, seen: Seen | None) -> bool:
    """Whether the answer is likely wrong, or the order of two arms is a coin toss.

    Over the 12 instances of benchmarks/planning.py, it has less than 10% false alarms where the error is at most .1,
    and less than 10% misses where it is at least .5; both limits were chosen on such instances.
    """
    if estimates.history:  # the means of paired arms vary together: only their differences tell
        return pair.clear_by < _LEAST_PAIRED
    return pair.clear_by < _LEAST or probability_wrong(estimates, problem, seen) > _LIKELY


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
    needed = horizon * max(2.0, (ENOUGH / pair.clear_by) ** 2)  # many pairs can be wrong, not only this one
    return f"a gap of that size needs a horizon of about {_rounded(needed):,}"


def _rounded(number: float) -> int:
    return int(float(f"{number:.2g}"))
