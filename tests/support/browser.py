"""A browser, pages served to it, and a run in a different process that waits for a signal."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from collabtop.watch.serve import runs_in
from tests.support.page_server import page_in_thread

_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

# After its 200th pull the run waits for a file named "go".
LIVE_RUN = """
import sys, time
from pathlib import Path
import collabtop as ct

folder, algorithm, pulls = Path(sys.argv[1]), sys.argv[2], 0

def score(candidate, rng):
    global pulls
    pulls += 1
    if 190 < pulls <= 200:
        time.sleep(0.015)  # long enough for all earlier rewards to be written to the log
    while pulls > 200 and not (folder / "go").exists():
        time.sleep(0.01)
    return rng.random() < candidate / 40

result = ct.identify(list(range(1, 31)), 3, pull=score, agents=4, horizon=150, seed=3, algorithm=algorithm,
                     checkpoint=folder / "live.ctlog")
(folder / "result.json").write_text(result.to_json())
"""


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium."""
    path = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if path is None:
        pytest.skip("Chromium is not installed: install the package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def serve():
    """Serves the page of a log or a folder and returns its address."""
    with ExitStack() as stack:

        def start(source, **more):
            return stack.enter_context(page_in_thread(runs_in([source]), **more)).url

        yield start


@pytest.fixture
def tab(browser, serve):
    """An empty tab; an error in a script of the page fails the test. Closed before the server, which waits for it."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    tab, errors = context.new_page(), []
    tab.on("pageerror", lambda error: errors.append(error))
    tab.on("console", lambda line: errors.append(line.text) if "Content Security Policy" in line.text else None)
    yield tab
    context.close()
    assert not errors


class LiveRun:
    """A run in a process of its own, which waits after 200 of about 600 pulls until `finish` is called."""

    def __init__(self, folder: Path, algorithm: str) -> None:
        self.folder, self.log = folder, folder / "live.ctlog"
        self._process = subprocess.Popen([sys.executable, "-c", LIVE_RUN, str(folder), algorithm])
        deadline = time.monotonic() + 30
        while not self.log.exists() or self.log.stat().st_size < 1000:
            assert time.monotonic() < deadline, "the run does not start"
            time.sleep(0.02)

    def finish(self) -> str:
        """Let the run continue to its end; returns its result as JSON."""
        (self.folder / "go").touch()
        assert self._process.wait(30) == 0
        return (self.folder / "result.json").read_text()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(10)


@pytest.fixture
def live_run(tmp_path):
    """Starts a run to watch."""
    started = []

    def start(algorithm="kzz"):
        started.append(LiveRun(tmp_path, algorithm))
        return started[-1]

    yield start
    for run in started:
        run.kill()
