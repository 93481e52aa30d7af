"""What an algorithm needs for error .01: its horizon, and what is said."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from collabtop.reproduction.evidence import Evidence, Line
from collabtop.reproduction.experiments import AGENTS, IID, NON_IID
from collabtop.stats import Crossing

CAPTION = (
    "What error .01 takes: the horizon, and what is said, in words for IID arms and in bits for non-IID ones; words of "
    "both are in the table"
)
NOTE = (
    "Lower left is better; the grey steps join those that no other beats on both. For non-IID arms both means the "
    "horizon and bits: a flag of one bit counts as a word, as a mean of 64 bits does, so that words do not tell a "
    "short message from a long one there. A horizon comes from the deep study where one was made; pale marks with "
    "dotted bars are rough, from the panels' runs alone. What is said is taken at the nearest horizon of the panels."
)
"""How to read the picture and its table."""
SETTINGS = ((IID, 1), (IID, 8), (NON_IID, 1), (NON_IID, 8))


class Price(msgspec.Struct, frozen=True):
    """What one algorithm needs in one setting."""

    line: Line
    arms: str
    m: int
    at: Crossing
    rough: bool
    """From the panels' runs alone, not from the deep study."""
    words: float
    bits: float
    """Both at the measured horizon that is nearest to the crossing."""

    def is_beaten_by(self, other: Price) -> bool:
        """Whether another one takes less of both."""
        return other.at.horizon < self.at.horizon and said(other) < said(self)


def said(price: Price) -> float:
    """What is said, in the unit that tells algorithms apart: words, and bits where means are sent with fewer."""
    return price.words if price.arms == IID else price.bits


def prices(evidence: Evidence) -> list[Price]:
    """What each algorithm needs; one whose error does not come down to .01 within its sweep is left out."""
    return [price for arms, m in SETTINGS for price in _prices(evidence, arms, m)]


def _prices(evidence: Evidence, arms: str, m: int) -> Iterator[Price]:
    agents = evidence.arms[arms].agents or AGENTS
    for line in evidence.lines(arms):
        sweep = evidence.sweep(line, arms, m, agents=agents)
        deep = evidence.crossing(line, m, agents) if arms == IID else None
        at = deep or evidence.rough_crossing(line, arms, m, agents)
        if at is None or (deep is None and at.horizon > 1.3 * sweep[-1].horizon):
            continue
        near = min(sweep, key=lambda point: abs(math.log(point.horizon / at.horizon)))
        yield Price(line, arms, m, at, deep is None, near.words_mean, near.bits_mean)


def describe_prices(evidence: Evidence) -> str:
    """The picture in words."""
    parts = [
        f"top-{price.m}, {'IID' if price.arms == IID else 'non-IID'}, {price.line.name}: horizon "
        f"{price.at.horizon:,.0f}{' (rough)' if price.rough else ''}, {price.words:,.0f} words, {price.bits:,.0f} bits"
        for price in prices(evidence)
    ]
    return f"{CAPTION}. {'; '.join(parts)}."


def price_rows(evidence: Evidence) -> list[tuple[str, ...]]:
    """A table of the prices, its heads first."""
    heads = (
        "algorithm",
        "arms",
        "m",
        "horizon",
        "95% interval",
        "runs behind it",
        "words",
        "bits",
        "beaten on horizon and words (IID) or bits (non-IID) by",
    )
    every = prices(evidence)
    rows: list[tuple[str, ...]] = [heads]
    for it in every:
        rivals = [one for one in every if (one.arms, one.m) == (it.arms, it.m) and it.is_beaten_by(one)]
        rows.append(
            (
                it.line.name,
                "IID" if it.arms == IID else "non-IID",
                str(it.m),
                f"{it.at.horizon:,.0f}",
                f"{it.at.low:,.0f} to {it.at.high:,.0f}",
                f"{it.at.runs:,}{' (panels only: rough)' if it.rough else ''}",
                f"{it.words:,.0f}",
                f"{it.bits:,.0f}",
                "; ".join(one.line.name for one in rivals) or "none",
            )
        )
    return rows
