"""The pulls that a log holds, to be recalled instead of made again."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from collabtop.arms import Arms, Draws
from collabtop.arms.base import NOTHING_DRAWN, Drawn, Ints, Reals
from collabtop.arms.calls import PullAttempt
from collabtop.errors import FileError
from collabtop.runlog.format import Exchange, Record, Rewards, Sums


def logged_sums(logged: Sums, source: Arms, arms: Ints, times: Ints, draws: Draws) -> Reals:
    """The sums of a logged batch; arms that cost nothing are pulled again, and must give the same sums."""
    logged_arms, logged_times, logged_sums = logged.unpack()
    if not (np.array_equal(logged_arms, arms) and (logged_times == times).all()):
        raise FileError(f"the checkpoint does not fit this run: agent {draws.agent} pulled different candidates there")
    if not source.repeatable:
        logged.restore_state(draws.bulk)
        draws.squares = logged.unpack_squares()
    elif not np.array_equal(logged_sums, source.pull(arms, times, draws)):
        raise FileError("the checkpoint does not fit this run: the arms return different rewards than before")
    return logged_sums


def failure_mode_in(records: Sequence[Record]) -> str | None:
    """What became of the failed pulls in a log, or None if there are none."""
    return next((record.failures for record in records if isinstance(record, Rewards) and record.failures), None)


class LoggedPulls:
    """The pulls of one agent that a log holds, by number. Pulls made at the same time leave gaps if a run is killed."""

    def __init__(self, agent: int, records: list[Rewards], reported: int) -> None:
        size = max(record.first + record.pulls for record in records)
        self.arms: Ints = np.full(size, -1)  # -1: the log does not hold this pull
        self.rewards: Reals = np.full(size, np.nan)
        self.costs: Reals | None = np.full(size, np.nan) if any(record.costs for record in records) else None
        for record in records:
            span = slice(record.first, record.first + record.pulls)
            if (self.arms[span] >= 0).any():
                pulls = f"{span.start} to {span.stop - 1}"
                raise FileError(f"the checkpoint is damaged: it holds one of the pulls {pulls} of agent {agent} twice")
            self.arms[span], self.rewards[span] = record.unpack()
            if self.costs is not None and record.costs:
                self.costs[span] = record.unpack_costs()
        # A reply is logged after the rewards behind it.
        missing = np.flatnonzero(self.arms[:reported] < 0)
        if len(missing):
            raise FileError(f"the checkpoint is damaged: pull {missing[0]} of agent {agent} is missing")

    def gap(self, number: int, limit: int) -> int:
        """How many of `limit` pulls, starting at this number, are before the next one that the log holds."""
        held = np.flatnonzero(self.arms[number : number + limit] >= 0)
        return int(held[0]) if len(held) else limit

    def pulls(self, attempt: PullAttempt, limit: int) -> Drawn:
        """The pulls that the log holds from this one on, up to the first that it does not hold."""
        arms = self.arms[attempt.number : attempt.number + limit]
        gaps = np.flatnonzero(arms < 0)
        count = int(gaps[0]) if len(gaps) else len(arms)
        if not count:
            return NOTHING_DRAWN
        if (arms[:count] != attempt.arm).any():
            raise FileError(
                f"the checkpoint does not fit this run: pull {attempt.number} of agent {attempt.agent} is of a "
                "different candidate there"
            )
        span = slice(attempt.number, attempt.number + count)
        return Drawn(self.rewards[span], None if self.costs is None else self.costs[span])


def logged_by_agent(records: Sequence[Record], *, gaps: bool) -> dict[int, LoggedPulls]:
    """The logged pulls of each agent; with `gaps`, it may have reported pulls that are not logged."""
    by_agent: dict[int, list[Rewards]] = {}
    reported: Counter[int] = Counter()
    for record in records:
        if isinstance(record, Rewards):
            by_agent.setdefault(record.agent, []).append(record)
        elif isinstance(record, Exchange) and not gaps:
            reported.update({agent: pulls for agent, pulls, _ in record.replies})
    return {agent: LoggedPulls(agent, of_agent, reported[agent]) for agent, of_agent in by_agent.items()}
