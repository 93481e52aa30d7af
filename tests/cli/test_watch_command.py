"""`collabtop watch`: serves, says where, ends with Ctrl-C, and refuses what is not there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request

import collabtop as ct


def test_it_serves_a_folder_until_ctrl_c(tmp_path):
    asked = {"agents": 2, "horizon": 50, "seed": 1, "checkpoint": tmp_path / "a.ctlog"}
    result = ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, **asked)
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
        said = process.stderr.readline()
        assert said.endswith("(Ctrl-C ends it)\n")
        url = next(word for word in said.split() if word.startswith("http://127.0.0.1:"))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url + "api/runs", timeout=10) as answer:
            assert json.load(answer)[0]["words"] == result.words
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_what_is_not_there_is_refused(refused, tmp_path):
    assert refused("watch", tmp_path / "nothing.ctlog").endswith("is not there: give a checkpoint, or a folder of them")


def test_a_short_token_is_refused(refused, tmp_path):
    assert refused("watch", tmp_path, "--token", "abc").startswith("--token is shorter than 8 characters")
