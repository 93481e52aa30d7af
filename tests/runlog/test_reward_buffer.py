"""Rewards on their way to the log: from any thread and in any order, written as rows of consecutive pulls."""

from __future__ import annotations

import threading

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collabtop.arms.base import Drawn
from collabtop.arms.calls import PullAttempt
from collabtop.runlog.format import Record, Rewards
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
def test_rewards_in_any_order_become_rows_of_consecutive_pulls(numbers, plain):
    given_rewards = {number: number / 32 for number in numbers}
    parts = [
        (attempt(number, arm=number % 3), reward if plain[number] else Drawn(np.array([reward]), seconds=0.25))
        for number, reward in given_rewards.items()
    ]
    pulls = taken(*parts)
    records = list(pulls.records(agent=0, failure_mode="raise"))
    firsts = [record.first for record in records]
    assert firsts == sorted(number for number in numbers if number - 1 not in given_rewards)
    unpacked = {}
    for record in records:
        for offset, (arm, reward) in enumerate(zip(*record.unpack(), strict=True)):
            assert arm == (record.first + offset) % 3
            unpacked[record.first + offset] = reward
    assert unpacked == given_rewards
    assert pulls.pulls == len(numbers)
    assert sum(record.seconds for record in records) == 0.25 * len(numbers)
    tally = Tally(3, 1)
    pulls.add_to(tally, 0, "raise")
    assert tally.pulls.sum() == len(numbers)


def test_pulls_without_a_cost_beside_those_with_one_have_an_unknown_cost():
    with_cost = Drawn(np.array([1.0, 0.0, 1.0]), np.array([0.5, 0.25, 0.5]), ("a", None, None))
    pulls = taken((attempt(0, 3), with_cost), (attempt(3, 2), Drawn(np.array([0.5, 0.5]))), (attempt(5), 1.0))
    [record] = pulls.records(agent=0, failure_mode="raise")
    costs = record.unpack_costs()
    assert costs is not None
    np.testing.assert_array_equal(costs, [0.5, 0.25, 0.5, np.nan, np.nan, np.nan])
    assert record.notes == ((0, "a"),)
    assert record.unpack()[1].tolist() == [1, 0, 1, 0.5, 0.5, 1]


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


def test_pulls_continue_while_a_different_thread_writes_and_none_is_lost():
    sink = SlowSink()
    recorder = RewardRecorder(sink, failure_mode="raise")
    writer = threading.Thread(target=recorder.keep_reward, args=(attempt(0), 0.5, 1.0))
    writer.start()
    sink.writing.wait()
    for number in range(1, 20):  # they do not wait for the writer
        recorder.keep_reward(attempt(number), 0.5, 0.001)
    assert sink.records == []
    sink.allowed.set()
    writer.join()
    recorder.flush(0)
    recorder.close()
    written = [record for record in sink.records if isinstance(record, Rewards)]
    assert sum(record.pulls for record in written) == 20
