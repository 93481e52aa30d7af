"""One writer per log, across threads, handles and processes; readers neither take nor release its lock."""

from __future__ import annotations

import importlib
import multiprocessing
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import collabtop as ct
from collabtop.cli import app
from collabtop.runlog import locks
from collabtop.runlog.file import RunLog, read_log
from collabtop.runlog.format import Finished, Header, Rewards
from collabtop.runlog.locks import is_in_use
from tests.support.resumable import Counted, identify

ELSEWHERE = "import sys; from collabtop.runlog.file import RunLog; RunLog(sys.argv[1]).close()"


def opens_elsewhere(path):
    """Whether a different process can open a log for writing."""
    ended = subprocess.run([sys.executable, "-c", ELSEWHERE, path], capture_output=True, text=True, check=False)
    assert ended.returncode == 0 or "is in use by another process" in ended.stderr, ended.stderr
    return ended.returncode == 0


def emulated_msvcrt():
    """Windows' `msvcrt` on Linux: its locks also belong to a handle, and cover bytes from the handle's position on."""
    import fcntl
    import os

    def locking(descriptor, operation, length):
        writable = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        kind = fcntl.F_UNLCK if operation == 0 else fcntl.F_WRLCK if writable else fcntl.F_RDLCK
        position = os.lseek(descriptor, 0, os.SEEK_CUR)
        assert position > 1 << 32, "the contents of a locked range cannot be read"
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, locks._FLOCK.pack(kind, os.SEEK_SET, position, length, 0))

    def denied(*arguments):
        try:
            locking(*arguments)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error

    return SimpleNamespace(locking=denied, LK_NBLCK=2, LK_UNLCK=0)


@pytest.fixture(params=["linux", "other systems", "windows"])
def platform(request, monkeypatch):
    """The locks of each system; those of Windows are emulated, the others are real."""
    if request.param == "other systems":
        monkeypatch.setattr(locks, "_HAS_OFD_LOCKS", False)
    elif request.param == "windows":
        monkeypatch.setitem(sys.modules, "msvcrt", emulated_msvcrt())
        with monkeypatch.context() as patched:
            patched.setattr(sys, "platform", "win32")
            importlib.reload(locks)
        monkeypatch.setattr("collabtop.runlog.file.lock_file", locks.lock_file)
        monkeypatch.setattr("collabtop.runlog.file.is_locked_here", locks.is_locked_here)
    yield request.param
    if request.param == "windows":
        monkeypatch.undo()
        importlib.reload(locks)


def test_a_second_handle_of_the_same_process_is_refused_until_the_first_is_closed(tmp_path, platform):
    path = tmp_path / "run.ctlog"
    log = RunLog(path)
    assert locks.is_in_use(path) is True
    with pytest.raises(ct.FileError, match=r"run.ctlog' is in use by this process$"):
        RunLog(path)
    assert read_log(path) == []  # reading does not release the lock, nor does asking for it
    assert locks.is_in_use(path) is True
    with pytest.raises(ct.FileError, match="is in use by this process"):
        RunLog(path)
    log.append(Finished([1]))
    log.close()
    assert locks.is_in_use(path) is False
    RunLog(path).close()
    assert read_log(path) == [Finished([1])]


def test_reading_a_log_that_this_process_writes_keeps_other_processes_out(tmp_path):
    path = tmp_path / "run.ctlog"
    log = RunLog(path)
    assert read_log(path) == []
    path.read_bytes()
    assert is_in_use(path)
    assert not opens_elsewhere(path)
    log.close()
    assert opens_elsewhere(path)


def test_show_in_the_process_of_a_run_keeps_other_processes_out(tmp_path):
    path, seen = tmp_path / "run.ctlog", []

    def show(event):
        if not seen and CliRunner().invoke(app, ["show", str(path)]).exit_code == 0:
            seen.append(opens_elsewhere(path))

    result = identify(Counted(tmp_path / "calls"), path, on_event=show)
    assert seen == [False]
    assert result == identify(Counted(tmp_path / "again"))


def test_of_two_threads_with_the_same_checkpoint_one_makes_the_run_and_the_other_is_refused(tmp_path):
    expected = identify(Counted(tmp_path / "undisturbed"))
    for number in range(6):
        path, outcomes = tmp_path / f"{number}.ctlog", []

        def run(path=path, outcomes=outcomes, number=number):
            try:
                outcomes.append(identify(Counted(tmp_path / f"calls{number}", seconds=0.0005), path))
            except ct.FileError as error:
                outcomes.append(str(error))

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        refused, result = sorted(outcomes, key=lambda outcome: not isinstance(outcome, str))
        assert refused == f"checkpoint {str(path)!r} is in use by this process"
        assert result == expected
        assert sum(record.pulls for record in read_log(path) if isinstance(record, Rewards)) == expected.pulls


def test_a_nested_run_with_the_same_checkpoint_is_refused_and_the_outer_one_continues(tmp_path):
    path, refused = tmp_path / "run.ctlog", []

    class Nested(Counted):
        def __call__(self, mean, rng):
            if not refused:
                with pytest.raises(ct.FileError, match="is in use by this process") as caught:
                    identify(Counted(tmp_path / "inner"), path)
                refused.append(caught.value)
                assert not opens_elsewhere(path)
            return super().__call__(mean, rng)

    result = identify(Nested(tmp_path / "outer"), path)
    assert result == identify(Counted(tmp_path / "again"))
    assert not Counted(tmp_path / "inner").calls()
    assert isinstance(read_log(path)[0], Header)


def test_a_forked_child_that_outlives_its_parent_does_not_keep_the_lock(tmp_path):
    path = tmp_path / "run.ctlog"
    log = RunLog(path)
    release = multiprocessing.get_context("fork").Event()
    child = multiprocessing.get_context("fork").Process(target=release.wait, daemon=True)
    child.start()
    try:
        assert not opens_elsewhere(path)  # the parent still has it
        log.append(Finished([2]))
        log.close()
        assert child.is_alive()
        assert opens_elsewhere(path)
    finally:
        release.set()
        child.join()
    assert read_log(path) == [Finished([2])]


def test_a_forked_child_cannot_write_to_the_log(tmp_path):
    path = tmp_path / "run.ctlog"
    log = RunLog(path)

    def write():
        log.append(Finished([3]))
        log.close()

    child = multiprocessing.get_context("fork").Process(target=write)
    child.start()
    child.join()
    assert child.exitcode == 0
    log.append(Finished([4]))
    log.close()
    assert read_log(path) == [Finished([4])]


def test_a_log_that_is_deleted_while_it_is_opened_is_opened_again(tmp_path, monkeypatch):
    path = tmp_path / "run.ctlog"
    lock_file = locks.lock_file

    def delete_once(file):
        monkeypatch.undo()
        path.unlink()
        return lock_file(file)

    monkeypatch.setattr("collabtop.runlog.file.lock_file", delete_once)
    log = RunLog(path)
    log.append(Finished([5]))
    log.close()
    assert read_log(path) == [Finished([5])]
