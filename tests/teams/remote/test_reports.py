"""What hosts report reaches the run's tape once, however often agents are rebuilt and tell it again."""

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


def make_reports(*, repeatable=False, known=()):
    kept, told = [], []
    sink = type("Sink", (), {"append": staticmethod(kept.append)})()
    recorder = RewardRecorder(sink, told.append, known, "zero")
    return ReportSink(recorder, 1, repeatable=repeatable), recorder, kept, told


@given(lives=st.lists(st.integers(1, 40), min_size=1, max_size=5), step=st.integers(1, 7))
def test_each_pull_is_told_once_over_any_number_of_lives(lives, step):
    reports, _, _, told = make_reports()
    for pulls in lives:
        reports.begin_life(0)
        for start in range(0, pulls, step):
            reports.take([PullsMade(0, min(step, pulls - start), recalled=False)])
    assert sum(it.pulls for it in told) == max(lives)


def test_rewards_are_kept_in_order_and_those_of_a_function_for_the_next_life():
    reports, recorder, kept, _ = make_reports()
    parts = [rewards(0, [1.0, np.nan]), rewards(2, [0.5])]
    reports.take(parts)
    assert kept == reports.records[0] == parts
    assert recorder.failed == {2: 1}
    with pytest.raises(ProtocolError, match="pulls 3 to 4 of agent 0 were not reported"):
        reports.take([rewards(5, [1.0])])


def test_simulated_rewards_that_are_drawn_again_are_kept_once():
    reports, _, kept, _ = make_reports(repeatable=True)
    reports.take([rewards(0, [1.0, 0.0])])
    reports.begin_life(0)
    reports.take([rewards(0, [1.0, 0.0]), rewards(2, [1.0])])
    assert [it.first for it in kept] == [0, 2]
    assert reports.records == [[]]


def test_what_a_checkpoint_holds_is_given_to_the_agents_and_not_written_again():
    known = [rewards(0, [np.nan, 1.0])]
    reports, recorder, kept, _ = make_reports(known=known)
    assert reports.records == [known]
    assert recorder.failed == {2: 1}
    reports.take([rewards(2, [1.0])])
    assert [it.first for it in kept] == [2]


def test_a_reporter_gives_each_item_once_and_failures_even_if_nobody_watches():
    reporter = ReportBuffer(ReportOptions(rewards=True, events=False))
    failed = PullFailed(0, "a", 0, "raised", again=True)
    reporter.append(rewards(0, [1.0]))
    reporter.hear(PullsMade(0, 1, recalled=False))
    reporter.hear(failed)
    assert reporter.drain() == (1, [rewards(0, [1.0]), failed])
    assert reporter.drain() == (2, [])
