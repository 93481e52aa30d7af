"""One file in the folder, whatever it holds, does not keep the page from showing the other runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

import collabtop as ct
from collabtop.runlog.format import FRAME, MAGIC, Header
from collabtop.runs import replay
from collabtop.watch import log_follower, watched_runs
from collabtop.watch.baselines import baseline_of
from collabtop.watch.log_follower import LogFollower
from collabtop.watch.watched_runs import Runs
from tests.support import malformed_logs as malformed
from tests.support.page_requests import get_json


@pytest.fixture
def folder(tmp_path):
    """A folder with a good run and everything that may stop a reader."""
    records = malformed.plain_records(malformed.real_log(tmp_path / "good.ctlog"))
    sums = malformed.plain_records(malformed.sums_log(tmp_path / "sums.ctlog"))
    for number, (_, wrong) in enumerate(malformed.hostile(records, sums)):
        malformed.write_plain(tmp_path / f"hostile-{number:02}.ctlog", wrong)
    large = {"n": 10_000_000, "labels": None, "candidates": None}
    malformed.write_plain(tmp_path / "large.ctlog", malformed.changed(records[:1], "Header", **large))
    sparse_record(tmp_path / "sparse.ctlog", 1 << 30)
    os.mkfifo(tmp_path / "pipe.ctlog")
    (tmp_path / "zero.ctlog").symlink_to("/dev/zero")
    (tmp_path / "folder.ctlog").mkdir()
    return tmp_path


def sparse_record(path, size):
    """A log whose only record states this size, and consists of a hole in the file."""
    frame = FRAME.pack(size, zlib.crc32(size.to_bytes(4, "little")), 0)
    path.write_bytes(MAGIC + frame)
    os.truncate(path, len(MAGIC) + len(frame) + size)


def peak_bytes(process):
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[1]) << 10


def test_the_good_runs_are_shown_with_little_memory_and_the_others_as_unreadable(folder):
    command = [sys.executable, "-m", "collabtop", "watch", str(folder), "--port", "0", "--no-open"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        url = next(word for word in process.stderr.readline().split() if word.startswith("http://127.0.0.1:"))
        before = peak_bytes(process.pid)
        rows = {row["name"]: row for row in get_json(url + "api/runs")}
        assert rows.keys() == {path.name for path in folder.iterdir()}
        for name in ("good.ctlog", "sums.ctlog"):
            assert rows[name]["status"] == "finished"
            assert get_json(f"{url}api/runs/{name}")["answer"]["top"]
        for name in rows.keys() - {"good.ctlog", "sums.ctlog"}:
            view = get_json(f"{url}api/runs/{name}")
            assert view["status"]["error"] or view.get("progress") is not None, name
        assert "not a regular file" in rows["pipe.ctlog"]["error"]
        assert "not a regular file" in rows["zero.ctlog"]["error"]
        assert "has a record of 1,073,741,836 bytes" in rows["sparse.ctlog"]["error"]
        assert "the page shows runs with at most 100,000" in rows["large.ctlog"]["error"]
        assert peak_bytes(process.pid) - before < 150 << 20
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_a_record_of_the_stated_size_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(log_follower, "LARGEST_RECORD_SHOWN", 20_000)
    records = malformed.plain_records(malformed.real_log(tmp_path / "run.ctlog"))
    for size, is_read in ((15_000, True), (25_000, False)):
        path = malformed.write_plain(tmp_path / "run.ctlog", malformed.changed(records, "Header", why="x" * size))
        follower = LogFollower(path, max_bytes=1000)
        if is_read:
            header = follower.read()[0]
            assert isinstance(header, Header)
            assert header.why == "x" * size
        else:
            with pytest.raises(ct.FileError, match=r"has a record of 25,\d+ bytes, but the page reads at most 20,000"):
                follower.read()


def test_a_run_of_the_stated_size_is_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(watched_runs, "MAX_ARMS_SHOWN", 3)
    monkeypatch.setattr(watched_runs, "MAX_AGENTS_SHOWN", 2)
    path = malformed.real_log(tmp_path / "run.ctlog")

    def status():
        run = Runs([path]).all()[0]
        run.update(replay=False)
        return run.error or run.status

    assert status() == "finished"
    monkeypatch.setattr(watched_runs, "MAX_ARMS_SHOWN", 2)
    assert status() == "the run has 3 candidates, but the page shows runs with at most 2"
    monkeypatch.setattr(watched_runs, "MAX_ARMS_SHOWN", 3)
    monkeypatch.setattr(watched_runs, "MAX_AGENTS_SHOWN", 1)
    assert status() == "the run has 2 agents, but the page shows runs with at most 1"


def test_of_a_run_with_weights_few_rewards_of_agents_are_added_up(tmp_path, monkeypatch):
    arms = ct.HeterogeneousArms([[0.1, 0.2], [0.9, 0.8]], weights=[1, 2])
    ct.identify(arms, 1, horizon=50, checkpoint=tmp_path / "run.ctlog")
    [run] = Runs([tmp_path]).all()
    run.update(replay=True)
    assert run.error is None
    monkeypatch.setattr(watched_runs, "MAX_WEIGHTED_SHOWN", 3)
    [run] = Runs([tmp_path]).all()
    run.update(replay=True)
    assert run.error == "the run has 4 candidates times agents with weights, but the page shows runs with at most 3"


def test_a_run_that_is_too_large_for_a_replay_is_shown_without_rounds(tmp_path, monkeypatch):
    path = malformed.real_log(tmp_path / "run.ctlog")
    for most, replayed in ((6, True), (5, False)):
        monkeypatch.setattr(replay, "MAX_REPLAYED", most)
        run = Runs([path]).all()[0]
        run.update(replay=True)
        assert run.status == "finished"
        assert (run.replay_error is None) is replayed
        assert (baseline_of(run.header).error is None) is replayed


def test_an_algorithm_that_computes_for_too_long_does_not_stop_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(replay, "SECONDS_OF_REPLAY", 0.2)
    never_asks = SimpleNamespace(solve=lambda coordinator, setup: time.sleep(2))
    monkeypatch.setattr(replay, "make_algorithm", lambda name, **options: never_asks)
    run = Runs([malformed.real_log(tmp_path / "run.ctlog")]).all()[0]
    run.update(replay=True)
    assert run.replay_error == "kzz computes for more than 0.2 s between two exchanges"
    assert run.status == "finished"


def test_of_too_many_runs_those_that_changed_last_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(watched_runs, "MAX_RUNS_SHOWN", 2)
    for name, changed in (("a", 3), ("b", 1), ("c", 2)):
        (tmp_path / f"{name}.ctlog").touch()
        os.utime(tmp_path / f"{name}.ctlog", (changed, changed))
    assert [run.name for run in Runs([tmp_path]).all()] == ["a.ctlog", "c.ctlog"]
