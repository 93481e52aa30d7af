"""What agents in other processes report besides replies: rewards as they are drawn, and failed attempts."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import msgspec

from collabtop.errors import ProtocolError
from collabtop.events import Event, PullFailed, PullsMade
from collabtop.runlog.format import AgentState, Record, Rewards, Sums
from collabtop.runlog.recorder import RewardRecorder

Item = Rewards | Sums | PullsMade | PullFailed


class ReportOptions(msgspec.Struct, frozen=True):
    """What is reported, besides failed attempts."""

    rewards: bool
    """Whether rewards are, since they are logged or cannot be drawn again."""
    events: bool
    """Whether pulls are, since there is a listener for events."""


class ReportBuffer:
    """In the agents' process: collects what their recorders record, from any thread, until it is drained."""

    def __init__(self, options: ReportOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._items: list[Item] = []
        self._drained = 0

    def recorder(self, failure_mode: str, records: Sequence[Rewards | Sums] = ()) -> RewardRecorder:
        """A recorder for an agent; `records` are the rewards that the agent drew in an earlier process."""
        if not (self._options.rewards or self._options.events):
            return RewardRecorder(failure_mode=failure_mode)
        return RewardRecorder(self, self.hear, records, failure_mode)

    def append(self, record: Record, *, sync: bool = False) -> None:
        """Collect a record."""
        if self._options.rewards and isinstance(record, Rewards | Sums):
            with self._lock:
                self._items.append(record)

    def note_time(self) -> None:
        """Do nothing: the coordinator's clock counts."""

    def note_status(self, agents: Iterable[int], state: AgentState) -> None:
        """Do nothing: the coordinator knows which agents it reaches."""

    def hear(self, event: Event) -> None:
        """Collect an event; failed attempts are counted whether or not there is a listener."""
        if isinstance(event, PullFailed) or (self._options.events and isinstance(event, PullsMade)):
            with self._lock:
                self._items.append(event)

    def drain(self) -> tuple[int, list[Item]]:
        """The number of this report, and everything since the last one: rewards have an order."""
        with self._lock:
            items, self._items = self._items, []
            self._drained += 1
            return self._drained, items


class ReportSink:
    """At the coordinator: passes reports to the run's recorder, each pull once, however often an agent is rebuilt."""

    def __init__(self, recorder: RewardRecorder, agents: int, *, repeatable: bool) -> None:
        self.options = ReportOptions(rewards=recorder.is_logged or not repeatable, events=recorder.is_watched)
        """What the agents have to report."""
        self.records: list[list[Rewards | Sums]] = [[] for _ in range(agents)]
        """Rewards of each agent that cannot be drawn again."""
        self._recorder, self._repeatable = recorder, repeatable
        self._recorded = [0] * agents  # pulls of each agent whose rewards are here
        self._published = [0] * agents  # pulls of each agent that were published
        self._in_this_life = [0] * agents  # the same, as the agent's present life reports them
        for agent, records in recorder.records_by_agent().items():
            self.records[agent] = records
            self._recorded[agent] = sum(record.pulls for record in records)

    def begin_life(self, agent: int) -> None:
        """The agent starts again, and reports its pulls from the first one on."""
        self._in_this_life[agent] = 0

    def take(self, items: Iterable[Item]) -> None:
        """Take in a report, in order."""
        for item in items:
            if isinstance(item, Rewards | Sums):
                self._record(item)
            elif isinstance(item, PullsMade):
                self._publish(item)
            else:
                self._recorder.add_failure(item)

    def _record(self, record: Rewards | Sums) -> None:
        agent = record.agent
        if record.first < self._recorded[agent]:  # simulated rewards, drawn once more by a rebuilt agent
            return
        if record.first > self._recorded[agent]:
            missing = f"{self._recorded[agent]} to {record.first - 1}"
            raise ProtocolError(f"pulls {missing} of agent {agent} were not reported")
        self._recorded[agent] += record.pulls
        if not self._repeatable:
            self.records[agent].append(record)
        self._recorder.add_record(record)

    def _publish(self, event: PullsMade) -> None:
        agent = event.agent
        self._in_this_life[agent] += event.pulls
        fresh = min(event.pulls, self._in_this_life[agent] - self._published[agent])
        if fresh > 0:
            self._published[agent] += fresh
            self._recorder.publish(PullsMade(agent, fresh, event.recalled))
