"""Reading a log as it grows: cut into pieces anywhere, it tells the same as read at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.runlog.file import RunLog, read_log
from collabtop.runlog.format import Finished
from collabtop.watch.follow import LogFollower
from collabtop.watch.log_state import Tally


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The log of a small run, as bytes and as records."""
    path = tmp_path_factory.mktemp("log") / "run.ctlog"
    ct.identify([0.2, 0.5, 0.8], 1, pull=lambda mean, rng: mean, agents=2, horizon=20, seed=1, checkpoint=path)
    return path.read_bytes(), read_log(path)


@given(data=st.data())
def test_a_log_written_in_pieces_cut_anywhere_is_read_whole(log, tmp_path_factory, data):
    whole, records = log
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    path = tmp_path_factory.mktemp("pieces") / "run.ctlog"
    follower, got = LogFollower(path), []
    for start, stop in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        with path.open("ab") as file:
            file.write(whole[start:stop])
        got += follower.read()
    assert got == records
    assert not follower.began_again


@pytest.mark.parametrize("most", [1, 7, 100])
def test_a_record_larger_than_a_piece_is_read_too(log, tmp_path, most):
    path = tmp_path / "run.ctlog"
    path.write_bytes(log[0])
    follower, got = LogFollower(path, most=most), []
    while records := follower.read():
        got += records
    assert got == log[1]


def test_a_log_that_is_not_there_yet_is_waited_for(tmp_path):
    follower = LogFollower(tmp_path / "later.ctlog")
    assert follower.read() == []
    written = RunLog(tmp_path / "later.ctlog")
    written.append(Finished([1]))
    written.close()
    assert follower.read() == [Finished([1])]


def test_another_log_under_the_same_name_is_read_from_its_beginning(log, tmp_path):
    path = tmp_path / "run.ctlog"
    path.write_bytes(log[0])
    follower = LogFollower(path)
    follower.read()
    path.unlink()
    path.write_bytes(log[0][:-100])
    again = follower.read()
    assert follower.began_again
    assert again == log[1][: len(again)] != []


def test_what_is_no_log_is_refused(tmp_path):
    path = tmp_path / "run.ctlog"
    path.write_text("a diary")
    with pytest.raises(ct.FileError, match="is not a collabtop log"):
        LogFollower(path).read()


@pytest.mark.parametrize("team", ["local", "threads"])
def test_the_log_alone_tells_pulls_means_and_words(tmp_path, team):
    path = tmp_path / "run.ctlog"
    asked = {"agents": 3, "horizon": 60, "seed": 2, "team": team, "checkpoint": path}
    result = ct.identify([0.2, 0.5, 0.8], 1, pull=lambda mean, rng: rng.random() < mean, **asked)
    tally = Tally()
    for record in read_log(path):
        tally.take(record)
    assert tally.seen_pulls.tolist() == result.observed.pulls.tolist()
    assert tally.means.tolist() == pytest.approx(result.observed.means.tolist())
    assert (tally.words, tally.bits, tally.round_trips) == (result.words, result.bits, result.round_trips)
    assert {kind: it.words for (kind, way), it in tally.spoken.items() if way == "up"} == {
        kind: words for kind, words in result.ledger.words_by("kind").items() if kind in ("Means", "Hand")
    }
    assert tally.top == result.top_indices
    assert tally.last >= tally.began > 1.7e9
