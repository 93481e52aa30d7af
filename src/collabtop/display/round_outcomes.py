"""What each round of a run did to the arms, as the coordinator knows it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec

from collabtop.runs.result import Result


class RoundOutcome(msgspec.Struct, frozen=True):
    """One round: the arms that were open when it began, and what became of them."""

    round: int
    phase: str
    live: int
    """Arms still open when it began."""
    kept: int
    """Arms still open when it ended."""
    accepted: int
    rejected: int
    inside: int
    """Arms settled inside an agent: the coordinator learns only how many."""
    words: int


def round_outcomes(result: Result) -> list[RoundOutcome]:
    """Tell round by round how the arms were settled.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1, 0.2])
    >>> result = ct.identify(arms, m=1, agents=2, horizon=400, algorithm="kzz", seed=1)
    >>> [(step.live, step.kept, step.accepted, step.rejected) for step in round_outcomes(result)]
    [(4, 2, 0, 2), (2, 0, 1, 1)]
    """
    last = len(result.rounds) - 1
    # Arms that are left when nothing is to be decided any more are settled with the last round.
    settled = Counter((min(one.round, last), one.verdict) for one in result.estimates if one.round is not None)
    sizes = [*(one.live for one in result.rounds), 0]
    steps = []
    for one, (live, kept) in zip(result.rounds, pairwise(sizes), strict=True):
        accepted, rejected = settled[one.round, "accepted"], settled[one.round, "rejected"]
        rest = live - kept - accepted - rejected
        local = one.phase == "local"
        rejected, inside = (rejected, rest) if local else (rejected + rest, 0)
        steps.append(RoundOutcome(one.round, one.phase, live, kept, accepted, rejected, inside, one.words))
    return steps
