"""Whatever a log holds, each of its readers either reads it or ends with one clear line."""

from __future__ import annotations

import os
import random
import re
import resource
import zlib

import msgspec
import pytest
from typer.testing import CliRunner

import collabtop as ct
from collabtop.cli.application import app
from collabtop.runlog import format as format_
from collabtop.runlog import reading
from collabtop.runlog.file import LARGEST_LOG, RunLog, read_log
from collabtop.runlog.format import (
    FRAME,
    LARGEST_RECORD,
    MAGIC,
    MAX_AGENTS,
    MAX_ARMS,
    MAX_HORIZON,
    MAX_WEIGHTED,
)
from collabtop.runlog.log_state import LogState
from collabtop.watch import server
from collabtop.watch.views import summary
from collabtop.watch.watched_runs import Runs
from tests.support import malformed_logs as malformed


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return malformed.plain_records(malformed.real_log(tmp_path_factory.mktemp("log") / "run.ctlog"))


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    return malformed.plain_records(malformed.sums_log(tmp_path_factory.mktemp("log") / "run.ctlog"))


def command(path, *arguments):
    """What a command prints on stderr; a traceback fails the test, and so does more than one line."""
    ended = CliRunner().invoke(app, [arguments[0], str(path), *arguments[1:]], prog_name="collabtop")
    assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
    assert ended.exit_code in (0, 1, 2)
    if ended.exit_code:
        assert re.fullmatch(r"error: .*\n", ended.stderr), ended.stderr
    return ended.stderr


def resumed(path):
    """The error of a run that is continued, or an empty text."""
    try:
        ct.resume(path, pull=malformed.score)
    except ct.CollabtopError as error:
        return str(error)
    return ""


def shown(path):
    """The error of a run on the page, or an empty text; the page itself must not fail."""
    run = Runs([path]).all()[0]
    row = server._shown(run, summary)
    page = server._updated_view(run)
    assert "cannot be shown (" not in str(page["status"]["error"]), page["status"]["error"]  # the net for defects
    assert "status" in row
    server._json_response([row, page])
    return page["status"]["error"] or ""


def read_by_all(path):
    """The errors of all readers."""
    errors = [command(path, "show"), command(path, "show", "--json"), command(path, "resume"), shown(path)]
    data = path.read_bytes()
    for reader in (lambda: LogState(read_log(path)), lambda: RunLog(path).close()):
        try:
            reader()
            errors.append("")
        except ct.FileError as error:
            errors.append(str(error))
    path.write_bytes(data)
    errors.append(resumed(path))
    path.unlink()
    return errors


