"""A log or journal with a different format version is rejected in one line that names both versions."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

import collabtop as ct
from collabtop.cli.application import app
from collabtop.protocol.setup import Setup
from collabtop.runlog.file import RunLog, read_log
from collabtop.runlog.format import FORMAT, MAGIC
from collabtop.teams.sites.journal import Journal

RUN = "0123456789abcdef" * 2
ARMS = ct.BernoulliArms([0.2, 0.8])


@pytest.fixture
def old_log(tmp_path):
    """A log of format 1, with the name that a site's journal of the run has."""
    path = tmp_path / f"{RUN}.ctlog"
    path.write_bytes(b"collabtop log 1\n" + bytes(range(100)))
    return path


def open_journal(path):
    return Journal(path.parent, RUN, Setup(ct.Problem(n=2, m=1, agents=1, horizon=10), seed=1), [0], ARMS, 1)


def check_message(message, path):
    assert message == (
        f"{str(path)!r} has log format 1, but this version of collabtop reads format {FORMAT}: "
        "use the version that wrote it, or a different file"
    )


@pytest.mark.parametrize(
    "read",
    [
        RunLog,
        read_log,
        ct.resume,
        lambda path: ct.resume(path, arms=ARMS),
        lambda path: ct.identify(ARMS, 1, agents=2, horizon=100, checkpoint=path),
        open_journal,
    ],
    ids=["RunLog", "read_log", "resume", "resume with arms", "identify", "journal"],
)
def test_an_old_log_is_rejected_and_left_as_it_is(read, old_log):
    data = old_log.read_bytes()
    with pytest.raises(ct.FileError) as caught:
        read(old_log)
    check_message(str(caught.value), old_log)
    assert old_log.read_bytes() == data


@pytest.mark.parametrize("command", ["show", "resume"])
def test_commands_reject_an_old_log_in_one_line(command, old_log):
    ended = CliRunner().invoke(app, [command, str(old_log)])
    assert ended.exit_code != 0
    assert re.fullmatch(r"error: (.*)\n", ended.stderr)
    check_message(ended.stderr.removeprefix("error: ").rstrip("\n"), old_log)


def test_the_first_line_of_a_log_states_the_version():
    assert MAGIC == b"collabtop log %d\n" % FORMAT
    assert FORMAT > 1
