"""The process that serves the page of a run: it ends when it is not needed, and deletes its folder."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest

from tests.support.page_requests import get_json


@pytest.fixture
def page_process(tmp_path):
    """Starts a page as a run does, with a folder of its own; it ends after a tenth of a second without use."""
    started = []

    def start(name="collabtop-watch-a", program=("-m", "collabtop.watch"), is_served=True):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "run-1.ctlog").touch()
        command = [sys.executable, *program, str(folder), "0.1"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, start_new_session=True, **pipes))
        url = started[-1].stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        if is_served:
            get_json(url + "api/runs")  # answered once the server is up
        return started[-1], folder

    yield start
    for process in started:
        process.kill()
        with process:  # closes its pipes
            process.wait()


@pytest.mark.parametrize(
    "end",
    [
        lambda process: process.stdin.close(),
        lambda process: process.terminate(),
        lambda process: process.send_signal(2),
    ],
    ids=["run ended", "terminated", "interrupted"],
)
@pytest.mark.slow
def test_a_page_deletes_its_folder_when_its_run_has_ended_or_it_is_stopped(page_process, end):
    process, folder = page_process()
    end(process)
    process.wait(10)
    assert not folder.exists()


STOPPED_EARLY = """
import signal, sys
from collabtop.watch import __main__ as page

class StoppedEarly(page.Page):
    def serve(self, is_needed):
        signal.raise_signal(signal.{name})  # its address is printed, but its server is not up
        super().serve(is_needed)

page.Page = StoppedEarly
page.main(sys.argv[1], float(sys.argv[2]))
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
@pytest.mark.slow
def test_a_page_that_is_stopped_before_it_serves_ends_too(page_process, name):
    process, folder = page_process(program=("-c", STOPPED_EARLY.format(name=name)), is_served=False)
    assert process.wait(10) == 0
    assert not folder.exists()


@pytest.mark.slow
def test_the_folder_of_a_killed_page_is_deleted_by_the_next_page(page_process):
    killed, folder = page_process("collabtop-watch-a")
    _, folder_in_use = page_process("collabtop-watch-b")
    killed.kill()
    killed.wait(10)
    assert folder.exists()
    page_process("collabtop-watch-c")
    deadline = time.monotonic() + 10
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not folder.exists()
    assert folder_in_use.exists()


STARTING = """
import sys
from pathlib import Path
from collabtop.watch import __main__ as page

lock_file = page.lock_file

def lock_late(file):
    page.delete_stale_folders(Path(sys.argv[1]).with_name("another"))  # as another page does that starts now
    return lock_file(file)

page.lock_file = lock_late
page.main(sys.argv[1], float(sys.argv[2]))
"""


def test_a_page_that_is_just_starting_keeps_its_folder(page_process):
    _, folder = page_process(program=("-c", STARTING))
    assert (folder / "run-1.ctlog").exists()
