"""Records rewards as agents draw them, and returns those that an earlier process drew."""

import math
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Protocol

import numpy as np

from collabtop.arms import Arms, Draws
from collabtop.arms.base import Ints, Reals, Recorder
from collabtop.arms.calls import PullAttempt
from collabtop.errors import CheckpointError, FileError
from collabtop.events import Event, OnEvent, PullFailed, PullsMade
from collabtop.runlog.flusher import Flusher
from collabtop.runlog.format import AgentState, Record, Rewards, Sums

_SECONDS, _PULLS = 0.01, 4096
"""How long, and how many, rewards may wait for the next record: slow pulls are written one by one."""
_SECONDS_WITHOUT_PULL = 0.1
"""After this time rewards are written though no further pull has ended. A thread that wakes up more often would slow
down functions that do not release the interpreter lock."""

_NOTHING = np.empty(0)


class RecordSink(Protocol):
    """Where records go: a log on disk, or the reports of a host to the coordinator."""

    def append(self, record: Record, *, sync: bool = False) -> None:
        """Add a record; with `sync`, return when it is on disk."""

    def note_time(self) -> None:
        """Record the time of day."""

    def note_status(self, agents: Iterable[int], state: AgentState) -> None:
        """Record that agents became reachable or unreachable."""


class RewardRecorder(Recorder):
    """The recorder of a run: rewards by agent and pull number, failed pulls, and the run's events.

    Args:
        sink: where records go; None keeps none.
        on_event: called with every event, from one thread at a time.
        records: what an earlier process of the same run logged.
        failure_mode: what happens to pulls that fail (`Arms.failure_mode`).
    """

    def __init__(
        self,
        sink: RecordSink | None = None,
        on_event: OnEvent | None = None,
        records: Sequence[Record] = (),
        failure_mode: str = "",
    ) -> None:
        logged_mode = failure_mode_in(records)
        if logged_mode is not None and logged_mode != failure_mode:
            raise FileError(
                f"the checkpoint holds failed pulls that were handled with failures={logged_mode!r}, so the run cannot "
                f"continue with failures={failure_mode!r}"
            )
        self.records = records
        """What an earlier process of the same run logged."""
        self._sink, self._on_event, self._failure_mode = sink, on_event, failure_mode
        self._lock = threading.Lock()
        self._rewards = _rewards_by_agent(records)
        self._sums = {(record.agent, record.first): record for record in records if isinstance(record, Sums)}
        self._buffers: dict[int, _Buffer] = {}
        self._buffers_lock = threading.Lock()
        self._flusher = Flusher(self._flush_in_background, _SECONDS_WITHOUT_PULL)
        self._written: dict[int, float] = {}  # when an agent's rewards were last written
        self._unpublished: Counter[int] = Counter()  # pulls of each agent that were written, but not published
        self.failed: Counter[int] = Counter()
        """Pulls of each arm that failed for good, including those of the checkpoint."""
        self.retries = 0
        """Attempts that were repeated in this process."""

    @property
    def recorded_pulls(self) -> int:
        """Pulls that the checkpoint holds."""
        sums = sum(record.pulls for record in self._sums.values())
        return sum(len(rewards) for _, rewards in self._rewards.values()) + sums

    @property
    def is_logged(self) -> bool:
        """Whether rewards are written to a log."""
        return self._sink is not None

    @property
    def is_watched(self) -> bool:
        """Whether there is a listener for events."""
        return self._on_event is not None

    def publish(self, event: Event) -> None:
        """Pass an event to the listener, from one thread at a time."""
        if self._on_event is not None:
            with self._lock:
                self._on_event(event)

    def close(self) -> None:
        """Write nothing in the background any more."""
        self._flusher.stop()

    # -- records of a team's own

    def append(self, record: Record) -> None:
        """Log a record that a team needs after a restart."""
        if self._sink is not None:
            self._sink.append(record, sync=True)

    def note_status(self, agents: Iterable[int], state: AgentState) -> None:
        """Log that agents became reachable or unreachable."""
        if self._sink is not None:
            self._sink.note_status(agents, state)

    # -- rewards drawn in other processes, which have recorders of their own

    def records_by_agent(self) -> dict[int, list[Rewards | Sums]]:
        """The logged rewards of each agent, for agents elsewhere to recall; failed pulls are counted here."""
        by_agent: dict[int, list[Rewards | Sums]] = {}
        for record in self.records:
            if isinstance(record, Rewards | Sums):
                by_agent.setdefault(record.agent, []).append(record)
        for arms, rewards in self._rewards.values():
            self.failed.update(arms[np.isnan(rewards)].tolist())
        return by_agent

    def add_record(self, record: Rewards | Sums) -> None:
        """Record what an agent elsewhere drew."""
        if isinstance(record, Rewards):
            arms, rewards = record.unpack()
            self.failed.update(arms[np.isnan(rewards)].tolist())
        if self._sink is not None:
            self._sink.append(record)

    def add_failure(self, event: PullFailed) -> None:
        """Count an attempt that failed elsewhere."""
        self.retries += event.again
        self.publish(event)

    # -- rewards one by one

    def recall(self, attempt: PullAttempt, limit: int) -> Reals:
        """The recorded rewards from this pull on."""
        arms, rewards = self._rewards.get(attempt.agent, (_NOTHING, _NOTHING))
        span = slice(attempt.number, attempt.number + limit)
        if not len(rewards[span]):
            return _NOTHING
        if (arms[span] != attempt.arm).any():
            raise FileError(
                f"the checkpoint does not fit this run: pull {attempt.number} of agent {attempt.agent} is of a "
                "different candidate there"
            )
        self._count_failed(attempt.arm, rewards[span])
        self.publish(PullsMade(attempt.agent, len(rewards[span]), recalled=True))
        return rewards[span]

    def keep(self, attempt: PullAttempt, rewards: Reals) -> None:
        """Record rewards just drawn; they are written within a tenth of a second, or when there are many."""
        self._count_failed(attempt.arm, rewards)
        agent = attempt.agent
        with self._buffers_lock:
            buffer = self._buffers.get(agent)
            if buffer is None:
                buffer = self._buffers[agent] = _Buffer(attempt.number)
            buffer.add(attempt.arm, rewards)
            due = buffer.pulls >= _PULLS or monotonic() - self._written.get(agent, 0.0) >= _SECONDS
        if due:
            self.flush(agent)
        elif self._sink is not None:
            self._flusher.request()

    def flush(self, agent: int) -> None:
        """Write what an agent drew and was not written yet."""
        with self._buffers_lock:
            self._write(agent)
            pulls = self._unpublished.pop(agent, 0)
        if pulls:
            self.publish(PullsMade(agent, pulls, recalled=False))

    def _flush_in_background(self) -> None:
        """Write what waits for the next pull, which may take long; events are left to the agents' own threads."""
        with suppress(CheckpointError), self._buffers_lock:  # the next write raises it
            for agent in list(self._buffers):
                self._write(agent)

    def _write(self, agent: int) -> None:
        # The lock is held: records of an agent must be in the order of its pulls.
        buffer = self._buffers.pop(agent, None)
        if buffer is None:
            return
        if self._sink is not None:
            self._sink.note_time()
            self._sink.append(buffer.record(agent, self._failure_mode))
        self._written[agent] = monotonic()
        self._unpublished[agent] += buffer.pulls

    def note_failure(self, attempt: PullAttempt, label: str, error: str, *, again: bool) -> None:
        """Count a failed attempt."""
        if again:
            with self._lock:
                self.retries += 1
        self.publish(PullFailed(attempt.agent, label, attempt.retries, error, again))

    def _count_failed(self, arm: int, rewards: Reals) -> None:
        # Summing is faster than testing each, and usually none is NaN.
        if math.isnan(rewards[0] if len(rewards) == 1 else rewards.sum()):
            failed = int(np.count_nonzero(np.isnan(rewards)))
            with self._lock:
                self.failed[arm] += failed

    # -- sums

    def pull_sums(self, source: Arms, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Pull arms that return sums, or return the recorded sums."""
        if self._sink is None and self._on_event is None and not self._sums:
            return source.pull(arms, times, draws)
        logged = self._sums.get((draws.agent, draws.pulls_made))
        if logged is None:
            sums = source.pull(arms, times, draws)
            if self._sink is not None:
                self._sink.note_time()
                self._sink.append(Sums.pack(draws.agent, draws.pulls_made, arms, times, sums, draws.bulk))
        else:
            sums = _logged_sums(logged, source, arms, times, draws)
        pulls = int(np.broadcast_to(times, arms.shape).sum())
        self.publish(PullsMade(draws.agent, pulls, recalled=logged is not None))
        return sums


def _logged_sums(logged: Sums, source: Arms, arms: Ints, times: Ints, draws: Draws) -> Reals:
    """The sums of a logged batch; arms that cost nothing are pulled again, and must give the same sums."""
    logged_arms, logged_times, logged_sums = logged.unpack()
    if not (np.array_equal(logged_arms, arms) and (logged_times == times).all()):
        raise FileError(f"the checkpoint does not fit this run: agent {draws.agent} pulled different candidates there")
    if not source.repeatable:
        logged.restore_state(draws.bulk)
    elif not np.array_equal(logged_sums, source.pull(arms, times, draws)):
        raise FileError("the checkpoint does not fit this run: the arms return different rewards than before")
    return logged_sums


class _Buffer:
    """Rewards of one agent that are not written yet."""

    def __init__(self, first: int) -> None:
        self.pulls = 0
        self._first = first
        self._arms: list[int] = []
        self._rewards: list[Reals] = []

    def add(self, arm: int, rewards: Reals) -> None:
        self._arms.append(arm)
        self._rewards.append(rewards)
        self.pulls += len(rewards)

    def record(self, agent: int, failure_mode: str) -> Rewards:
        counts = np.array([len(rewards) for rewards in self._rewards])
        rewards = np.concatenate(self._rewards)
        return Rewards.pack(agent, self._first, np.array(self._arms), counts, rewards, failure_mode)


def failure_mode_in(records: Sequence[Record]) -> str | None:
    """What became of the failed pulls in a log, or None if there are none."""
    return next((record.failures for record in records if isinstance(record, Rewards) and record.failures), None)


def _rewards_by_agent(records: Sequence[Record]) -> dict[int, tuple[Ints, Reals]]:
    by_agent: dict[int, list[Rewards]] = {}
    for record in records:
        if isinstance(record, Rewards):
            by_agent.setdefault(record.agent, []).append(record)
    return {agent: _joined(agent, of_agent) for agent, of_agent in by_agent.items()}


def _joined(agent: int, records: list[Rewards]) -> tuple[Ints, Reals]:
    next_pull = 0
    for record in records:
        if record.first != next_pull:
            raise FileError(f"the checkpoint is damaged: pull {next_pull} of agent {agent} is missing")
        next_pull += record.pulls
    arms, rewards = zip(*(record.unpack() for record in records), strict=True)
    return np.concatenate(arms), np.concatenate(rewards)
