"""The state of a run as its log shows it: totals that are updated record by record."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from collabtop.errors import FileError, ProtocolError
from collabtop.protocol import wire
from collabtop.protocol.ledger import Direction, cost
from collabtop.protocol.messages import Ints, Reals, kind_of
from collabtop.runlog.format import (
    AgentState,
    AgentStatus,
    Exchange,
    Extended,
    FailedAttempt,
    Finished,
    Header,
    Record,
    RemoteRun,
    Rewards,
    Sums,
    Timestamp,
)
from collabtop.runlog.legs import extended_header
from collabtop.runlog.tally import Tally
from collabtop.runlog.totals import TotalsCounter

_MAX_POINTS = 400
"""Points kept of the growth of words; when there are more, every other one is dropped."""
_PACE_WINDOW = 60
"""Timestamps, about one per second, over which the pace of pulls is measured."""


class MessageTotals(msgspec.Struct):
    """Totals of the messages of one kind in one direction."""

    messages: int = 0
    words: int = 0
    bits: int = 0


class LogState:
    """Pulls per agent and candidate, mean rewards, words by kind of message, and times, as far as the log was read.

    >>> import collabtop as ct, pathlib, tempfile
    >>> from collabtop.runlog.file import read_log
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1])
    >>> result = ct.identify(arms, m=1, agents=2, horizon=300, algorithm="kzz", seed=7, checkpoint=path)
    >>> state = LogState(read_log(path))
    >>> (state.pulls, state.words, state.round_trips) == (result.pulls, result.words, result.round_trips)
    True
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.header: Header | None = None
        self.top: list[int] | None = None
        """The answer, once the run is finished."""
        self.messages: dict[tuple[str, Direction], MessageTotals] = {}
        """Totals by kind of message and direction."""
        self.round_trips = 0
        self.started: float | None = None
        """The first time in the log, in seconds since 1970 ..."""
        self.latest: float | None = None
        """... and the last one."""
        self.points: list[tuple[int, int]] = []
        """Pulls and words after a selection of the exchanges."""
        self.sites: tuple[tuple[str, int], ...] = ()
        """Names of remote sites with their numbers of agents, if the agents run at sites."""
        self.agent_states: dict[int, AgentState] = {}
        """Agents that their team has reported as here, away or lost."""
        self.calls = TotalsCounter()
        """What the calls of the user's function took."""
        self._exchanges_per_point = 1
        self._recent: deque[tuple[float, int]] = deque(maxlen=_PACE_WINDOW)
        self._allocate(Tally(0, 0))
        for record in records:
            self.add(record)

    def _allocate(self, tally: Tally) -> None:
        self.tally, agents = tally, len(tally.agent_pulls)
        """The rewards that the log holds: all of them, except for those at remote sites."""
        self._reported_pulls: Ints = np.zeros(agents, np.int64)
        self.last_heard: Reals = np.full(agents, np.nan)
        """When each agent was last heard from ..."""
        self.longest_silence: Reals = np.zeros(agents)
        """... and its longest silence before that, in seconds."""

    def add(self, record: Record) -> None:
        """Update the state with the next record."""
        if self.header is None and not isinstance(record, Header):
            raise FileError(f"a log of a run begins with its header, but this one with {type(record).__name__}")
        match record:
            case Header():
                self.header = record
                self._allocate(Tally(record.n, record.agents, iid=record.iid, weights=record.weights))
            case Timestamp():
                self._recent.append((record.at, self.pulls))
                self._add_time(record.at)
            case AgentStatus():
                self._add_status(record)
            case RemoteRun():
                self.sites = record.sites
            case Rewards() | Sums():
                self.calls.add(record)
                self.tally.add_record(record)
                self._hear_from(record.agent)
            case FailedAttempt():
                self.calls.add(record)
            case Exchange():
                self._add_exchange(record)
            case Finished():
                self.top = record.top
            case Extended():
                self._extend(record)

    def _extend(self, record: Extended) -> None:
        assert self.header is not None
        self.header, self.top = extended_header(self.header, record), None
        self.messages, self.round_trips, self.points, self._exchanges_per_point = {}, 0, [], 1
        self._reported_pulls[:] = 0

    def _add_time(self, at: float) -> None:
        self.started = at if self.started is None else self.started
        self.latest = at

    def _add_status(self, record: AgentStatus) -> None:
        self._add_time(record.at)
        for agent in record.agents:
            if self.agent_states.get(agent) != "lost":
                self.agent_states[agent] = record.state
            if record.state == "here":
                self._hear_from(agent)

    def _add_exchange(self, record: Exchange) -> None:
        self._add_messages(record)
        self.round_trips += 1
        for agent, pulls, _ in record.replies:
            self._reported_pulls[agent] += pulls
            self._hear_from(agent)
        self.agent_states |= dict.fromkeys(lost_in(record), "lost")
        self._add_point()

    def _add_messages(self, record: Exchange) -> None:
        copies = Counter((index, "down") for _, indices in record.requests for index in indices)
        copies.update((index, "up") for _, _, index in record.replies)
        for index, data in enumerate(record.messages):
            try:
                message = wire.decode(data)
            except ProtocolError:  # a kind of message that this version does not know
                continue
            words, bits = cost(message)
            for direction in ("down", "up"):
                if count := copies[index, direction]:
                    totals = self.messages.setdefault((kind_of(type(message)), direction), MessageTotals())
                    totals.messages += count
                    totals.words += words * count
                    totals.bits += bits * count

    def _add_point(self) -> None:
        if self.round_trips % self._exchanges_per_point == 0:
            self.points.append((self.pulls, self.words))
        if len(self.points) > _MAX_POINTS:
            self.points = self.points[1::2]
            self._exchanges_per_point *= 2

    def _hear_from(self, agent: int) -> None:
        if self.latest is not None:
            before = self.last_heard[agent]
            if not np.isnan(before):
                self.longest_silence[agent] = max(self.longest_silence[agent], self.latest - before)
            self.last_heard[agent] = self.latest

    @property
    def seen_pulls(self) -> Ints:
        """Pulls of each candidate that the log holds: all of them, except for those at remote sites."""
        return self.tally.pulls

    @property
    def failed(self) -> Ints:
        """Pulls of each candidate that failed for good."""
        return self.tally.failed

    @property
    def means(self) -> Reals:
        """Mean of the logged rewards of each candidate; NaN if there are none."""
        return self.tally.means

    @property
    def agent_pulls(self) -> Ints:
        """Pulls of each agent: those whose rewards are in the log, or those that it reported with its replies."""
        if self.header is not None and self.header.extensions:
            return self.tally.agent_pulls  # replies report earlier pulls as well, of any agent
        return np.maximum(self.tally.agent_pulls, self._reported_pulls)

    @property
    def pulls(self) -> int:
        """Pulls of all agents."""
        return int(self.agent_pulls.sum())

    @property
    def words(self) -> int:
        """Numbers sent in either direction."""
        return sum(totals.words for totals in self.messages.values())

    @property
    def bits(self) -> int:
        """Bits sent in either direction."""
        return sum(totals.bits for totals in self.messages.values())

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the maximum number of pulls is made, at the pace of the last minute."""
        if self.header is None or len(self._recent) < 2:
            return None
        (start, pulls_before), (end, pulls_after) = self._recent[0], self._recent[-1]
        if pulls_after <= pulls_before:
            return None
        pulls_left = max(0, self.header.agents * self.header.horizon - self.pulls)
        return (end - start) / (pulls_after - pulls_before) * pulls_left


class Note(msgspec.Struct, frozen=True):
    """A note about one pull (`Reward.note`)."""

    candidate: int
    agent: int
    pull: int
    """The number of the pull, counted per agent."""
    reward: float | None
    """As an internal value (`Unit.shown` converts it); None if the pull failed."""
    cost: float | None
    note: str


def notes_in(records: Iterable[Record], candidate: int | None = None) -> Iterator[Note]:
    """The notes in a log, in the order in which they were written; those of one candidate, or all.

    >>> import collabtop as ct, pathlib, tempfile
    >>> from collabtop.runlog.file import read_log
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> def score(prompt, rng):
    ...     return ct.Reward(0.5, cost=0.25, note=f"an answer to {prompt}")
    >>> _ = ct.identify(["a", "b"], 1, pull=score, agents=1, horizon=8, seed=1, checkpoint=path)
    >>> next(notes_in(read_log(path), candidate=1))
    Note(candidate=1, agent=0, pull=4, reward=0.5, cost=0.25, note='an answer to b')
    """
    for record in records:
        if not isinstance(record, Rewards) or not record.notes:
            continue
        (arms, rewards), costs = record.unpack(), record.unpack_costs()
        for position, text in record.notes:
            arm = int(arms[position])
            if candidate in (None, arm):
                cost = None if costs is None else _known(costs[position])
                yield Note(arm, record.agent, record.first + position, _known(rewards[position]), cost, text)


def _known(number: float) -> float | None:
    return None if np.isnan(number) else float(number)


def lost_in(record: Exchange) -> set[int]:
    """Agents that were asked but did not reply: the run continued without them."""
    return {agent for agent, _ in record.requests} - {agent for agent, _, _ in record.replies}
