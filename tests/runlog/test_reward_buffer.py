"""Rewards on their way to the log and to listeners: from any thread and in any order."""

from __future__ import annotations

import threading

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collabtop.arms.base import Drawn
from collabtop.arms.calls import PullAttempt
from collabtop.runlog.format import Record, SingleReward
from collabtop.runlog.recorder import RewardRecorder
from collabtop.runlog.reward_buffer import RewardBuffer
from collabtop.runlog.tally import Tally


def attempt(number: int, times: int = 1, arm: int = 0) -> PullAttempt:
    return PullAttempt(arm, times, seed=0, agent=0, number=number, replicate=number)


def taken(*parts):
    buffer = RewardBuffer()
    for made, given_reward in parts:
        buffer.parts.append((made, given_reward, 0.25))
    pulls = buffer.take()
    assert pulls is not None
    assert buffer.take() is None
    return pulls


@given(numbers=st.lists(st.integers(0, 30), unique=True, min_size=1), plain=st.lists(st.booleans(), min_size=31))
def test_rewards_in_any_order_are_added_up(numbers, plain):
    pulls = taken(
        *(
            (attempt(number, arm=number % 3), 0.5 if plain[number] else Drawn(np.array([0.5]), seconds=0.25))
            for number in numbers
        )
    )
    tally = Tally(3, 1)
    pulls.add_to(tally, 0, "raise")
    assert pulls.pulls == len(numbers)
    assert tally.pulls.tolist() == [sum(number % 3 == arm for number in numbers) for arm in range(3)]
    only_plain = [number for number in numbers if plain[number]]
    assert pulls.plain_calls() == (only_plain, 0.25 * len(only_plain))


class SlowSink:
    """Takes a record only when it is allowed to."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.writing, self.allowed = threading.Event(), threading.Event()

    def append(self, record: Record, *, sync: bool = False) -> None:
        self.writing.set()
        self.allowed.wait()
        self.records.append(record)

    def note_time(self) -> None:
        """The time does not matter here."""

    def note_status(self, agents, state) -> None:
        """Neither does the state of an agent."""


def test_pulls_are_written_when_they_are_kept_and_events_do_not_delay_them():
    sink, events = SlowSink(), []
    recorder = RewardRecorder(sink, events.append, failure_mode="raise")
    writer = threading.Thread(target=recorder.keep_reward, args=(attempt(0), 0.5, 1.0))
    writer.start()
    sink.writing.wait()
    assert (sink.records, events) == ([], [])
    sink.allowed.set()
    writer.join()
    for number in range(1, 20):
        recorder.keep_reward(attempt(number), 0.5, 0.001)
        assert sink.records[-1] == SingleReward(0, number, 0, 0.5, 0.001)
    recorder.flush(0)
    assert sum(event.pulls for event in events) == len(sink.records) == 20
