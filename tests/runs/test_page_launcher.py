"""`watch=True`: one page for all runs of a process, which never affects the runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from typing import Any

import pytest

import collabtop as ct
from tests.support.page_requests import get_json

SCRIPT = """
import collabtop as ct
arms = ct.BernoulliArms([0.2, 0.9, 0.5])
for algorithm in ("kzz", "uniform"):
    print(ct.identify(arms, 1, agents=2, horizon=90, seed=1, algorithm=algorithm, watch=True).words, flush=True)
print(ct.identify(arms, 1, agents=2, horizon=90, seed=1, watch=True, checkpoint="mine.ctlog").words, flush=True)
input()
"""


@pytest.fixture
def script(tmp_path):
    """The script above, waiting at its end."""
    names = ("stdin", "stdout", "stderr")
    pipes: dict[str, Any] = dict.fromkeys(names, subprocess.PIPE) | {"text": True}
    with subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=tmp_path, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def test_all_runs_of_a_process_are_on_one_page(script):
    words = [int(script.stdout.readline()) for _ in range(3)]
    url = script.stderr.readline().removeprefix("watch it at ").strip()
    deadline = time.monotonic() + 10
    rows = []
    while len(rows) < 3 and time.monotonic() < deadline:
        rows = get_json(url + "api/runs")
        time.sleep(0.1)
    assert {row["name"]: row["words"] for row in rows} == dict(
        zip(["run-1.ctlog", "run-2.ctlog", "mine.ctlog"], words, strict=True)
    )
    assert {row["status"] for row in rows} == {"finished"}


def test_watching_changes_nothing_in_a_run():
    arms = ct.BernoulliArms([0.2, 0.9, 0.5])
    arguments: dict[str, Any] = {"agents": 2, "horizon": 90, "seed": 1}
    assert ct.identify(arms, 1, **arguments, watch=True) == ct.identify(arms, 1, **arguments)


@pytest.fixture
def pages(monkeypatch):
    """The pages of this process; those that a test starts end with it."""
    started = {}
    monkeypatch.setattr("collabtop.runs.page_launcher._pages", started)
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
    ids=["terminated", "killed", "without its folder"],
)
@pytest.mark.slow
def test_after_the_page_was_stopped_the_next_run_gets_a_new_one(pages, end, log, tmp_path):
    arms = ct.BernoulliArms([0.2, 0.9, 0.5])
    arguments: dict[str, Any] = {"agents": 2, "horizon": 90, "seed": 1, "watch": True}
    result = ct.identify(arms, 1, **arguments)
    [stopped] = pages.values()
    end(stopped)
    deadline = time.monotonic() + 20
    while not stopped.has_ended and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ct.identify(arms, 1, **arguments, checkpoint=log and tmp_path / log) == result
    [page] = pages.values()
    assert page.url != stopped.url
    rows = []
    while not rows and time.monotonic() < deadline:
        rows = get_json(page.url + "api/runs")
    assert [row["status"] for row in rows] == ["finished"]


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ct.InputError, match=r"the page needs uvicorn, .*: pip install 'collabtop\[watch\]'"):
        ct.identify(ct.BernoulliArms([0.2, 0.9]), 1, agents=2, horizon=90, watch=True)
