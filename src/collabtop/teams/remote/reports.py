"""What hosts of agents tell the coordinator besides replies: the rewards drawn, as they are drawn, and what failed."""

from __future__ import annotations

import threading

from collabtop.errors import ProtocolError
from collabtop.events import Event, PullFailed, PullsMade
from collabtop.runlog.format import Record, Rewards, Sums
from collabtop.runlog.recorder import RewardRecorder, pulls_in
from collabtop.teams.remote.history import AgentHistory

Item = Rewards | Sums | PullsMade | PullFailed


class ReportBuffer:
    """At the host: takes in what the agents' tapes say, from any thread, until somebody asks for it."""

    def __init__(self, *, records: bool, watched: bool) -> None:
        self._records, self._watched = records, watched
        self._lock = threading.Lock()
        self._items: list[Item] = []
        self._drained = 0

    def append(self, record: Record) -> None:
        """Take in a record of a tape."""
        if self._records and isinstance(record, Rewards | Sums):
            with self._lock:
                self._items.append(record)

    def note_time(self) -> None:
        """The coordinator's clock counts, not this one's."""

    def hear(self, event: Event) -> None:
        """Take in an event of a tape; failed attempts are counted whether or not somebody watches."""
        if isinstance(event, PullFailed) or (self._watched and isinstance(event, PullsMade)):
            with self._lock:
                self._items.append(event)

    def drain(self) -> tuple[int, list[Item]]:
        """All since the last time, and which time this is: several may ask, and rewards have an order."""
        with self._lock:
            items, self._items = self._items, []
            self._drained += 1
            return self._drained, items


class ReportSink:
    """At the coordinator: puts reports onto the run's tape, each pull once, however often its agent is rebuilt."""

    def __init__(self, agents: int, tape: RewardRecorder | None, book: AgentHistory, *, repeatable: bool) -> None:
        self._tape, self._book, self._repeatable = tape, book, repeatable
        self._kept = [0] * agents  # pulls of each agent whose rewards are here
        self._told = [0] * agents  # pulls of each agent that were told
        self._in_this_life = [0] * agents  # the same, as its present life tells them
        if tape is not None:
            for agent, records in tape.known_by_agent().items():
                book.records[agent] = list(records)
                self._kept[agent] = sum(pulls_in(record) for record in records)

    def begin_life(self, agent: int) -> None:
        """The agent begins again, and tells its pulls from the first one on."""
        self._in_this_life[agent] = 0

    def take(self, items: list[Item]) -> None:
        """Take in what a host reported, in order."""
        for item in items:
            if isinstance(item, Rewards | Sums):
                self._keep(item)
            elif isinstance(item, PullsMade):
                self._tell(item)
            elif self._tape is not None:
                self._tape.hear_of_failure(item)

    def _keep(self, record: Rewards | Sums) -> None:
        agent = record.agent
        if record.first < self._kept[agent]:  # simulated rewards, drawn once more by a rebuilt agent
            return
        if record.first > self._kept[agent]:
            raise ProtocolError(f"agent {agent}'s pulls {self._kept[agent]} to {record.first - 1} were not reported")
        self._kept[agent] += pulls_in(record)
        if not self._repeatable:
            self._book.records[agent].append(record)
        if self._tape is not None:
            self._tape.take_in(record)

    def _tell(self, event: PullsMade) -> None:
        agent = event.agent
        self._in_this_life[agent] += event.pulls
        fresh = min(event.pulls, self._in_this_life[agent] - self._told[agent])
        if fresh > 0 and self._tape is not None:
            self._told[agent] += fresh
            self._tape.tell(PullsMade(agent, fresh, event.recalled))
