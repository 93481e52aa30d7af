"""`collabtop watch`: prints its address, serves until Ctrl-C, and refuses invalid arguments."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer

import collabtop as ct
from collabtop.cli import app
from collabtop.watch.serve import LARGEST_TOKEN, Page
from tests.support.page_requests import get_json


@pytest.mark.slow
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


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.touch(mode=0o600)
    path.write_text("long-and-secret\n")
    return path


@pytest.mark.parametrize("source", ["file", "environment"])
def test_the_token_comes_from_a_file_or_the_environment_and_is_shown_nowhere(tmp_path, token_file, source):
    command = [sys.executable, "-m", "collabtop", "watch", str(tmp_path), "--port", "0", "--no-open"]
    command += ["--token-file", str(token_file)] if source == "file" else []
    # A file that is named wins.
    environment = {**os.environ, "COLLABTOP_TOKEN": "long-and-secret" if source == "environment" else "not-this-one"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        line = process.stderr.readline()
        assert "long-and-secret" not in line
        assert "long-and-secret" not in Path(f"/proc/{process.pid}/cmdline").read_text()
        url = next(word for word in line.split() if word.startswith("http://127.0.0.1:"))
        assert get_json(url + "api/runs", token="long-and-secret") == []
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get_json(url + "api/runs", token="something-else")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_no_command_takes_a_token_a_key_or_a_secret_itself_but_only_a_file_with_it():
    """Every user of the machine sees the arguments of a process."""
    group: Any = typer.main.get_command(app)
    commands = list(group.commands.values())
    commands += [inner for command in commands for inner in getattr(command, "commands", {}).values()]
    options = [pair for command in commands if command.callback for pair in get_type_hints(command.callback).items()]
    taken = {(name, kind) for name, kind in options if re.search("token|key|secret|password", name)}
    assert taken == {(name, Path | None) for name in ("token_file", "key", "secret")}


def test_processes_that_the_page_starts_do_not_see_the_token_of_the_environment(monkeypatch, run, tmp_path):
    monkeypatch.setenv("COLLABTOP_TOKEN", "long-and-secret")
    seen = []
    monkeypatch.setattr("collabtop.runs.page_launcher.open_browser", lambda _: seen.append(dict(os.environ)))
    monkeypatch.setattr(Page, "serve", Page.close)
    run("watch", tmp_path, "--port", "0")
    assert "COLLABTOP_TOKEN" not in seen[0]


def test_a_token_of_the_environment_that_is_short_is_refused(monkeypatch, refused, tmp_path):
    monkeypatch.setenv("COLLABTOP_TOKEN", "abc")
    assert refused("watch", tmp_path) == "the token in COLLABTOP_TOKEN has 3 characters, but at least 8 are needed"


@pytest.mark.parametrize("token", ["long-and-secret\udcff", "long-and-\nsecret"])
def test_a_token_of_the_environment_that_nobody_can_type_is_refused(monkeypatch, refused, tmp_path, token):
    monkeypatch.setenv("COLLABTOP_TOKEN", token)
    assert refused("watch", tmp_path) == "the token in COLLABTOP_TOKEN has characters that cannot be typed"


def test_the_browser_is_opened_without_the_token(monkeypatch, run, tmp_path):
    opened = []
    monkeypatch.setattr("collabtop.runs.page_launcher.open_browser", opened.append)
    monkeypatch.setattr(Page, "serve", Page.close)
    result = run("watch", tmp_path, "--host", "0.0.0.0", "--port", "0")
    assert "?token=" in result.stderr  # one was drawn, and only this line shows it
    assert "token" not in opened[0]


def test_a_token_file_that_is_short_missing_or_readable_by_others_is_refused(refused, tmp_path, token_file):
    token_file.write_text("abc\n")
    assert refused("watch", tmp_path, "--token-file", token_file) == (
        "--token-file: the token has 3 characters, but at least 8 are needed"
    )
    token_file.write_text("x" * (LARGEST_TOKEN + 1))
    assert "but at most 1,024 are needed" in refused("watch", tmp_path, "--token-file", token_file)
    token_file.chmod(0o640)
    assert refused("watch", tmp_path, "--token-file", token_file).endswith(
        f"has mode 640, but only its owner may have access: chmod 600 {token_file}"
    )
    assert refused("watch", tmp_path, "--token-file", tmp_path / "none").endswith("no such file or directory")
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert refused("watch", tmp_path, "--token-file", tmp_path / "pipe").endswith("not a regular file")
