"""Verdicts on the paper's statements, by rules that do not depend on the runs of a report.

A statement consists of claims. A claim has an estimand, an interval and a tolerance: the range in which the estimand
must lie. It is

- supported if the whole interval lies within the tolerance,
- contradicted if the whole interval lies outside,
- undecided otherwise.

More runs only make the interval narrower, so they never make a false claim easier to support. A claim about all
instances or all algorithms, such as a bound, cannot be supported by a few of them: instead of supported it is "not
contradicted".

With probability .95 no verdict of the whole report is wrong. Each of the S statements has an equal share of the error,
.05 / S. A statement that needs all of its claims is supported wrongly only if the interval of a false claim misses, so
for this the interval of each claim has the whole share (an intersection-union test). It is contradicted wrongly if any
interval misses, so for this the claims divide the share. If one claim is enough, it is the other way round.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from collabtop.crossing import Crossing, NotReached, ratio_interval
from collabtop.stats import simultaneous_z, wilson_interval
from collabtop.studies.table import PointSummary

Verdict = Literal["supported", "not contradicted", "contradicted", "undecided"]

ABOUT = 1.25
"""A ratio agrees with a number that the paper calls "about" so much if they differ by at most this factor."""
EQUAL = 1.1
"""Two numbers that the paper calls the same may differ by at most this factor."""
_ERROR = 0.05
"""The probability with which some verdict of a report may be wrong."""
RULE = (
    "A claim is supported if its interval lies within the tolerance, contradicted if it lies outside, and undecided "
    'otherwise. A claim about all instances or all algorithms can at best be "not contradicted". With probability .95 '
    "no verdict of the report is wrong: each statement has the same share of the error, and where one claim decides a "
    "statement, its claims divide that share (Bonferroni), so that a longer interval than the one shown decides"
)
"""How verdicts are reached, for the reports."""


class Estimate(msgspec.Struct, frozen=True):
    """A measured value with its intervals."""

    value: float
    """NaN if only limits are known."""
    ends: Callable[[float], tuple[float, float]]
    """The interval that corresponds to so many standard deviations of a normal distribution to each side."""
    intervals: int = 1
    """Number of measured intervals that this one is composed of: all of them must hold."""


class Claim(msgspec.Struct, frozen=True):
    """A part of a statement that is judged by one estimate."""

    estimand: str
    estimate: Estimate | None
    """None if it was not measured."""
    least: float = -math.inf
    most: float = math.inf
    bound: bool = False
    """Whether it is about all instances or algorithms, so that it cannot be supported by those measured."""
    digits: str = ".2f"
    """How its numbers are shown."""
    count: str = ""
    """How words are counted, for claims that depend on it; the first one decides."""
    premise: tuple[Estimate, float] | None = None
    """An estimate and its largest value for which the claim applies."""
    remark: str = ""

    @property
    def intervals(self) -> int:
        """Number of measured intervals that must hold for its own to hold."""
        measured = [self.estimate, None if self.premise is None else self.premise[0]]
        return max(1, sum(estimate.intervals for estimate in measured if estimate is not None))


class Part(msgspec.Struct, frozen=True):
    """A claim with its interval and verdict."""

    estimand: str
    value: float | None
    low: float | None
    high: float | None
    least: float | None
    most: float | None
    verdict: Verdict
    text: str
    """All of this as a sentence."""
    count: str = ""


class Statement(msgspec.Struct, frozen=True):
    """One statement of the paper, and the verdict on it."""

    name: str
    says: str
    """What the paper states."""
    verdict: Verdict
    headline: str
    """The results by all ways to count words, where the verdict depends on it."""
    parts: tuple[Part, ...]
    notes: tuple[str, ...]
    """Other results, one sentence each."""
    why: str
    """Tolerance, schedule, accounting and regime."""

    @property
    def findings(self) -> tuple[str, ...]:
        """All results, one sentence each."""
        return (*(part.text for part in self.parts), *self.notes)


class Draft(msgspec.Struct, frozen=True):
    """A statement before it is judged."""

    name: str
    says: str
    claims: tuple[Claim, ...]
    why: str
    notes: tuple[str, ...] = ()
    any_claim: bool = False
    """Whether one supported claim is enough, instead of all."""


def judged(drafts: Sequence[Draft]) -> tuple[Statement, ...]:
    """Judge all statements, so that none of the verdicts is wrong with probability .95."""
    return tuple(_statement(draft, _ERROR / len(drafts)) for draft in drafts)


def _statement(draft: Draft, error: float) -> Statement:
    divided = error / max(1, sum(claim.intervals for claim in draft.claims))
    parts = tuple(
        judge(claim, simultaneous_z(claim.intervals, error), simultaneous_z(1, divided), any_claim=draft.any_claim)
        for claim in draft.claims
    )
    counts = list(dict.fromkeys(part.count for part in parts))
    verdicts = [part.verdict for part in parts if part.count == counts[0]] if parts else []
    verdict = any_of(verdicts) if draft.any_claim else all_of(verdicts)
    headline = "; ".join(_by_count(count, parts) for count in counts) if len(counts) > 1 else ""
    return Statement(draft.name, draft.says, verdict, headline, parts, draft.notes, draft.why)


def _by_count(count: str, parts: Sequence[Part]) -> str:
    counted = [part for part in parts if part.count == count]
    values = " and ".join(f"{part.value:.1f}" for part in counted if part.value is not None) or "not measured"
    return f"{count}: {values} ({all_of(part.verdict for part in counted)})"


def judge(claim: Claim, z: float, decisive_z: float | None = None, *, any_claim: bool = False) -> Part:
    """Judge one claim by an interval of `z` standard deviations to each side.

    Where the claim alone decides its statement, by an interval of `decisive_z`: it does when it is contradicted, or
    with `any_claim` when it is supported.

    >>> ratio = factor(1.16, log_deviation=0.03)
    >>> judge(Claim("ratio of horizons", ratio, 1.25, 1.35), z=1.96).text
    'ratio of horizons: 1.16 (1.09 to 1.23), tolerance 1.25 to 1.35: contradicted'
    """
    estimate = claim.estimate
    if estimate is None:
        text = f"{claim.estimand}: {claim.remark or 'not measured'}: undecided"
        return _part(claim, None, None, None, "undecided", text)
    low, high = estimate.ends(z)
    decisive = z if decisive_z is None else decisive_z
    verdict = _verdict(claim, inside=decisive if any_claim else z, outside=z if any_claim else decisive)
    value = None if math.isnan(estimate.value) else estimate.value
    shown = "not located" if value is None else f"{value:{claim.digits}}"
    limits = f"{low:{claim.digits}} to {'any' if math.isinf(high) else format(high, claim.digits)}"
    remark = f" ({claim.remark})" if claim.remark else ""
    text = f"{claim.estimand}: {shown} ({limits}), tolerance {_tolerance(claim)}{remark}: {verdict}"
    return _part(claim, value, low, high, verdict, text)


def _verdict(claim: Claim, *, inside: float, outside: float) -> Verdict:
    """The verdict by two intervals: one that must lie within the tolerance, and one that must lie outside."""
    assert claim.estimate is not None
    low, high = claim.estimate.ends(inside)
    if claim.least <= low and high <= claim.most:
        return "not contradicted" if claim.bound else "supported"
    low, high = claim.estimate.ends(outside)
    verdict: Verdict = "contradicted" if high < claim.least or low > claim.most else "undecided"
    if claim.premise is not None:
        premise, most = claim.premise
        low, high = premise.ends(outside)
        if low > most:
            return "not contradicted"  # the claim is about other cases
        if high > most:
            return "undecided"
    return verdict


def _part(
    claim: Claim, value: float | None, low: float | None, high: float | None, verdict: Verdict, text: str
) -> Part:
    least, most = (None if math.isinf(end) else end for end in (claim.least, claim.most))
    limit = None if high is None or math.isinf(high) else high
    return Part(claim.estimand, value, low, limit, least, most, verdict, text, claim.count)


def _tolerance(claim: Claim) -> str:
    least, most = (f"{end:{claim.digits}}" for end in (claim.least, claim.most))
    if math.isinf(claim.least):
        return f"at most {most}"
    return f"at least {least}" if math.isinf(claim.most) else f"{least} to {most}"


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a statement all of whose claims must hold.

    >>> all_of(["supported", "undecided"]), all_of(["undecided", "contradicted"])
    ('undecided', 'contradicted')
    >>> all_of(["supported", "not contradicted"])
    'not contradicted'
    """
    seen = set(verdicts)
    if "contradicted" in seen:
        return "contradicted"
    if "undecided" in seen or not seen:
        return "undecided"
    return "supported" if seen == {"supported"} else "not contradicted"


