"""The Ray commands in README and docs work, with a test cluster instead of the one at 10.0.0.1."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from collabtop.cli import app
from tests.support.doc_pages import PAGES, ROOT, commands, files

WITH_ADDRESS = [
    (page, command)
    for page in PAGES
    for command in commands(page)
    if command.startswith("collabtop") and "--team ray --address" in command
]
STARTS = [command for command in commands(ROOT / "docs" / "ray.md") if " ray start " in command]


@pytest.mark.parametrize(("page", "command"), WITH_ADDRESS, ids=[shlex.split(text)[1] for _, text in WITH_ADDRESS])
@pytest.mark.slow
def test_a_command_works_with_the_address_of_a_cluster(page, command, three_nodes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name, text in files(page).items():
        (tmp_path / name).write_text(text)
    _, *arguments = shlex.split(command.replace("10.0.0.1:6379", three_nodes.address))
    try:
        result = CliRunner().invoke(app, arguments, prog_name="collabtop")
    finally:
        sys.modules.pop("mymodule", None)
    assert result.exit_code == 0, f"{command}\n{result.output}"


@pytest.fixture
def short_folder():
    """A folder whose path is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="ct-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield folder


@pytest.mark.slow
def test_a_cluster_is_started_with_the_commands_of_the_page(tmp_path, short_folder):
    head, other = STARTS
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(tmp_path),
        "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token"),
    }
    (tmp_path / "token").write_text("a-token-of-the-tests")
    for name, text in files(ROOT / "docs" / "ray.md").items():
        (tmp_path / name).write_text(text)
    running = []
    try:
        for start in (f"{head} --temp-dir {short_folder}", other):
            # With --block, ending the process ends the node; `ray stop` would end other clusters too.
            command = start.replace("6379", port).replace("10.0.0.1", "127.0.0.1")
            command += " --node-ip-address 127.0.0.1 --num-cpus 2 --object-store-memory 100000000 --block"
            running.append(subprocess.Popen(["bash", "-c", "exec env " + command], cwd=tmp_path, env=environment))
            time.sleep(15)
        command = next(command for _, command in WITH_ADDRESS if " identify " in command)
        joining = "RAY_AUTH_MODE=token " + command.replace("10.0.0.1:6379", f"127.0.0.1:{port}")
        ended = subprocess.run(["bash", "-c", joining], cwd=tmp_path, env=environment, capture_output=True, timeout=120)
        assert ended.returncode == 0, ended.stderr.decode()
        assert re.search(rb"prompt 11", ended.stdout)
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
            process.wait(30)
