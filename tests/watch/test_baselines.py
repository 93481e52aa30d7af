"""The baseline that the page shows for a run depends on whether its arms are IID."""

from __future__ import annotations

import time

import pytest

import collabtop as ct
from collabtop.watch.views import view
from collabtop.watch.watched_runs import WatchedRun

REWARDS = [[0, 1, 0, 0], [1, 1, 0, 1], [0, 1, 1, 0]]


@pytest.mark.parametrize(
    ("rewards", "baseline", "formula"),
    [
        (REWARDS, "kzz", "K log2(n)^2 + m"),
        ([[of_candidate, of_candidate[::-1]] for of_candidate in REWARDS], "collab-top-noniid", "K n log2(n)"),
    ],
    ids=["pooled", "by agent"],
)
def test_the_baseline_of_logged_arms_depends_on_whether_they_are_by_agent(tmp_path, rewards, baseline, formula):
    path = tmp_path / "run.ctlog"
    ct.identify(ct.LoggedArms(rewards), 1, agents=2, horizon=6, seed=1, algorithm="uniform", checkpoint=path)
    run = WatchedRun(path, path.name)
    run.update(replay=True)
    deadline = time.monotonic() + 30
    while run.baseline is None and time.monotonic() < deadline:
        time.sleep(0.01)
    comparison = view(run)["comparison"]
    assert comparison["baseline"]["name"] == baseline
    assert comparison["baseline"]["error"] is None
    assert comparison["order"]["formula"] == formula
