"""Keeps what agents draw as they draw it, and gives back what an earlier process drew."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Sequence
from time import monotonic
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from collabtop.arms import Arms, Draws
from collabtop.arms.base import Ints, Reals
from collabtop.arms.calls import Try
from collabtop.arms.function import CalledArms
from collabtop.errors import FileError
from collabtop.events import Event, OnEvent, PullFailed, PullsMade
from collabtop.runlog.format import Record, Rewards, Sums

_SECONDS, _PULLS = 0.01, 4096
"""How long, and how many, rewards may wait for the next record: slow pulls are written one by one."""

_NOTHING = np.empty(0)


class RecordSink(Protocol):
    """Where records are put: a log on disk, or what a host sends to the coordinator."""

    def append(self, record: Record) -> None:
        """Put a record beside the others."""

    def note_time(self) -> None:
        """Keep what the clock says, for those who watch."""


class RewardRecorder:
    """Rewards by agent and pull number: those of a checkpoint, those being drawn, and the pulls that failed."""

    def __init__(
        self, log: RecordSink | None, on_event: OnEvent | None, known: Sequence[Record] = (), failures: str = ""
    ) -> None:
        before = failures_in(known)
        if before is not None and before != failures:
            raise FileError(
                f"the checkpoint holds failed pulls that were treated as failures={before!r} says, so {failures!r} "
                "cannot go on with it"
            )
        self._log, self._on_event, self._failures = log, on_event, failures
        self._records = known
        self._lock = threading.Lock()
        self._known = _rewards_by_agent(known)
        self._known_sums = {(it.agent, it.first): it for it in known if isinstance(it, Sums)}
        self._waiting: dict[int, _Waiting] = {}
        self._written: dict[int, float] = {}  # when an agent's rewards were last written
        self.failed: Counter[int] = Counter()
        """Pulls of each arm that failed for good, those of the checkpoint included."""
        self.retries = 0
        """Attempts that were made again in this process."""

    @property
    def known_pulls(self) -> int:
        """Pulls that the checkpoint holds."""
        sums = sum(pulls_in(it) for it in self._known_sums.values())
        return sum(len(rewards) for _, rewards in self._known.values()) + sums

    def tell(self, event: Event) -> None:
        """Pass an event on: from one thread at a time."""
        if self._on_event is not None:
            with self._lock:
                self._on_event(event)

    # -- rewards drawn by agents elsewhere, who have tapes of their own

    @property
    def is_kept(self) -> bool:
        """Whether what is drawn has to be written down."""
        return self._log is not None

    @property
    def is_watched(self) -> bool:
        """Whether somebody wants to hear of it."""
        return self._on_event is not None

    def known_by_agent(self) -> dict[int, list[Rewards | Sums]]:
        """What the checkpoint holds of each agent, for the agents to recall; failed pulls in it are counted here."""
        by_agent: dict[int, list[Rewards | Sums]] = {}
        for record in self._records:
            if isinstance(record, Rewards | Sums):
                by_agent.setdefault(record.agent, []).append(record)
        for arms, rewards in self._known.values():
            self.failed.update(arms[np.isnan(rewards)].tolist())
        return by_agent

    def take_in(self, record: Rewards | Sums) -> None:
        """Keep what an agent elsewhere drew."""
        if isinstance(record, Rewards):
            arms, rewards = _joined_part(record)
            self.failed.update(arms[np.isnan(rewards)].tolist())
        if self._log is not None:
            self._log.append(record)

    def hear_of_failure(self, event: PullFailed) -> None:
        """Count an attempt that failed elsewhere."""
        self.retries += event.again
        self.tell(event)

    # -- rewards one by one

    def recall(self, one: Try, most: int) -> Reals:
        """The rewards that the checkpoint holds from this pull on."""
        arms, rewards = self._known.get(one.agent, (_NOTHING, _NOTHING))
        span = slice(one.number, one.number + most)
        if not len(rewards[span]):
            return _NOTHING
        if (arms[span] != one.arm).any():
            raise FileError(
                f"the checkpoint does not fit: agent {one.agent}'s pull {one.number} is of another candidate there"
            )
        self._count_failed(one.arm, rewards[span])
        self.tell(PullsMade(one.agent, len(rewards[span]), recalled=True))
        return rewards[span]

    def keep(self, one: Try, rewards: Reals) -> None:
        """Take in rewards just drawn; they are written after a moment, or when there are many."""
        self._count_failed(one.arm, rewards)
        waiting = self._waiting.get(one.agent)
        if waiting is None:
            waiting = self._waiting[one.agent] = _Waiting(one.number)
        waiting.add(one.arm, rewards)
        if waiting.pulls >= _PULLS or monotonic() - self._written.get(one.agent, 0.0) >= _SECONDS:
            self.flush(one.agent)

    def flush(self, agent: int) -> None:
        """Write what an agent drew and was not written yet."""
        waiting = self._waiting.pop(agent, None)
        if waiting is None:
            return
        if self._log is not None:
            self._log.note_time()
            self._log.append(waiting.record(agent, self._failures))
        self._written[agent] = monotonic()
        self.tell(PullsMade(agent, waiting.pulls, recalled=False))

    def note_failure(self, one: Try, label: str, said: str, *, again: bool) -> None:
        """Count a failed attempt."""
        if again:
            with self._lock:
                self.retries += 1
        self.tell(PullFailed(one.agent, label, one.attempt, said, again))

    def _count_failed(self, arm: int, rewards: Reals) -> None:
        # The sum is quicker than looking at each, and most often none is NaN.
        if math.isnan(rewards[0] if len(rewards) == 1 else rewards.sum()):
            failed = int(np.count_nonzero(np.isnan(rewards)))
            with self._lock:
                self.failed[arm] += failed

    # -- sums

    def sums(self, source: Arms, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Pull arms that give sums, or take the sums from the checkpoint."""
        asked = _bytes(arms), _bytes(np.broadcast_to(times, arms.shape))
        known = self._known_sums.get((draws.agent, draws.made))
        if known is not None and (known.arms, known.times) != asked:
            raise FileError(f"the checkpoint does not fit: agent {draws.agent} pulled other candidates there")
        if known is not None and not source.repeatable:
            sums = np.frombuffer(known.sums, "<f8").astype(np.float64)
            _restore(draws.bulk, known.state)
        else:
            sums = source.pull(arms, times, draws)
            if known is not None and known.sums != sums.astype("<f8").tobytes():
                raise FileError("the checkpoint does not fit: the arms give other rewards than they did")
            if known is None and self._log is not None:
                body = sums.astype("<f8").tobytes()
                self._log.note_time()
                self._log.append(Sums(draws.agent, draws.made, *asked, body, _state(draws.bulk)))
        count = int(np.broadcast_to(times, arms.shape).sum())
        self.tell(PullsMade(draws.agent, count, recalled=known is not None))
        return sums