@pytest.mark.slow
def test_every_known_malformed_log_is_refused_in_one_line(records, sums, tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    readable = {"gap", "no candidates", "nested candidates", "no message", "no header"}
    for name, wrong in malformed.hostile(records, sums):
        errors = read_by_all(malformed.write_plain(tmp_path / "run.ctlog", wrong))
        if name not in readable:
            assert all(errors), (name, errors)
        assert errors[-1], name  # none of them can be continued
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_mutation_of_a_record_ends_in_a_traceback(records, sums, tmp_path, seed):
    rng = random.Random(seed)
    for _ in range(40):
        base = rng.choice([records, sums])
        read_by_all(malformed.write_plain(tmp_path / "run.ctlog", malformed.mutated(base, rng)))


@pytest.mark.slow
def test_no_cut_or_flipped_byte_ends_in_a_traceback(tmp_path):
    data = malformed.real_log(tmp_path / "real.ctlog").read_bytes()
    rng = random.Random(5)
    for _ in range(60):
        wrong = bytearray(data[: rng.choice((len(data), rng.randrange(len(data))))])
        for _ in range(rng.randrange(3)):
            if wrong:
                wrong[rng.randrange(len(wrong))] ^= 1 << rng.randrange(8)
        path = tmp_path / "run.ctlog"
        path.write_bytes(bytes(wrong))
        read_by_all(path)


@pytest.mark.parametrize(("field", "most"), [("n", MAX_ARMS), ("agents", MAX_AGENTS), ("horizon", MAX_HORIZON)])
def test_the_largest_run_in_a_log_is_the_stated_one(records, tmp_path, field, most):
    fields = {"labels": None, "candidates": None} if field == "n" else {}
    path = tmp_path / "run.ctlog"
    malformed.write_plain(path, malformed.changed(records[:1], "Header", **{**fields, field: most}))
    assert getattr(read_log(path)[0], field) == most
    malformed.write_plain(path, malformed.changed(records[:1], "Header", **{**fields, field: most + 1}))
    with pytest.raises(ct.FileError, match=f"Expected `int` <= {most}.*{field}"):
        read_log(path)


def test_a_run_that_no_reader_would_accept_gets_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("collabtop.runs.checkpoint.MAX_ARMS", 2)
    arms = ct.BernoulliArms([0.1, 0.2, 0.9])
    with pytest.raises(ct.InputError, match="n is 3, but a run with a checkpoint has at most 2 candidates"):
        ct.identify(arms, 1, agents=2, horizon=50, checkpoint=tmp_path / "run.ctlog")
    assert not (tmp_path / "run.ctlog").exists()
    ct.identify(arms, 1, agents=2, horizon=50)


def test_a_record_that_no_reader_would_accept_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("collabtop.runlog.format.LARGEST_RECORD", 100)
    with pytest.raises(ct.CheckpointError, match="a log takes at most 100: run without a checkpoint"):
        ct.identify(ct.BernoulliArms([0.1, 0.9]), 1, agents=2, horizon=50, checkpoint=tmp_path / "run.ctlog")


def test_a_log_that_states_everywhere_that_a_record_begins_is_refused_soon(tmp_path, monkeypatch):
    path, compared = malformed.real_log(tmp_path / "run.ctlog"), []
    monkeypatch.setattr(reading, "MOST_COMPARED", 1 << 20)

    def frame_body(data, start, end):
        compared.append(end - start)
        return format_.frame_body(data, start, end)

    monkeypatch.setattr(reading, "frame_body", frame_body)
    path.write_bytes(path.read_bytes()[:-20] + b"?" + malformed.claims(30_000))
    for reader in (read_log, RunLog):
        with pytest.raises(ct.FileError, match="is damaged at byte"):
            reader(path)
    assert "is damaged at byte" in shown(path)
    assert ct.repair(path).state == "damaged"
    assert sum(compared) < 4 * (1 << 20) + 3 * 4 * path.stat().st_size


def test_a_log_does_not_grow_beyond_what_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("collabtop.runlog.file.LARGEST_LOG", 2_000)
    path = tmp_path / "run.ctlog"
    with pytest.raises(ct.CheckpointError, match="would have more than 2,000 bytes, which no reader accepts"):
        ct.identify(["a", "b"], 1, pull=malformed.score, agents=2, horizon=500, checkpoint=path)
    assert 1_500 < path.stat().st_size <= 2_000
    assert read_log(path)


def test_an_exchange_with_more_requests_than_agents_of_any_run_is_refused_before_they_are_read(records, tmp_path):
    path, more = tmp_path / "run.ctlog", 10 * MAX_AGENTS
    body = msgspec.msgpack.encode({"type": "Exchange", "number": 1, "messages": [], "replies": []})
    requests = msgspec.msgpack.encode("requests") + b"\xdd" + more.to_bytes(4, "big") + b"\x92\x00\x90" * more
    header = malformed.frame(msgspec.msgpack.encode(records[0]))
    path.write_bytes(MAGIC + header + malformed.frame(b"\x85" + body[1:] + requests))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ct.FileError, match=r"Expected `array` of length <= 1000000 - at `\$\.requests`"):
        read_log(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_candidates_times_agents_with_weights_are_limited(records, tmp_path):
    path, agents = tmp_path / "run.ctlog", 1_000
    fields = {"labels": None, "candidates": None, "iid": False, "agents": agents, "weights": [1.0] * agents}
    header = malformed.changed(records[:1], "Header", **fields, n=MAX_WEIGHTED // agents)
    assert read_log(malformed.write_plain(path, header))
    more = malformed.changed(header, "Header", n=MAX_WEIGHTED // agents + 1)
    with pytest.raises(ct.FileError, match="100,001 candidates times 1,000 agents with weights are too many"):
        read_log(malformed.write_plain(path, more))


@pytest.mark.parametrize(
    ("limit", "text"),
    [("MAX_AGENTS", "agents"), ("MAX_HORIZON", "horizon"), ("MAX_WEIGHTED", "candidates times agents")],
)
def test_a_run_beyond_the_limits_of_readers_gets_no_checkpoint(tmp_path, monkeypatch, limit, text):
    monkeypatch.setattr(f"collabtop.runs.checkpoint.{limit}", 1)
    arms = ct.HeterogeneousArms([[0.1, 0.2], [0.9, 0.8]], weights=[1, 2])
    with pytest.raises(ct.InputError, match=f"{text} is .*, but a run with a checkpoint has at most 1 "):
        ct.identify(arms, 1, horizon=50, checkpoint=tmp_path / "run.ctlog")
    assert not (tmp_path / "run.ctlog").exists()


def test_a_record_or_log_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "run.ctlog"
    size = LARGEST_RECORD + 1
    start = FRAME.pack(size, zlib.crc32(size.to_bytes(4, "little")), 0)
    path.write_bytes(MAGIC + start + malformed.frame(msgspec.msgpack.encode({"type": "Finished", "top": [1]})))
    with pytest.raises(ct.FileError, match="damaged"):
        read_log(path)
    with path.open("r+b") as file:
        file.truncate(LARGEST_LOG + 1)  # sparse
    message = f"has {LARGEST_LOG + 1:,} bytes, but a log has at most {LARGEST_LOG:,}"
    for reader in (read_log, RunLog, ct.resume, ct.repair):
        with pytest.raises(ct.FileError, match=message):
            reader(path)


@pytest.mark.parametrize("reader", [read_log, RunLog, ct.resume])
def test_a_pipe_or_device_is_refused_at_once(tmp_path, reader):
    os.mkfifo(tmp_path / "pipe.ctlog")
    (tmp_path / "zero.ctlog").symlink_to("/dev/zero")
    for name in ("pipe.ctlog", "zero.ctlog"):
        with pytest.raises(ct.FileError, match="not a regular file"):
            reader(tmp_path / name)


def test_control_characters_of_a_log_do_not_reach_the_terminal(records, tmp_path):
    labels = ["\x1b[2J\x1b]0;owned\x07", "b\x9b31m", "c\u202egnp.exe"]
    fields = {"labels": labels, "arms_class": "\x1b[31m", "takes_pull": False, "options": {"\x1b[1m": "\x1b[5m"}}
    path = malformed.write_plain(tmp_path / "run.ctlog", malformed.changed(records, "Header", **fields))
    shown = CliRunner().invoke(app, ["show", str(path)], prog_name="collabtop")
    assert shown.exit_code == 0
    assert r"\x1b[2J\x1b]0" in shown.stdout  # the table may break a label into lines
    assert r"c\u202egnp" in shown.stdout
    error = command(path, "resume")
    assert "belongs to a run on" in error
    assert not set("\x1b\x07\x9b\u202e") & set(shown.stdout + error)
