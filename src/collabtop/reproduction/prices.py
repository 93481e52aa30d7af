"""The price of error .01: the horizon and the communication that each algorithm needs for it."""

import math
from collections.abc import Iterator

import msgspec

from collabtop.reproduction.evidence import Evidence, Line
from collabtop.reproduction.experiments import AGENTS, IID, NON_IID, data_kind
from collabtop.stats import Crossing

CAPTION = (
    "Cost of error .01: horizon and communication, in words for IID arms and in bits for non-IID arms (the table has "
    "both)"
)
NOTE = (
    "Lower left is better. The grey steps connect the algorithms that no other algorithm beats on both axes. For "
    "non-IID arms, communication is measured in bits: a one-bit flag counts as one word, and so does a 64-bit mean, so "
    "words would not distinguish short messages from long ones. Horizons come from the deep study where it was run; "
    "pale marks with dotted bars are rough estimates from the runs of the panels alone. Communication is that of the "
    "panels' horizon nearest to the crossing."
)
"""How to read the figure and its table."""
SETTINGS = ((IID, 1), (IID, 8), (NON_IID, 1), (NON_IID, 8))


class Price(msgspec.Struct, frozen=True):
    """What one algorithm needs in one setting."""

    line: Line
    arms: str
    m: int
    at: Crossing
    rough: bool
    """Whether the horizon comes from the runs of the panels alone, not from the deep study."""
    words: float
    """Mean words at the measured horizon nearest to the crossing."""
    bits: float
    """Mean bits at the same horizon."""

    @property
    def communication(self) -> float:
        """Words for IID arms; bits for non-IID arms, where some algorithms send means with fewer bits."""
        return self.words if self.arms == IID else self.bits

    def is_beaten_by(self, other: "Price") -> bool:
        """Whether the other algorithm needs a shorter horizon and less communication."""
        return other.at.horizon < self.at.horizon and other.communication < self.communication


def prices(evidence: Evidence) -> "list[Price]":
    """The price for each algorithm whose error falls to .01 within its sweep."""
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
    """A text alternative for the figure."""
    parts = [
        f"top-{price.m}, {data_kind(price.arms)}, {price.line.name}: horizon "
        f"{price.at.horizon:,.0f}{' (rough)' if price.rough else ''}, {price.words:,.0f} words, {price.bits:,.0f} bits"
        for price in prices(evidence)
    ]
    return f"{CAPTION}. {'; '.join(parts)}."


def price_rows(evidence: Evidence) -> list[tuple[str, ...]]:
    """The prices as the rows of a table, starting with its header."""
    header = (
        "algorithm",
        "arms",
        "m",
        "horizon",
        "95% interval",
        "runs",
        "words",
        "bits",
        "beaten on horizon and words (IID) or bits (non-IID) by",
    )
    all_prices = prices(evidence)
    rows: list[tuple[str, ...]] = [header]
    for price in all_prices:
        rivals = [other for other in all_prices if (other.arms, other.m) == (price.arms, price.m)]
        rows.append(
            (
                price.line.name,
                data_kind(price.arms),
                str(price.m),
                f"{price.at.horizon:,.0f}",
                f"{price.at.low:,.0f} to {price.at.high:,.0f}",
                f"{price.at.runs:,}{' (panels only: rough)' if price.rough else ''}",
                f"{price.words:,.0f}",
                f"{price.bits:,.0f}",
                "; ".join(other.line.name for other in rivals if price.is_beaten_by(other)) or "none",
            )
        )
    return rows
