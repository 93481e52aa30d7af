"""The commands on the page about sites work as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from collabtop.cli import app
from tests.support.namespaces import needs_namespaces, own_network

needs_namespaces()

PAGE = Path(__file__).parents[3] / "docs" / "sites.md"


def blocks(mark):
    return re.findall(rf"<!-- {mark} -->\n```\w+\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.slow
def test_the_three_commands_work_and_repeating_the_second_shows_the_finished_run(tmp_path, monkeypatch):
    for name in ("trial.py", "run.toml"):
        (tmp_path / name).write_text(blocks(f"file: {name}")[0])
    [commands] = blocks("commands")
    assert len(commands.strip().splitlines()) == 3
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ended = subprocess.run(
        # In a separate network, where the page's port is certainly free.
        [*own_network(), "bash", "-c", f"ip link set lo up\n{commands}"],
        **{"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "timeout": 120, "check": False},
    )
    assert re.search(r"│ +1 │ f +│", ended.stdout)
    assert "The best 1 of 6 arms by frugal-top, 2 agents, seed 7" in ended.stdout
    assert "bytes sent and received" in ended.stdout
    assert "listening on localhost:7443" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert {path.name for path in tmp_path.iterdir()} >= {"run.ctlog", "north-journal", "south-journal"}
    monkeypatch.chdir(tmp_path)
    arguments = ["coordinate", "run.toml", "--listen", "localhost:0", "--cert", "certs/coordinator.pem"]
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0
    assert (
        "run.ctlog holds a finished run, so no site is contacted (use a different --log for a new run)" in again.stderr
    )
    assert re.search(r"│ +1 │ f +│", again.stdout)
    assert "\n0 bytes sent and received, 0 requests repeated" in again.stdout  # nothing is sent


def test_every_key_of_a_run_file_is_on_the_page():
    import msgspec

    from collabtop.runs.sites_run import RunSettings

    page = PAGE.read_text(encoding="utf-8")
    for field in msgspec.structs.fields(RunSettings):
        if field.name not in ("tolerance", "max_horizon"):  # only with a confidence, as in identify
            assert f"`{field.name}`" in page or f"`{field.name} " in page, f"{field.name} is missing"
