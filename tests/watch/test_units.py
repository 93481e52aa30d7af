"""Runs whose rewards have a direction and bounds of their own, on the page and in its files."""

from __future__ import annotations

import csv
import io
import re

import pytest
from playwright.sync_api import expect

import collabtop as ct
from collabtop.watch.downloads import as_csv
from collabtop.watch.pull_history import PullHistory, candidate_view, comparison_view
from collabtop.watch.views import view
from collabtop.watch.watched_runs import WatchedRun

BASE = {"near": 80.0, "far": 140.0, "busy": 110.0}


def latency(server, request):
    return BASE[server] + request % 7


@pytest.fixture(params=[(0, 500), None], ids=["bounds", "no bounds"])
def finished(request, tmp_path):
    """The log of a finished run that looked for the fastest two of three servers."""
    path = tmp_path / "latency.ctlog"
    arms = ct.DatasetArms(list(BASE), range(70), latency, direction="minimize", bounds=request.param)
    result = ct.identify(arms, 2, agents=1, horizon=150, seed=1, checkpoint=path)
    assert result.top == ["near", "busy"]
    return path


def read(path, arm):
    history = PullHistory(path, arm)
    assert history.update(seconds=60)
    return history


def test_the_view_of_a_run_is_in_the_users_unit(finished):
    run = WatchedRun(finished, "latency")
    run.update(replay=True)
    shown = view(run)
    assert shown["head"]["direction"] == "minimize"
    arms = shown["arms"]
    for prefix in ("", "seen_"):
        means, low, high = (arms[prefix + name] for name in ("mean", "low", "high"))
        assert means == pytest.approx([83, 143, 113], abs=1)
        for row in zip(low, means, high, strict=True):
            assert shown["head"]["bounds"] is None or row[0] <= row[1] <= row[2]


def test_a_table_to_download_is_in_the_users_unit(finished):
    run = WatchedRun(finished, "latency")
    run.update(replay=True)
    rows = list(csv.DictReader(io.StringIO(as_csv(run))))
    assert [row["label"] for row in rows] == ["near", "busy", "far"]
    assert [float(row["mean"]) for row in rows] == pytest.approx([83, 113, 143], abs=1)


def test_the_pulls_of_a_candidate_are_in_the_users_unit(finished):
    shown = candidate_view(read(finished, 0), page=0)
    assert all(79.99 < row["reward"] < 86.01 for row in shown["rows"])
    assert shown["points"][-1][1] == pytest.approx(83, abs=1)


def test_two_candidates_are_compared_in_the_users_unit(finished):
    shown = comparison_view(read(finished, 0), read(finished, 2))
    assert (shown["lower"], shown["higher"]) == (shown["common"], 0)
    assert shown["difference"][0] == pytest.approx(-30)
    assert all(row["rewards"][1] - row["rewards"][0] == pytest.approx(30) for row in shown["separating"])


def test_the_page_shows_the_smallest_mean_first(tab, serve, finished):
    tab.goto(serve(finished) + "runs/latency.ctlog")
    expect(tab.locator("#answer-title")).to_have_text("Answer")
    rows = [row.split("\t") for row in tab.locator("#answer-table tbody tr").all_inner_texts()]
    assert [row[1].strip() for row in rows] == ["near", "busy"]
    assert float(rows[0][2]) == pytest.approx(83, abs=1)
    expect(tab.locator("#answer-text")).to_contain_text(re.compile("[Pp]lace 2 is ahead of place 3 by"))
