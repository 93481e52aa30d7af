"""Reading a log while it grows returns the same records as reading it at once, wherever it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.runlog.file import RunLog, read_log
from collabtop.runlog.format import Finished, Rewards
from collabtop.watch.log_follower import LogFollower


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The log of a small run, as bytes and as records."""
    path = tmp_path_factory.mktemp("log") / "run.ctlog"
    ct.identify([0.2, 0.5, 0.8], 1, pull=lambda mean, rng: mean, agents=2, horizon=20, seed=1, checkpoint=path)
    return path.read_bytes(), read_log(path)


def pull_by_pull(records):
    """Records with one entry per pull: a row of pulls ends where reading paused."""
    for record in records:
        if isinstance(record, Rewards):
            rows = enumerate(zip(*record.unpack(), strict=True), record.first)
            yield from ((record.agent, number, arm, reward) for number, (arm, reward) in rows)
        else:
            yield record


@given(data=st.data())
def test_a_log_written_in_arbitrary_pieces_is_read_completely(log, tmp_path_factory, data):
    content, records = log
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    path = tmp_path_factory.mktemp("pieces") / "run.ctlog"
    follower, result = LogFollower(path), []
    for start, stop in zip([0, *cuts], [*cuts, len(content)], strict=True):
        with path.open("ab") as file:
            file.write(content[start:stop])
        result += follower.read()
    assert list(pull_by_pull(result)) == list(pull_by_pull(records))
    assert not follower.restarted


@pytest.mark.parametrize("max_bytes", [1, 7, 100])
def test_a_record_larger_than_a_piece_is_read_too(log, tmp_path, max_bytes):
    path = tmp_path / "run.ctlog"
    path.write_bytes(log[0])
    follower, result = LogFollower(path, max_bytes=max_bytes), []
    while records := follower.read():
        result += records
    assert list(pull_by_pull(result)) == list(pull_by_pull(log[1]))


def test_a_log_that_does_not_exist_yet_has_no_records(tmp_path):
    follower = LogFollower(tmp_path / "later.ctlog")
    assert follower.read() == []
    written = RunLog(tmp_path / "later.ctlog")
    written.append(Finished([1]))
    written.close()
    assert follower.read() == [Finished([1])]


def test_a_different_log_at_the_same_path_is_read_from_its_beginning(log, tmp_path):
    path = tmp_path / "run.ctlog"
    path.write_bytes(log[0])
    follower = LogFollower(path)
    follower.read()
    path.unlink()
    path.write_bytes(log[0][:-100])
    records = follower.read()
    assert follower.restarted
    assert records == log[1][: len(records)] != []


def test_a_file_that_is_not_a_log_is_refused(tmp_path):
    path = tmp_path / "run.ctlog"
    path.write_text("a diary")
    with pytest.raises(ct.FileError, match="is not a collabtop log"):
        LogFollower(path).read()
