"""`collabtop repair`: what it reports, what it changes, and its exit codes."""

from __future__ import annotations

import json
import stat

import pytest
from typer.testing import CliRunner

import collabtop as ct
from collabtop.cli import app
from collabtop.runlog.file import RunLog, read_log
from collabtop.runlog.format import Rewards
from tests.support.resumable import Counted, identify


@pytest.fixture
def log(tmp_path):
    """A finished run of 108 pulls."""
    path = tmp_path / "run.ctlog"
    identify(Counted(tmp_path / "calls", seconds=0.011), path, algorithm="uniform")
    return path


def repair(*words):
    ended = CliRunner().invoke(app, ["repair", *map(str, words)], terminal_width=200)
    return ended.exit_code, ended.stdout, ended.stderr


def middle_of(log):
    """The position of a byte inside a record of rewards, in the middle of a log."""
    return log.read_bytes().index(b"Reward", log.stat().st_size // 2)


def test_an_intact_log_is_left_as_it_is(log):
    data = log.read_bytes()
    code, out, _ = repair(log)
    assert code == 0
    assert out.startswith(f"{log} is intact: ")
    assert "with 108 pulls" in out
    assert log.read_bytes() == data


def test_a_torn_end_is_dropped_and_the_run_continues(log, tmp_path):
    data = log.read_bytes()
    log.write_bytes(data[:-10] + bytes(1000))
    code, out, _ = repair(log, "--json")
    assert code == 0
    report = json.loads(out)
    assert (report["state"], report["repaired"], report["pulls"]) == ("torn", True, 108)
    assert (report["dropped_records"], report["backup"]) == (0, None)
    assert log.stat().st_size == len(data) + 990 - report["dropped_bytes"]
    assert repair(log)[1].startswith(f"{log} is intact")
    assert ct.resume(log, pull=Counted(tmp_path / "more")) == identify(Counted(tmp_path / "again"), algorithm="uniform")
    assert not Counted(tmp_path / "more").calls()


def test_a_damaged_log_is_refused_and_only_repaired_with_the_option(log, tmp_path):
    data, at = log.read_bytes(), middle_of(log)
    damaged = data[:at] + b"?" + data[at + 1 :]
    log.write_bytes(damaged)
    with pytest.raises(ct.FileError, match=r"is damaged at byte .* run collabtop repair to see what can be kept"):
        ct.resume(log, pull=Counted(tmp_path / "more"))
    code, out, _ = repair(log)
    assert code == 1
    first, second = out.splitlines()
    assert first.startswith(f"{log} is damaged after ")
    assert first.endswith("and was not changed")
    assert second.startswith("--drop-damaged would drop the damaged record and everything after it: ")
    assert log.read_bytes() == damaged
    code, out, _ = repair(log, "--drop-damaged", "--json")
    report = json.loads(out)
    assert (code, report["state"], report["repaired"]) == (0, "damaged", True)
    assert report["dropped_pulls"] > 10
    assert (tmp_path / "run.ctlog.damaged").read_bytes() == damaged
    assert report["backup"] == str(tmp_path / "run.ctlog.damaged")
    kept = sum(record.pulls for record in read_log(log) if isinstance(record, Rewards))
    assert kept == report["pulls"] == 108 - report["dropped_pulls"] - 1  # one pull was in the damaged record
    more = Counted(tmp_path / "more")
    assert ct.resume(log, pull=more) == identify(Counted(tmp_path / "again"), algorithm="uniform")
    assert len(more.calls()) == 108 - kept


def test_a_second_backup_does_not_replace_the_first(log, tmp_path):
    data, at = log.read_bytes(), middle_of(log)
    for name in ("run.ctlog.damaged", "run.ctlog.damaged2"):
        log.write_bytes(data[:at] + b"?" + data[at + 1 :])
        assert ct.repair(log, drop_damaged=True).backup == str(tmp_path / name)


def test_the_backup_of_a_private_log_is_private_and_does_not_follow_a_link(log, tmp_path):
    data, at = log.read_bytes(), middle_of(log)
    log.write_bytes(data[:at] + b"?" + data[at + 1 :])
    log.chmod(0o600)
    (tmp_path / "run.ctlog.damaged").symlink_to(tmp_path / "elsewhere")
    report = ct.repair(log, drop_damaged=True)
    assert report.backup == str(tmp_path / "run.ctlog.damaged2")
    assert not (tmp_path / "elsewhere").exists()
    assert stat.S_IMODE((tmp_path / "run.ctlog.damaged2").stat().st_mode) == 0o600


def test_a_missing_file_a_file_that_is_no_log_and_a_log_in_use_are_bad_input(log, tmp_path):
    assert repair(tmp_path / "nowhere")[0::2] == (2, f"error: log '{tmp_path}/nowhere': no such file or directory\n")
    assert not (tmp_path / "nowhere").exists()
    text = tmp_path / "thesis.txt"
    text.write_text("All is well.")
    assert repair(text)[0] == 2
    assert text.read_text() == "All is well."
    writer = RunLog(log)
    assert repair(log)[0::2] == (2, f"error: log {str(log)!r} is in use by this process\n")
    writer.close()
