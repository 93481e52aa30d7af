"""What becomes of a statement: it holds, it does not, or this many runs cannot tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from collabtop.studies.table import PointSummary

Verdict = Literal["holds", "does not hold", "undecided"]

ABOUT = 1.25
"""How far a measured ratio may be from the paper's "about": by a quarter."""


class Statement(msgspec.Struct, frozen=True):
    """One statement of the paper beside what came out."""

    name: str
    says: str
    """What the paper says."""
    found: tuple[str, ...]
    """What came out, a sentence a line."""
    verdict: Verdict
    why: str
    """What the verdict rests on: schedule, accounting, regime."""


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """All parts must hold; one that does not is enough.

    >>> together(["holds", "undecided"]), together(["undecided", "does not hold"])
    ('undecided', 'does not hold')
    """
    seen = set(verdicts)
    if "does not hold" in seen:
        return "does not hold"
    return "undecided" if "undecided" in seen or not seen else "holds"


def any_of(verdicts: Iterable[Verdict]) -> Verdict:
    """One way for it to hold is enough.

    >>> any_of(["does not hold", "holds"]), any_of(["does not hold", "undecided"])
    ('holds', 'undecided')
    """
    seen = set(verdicts)
    if "holds" in seen:
        return "holds"
    return "undecided" if "undecided" in seen or not seen else "does not hold"


def near(low: float, high: float, target: float, within: float = ABOUT) -> Verdict:
    """Is a figure known to lie between `low` and `high` about the target?

    >>> near(6.9, 7.1, target=20), near(1.2, 1.4, target=1.3), near(0.9, 1.9, target=1.3)
    ('does not hold', 'holds', 'undecided')
    """
    least, most = target / within, target * within
    if least <= low and high <= most:
        return "holds"
    return "does not hold" if high < least or low > most else "undecided"


def falls_to_zero(points: Sequence[PointSummary], zero: float = 0.01) -> Verdict:
    """Does the error fall from the first point to the last, and to a level that passes for zero?

    It holds if the intervals of the two are apart and the last one reaches down to `zero`.
    """
    if len(points) < 2:
        return "undecided"
    first, last = points[0], points[-1]
    if last.error_low > zero:
        return "does not hold"
    return "holds" if last.error_high < first.error_low else "undecided"


def far_below(points: Sequence[PointSummary], others: Sequence[PointSummary]) -> Verdict:
    """Is the error of the first at most half of the others', at some horizon beyond doubt and nowhere above it?"""
    pairs = list(zip(points, others, strict=True))
    if any(one.error_low > other.error_high for one, other in pairs):
        return "does not hold"
    if any(one.error_high < other.error_low / 2 for one, other in pairs):
        return "holds"
    # Both have errors to compare everywhere, and nowhere is one half of the other's.
    if pairs and all(one.error_low > other.error_high / 2 for one, other in pairs):
        return "does not hold"
    return "undecided"
