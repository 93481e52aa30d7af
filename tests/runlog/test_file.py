"""The log on disk: what was written is there, a torn end is dropped, anything else is refused."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest

import collabtop as ct
from collabtop.runlog.file import RunLog, read_log
from collabtop.runlog.format import AgentStatus, Exchange, Finished, Rewards, Timestamp

RECORDS = [
    Rewards(agent=0, first=0, arms=b"\1\0\0\0", counts=b"\2\0\0\0", rewards=b"\0" * 16),
    Exchange(1, [b"ask", b"told"], [(0, [0])], [(0, 2, 1)]),
    Finished([1]),
]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "run.ctlog"
    write(path)
    return path


def write(path, records=RECORDS):
    log = RunLog(path)
    for record in records:
        log.append(record)
    log.close()
    return path


def test_what_was_written_is_read(path):
    assert read_log(path) == RECORDS


def test_writing_goes_on_where_it_stopped(path):
    write(path, [Finished([2])])
    assert read_log(path) == [*RECORDS, Finished([2])]


def test_a_log_cut_off_anywhere_holds_all_whole_records_and_can_be_gone_on_with(path, tmp_path):
    data = path.read_bytes()
    ends = [len(write(tmp_path / str(count), RECORDS[:count]).read_bytes()) for count in range(4)]
    torn = tmp_path / "torn"
    for length in range(len(data)):
        torn.write_bytes(data[:length])
        whole = sum(end <= length for end in ends) - 1 if length >= ends[0] else 0
        assert read_log(torn) == RECORDS[:whole]
        write(torn, [Finished([9])])
        assert read_log(torn) == [*RECORDS[:whole], Finished([9])]


def test_zeros_at_the_end_as_a_power_cut_leaves_them_are_dropped(path):
    path.write_bytes(path.read_bytes() + b"\0" * 100)
    assert read_log(path) == RECORDS


def test_any_byte_changed_in_the_middle_is_noticed(path):
    data = path.read_bytes()
    last = len(write(path.parent / "two", RECORDS[:2]).read_bytes())
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x40]) + data[place + 1 :])
        if place >= last:  # of the last record it cannot be told whether it is torn or damaged
            with suppress(ct.FileError):
                assert read_log(path) == RECORDS[:2]
        else:
            with pytest.raises(ct.FileError, match=r"damaged|not a collabtop log|has log format"):
                read_log(path)


def test_a_file_that_is_no_log_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "thesis.txt"
    path.write_text("All is well.")
    for use in (read_log, RunLog):
        with pytest.raises(ct.FileError, match="is not a collabtop log"):
            use(path)
    assert path.read_text() == "All is well."


def test_a_file_that_cannot_be_read_or_made_is_named(tmp_path):
    with pytest.raises(ct.FileError, match="no such file"):
        read_log(tmp_path / "nowhere")
    with pytest.raises(ct.FileError, match="no such file"):
        RunLog(tmp_path / "nowhere" / "run.ctlog")
    with pytest.raises(ct.FileError, match="is a directory"):
        RunLog(tmp_path)


def test_a_second_process_is_kept_out(path):
    log = RunLog(path)
    script = f"from collabtop.runlog.file import RunLog; RunLog({str(path)!r})"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    log.close()
    assert "is in use by another process" in ended.stderr
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode == 0


def test_a_full_disk_is_said_and_what_was_written_stays(tmp_path):
    script = (
        "import resource, signal, sys\n"
        "from collabtop.runlog.file import RunLog\n"
        "from collabtop.runlog.format import Finished\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "log = RunLog(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
        "while True:\n    log.append(Finished([7]))\n"
    )
    path = tmp_path / "run.ctlog"
    ended = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    assert "CheckpointError: checkpoint" in ended.stderr
    assert "completed pulls are kept" in ended.stderr
    assert set(map(repr, read_log(path))) == {"Finished(top=[7])"}


def test_a_note_that_cannot_be_written_ends_the_run_at_its_next_exchange_and_spoils_nothing(tmp_path):
    script = (
        "import resource, signal, sys\n"
        "from collabtop.runlog.file import Timestamp, RunLog\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "log = RunLog(sys.argv[1])\n"
        "limits = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "log.append(Timestamp(7.0))\n"
        "size = log.path.stat().st_size + 20\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))\n"
        "log.note_status([0], 'away')\n"  # only half of it fits
        "resource.setrlimit(resource.RLIMIT_FSIZE, limits)\n"
        "log.append(Timestamp(8.0))\n"
    )
    path = tmp_path / "run.ctlog"
    ended = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    assert "CheckpointError: checkpoint" in ended.stderr
    assert read_log(path) == [Timestamp(7.0)]


def test_who_comes_and_goes_is_noted_until_the_run_is_over(tmp_path):
    path = tmp_path / "run.ctlog"
    log = RunLog(path)
    log.note_status({1, 0}, "away")
    log.note_status([], "here")
    log.append(Finished([1]))
    log.note_status([1], "here")  # the answer is the last
    log.close()
    noted, finished = read_log(path)
    assert isinstance(noted, AgentStatus)
    assert (noted.agents, noted.state, finished) == ([0, 1], "away", Finished([1]))
    again = RunLog(path)  # a finished run is told once more, for which nobody is needed
    again.note_status([0], "away")
    again.close()
    assert read_log(path) == [noted, finished]


def test_nothing_is_written_after_the_log_was_closed(path):
    log = RunLog(path)
    log.close()
    log.append(Finished([5]))
    assert read_log(path) == RECORDS
