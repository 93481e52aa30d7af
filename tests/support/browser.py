"""A browser, pages served for it, and a run in another process that waits for a sign."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from collabtop.watch.serve import page_in_thread, runs_in

_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

# After the 200th pull it waits for a file named "go".
LIVE_RUN = """
import sys, time
from pathlib import Path
import collabtop as ct

folder, algorithm, made = Path(sys.argv[1]), sys.argv[2], 0

def score(candidate, rng):
    global made
    made += 1
    if 190 < made <= 200:
        time.sleep(0.015)  # so long that the log has all that was drawn before
    while made > 200 and not (folder / "go").exists():
        time.sleep(0.01)
    return rng.random() < candidate / 40

result = ct.identify(list(range(1, 31)), 3, pull=score, agents=4, horizon=150, seed=3, algorithm=algorithm,
                     checkpoint=folder / "live.ctlog")
(folder / "result.json").write_text(result.to_json())
"""


@pytest.fixture(scope="session")
def browser():
    """Chromium as the system has it."""
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if path is None:
        pytest.skip("there is no Chromium here: install the package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def serve():
    """Serve the page of a log or a folder; gives the address."""
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
    tab.on("console", lambda said: errors.append(said.text) if "Content Security Policy" in said.text else None)
    yield tab
    context.close()
    assert not errors


class LiveRun:
    """A run in a process of its own: waits after 200 of its 600 pulls or so until told to go on."""

    def __init__(self, folder: Path, algorithm: str) -> None:
        self.folder, self.log = folder, folder / "live.ctlog"
        self._process = subprocess.Popen([sys.executable, "-c", LIVE_RUN, str(folder), algorithm])
        ends = time.monotonic() + 30
        while not self.log.exists() or self.log.stat().st_size < 1000:
            assert time.monotonic() < ends, "the run does not begin"
            time.sleep(0.02)

    def finish(self) -> str:
        """Let it go on to the end; its result as JSON."""
        (self.folder / "go").touch()
        assert self._process.wait(30) == 0
        return (self.folder / "result.json").read_text()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(10)


@pytest.fixture
def live_run(tmp_path):
    """Start a run that can be watched."""
    started = []

    def start(algorithm="kzz"):
        started.append(LiveRun(tmp_path, algorithm))
        return started[-1]

    yield start
    for run in started:
        run.kill()
