"""Records rewards as agents draw them, and returns those that an earlier process drew."""

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Protocol

import numpy as np

from collabtop.arms import Arms, Draws
from collabtop.arms.base import NOTHING_DRAWN, Drawn, Ints, Reals, Recorder
from collabtop.arms.calls import AttemptOutcome, PullAttempt
from collabtop.arms.draws import AgentHalted
from collabtop.arms.purse import Purse
from collabtop.errors import FileError
from collabtop.events import Event, OnEvent, PullFailed, PullsMade
from collabtop.runlog.format import AgentState, FailedAttempt, Record, Rewards, SingleReward, Sums
from collabtop.runlog.logged_pulls import failure_mode_in, logged_by_agent, logged_sums
from collabtop.runlog.pool import RewardPool
from collabtop.runlog.reward_buffer import BufferedPulls, RewardBuffer
from collabtop.runlog.tally import Scorer, Tally
from collabtop.runlog.totals import Totals, TotalsCounter

_SECONDS, _PULLS = 0.01, 256
"""How long pulls may wait for the next event, and how many to be added up: slow pulls are published one by one."""


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
        tally: adds up the rewards by candidate, if they are wanted before the run ends.
        scorer: makes `Scored` events, if they are wanted.
        pool: rewards of earlier legs of the run, which are used before new pulls are made.
        earlier: the records of these legs.
        charge: called with the arms and times of all pulls of this leg; False if they exceed the budget.
    """

    def __init__(
        self,
        sink: RecordSink | None = None,
        on_event: OnEvent | None = None,
        records: Sequence[Record] = (),
        failure_mode: str = "",
        tally: Tally | None = None,
        scorer: Scorer | None = None,
        pool: RewardPool | None = None,
        earlier: Sequence[Record] = (),
        charge: Callable[[Ints, Ints], bool] | None = None,
        purse: Purse | None = None,
    ) -> None:
        logged_mode = failure_mode_in([*earlier, *records])
        if logged_mode is not None and logged_mode != failure_mode:
            raise FileError(
                f"the checkpoint holds failed pulls that were handled with failures={logged_mode!r}, so the run cannot "
                f"continue with failures={failure_mode!r}"
            )
        self.records = records
        """What an earlier process of the same run logged."""
        self._sink, self._on_event, self._failure_mode = sink, on_event, failure_mode
        self._tally, self._scorer, self.pool, self.purse = tally, scorer, pool, purse
        self._lock = threading.Lock()
        self._logged = logged_by_agent(records, gaps=pool is not None)
        self._sums = {(record.agent, record.first): record for record in records if isinstance(record, Sums)}
        self._buffers: dict[int, RewardBuffer] = {}
        self._buffers_lock = threading.Lock()
        self._unpublished: dict[int, list[BufferedPulls]] = {}  # pulls of each agent that were added up
        self.failed: Counter[int] = Counter()
        """Pulls of each arm that failed for good, including those of the checkpoint."""
        self._charge = charge
        self._earlier_totals = TotalsCounter(earlier).totals()
        self._counter = TotalsCounter(records)
        self.charged_before = self._counter.pending()

    @property
    def recorded_pulls(self) -> int:
        """Pulls that the checkpoint holds."""
        sums = sum(record.pulls for record in self._sums.values())
        return sum(int(np.count_nonzero(logged.arms >= 0)) for logged in self._logged.values()) + sums

    @property
    def totals(self) -> Totals:
        """What all calls took, including those of earlier processes."""
        self._add_up_all()
        with self._buffers_lock:
            return self._counter.totals().plus(self._earlier_totals)

    @property
    def tally(self) -> Tally | None:
        """The rewards so far, added up by candidate, if they are wanted before the run ends."""
        if self._tally is not None:
            self._add_up_all()
        return self._tally

    @property
    def is_idle(self) -> bool:
        """Whether sums pass through it unseen and unchanged."""
        seen = self._sink is not None or self._on_event is not None or self._tally is not None
        return not (seen or self._sums or self.pool is not None)

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
        """The logged rewards of each agent, for agents elsewhere to recall; they are added up here."""
        by_agent: dict[int, list[Rewards | Sums]] = {}
        for record in self.records:
            if isinstance(record, Rewards | Sums):
                by_agent.setdefault(record.agent, []).append(record)
                if self._tally is not None:
                    self._tally.add_record(record)
        for logged in self._logged.values():
            self.failed.update(logged.arms[(logged.arms >= 0) & np.isnan(logged.rewards)].tolist())
        return by_agent

    def add_record(self, record: Rewards | Sums) -> None:
        """Record what an agent elsewhere drew."""
        if isinstance(record, Rewards):
            arms, rewards = record.unpack()
            self.failed.update(arms[np.isnan(rewards)].tolist())
        self._add(record)
        if self._tally is not None:
            self._tally.add_record(record)
        if self._scorer is not None:
            self.publish(self._scorer.scored_record(record))

    def add_failure(self, event: PullFailed) -> None:
        """Record an attempt that failed, here or elsewhere."""
        counted = event.agent, event.number, event.candidate, event.attempt, event.error, event.again
        with self._buffers_lock:
            self._add(FailedAttempt(*counted, event.cost, event.seconds))
        self.publish(event)

    def _add(self, record: Rewards | Sums | FailedAttempt) -> None:
        self._counter.add(record)
        if self._sink is not None:
            self._sink.append(record)

    # -- rewards one by one

    def recall(self, attempt: PullAttempt, limit: int) -> Drawn:
        """The recorded pulls from this one on, up to the first that is not recorded."""
        if self.pool is not None:
            pooled = self.pool.take(attempt.agent, attempt.arm, attempt.replicate, limit)
            if len(pooled):
                self._count_failed(attempt.arm, pooled)
                self._note_pooled(attempt.agent, len(pooled))
                return Drawn(pooled)
        logged = self._logged.get(attempt.agent)
        if logged is None or attempt.number >= len(logged.arms):
            return NOTHING_DRAWN
        drawn = logged.pulls(attempt, limit)
        if len(drawn.rewards):
            self._is_paid_for(np.array([attempt.arm]), np.array([len(drawn.rewards)]))
            self._count_failed(attempt.arm, drawn.rewards)
            if self._tally is not None:
                with self._buffers_lock:
                    self._tally.add_pulls(attempt.agent, attempt.arm, drawn.rewards, self._failure_mode)
            self.publish(PullsMade(attempt.agent, len(drawn.rewards), recalled=True))
            if self._scorer is not None:
                self.publish(self._scorer.scored(attempt.agent, [(attempt.arm, drawn)], recalled=True))
        return drawn

    def recall_batch(self, agent: int, number: int, arms: Ints, times: Ints) -> Reals | None:
        """The recorded rewards of a batch, in the order of their numbers: if none is missing, failed, or has a cost."""
        logged, pulls = self._logged.get(agent), int(times.sum())
        if not pulls or logged is None or logged.costs is not None or number + pulls > len(logged.arms):
            return None
        if self.pool is not None or self._charge is not None:
            return None
        rewards, arm_of_pull = logged.rewards[number : number + pulls], np.repeat(arms, times)
        if np.isnan(rewards).any() or not np.array_equal(logged.arms[number : number + pulls], arm_of_pull):
            return None
        if self._tally is not None:
            with self._buffers_lock:
                self._tally.add_rewards(agent, arm_of_pull, rewards)
        self.publish(PullsMade(agent, pulls, recalled=True))
        if self._scorer is not None:
            parts = zip(arms.tolist(), np.split(rewards, np.cumsum(times)[:-1]), strict=True)
            self.publish(self._scorer.scored(agent, [(arm, Drawn(part)) for arm, part in parts], recalled=True))
        return rewards.copy()

    def unrecorded(self, attempt: PullAttempt, limit: int) -> int:
        """How many of `limit` pulls, starting at this one, come before the next recorded one."""
        logged = self._logged.get(attempt.agent)
        if logged is None or attempt.number >= len(logged.arms):
            return limit
        return logged.gap(attempt.number, limit)

    def _note_pooled(self, agent: int, pulls: int) -> None:
        """Count pulls of earlier legs that are used; their rewards are in the tally already."""
        if self._tally is not None:
            with self._buffers_lock:
                self._tally.agent_pulls[agent] += pulls
        self.publish(PullsMade(agent, pulls, recalled=True))

    def _is_paid_for(self, arms: Ints, times: Ints) -> bool:
        return self._charge is None or self._charge(arms, np.broadcast_to(times, arms.shape))

    def keep(self, attempt: PullAttempt, drawn: Drawn) -> None:
        """Record pulls just made. When this returns they are in the log: a kill does not undo them."""
        self._count_failed(attempt.arm, drawn.rewards)
        arms, times = np.array([attempt.arm]), np.array([len(drawn.rewards)])
        record = Rewards.pack(attempt.agent, attempt.number, arms, times, drawn, self._failure_mode)
        with self._buffers_lock:
            if self._charge is not None:
                self._charge(arms, times)
            if self._sink is not None:
                self._sink.note_time()
            self._add(record)
        self._collect(attempt, drawn, drawn.seconds)

    def keep_reward(self, attempt: PullAttempt, reward: float, seconds: float) -> None:
        """Record a pull just made that gave only a reward. When this returns it is in the log."""
        if self._charge is not None:
            super().keep_reward(attempt, reward, seconds)
            return
        if self._sink is not None:
            self._sink.note_time()
            self._sink.append(SingleReward(attempt.agent, attempt.number, attempt.arm, reward, seconds))
        self._collect(attempt, reward, seconds)

    def _collect(self, attempt: PullAttempt, given: float | Drawn, seconds: float) -> None:
        """Keep pulls until they are added up and published, together with those of other threads."""
        agent = attempt.agent
        buffer = self._buffers.get(agent)
        if buffer is None:
            buffer = self._buffers.setdefault(agent, RewardBuffer())
        buffer.parts.append((attempt, given, seconds))  # without a lock
        if self._on_event is None:
            if len(buffer.parts) >= _PULLS:
                self._add_up_unless_busy(agent)
        elif seconds >= _SECONDS:
            self.flush(agent)
        elif len(buffer.parts) >= _PULLS or monotonic() - buffer.added_up >= _SECONDS:
            self._add_up_unless_busy(agent)

    def _add_up_unless_busy(self, agent: int) -> None:
        """Add up and publish what an agent drew; leave it to a later call if a different thread is at it."""
        if not self._buffers_lock.locked():
            self.flush(agent)

    def flush(self, agent: int) -> None:
        """Add up and publish what an agent drew."""
        with self._buffers_lock:
            self._add_up(agent)
            pulls = self._unpublished.pop(agent, [])
        if pulls:
            self.publish(PullsMade(agent, sum(part.pulls for part in pulls), recalled=False))
            if self._scorer is not None:
                self.publish(self._scorer.scored(agent, [pair for part in pulls for pair in part.pairs()]))

    def _add_up_all(self) -> None:
        """Add up what all agents drew; events are left to the agents' own threads."""
        with self._buffers_lock:
            for agent in list(self._buffers):
                self._add_up(agent)

    def _add_up(self, agent: int) -> None:
        # The lock is held.
        buffer = self._buffers.get(agent)
        pulls = None if buffer is None else buffer.take()
        if buffer is None or pulls is None:
            return
        if self._tally is not None:
            pulls.add_to(self._tally, agent, self._failure_mode)
        self._counter.add_plain(agent, *pulls.plain_calls())
        if self._on_event is not None:
            self._unpublished.setdefault(agent, []).append(pulls)
        buffer.added_up = monotonic()

    def note_failure(self, attempt: PullAttempt, label: str, outcome: AttemptOutcome, *, again: bool) -> None:
        """Record a failed attempt."""
        failed = attempt.agent, label, attempt.retries, outcome.error, again
        self.add_failure(PullFailed(*failed, attempt.number, outcome.cost, outcome.seconds))

    def _count_failed(self, arm: int, rewards: Reals) -> None:
        # Summing is faster than testing each, and usually none is NaN.
        if math.isnan(rewards[0] if len(rewards) == 1 else rewards.sum()):
            failed = int(np.count_nonzero(np.isnan(rewards)))
            with self._lock:
                self.failed[arm] += failed

    # -- sums

    def pull_sums(self, source: Arms, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Pull arms that return sums, or return the recorded sums."""
        if self.pool is None:
            return self._pull_sums(source, arms, times, draws)
        starts = draws.starts
        self.pool.begin(draws)
        sums, taken = self.pool.take_sums(draws.agent, arms, np.broadcast_to(times, arms.shape), starts)
        if taken.any():
            self._note_pooled(draws.agent, int(taken.sum()))
        left = times - taken
        if left.any():
            new = left > 0
            draws.starts = None if starts is None else (starts + taken)[new]
            sums[new] += self._pull_sums(source, arms[new], left[new], draws)
        draws.squares = None  # unknown for a part of an earlier batch
        return sums

    def _pull_sums(self, source: Arms, arms: Ints, times: Ints, draws: Draws) -> Reals:
        if self.is_idle:
            return source.pull(arms, times, draws)
        logged = self._sums.get((draws.agent, draws.pulls_made))
        if not self._is_paid_for(arms, times):
            raise AgentHalted
        if logged is None:
            sums = source.pull(arms, times, draws)
            if self._sink is not None:
                record = Sums.pack(draws.agent, draws.pulls_made, arms, times, sums, draws.bulk, draws.squares)
                record.check_range(bounded=source.unit.bounded)
                self._sink.note_time()
                self._sink.append(record)
        else:
            sums = logged_sums(logged, source, arms, times, draws)
        pulls = int(np.broadcast_to(times, arms.shape).sum())
        if self._tally is not None:
            with self._buffers_lock:
                self._tally.add_sums(draws.agent, arms, times, sums, pulls, draws.squares)
        self.publish(PullsMade(draws.agent, pulls, recalled=logged is not None))
        if self._scorer is not None:
            times = np.broadcast_to(times, arms.shape)
            self.publish(self._scorer.scored_sums(draws.agent, arms, times, sums, recalled=logged is not None))
        return sums
