"""Single rewards in a log become rows of consecutive pulls for its readers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collabtop.runlog.file import RunLog, read_log
from collabtop.runlog.format import FailedAttempt, Rewards, SingleReward
from collabtop.runlog.gathering import gathered

PULLS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), unique=True)


def single(agent: int, number: int) -> SingleReward:
    return SingleReward(agent, number, arm=number % 3, reward=number / 32, seconds=0.25)


@given(pulls=PULLS)
def test_pulls_in_any_order_become_rows_of_consecutive_ones(pulls):
    rows = list(gathered(single(*pull) for pull in pulls))
    unpacked = {}
    for row in rows:
        assert isinstance(row, Rewards)
        for offset, (arm, reward) in enumerate(zip(*row.unpack(), strict=True)):
            unpacked[row.agent, row.first + offset] = (arm, reward)
    assert unpacked == {(agent, number): (number % 3, number / 32) for agent, number in pulls}
    beginnings = sorted((agent, number) for agent, number in pulls if (agent, number - 1) not in pulls)
    assert [(row.agent, row.first) for row in rows] == beginnings
    assert sum(row.seconds for row in rows) == 0.25 * len(pulls)


def test_nothing_is_moved_past_a_record_of_a_different_kind():
    failed = FailedAttempt(0, 1, "a", 0, "raised", again=True)
    items: list[FailedAttempt | SingleReward] = [single(0, 0), failed, single(0, 1)]
    before, kept, after = gathered(items)
    assert isinstance(before, Rewards)
    assert isinstance(after, Rewards)
    assert kept is failed
    assert (before.first, before.pulls, after.first, after.pulls) == (0, 1, 1, 1)


def test_a_log_gives_rows_and_a_pull_that_it_holds_twice_stays_visible(tmp_path):
    log = RunLog(tmp_path / "run.ctlog")
    for number in (2, 0, 1, 1):
        log.append(single(0, number))
    log.close()
    rows = [record for record in read_log(tmp_path / "run.ctlog") if isinstance(record, Rewards)]
    assert [(row.first, row.pulls) for row in rows] == [(0, 2), (1, 2)]
