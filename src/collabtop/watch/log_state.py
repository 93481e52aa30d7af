"""What a log alone tells of its run: a fold of its records, one at a time."""

from __future__ import annotations

from collections import Counter, deque

import msgspec
import numpy as np

from collabtop.errors import ProtocolError
from collabtop.protocol import wire
from collabtop.protocol.ledger import Direction, cost
from collabtop.protocol.messages import Ints, Reals, kind_of
from collabtop.runlog.format import (
    AgentState,
    AgentStatus,
    Exchange,
    Finished,
    Header,
    Record,
    RemoteRun,
    Rewards,
    Sums,
    Timestamp,
)

_POINTS = 400
"""Points kept of how words grew; when there are more, every other one goes."""
_PACE = 60
"""Moments, about seconds, over which the pace of pulls is taken."""


class MessageTotals(msgspec.Struct):
    """Messages of one kind in one direction."""

    messages: int = 0
    words: int = 0
    bits: int = 0


class Tally:
    """Pulls by agent and by candidate, rewards seen, words by kind, and the clock, as far as the log goes.

    >>> import collabtop as ct, pathlib, tempfile
    >>> from collabtop.runlog.file import read_log
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1])
    >>> result = ct.identify(arms, m=1, agents=2, horizon=300, algorithm="kzz", seed=7, checkpoint=path)
    >>> tally = Tally()
    >>> for record in read_log(path):
    ...     tally.take(record)
    >>> (tally.pulls, tally.words, tally.round_trips) == (result.pulls, result.words, result.round_trips)
    True
    """

    def __init__(self) -> None:
        self.header: Header | None = None
        self.top: list[int] | None = None
        """The answer, when there is one."""
        self.spoken: dict[tuple[str, Direction], MessageTotals] = {}
        """What was said, by kind of message and direction."""
        self.round_trips = 0
        self.began: float | None = None
        """What the clock said first, and last."""
        self.last: float | None = None
        self.points: list[tuple[int, int]] = []
        """Pulls and words after some of the exchanges."""
        self.failed: Counter[int] = Counter()
        self.sites: tuple[tuple[str, int], ...] = ()
        """Names of remote sites with their numbers of agents, where the agents are at some."""
        self.reach: dict[int, AgentState] = {}
        """Agents of which their team noted that they are here, away or lost."""
        self._every = 1
        self._recent: deque[tuple[float, int]] = deque(maxlen=_PACE)

    def _begin(self, header: Header) -> None:
        self.header = header
        self.seen_pulls: Ints = np.zeros(header.n, np.int64)
        """Pulls of each candidate that the log holds (on teams that share memory, all)."""
        self._failed: Ints = np.zeros(header.n, np.int64)
        self._sums: Reals = np.zeros(header.n)
        self._drawn: Ints = np.zeros(header.agents, np.int64)
        self._told: Ints = np.zeros(header.agents, np.int64)
        self.heard: Reals = np.full(header.agents, np.nan)
        """When each agent was last heard of ..."""
        self.longest_silence: Reals = np.zeros(header.agents)
        """... and the longest it was not."""

    def take(self, record: Record) -> None:
        """Take in the next record."""
        match record:
            case Header():
                self._begin(record)
            case Timestamp():
                self._recent.append((record.at, self.pulls))
                self._look_at_clock(record.at)
            case AgentStatus():
                self._take_presence(record)
            case RemoteRun():
                self.sites = record.sites
            case Rewards():
                self._take_rewards(record)
            case Sums():
                self._add(record.agent, *record.unpack(), record.pulls)
            case Exchange():
                self._take_exchange(record)
            case Finished():
                self.top = record.top

    def _look_at_clock(self, at: float) -> None:
        self.began = at if self.began is None else self.began
        self.last = at

    def _take_presence(self, record: AgentStatus) -> None:
        self._look_at_clock(record.at)
        for agent in record.agents:
            if self.reach.get(agent) != "lost":
                self.reach[agent] = record.state
            if record.state == "here":
                self._hear(agent)

    def _take_rewards(self, record: Rewards) -> None:
        arms, rewards = record.unpack()
        if record.failures:  # a long log has many records, and hardly ever one with a failed pull
            failed = np.isnan(rewards)
            self.failed.update(arms[failed].tolist())
            np.add.at(self._failed, arms[failed], 1)
            rewards = np.where(failed, 0.0, rewards)
        self._add(record.agent, arms, 1, rewards, len(arms))

    def _add(self, agent: int, arms: Ints, times: Ints | int, sums: Reals, pulls: int) -> None:
        np.add.at(self.seen_pulls, arms, times)
        np.add.at(self._sums, arms, sums)
        self._drawn[agent] += pulls
        self._hear(agent)

    def _take_exchange(self, record: Exchange) -> None:
        copies = Counter((place, "down") for _, places in record.requests for place in places)
        copies.update((place, "up") for _, _, place in record.replies)
        for place, data in enumerate(record.messages):
            try:
                message = wire.decode(data)
            except ProtocolError:  # a kind of message that this program does not have
                continue
            words, bits = cost(message)
            for direction in ("down", "up"):
                if times := copies[place, direction]:
                    entry = self.spoken.setdefault((kind_of(type(message)), direction), MessageTotals())
                    entry.messages += times
                    entry.words += words * times
                    entry.bits += bits * times
        self.round_trips += 1
        for agent, pulls, _ in record.replies:
            self._told[agent] += pulls
            self._hear(agent)
        self.reach |= dict.fromkeys(lost_in(record), "lost")
        self._add_point()

    def _add_point(self) -> None:
        if self.round_trips % self._every == 0:
            self.points.append((self.pulls, self.words))
        if len(self.points) > _POINTS:
            self.points = self.points[1::2]
            self._every *= 2

    def _hear(self, agent: int) -> None:
        if self.last is not None:
            before = self.heard[agent]
            if not np.isnan(before):
                self.longest_silence[agent] = max(self.longest_silence[agent], self.last - before)
            self.heard[agent] = self.last

    @property
    def agent_pulls(self) -> Ints:
        """Pulls of each agent: those whose rewards are in the log, or those it told of with its answers."""
        return np.maximum(self._drawn, self._told)

    @property
    def pulls(self) -> int:
        """Pulls of all agents."""
        return 0 if self.header is None else int(self.agent_pulls.sum())

    @property
    def words(self) -> int:
        """Numbers sent in either direction."""
        return sum(entry.words for entry in self.spoken.values())

    @property
    def bits(self) -> int:
        """The same in bits."""
        return sum(entry.bits for entry in self.spoken.values())

    @property
    def means(self) -> Reals:
        """Mean of the rewards seen of each candidate; NaN where there are none."""
        with np.errstate(invalid="ignore"):
            means: Reals = self._sums / (self.seen_pulls - self._failed)
        return means

    @property
    def seconds_left(self) -> float | None:
        """At the pace of the last minute, if all pulls that may be made are."""
        if self.header is None or len(self._recent) < 2:
            return None
        (then, before), (now, after) = self._recent[0], self._recent[-1]
        if after <= before:
            return None
        return (now - then) / (after - before) * max(0, self.header.agents * self.header.horizon - self.pulls)


def lost_in(record: Exchange) -> set[int]:
    """Agents that were asked and will never answer: the run went on without them."""
    return {agent for agent, _ in record.requests} - {agent for agent, _, _ in record.replies}
