"""`collabtop watch`: prints its address, serves until Ctrl-C, and refuses invalid arguments."""

from __future__ import annotations

import signal
import subprocess
import sys

import collabtop as ct
from tests.support.page_requests import get_json


def test_it_serves_a_folder_until_ctrl_c(tmp_path):
    arguments = {"agents": 2, "horizon": 50, "seed": 1, "checkpoint": tmp_path / "a.ctlog"}
    result = ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, **arguments)
    command = [
        sys.executable,
        "-c",
        "from collabtop.cli import main; main()",
        "watch",
        str(tmp_path),
        "--port",
        "0",
        "--no-open",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        assert line.endswith("(stop with Ctrl-C)\n")
        url = next(word for word in line.split() if word.startswith("http://127.0.0.1:"))
        assert get_json(url + "api/runs")[0]["words"] == result.words
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_a_missing_file_is_refused(refused, tmp_path):
    assert refused("watch", tmp_path / "nothing.ctlog").endswith(
        "does not exist: give a checkpoint, or a folder of checkpoints"
    )


def test_a_short_token_is_refused(refused, tmp_path):
    assert refused("watch", tmp_path, "--token", "abc").startswith(
        "--token has 3 characters, but at least 8 are needed"
    )
