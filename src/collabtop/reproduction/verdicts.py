"""Verdicts on the paper's statements: it holds, it does not hold, or these runs cannot decide."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from collabtop.studies.table import PointSummary

Verdict = Literal["holds", "does not hold", "undecided"]

ABOUT = 1.25
"""A measured ratio agrees with the paper's if they differ by at most this factor."""


class Statement(msgspec.Struct, frozen=True):
    """One statement of the paper and what was measured."""

    name: str
    says: str
    """What the paper states."""
    found: tuple[str, ...]
    """The results, one sentence each."""
    verdict: Verdict
    why: str
    """What the verdict is based on: criterion, schedule, accounting, regime."""


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a statement all of whose parts must hold.

    >>> all_of(["holds", "undecided"]), all_of(["undecided", "does not hold"])
    ('undecided', 'does not hold')
    """
    return _combine(verdicts, decisive="does not hold", otherwise="holds")


def any_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a statement of which at least one part must hold.

    >>> any_of(["does not hold", "holds"]), any_of(["does not hold", "undecided"])
    ('holds', 'undecided')
    """
    return _combine(verdicts, decisive="holds", otherwise="does not hold")


def _combine(verdicts: Iterable[Verdict], *, decisive: Verdict, otherwise: Verdict) -> Verdict:
    seen = set(verdicts)
    if decisive in seen:
        return decisive
    return "undecided" if "undecided" in seen or not seen else otherwise


def within(low: float, high: float, *, least: float = -math.inf, most: float = math.inf) -> Verdict:
    """Whether a value whose interval is `low` to `high` lies between `least` and `most`.

    >>> within(1, 2, least=0, most=3), within(1, 2, most=1.5), within(1, 2, most=0.5)
    ('holds', 'undecided', 'does not hold')
    """
    if least <= low and high <= most:
        return "holds"
    return "does not hold" if high < least or low > most else "undecided"


def near(low: float, high: float, target: float) -> Verdict:
    """Whether a ratio whose interval is `low` to `high` agrees with the target.

    >>> near(6.9, 7.1, target=20), near(1.2, 1.4, target=1.3), near(0.9, 1.9, target=1.3)
    ('does not hold', 'holds', 'undecided')
    """
    return within(low, high, least=target / ABOUT, most=target * ABOUT)


def falls_to_zero(points: Sequence[PointSummary], zero: float = 0.01) -> Verdict:
    """Whether the error falls from the first point to the last, and there to a level that counts as zero.

    It does if the interval of the last point reaches down to `zero` and lies below that of the first.
    """
    if len(points) < 2:
        return "undecided"
    first, last = points[0], points[-1]
    if last.error_low > zero:
        return "does not hold"
    return "holds" if last.error_high < first.error_low else "undecided"


def far_below(points: Sequence[PointSummary], others: Sequence[PointSummary]) -> Verdict:
    """Whether the error is significantly less than half of the others' at some horizon and nowhere above theirs."""
    pairs = list(zip(points, others, strict=True))
    if any(ours.error_low > theirs.error_high for ours, theirs in pairs):
        return "does not hold"
    if any(ours.error_high < theirs.error_low / 2 for ours, theirs in pairs):
        return "holds"
    # Both have errors to compare everywhere, and ours are nowhere as low as half of theirs.
    if pairs and all(ours.error_low > theirs.error_high / 2 for ours, theirs in pairs):
        return "does not hold"
    return "undecided"
