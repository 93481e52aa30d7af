"""`watch=True`: the page of this process's runs, in a process of its own, which leaves when nobody needs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import urllib.request

import pytest

import collabtop as ct

SCRIPT = """
import collabtop as ct
arms = ct.BernoulliArms([0.2, 0.9, 0.5])
for algorithm in ("kzz", "uniform"):
    print(ct.identify(arms, 1, agents=2, horizon=90, seed=1, algorithm=algorithm, watch=True).words, flush=True)
print(ct.identify(arms, 1, agents=2, horizon=90, seed=1, watch=True, checkpoint="mine.ctlog").words, flush=True)
input()
"""


def ask(url):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        return json.load(answer)


@pytest.fixture
def script(tmp_path):
    """The script above, waiting at its end."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=tmp_path, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def test_all_runs_of_a_process_are_on_one_page(script):
    words = [int(script.stdout.readline()) for _ in range(3)]
    said = script.stderr.readline()
    url = said.removeprefix("watch it at ").strip()
    ends = time.monotonic() + 10
    rows = []
    while len(rows) < 3 and time.monotonic() < ends:
        rows = ask(url + "api/runs")
        time.sleep(0.1)
    assert {row["name"]: row["words"] for row in rows} == dict(
        zip(["run-1.ctlog", "run-2.ctlog", "mine.ctlog"], words, strict=True)
    )
    assert {row["status"] for row in rows} == {"finished"}


@pytest.fixture
def own_page(tmp_path):
    """Start a page as a run does, in a folder of its own; one that nobody needs leaves after a tenth of a second."""
    started = []

    def start(name="collabtop-watch-a", program=("-m", "collabtop.watch"), is_served=True):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "run-1.ctlog").touch()
        command = [sys.executable, *program, str(folder), "0.1"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, start_new_session=True, **pipes))
        url = started[-1].stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        if is_served:
            ask(url + "api/runs")  # answered when it has begun to serve
        return started[-1], folder

    yield start
    for process in started:
        process.kill()
        with process:  # closes its pipes
            process.wait()


@pytest.mark.parametrize("end", [lambda it: it.stdin.close(), lambda it: it.terminate(), lambda it: it.send_signal(2)])
@pytest.mark.slow
def test_a_page_takes_its_folder_away_when_its_run_is_over_or_it_is_told_to_end(own_page, end):
    process, folder = own_page()
    end(process)
    process.wait(10)
    assert not folder.exists()


TOLD_AT_ONCE = """
import signal, sys
from collabtop.watch import __main__ as page

class ToldAtOnce(page.Page):
    def serve(self, while_):
        signal.raise_signal(signal.{name})  # its address is out, its server not up
        super().serve(while_)

page.Page = ToldAtOnce
page.main(sys.argv[1], float(sys.argv[2]))
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
@pytest.mark.slow
def test_a_page_that_is_told_to_end_before_it_serves_ends_too(own_page, name):
    process, folder = own_page(program=("-c", TOLD_AT_ONCE.format(name=name)), is_served=False)
    assert process.wait(10) == 0
    assert not folder.exists()


@pytest.mark.slow
def test_what_a_killed_page_left_is_taken_away_by_the_next_one(own_page):
    killed, folder = own_page("collabtop-watch-a")
    _, used = own_page("collabtop-watch-b")
    killed.kill()
    killed.wait(10)
    assert folder.exists()
    own_page("collabtop-watch-c")
    ends = time.monotonic() + 10
    while folder.exists() and time.monotonic() < ends:
        time.sleep(0.02)
    assert not folder.exists()
    assert used.exists()  # its page is there


BEING_BORN = """
import sys
from pathlib import Path
from collabtop.watch import __main__ as page

lock_file = page.lock_file

def lock_late(file):
    page.take_away_what_others_left(Path(sys.argv[1]).with_name("another"))  # as another page does that begins now
    return lock_file(file)

page.lock_file = lock_late
page.main(sys.argv[1], float(sys.argv[2]))
"""


def test_a_page_that_is_just_starting_keeps_its_folder(own_page):
    _, folder = own_page(program=("-c", BEING_BORN))
    assert (folder / "run-1.ctlog").exists()


def test_watching_changes_nothing_in_a_run(tmp_path):
    arms = ct.BernoulliArms([0.2, 0.9, 0.5])
    asked = {"agents": 2, "horizon": 90, "seed": 1}
    assert ct.identify(arms, 1, **asked, watch=True) == ct.identify(arms, 1, **asked)


@pytest.fixture
def pages(monkeypatch):
    """The pages of this process; those that a test starts end with it."""
    started = {}
    monkeypatch.setattr("collabtop.runs.watch_page._pages", started)
    yield started
    for page in started.values():
        page.close()


@pytest.mark.parametrize(
    ("end", "log"),
    [
        (lambda page: page._process.terminate(), None),
        (lambda page: page._process.kill(), "mine.ctlog"),
        (lambda page: shutil.rmtree(page._folder), None),
    ],
    ids=["ended", "killed", "without its folder"],
)
@pytest.mark.slow
def test_after_somebody_ended_the_page_the_next_run_has_a_new_one(pages, end, log, tmp_path):
    arms = ct.BernoulliArms([0.2, 0.9, 0.5])
    asked = {"agents": 2, "horizon": 90, "seed": 1, "watch": True}
    result = ct.identify(arms, 1, **asked)
    [ended] = pages.values()
    end(ended)
    until = time.monotonic() + 20
    while not ended.has_ended and time.monotonic() < until:
        time.sleep(0.02)
    assert ct.identify(arms, 1, **asked, checkpoint=log and tmp_path / log) == result
    [page] = pages.values()
    assert page.url != ended.url
    rows = []
    while not rows and time.monotonic() < until:
        rows = ask(page.url + "api/runs")
    assert [row["status"] for row in rows] == ["finished"]


def test_without_the_extra_it_says_which(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ct.InputError, match=r"the page needs uvicorn, .*: pip install 'collabtop\[watch\]'"):
        ct.identify(ct.BernoulliArms([0.2, 0.9]), 1, agents=2, horizon=90, watch=True)