class _Waiting:
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

    def record(self, agent: int, failures: str) -> Rewards:
        counts = np.array([len(rewards) for rewards in self._rewards])
        rewards = np.concatenate(self._rewards)
        failed = failures if np.isnan(rewards.sum()) else ""
        arms = _bytes(np.array(self._arms))
        return Rewards(agent, self._first, arms, _bytes(counts), rewards.astype("<f8").tobytes(), failed)


class RecordedArms(Arms):
    """Arms whose every pull goes onto a tape, and comes from there where it is known."""

    def __init__(self, arms: Arms, tape: RewardRecorder) -> None:
        super().__init__(arms.n, labels=arms.labels, agents=arms.agents)
        self.source, self.tape = arms, tape

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Pull, with the tape running."""
        if isinstance(self.source, CalledArms):
            return self.source.pull_and_record(arms, times, draws, self.tape)
        return self.tape.sums(self.source, arms, times, draws)


def failures_in(records: Sequence[Record]) -> str | None:
    """What became of the failed pulls in a log, or None where there are none."""
    return next((it.failures for it in records if isinstance(it, Rewards) and it.failures), None)


def _rewards_by_agent(records: Sequence[Record]) -> dict[int, tuple[Ints, Reals]]:
    by_agent: dict[int, list[Rewards]] = {}
    for record in records:
        if isinstance(record, Rewards):
            by_agent.setdefault(record.agent, []).append(record)
    return {agent: _joined(agent, some) for agent, some in by_agent.items()}


def _joined_part(record: Rewards) -> tuple[Ints, Reals]:
    return np.repeat(_ints(record.arms), _ints(record.counts)), np.frombuffer(record.rewards, "<f8")


def _joined(agent: int, records: list[Rewards]) -> tuple[Ints, Reals]:
    parts = [_joined_part(it) for it in records]
    arms, rewards = np.concatenate([arms for arms, _ in parts]), np.concatenate([rewards for _, rewards in parts])
    next_one = 0
    for it in records:
        if it.first != next_one:
            raise FileError(f"the checkpoint is damaged: agent {agent}'s pull {next_one} is missing")
        next_one += len(it.rewards) // 8
    return arms, rewards.astype(np.float64)


def pulls_in(record: Rewards | Sums) -> int:
    """How many pulls a record is of."""
    return len(record.rewards) // 8 if isinstance(record, Rewards) else int(_ints(record.times).sum())


def _bytes(numbers: NDArray[np.int64]) -> bytes:
    return numbers.astype("<i4").tobytes()


def _ints(data: bytes) -> Ints:
    return np.frombuffer(data, "<i4").astype(np.int64)


def _state(rng: np.random.Generator) -> bytes:
    it = rng.bit_generator.state
    whole = it["state"]["state"].to_bytes(16, "little") + it["state"]["inc"].to_bytes(16, "little")
    return bytes(whole) + int(it["has_uint32"]).to_bytes(1, "little") + int(it["uinteger"]).to_bytes(4, "little")


def _restore(rng: np.random.Generator, state: bytes) -> None:
    rng.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": int.from_bytes(state[:16], "little"), "inc": int.from_bytes(state[16:32], "little")},
        "has_uint32": state[32],
        "uinteger": int.from_bytes(state[33:37], "little"),
    }