def any_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a statement of which at least one claim must hold.

    >>> any_of(["contradicted", "supported"]), any_of(["contradicted", "undecided"])
    ('supported', 'undecided')
    """
    seen = set(verdicts)
    if "supported" in seen:
        return "supported"
    return "contradicted" if seen == {"contradicted"} else "undecided"


def normal(value: float, deviation: float) -> Estimate:
    """An estimate with this standard deviation.

    >>> normal(2.0, 0.5).ends(2)
    (1.0, 3.0)
    """
    return Estimate(value, lambda z: (value - z * deviation, value + z * deviation))


def factor(value: float, log_deviation: float) -> Estimate:
    """A positive estimate whose logarithm has this standard deviation.

    >>> [round(end, 2) for end in factor(2.0, 0.5).ends(2)]
    [0.74, 5.44]
    """
    return Estimate(value, lambda z: (value * math.exp(-z * log_deviation), value * math.exp(z * log_deviation)))


def share(wrong: int, runs: int) -> Estimate:
    """A probability, from the number of wrong answers.

    >>> share(0, 100).ends(2)
    (0.0, 0.038...)
    """
    return Estimate(wrong / runs, lambda z: wilson_interval(wrong / runs, runs, z))


def quotient(above: Estimate, below: Estimate) -> Estimate:
    """The ratio of two estimates, neither of them negative; it holds wherever the intervals of both do.

    >>> quotient(share(10, 100), share(50, 100)).ends(2)[1] < 0.5
    True
    """

    def ends(z: float) -> tuple[float, float]:
        (low, high), (least, most) = above.ends(z), below.ends(z)
        return _ratio(low, most), _ratio(high, least) if least > 0 else math.inf

    value = above.value / below.value if below.value else math.nan
    return Estimate(value, ends, above.intervals + below.intervals)


def _ratio(above: float, below: float) -> float:
    return 0.0 if math.isinf(below) else max(0.0, above) / below if below > 0 else math.inf


def horizon(at: Crossing | NotReached) -> Estimate:
    """The horizon of a crossing; if it was not located, only its limits."""
    if isinstance(at, Crossing):
        return Estimate(at.horizon, at.interval)
    return Estimate(math.nan, lambda _: (at.low, at.high))  # limits that hold with probability .9999


def horizon_ratio(above: Crossing | NotReached, below: Crossing | NotReached) -> Estimate:
    """The ratio of two horizons."""
    if isinstance(above, Crossing) and isinstance(below, Crossing):
        return Estimate(ratio_interval(above, below)[0], lambda z: ratio_interval(above, below, z)[1:])
    return quotient(horizon(above), horizon(below))


def mean_words(point: PointSummary, more: float = 0.0) -> Estimate:
    """The mean words of a point, with `more` words added."""
    return normal(point.words_mean + more, point.words_sd / math.sqrt(point.message_runs))
