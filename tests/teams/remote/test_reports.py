"""Reports of hosts reach the run's recorder once, even if agents are rebuilt and report again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabtop.errors import ProtocolError
from collabtop.events import PullFailed, PullsMade
from collabtop.runlog.format import Rewards
from collabtop.runlog.recorder import RewardRecorder
from collabtop.teams.remote.reports import ReportBuffer, ReportOptions, ReportSink


def rewards(first, values):
    count = np.array([len(values)], "<i4").tobytes()
    return Rewards(0, first, np.array([2], "<i4").tobytes(), count, np.array(values, "<f8").tobytes(), "zero")


def make_reports(*, repeatable=False, logged=()):
    records, events = [], []
    sink = type("Sink", (), {"append": staticmethod(records.append)})()
    recorder = RewardRecorder(sink, events.append, logged, "zero")
    return ReportSink(recorder, 1, repeatable=repeatable), recorder, records, events


@given(epochs=st.lists(st.integers(1, 40), min_size=1, max_size=5), step=st.integers(1, 7))
def test_each_pull_is_published_once_over_any_number_of_epochs(epochs, step):
    reports, _, _, events = make_reports()
    for pulls in epochs:
        reports.begin_epoch(0)
        for start in range(0, pulls, step):
            reports.take([PullsMade(0, min(step, pulls - start), recalled=False)])
    assert sum(event.pulls for event in events) == max(epochs)


def test_rewards_of_a_function_are_recorded_in_any_order_and_kept_for_the_next_epoch():
    reports, recorder, records, _ = make_reports()
    parts = [rewards(2, [0.5]), rewards(0, [1.0, np.nan])]
    reports.take(parts)
    assert records == reports.records[0] == parts
    assert recorder.failed == {2: 1}


def test_simulated_rewards_are_recorded_in_order():
    reports, _, records, _ = make_reports(repeatable=True)
    parts = [rewards(0, [1.0, 0.0]), rewards(2, [0.5])]
    reports.take(parts)
    assert records == parts
    with pytest.raises(ProtocolError, match="pulls 3 to 4 of agent 0 were not reported"):
        reports.take([rewards(5, [1.0])])


def test_simulated_rewards_that_are_drawn_again_are_recorded_once():
    reports, _, records, _ = make_reports(repeatable=True)
    reports.take([rewards(0, [1.0, 0.0])])
    reports.begin_epoch(0)
    reports.take([rewards(0, [1.0, 0.0]), rewards(2, [1.0])])
    assert [record.first for record in records] == [0, 2]
    assert reports.records == [[]]


def test_records_of_a_checkpoint_are_given_to_the_agents_and_not_written_again():
    logged = [rewards(0, [np.nan, 1.0])]
    reports, recorder, records, _ = make_reports(logged=logged)
    assert reports.records == [logged]
    assert recorder.failed == {2: 1}
    reports.take([rewards(2, [1.0])])
    assert [record.first for record in records] == [2]


def test_a_buffer_returns_each_item_once_and_failures_even_without_a_listener():
    buffer = ReportBuffer(ReportOptions(rewards=True, events=False))
    failed = PullFailed(0, "a", 0, "raised", again=True)
    buffer.append(rewards(0, [1.0]))
    buffer.add_event(PullsMade(0, 1, recalled=False))
    buffer.add_event(failed)
    assert buffer.drain() == (1, [rewards(0, [1.0]), failed])
    assert buffer.drain() == (2, [])
