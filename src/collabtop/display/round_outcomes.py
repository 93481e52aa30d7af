"""What happened to the arms in each round of a run, as far as the coordinator knows."""

from collections import Counter
from itertools import pairwise

import msgspec

from collabtop.runs.result import Result


class RoundOutcome(msgspec.Struct, frozen=True):
    """One round: the arms that were open at its start, and how many of them were settled."""

    round: int
    phase: str
    live: int
    """Arms open at the start of the round."""
    kept: int
    """Arms still open at its end."""
    accepted: int
    rejected: int
    inside: int
    """Arms settled inside an agent: the coordinator learns only their number."""
    words: int


MEANINGS = {
    "kept": "still open",
    "accepted": "accepted",
    "rejected": "rejected",
    "inside": "settled inside an agent",
}
"""What a figure or a table calls the parts into which a round divides the open arms, by field of `RoundOutcome`."""


def round_outcomes(result: Result) -> list[RoundOutcome]:
    """The outcome of each round of a run.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1, 0.2])
    >>> result = ct.identify(arms, m=1, agents=2, horizon=400, algorithm="kzz", seed=1)
    >>> [(row.live, row.kept, row.accepted, row.rejected) for row in round_outcomes(result)]
    [(4, 2, 0, 2), (2, 0, 1, 1)]
    """
    last = len(result.rounds) - 1
    # Arms that are left when nothing remains to be decided count as settled in the last round.
    settled = Counter((min(arm.round, last), arm.verdict) for arm in result.estimates if arm.round is not None)
    sizes = [*(summary.live for summary in result.rounds), 0]
    outcomes = []
    for summary, (live, kept) in zip(result.rounds, pairwise(sizes), strict=True):
        number, phase = summary.round, summary.phase
        accepted, rejected = settled[number, "accepted"], settled[number, "rejected"]
        rest = live - kept - accepted - rejected
        rejected, inside = (rejected, rest) if phase == "local" else (rejected + rest, 0)
        outcomes.append(RoundOutcome(number, phase, live, kept, accepted, rejected, inside, summary.words))
    return outcomes
