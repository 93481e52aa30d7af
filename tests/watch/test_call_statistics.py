"""Throughput and health of a run, from the records of its log."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import collabtop as ct
from collabtop.runlog.format import FailedAttempt, Timestamp
from collabtop.watch import call_statistics
from collabtop.watch.call_statistics import CallStatistics
from collabtop.watch.views import view
from collabtop.watch.watched_runs import WatchedRun


def test_the_totals_are_those_of_the_result(tmp_path):
    calls = itertools.count()

    def score(candidate, rng):
        number = next(calls)
        if number % 4 == 0:
            raise TimeoutError("no answer")
        return 7.0 if number % 9 == 0 else ct.Reward(0.5, cost=0.25)

    path = tmp_path / "run.ctlog"
    policy = ct.PullPolicy(retries=1, retry_on=(TimeoutError, ValueError), failures="zero", wait=0.0)
    result = ct.identify(["a", "b", "c"], 1, pull=score, policy=policy, agents=1, horizon=40, checkpoint=path)
    run = WatchedRun(path, "run.ctlog")
    run.update(replay=True)
    sections = view(run)
    assert sections["money"] == {"spent": pytest.approx(result.totals.cost), "budget": None}
    assert sum(sections["arms"]["spent"]) == pytest.approx(result.totals.cost)
    health = sections["health"]
    assert health["attempts_failed"] == result.totals.attempts_failed
    assert health["retries"] == result.totals.retries
    assert {kind for kind, _ in health["errors"]} == {"TimeoutError", "invalid reward"}
    assert sum(count for _, count in health["errors"]) == result.totals.attempts_failed
    assert len(health["latency"]) == 3
    assert sections["progress"]["failed"] == result.totals.failures


def test_waits_for_rate_limits_are_added_up(tmp_path):
    calls = itertools.count()

    def score(candidate, rng):
        if next(calls) == 3:
            raise ct.RetryLater(0.12)
        return 0.5

    limits: dict[str, dict[str, Any]] = {"own": {"rate": 100}, "none": {}}
    for name, options in limits.items():
        path = tmp_path / f"{name}.ctlog"
        ct.identify(["a", "b"], 1, pull=score, agents=1, horizon=12, seed=1, checkpoint=path, **options)
        run = WatchedRun(path, name)
        run.update(replay=True)
        health = view(run)["health"]
        if name == "own":  # ten calls wait for the rate, and one because the service asked for it
            assert 0.12 + 8 * 0.01 < health["waited"] < 30
            assert health["errors"] == [("RetryLater", 1)]
        else:
            assert health["waited"] == 0


def test_the_pace_is_that_of_the_last_minute():
    calls = CallStatistics()
    for second in range(200):
        calls.add(Timestamp(1e9 + second), pulls=10 * min(second, 100) + 30 * max(0, second - 100))
    assert calls.per_second == pytest.approx(30)
    assert calls.cost_per_minute is None
    assert [pulls for _, pulls, _ in calls.points][-1] == 1000 + 30 * 99


def test_a_clock_that_stands_still_has_no_pace():
    calls = CallStatistics()
    assert calls.per_second is None
    for pulls in (1, 2):
        calls.add(Timestamp(5.0), pulls=pulls)
    assert calls.per_second is None


def test_kinds_of_errors_beyond_the_limit_are_counted_together(monkeypatch):
    monkeypatch.setattr(call_statistics, "MAX_ERROR_KINDS", 2)
    calls = CallStatistics()
    for error in ("raised A: x", "raised B: x", "raised C: x", "raised D: x", "raised A: y"):
        calls.add(FailedAttempt(0, 0, "a", 0, error, again=True), pulls=0)
    assert calls.errors == {"A": 2, "B": 1, "others": 2}


def test_a_budget_without_reported_costs_is_spent_by_its_prices(tmp_path):
    path = tmp_path / "run.ctlog"
    ct.identify(["a", "b"], 1, pull=lambda candidate, rng: 0.5, agents=1, budget=20.0, cost=[0.5, 1.0], checkpoint=path)
    run = WatchedRun(path, "run.ctlog")
    run.update(replay=True)
    sections = view(run)
    assert 0 < sections["money"]["spent"] <= sections["money"]["budget"] == 20.0
    assert sum(sections["arms"]["spent"]) == pytest.approx(sections["money"]["spent"])
