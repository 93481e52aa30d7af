"""Rewards reach the disk within a second, and a log is usable whatever a power cut leaves of its end."""

from __future__ import annotations

import random
import threading
import time

import msgspec
import numpy as np
import pytest

import collabtop as ct
from collabtop.arms.base import Drawn
from collabtop.events import PullsMade
from collabtop.protocol.setup import Setup
from collabtop.runlog import file as log_file
from collabtop.runlog.file import RunLog, open_log, read_log
from collabtop.runlog.format import Exchange, Finished, JournalHeader, Rewards, StudyHeader, StudyRows, Timestamp
from tests.support.power_cuts import PageCache, after_power_cut
from tests.support.resumable import MEANS, Counted, identify


class Hangs:
    """A function whose calls take a millisecond, except that one takes long, while the test looks at the log."""

    def __init__(self, at):
        self.at, self.calls, self.hangs, self.go_on = at, 0, threading.Event(), threading.Event()

    def __call__(self, mean, rng):
        self.calls += 1
        time.sleep(0.001)
        if self.calls == self.at:
            self.hangs.set()
            assert self.go_on.wait(30)
        return rng.random() < mean


def test_rewards_are_written_and_synced_though_the_next_pull_takes_long(tmp_path, monkeypatch):
    cache, path, pull = PageCache(monkeypatch), tmp_path / "run.ctlog", Hangs(at=35)
    thread = threading.Thread(target=identify, args=(pull, path), kwargs={"algorithm": "uniform"})
    thread.start()
    try:
        assert pull.hangs.wait(30)
        time.sleep(1.0)
        assert sum(record.pulls for record in read_log(path) if isinstance(record, Rewards)) == 34
        assert cache.syncs[-1].size == path.stat().st_size
    finally:
        pull.go_on.set()
        thread.join()


@pytest.mark.slow
def test_nothing_is_at_risk_for_more_than_a_second(tmp_path, monkeypatch):
    cache = PageCache(monkeypatch)
    identify(Counted(tmp_path / "calls", seconds=0.02), tmp_path / "run.ctlog", agents=3, horizon=40)
    assert len(cache.syncs) < 12, "an fsync for every reward or exchange would be slow"
    assert cache.writes[-1].at - cache.writes[0].at > 2
    assert cache.longest_risk() < 1.0


@pytest.mark.slow
def test_sums_of_simulated_arms_are_synced_within_a_second(tmp_path, monkeypatch):
    class Slow(ct.BernoulliArms):
        def pull(self, arms, times, draws):
            time.sleep(0.15)
            return super().pull(arms, times, draws)

    cache = PageCache(monkeypatch)
    ct.identify(Slow(MEANS), 2, agents=8, horizon=400, algorithm="kzz", seed=1, checkpoint=tmp_path / "run.ctlog")
    assert cache.writes[-1].at - cache.writes[0].at > 1.5
    assert cache.longest_risk() < 1.0


def test_what_a_killed_process_did_not_sync_is_synced_when_the_log_is_opened_again(tmp_path, monkeypatch):
    path = tmp_path / "run.ctlog"
    identify(Counted(tmp_path / "calls"), path)
    path.write_bytes(path.read_bytes())
    cache = PageCache(monkeypatch)
    log = RunLog(path)
    assert cache.syncs[-1].size == path.stat().st_size
    log.close()


@pytest.mark.parametrize("state", ["here", "lost"])
def test_who_is_connected_or_lost_is_on_disk_before_it_is_announced(tmp_path, monkeypatch, state):
    cache, log = PageCache(monkeypatch), RunLog(tmp_path / "run.ctlog")
    log.note_status([1], state)
    assert cache.syncs[-1].size == log.path.stat().st_size
    log.close()


def test_an_fsync_that_fails_in_the_background_ends_the_run_at_the_next_write(tmp_path, monkeypatch):
    log = RunLog(tmp_path / "run.ctlog")

    def fails(file):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(log_file, "sync_file", fails)
    log.append(Timestamp(1.0))
    time.sleep(1)
    with pytest.raises(ct.CheckpointError, match="input/output error; fix this and call resume"):
        log.append(Timestamp(2.0))
    monkeypatch.undo()
    with pytest.raises(ct.CheckpointError, match="input/output error"):  # though it would work now
        log.sync()
    log.close()


def test_events_come_from_the_threads_of_the_run_though_rewards_are_written_in_the_background(tmp_path):
    threads, pulls = set(), []

    def note(event):
        threads.add(threading.current_thread())
        pulls.append(event.pulls if isinstance(event, PullsMade) else 0)

    result = identify(Counted(tmp_path / "calls", seconds=0.004), tmp_path / "run.ctlog", on_event=note)
    assert threads == {threading.main_thread()}
    assert sum(pulls) == result.pulls


