"""The commands for remote sites in README and docs work, with this machine as the coordinator's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.doc_pages import PAGES, commands, files

RUN = 'm = 1\narms = 3\nhorizon = 600\nalgorithm = "uniform"\nsites = ["north", "south"]\nseed = 7\n'
JOINS = [
    (page, command) for page in PAGES for command in commands(page) if command.startswith("collabtop join coordinator.")
]
COORDINATES = {
    command for page in PAGES for command in commands(page) if re.search(r"^collabtop coordinate .*[^&]$", command)
}


@pytest.mark.slow
def test_sites_join_with_the_commands_of_the_pages(tmp_path):
    (tmp_path / "run.toml").write_text(RUN)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def start(command, folder, **more):
        return subprocess.Popen(["bash", "-c", command], cwd=folder, env=environment, **more)

    assert start("collabtop certs certs north south", tmp_path).wait(30) == 0
    [coordinate] = COORDINATES
    with ExitStack() as stack:
        piped = {"stderr": subprocess.PIPE, "text": True}
        running = [stack.enter_context(start(coordinate.replace(":7443", ":0"), tmp_path, **piped))]
        port = re.fullmatch(r"listening on \S+:(\d+)\n", running[0].stderr.readline())[1]
        for site, (page, join) in zip(("north", "south"), JOINS, strict=True):  # one site per page's command
            folder = tmp_path / site  # stands for its machine: its two files and the authority's certificate
            folder.mkdir()
            for name in ("authority.pem", f"{site}.pem", f"{site}.key"):
                shutil.copy(tmp_path / "certs" / name, folder)
            for name, text in files(page).items():
                (folder / name).write_text(text)
            command = join.replace("coordinator.example.org:7443", f"localhost:{port}").replace("north", site)
            running.append(stack.enter_context(start(command, folder)))
        try:
            assert [process.wait(60) for process in running] == [0, 0, 0]
        finally:
            for process in running:
                process.kill()
    assert "--audit sent.jsonl" in JOINS[1][1]
    assert (tmp_path / "south" / "sent.jsonl").stat().st_size > 0


def test_there_is_one_command_for_the_coordinator_and_two_for_sites():
    assert len(JOINS) == 2
    assert len(COORDINATES) == 1
