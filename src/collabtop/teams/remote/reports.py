"""Reports of agents in other processes besides replies: rewards as they are drawn, and failed attempts."""

import threading
from collections.abc import Iterable, Sequence

import msgspec

from collabtop.errors import ProtocolError
from collabtop.events import Event, PullFailed, PullsMade
from collabtop.runlog.format import AgentState, Record, Rewards, SingleReward, Sums
from collabtop.runlog.gathering import gathered
from collabtop.runlog.recorder import RewardRecorder

Item = Rewards | Sums | PullsMade | PullFailed


class ReportOptions(msgspec.Struct, frozen=True):
    """What is reported besides failed attempts."""

    rewards: bool
    """Whether rewards are reported: they are logged, or cannot be drawn again."""
    events: bool
    """Whether pulls are reported: there is a listener for events."""


class ReportBuffer:
    """In the agents' process: collects the output of their recorders, from any thread, until it is drained."""

    def __init__(self, options: ReportOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._items: list[Item | SingleReward] = []
        self._drained = 0

    def recorder(self, failure_mode: str, records: Sequence[Rewards | Sums] = ()) -> RewardRecorder:
        """A recorder for an agent; `records` are the rewards that the agent drew in an earlier process."""
        if not (self._options.rewards or self._options.events):
            return RewardRecorder(failure_mode=failure_mode)
        return RewardRecorder(self, self.add_event, records, failure_mode)

    def append(self, record: Record, *, sync: bool = False) -> None:
        """Collect a record."""
        if self._options.rewards and isinstance(record, (Rewards, SingleReward, Sums)):
            with self._lock:
                self._items.append(record)

    def note_time(self) -> None:
        """Do nothing: the coordinator's clock counts."""

    def note_status(self, agents: Iterable[int], state: AgentState) -> None:
        """Do nothing: the coordinator knows which agents it reaches."""

    def add_event(self, event: Event) -> None:
        """Collect an event; failed attempts are counted whether or not there is a listener."""
        if isinstance(event, PullFailed) or (self._options.events and isinstance(event, PullsMade)):
            with self._lock:
                self._items.append(event)

    def drain(self) -> tuple[int, list[Item]]:
        """Return the number of this report, and everything collected since the last one, in order."""
        with self._lock:
            items, self._items = self._items, []
            self._drained += 1
            return self._drained, list(gathered(items))


class ReportSink:
    """At the coordinator: passes reports to the run's recorder, each pull once even if an agent is rebuilt."""

    def __init__(self, recorder: RewardRecorder, agents: int, *, repeatable: bool) -> None:
        self.options = ReportOptions(rewards=recorder.is_logged or not repeatable, events=recorder.is_watched)
        """What the agents report."""
        self.records: list[list[Rewards | Sums]] = [[] for _ in range(agents)]
        """Rewards of each agent that cannot be drawn again."""
        self._recorder, self._repeatable = recorder, repeatable
        self._recorded = [0] * agents  # pulls of each agent whose rewards were recorded
        self._published = [0] * agents  # pulls of each agent that were published as events
        self._reported = [0] * agents  # pulls that each agent reported in its current epoch
        for agent, records in recorder.records_by_agent().items():
            self.records[agent] = records
            self._recorded[agent] = sum(record.pulls for record in records)

    def begin_epoch(self, agent: int) -> None:
        """Note that the agent starts again, and reports its pulls from the first one on."""
        self._reported[agent] = 0

    def take(self, items: Iterable[Item]) -> None:
        """Process a report, in order."""
        for item in items:
            if isinstance(item, Rewards | Sums):
                self._record(item)
            elif isinstance(item, PullsMade):
                self._publish(item)
            else:
                self._recorder.add_failure(item)

    def _record(self, record: Rewards | Sums) -> None:
        agent = record.agent
        if not self._repeatable:  # pulls that are made at the same time end in any order
            self.records[agent].append(record)
        elif record.first < self._recorded[agent]:  # simulated rewards that a rebuilt agent drew again
            return
        elif record.first > self._recorded[agent]:
            missing = f"{self._recorded[agent]} to {record.first - 1}"
            raise ProtocolError(f"pulls {missing} of agent {agent} were not reported")
        self._recorded[agent] += record.pulls
        self._recorder.add_record(record)

    def _publish(self, event: PullsMade) -> None:
        agent = event.agent
        self._reported[agent] += event.pulls
        new_pulls = min(event.pulls, self._reported[agent] - self._published[agent])
        if new_pulls > 0:
            self._published[agent] += new_pulls
            self._recorder.publish(PullsMade(agent, new_pulls, event.recalled))