def written(path, rng, *, records=60):
    """Write a log like that of a run, with marks; return its bytes, its records, and the sizes at every fsync."""
    setup = msgspec.msgpack.encode(Setup(ct.Problem(n=2, m=1, agents=1, horizon=10_000), seed=1))
    log = open_log(path, JournalHeader("a run", setup, (0,), "", 2), lambda record: None)
    sizes = [path.stat().st_size]
    number = 0
    while number < records:
        kind = rng.random()
        if kind < 0.07:
            log.sync()
            sizes.append(path.stat().st_size)
        elif kind < 0.3:
            log._next_timestamp = 0.0  # at once, instead of after a second
            log.note_time()
        elif kind < 0.4:
            log.append(Exchange(number, [rng.randbytes(rng.randrange(900))], [(0, [0])], []))
        else:
            pulls = rng.randrange(1, 60)
            rewards = np.array([rng.random() for _ in range(pulls)])
            arms, counts = np.zeros(pulls, np.int64), np.ones(pulls, np.int64)
            log.append(Rewards.pack(0, number, arms, counts, Drawn(rewards), ""))
        number += 1
    data = path.read_bytes()
    log.close()
    return data, [*sizes, len(data)]


def test_whatever_a_power_cut_leaves_everything_synced_is_read_and_the_log_continues(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(log_file, "_SECONDS_UNTIL_SYNC", 1_000.0)  # only the test syncs, even on a busy machine
    rng = random.Random(4)
    holes = 0
    for trial in range(150):
        path = tmp_path / f"{trial}.ctlog"
        if trial % 10 == 0:
            data, sizes = written(tmp_path / f"whole{trial}", rng)
        last_sync = rng.randrange(len(sizes) - 1)
        image = after_power_cut(data[: sizes[last_sync + 1]], sizes[last_sync], rng)
        path.write_bytes(data[: sizes[last_sync]])
        synced = read_log(path)
        path.write_bytes(image)
        records = read_log(path)
        assert records[: len(synced)] == synced
        log = RunLog(path)
        log.append(Finished([trial % 2]))
        log.close()
        assert read_log(path) == [*records, Finished([trial % 2])]
        holes += "complete records" in caplog.text
        caplog.clear()
    assert holes > 10  # a page was lost before one that was not


def test_a_torn_record_before_a_tail_of_zeros_is_dropped_and_reported(tmp_path, caplog):
    path = tmp_path / "run.ctlog"
    expected = identify(Counted(tmp_path / "calls"), path)
    data = path.read_bytes()
    for cut in range(len(data) - 200, len(data) - 20, 7):
        path.write_bytes(data[:cut] + bytes(4096 - cut % 4096))
        assert identify(Counted(tmp_path / f"calls{cut}"), path) == expected
        assert "ended in a torn record, as after a power cut: dropped the last" in caplog.text
        caplog.clear()


def test_a_new_log_that_a_power_cut_left_full_of_zeros_is_started_again(tmp_path):
    for contents in (bytes(10), bytes(8000), b"collabtop log" + bytes(90)):
        path = tmp_path / "run.ctlog"
        path.write_bytes(contents)
        log = RunLog(path)
        log.append(Finished([1]))
        log.close()
        assert read_log(path) == [Finished([1])]
    image = tmp_path / "disk.img"
    image.write_bytes(bytes(1 << 21))
    with pytest.raises(ct.FileError, match="is not a collabtop log"):
        RunLog(image)
    assert image.read_bytes() == bytes(1 << 21)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "killed"])
def test_damage_of_what_was_on_disk_is_never_taken_for_a_torn_tail(tmp_path, closed):
    """After a clean end, that is everything. After a kill it is everything up to the last mark."""
    rng, path = random.Random(2), tmp_path / "run.ctlog"
    killed, _ = written(path, rng, records=200)
    data = path.read_bytes() if closed else killed
    path.write_bytes(data)
    first = len(b"collabtop log 2\n")
    last_mark = max(record.synced for record in read_log(path) if isinstance(record, Timestamp))
    assert last_mark > len(killed) / 2
    assert not closed or last_mark == len(killed)
    for position in rng.sample(range(first, last_mark), 200):
        path.write_bytes(data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :])
        with pytest.raises(ct.FileError, match=r"is damaged at byte [\d,]+, before [\d,]+ complete records: take it"):
            RunLog(path)
        assert path.read_bytes() != data, "it is left as it is"


def test_a_study_journal_loses_a_torn_end_and_is_refused_if_it_is_damaged(tmp_path, caplog):
    path = tmp_path / "journal"
    log = open_log(path, StudyHeader("mark"), lambda record: None)
    ends = []
    for number in range(5):
        log.append(StudyRows(f"point {number}", b"rows" * 300), sync=True)
        ends.append(path.stat().st_size)
    log.close()
    data = path.read_bytes()
    path.write_bytes(data[: ends[3] + 40] + bytes(len(data) - ends[3] - 40 + 3000))
    log = RunLog(path)
    assert len(log.records) == 5
    log.close()
    assert "dropped the last" in caplog.text
    path.write_bytes(data[: ends[1] + 40] + bytes(20) + data[ends[1] + 60 :])
    with pytest.raises(ct.FileError, match="before 2 complete records"):
        RunLog(path)
