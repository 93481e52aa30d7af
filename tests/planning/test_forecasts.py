"""A dry run says what a run would do, and pulls nothing."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from tests.support.accepted import accepted_setting


@pytest.mark.parametrize("algorithm", ["kzz", "kzz-balanced", "uniform", "collab-top-noniid"])
def test_the_rounds_of_a_fixed_schedule_are_those_of_the_run(algorithm):
    arms = ct.BernoulliArms(np.linspace(0.1, 0.9, 20))
    forecast = ct.dry_run(arms, 2, agents=4, horizon=2_000, algorithm=algorithm)
    result = ct.identify(arms, 2, agents=4, horizon=2_000, algorithm=algorithm, seed=1)
    assert [(it.live, it.time) for it in forecast.rounds] == [(it.live, it.time) for it in result.rounds]
    pulls = result.observed.pulls
    assert (forecast.fewest, forecast.most, forecast.pulls) == (pulls.min(), pulls.max(), pulls.sum())
    assert forecast.rounds[-1].so_far == pytest.approx(forecast.most)


@pytest.mark.parametrize("algorithm", ct.available_algorithms())
def test_every_algorithm_can_be_forecast(algorithm):
    _, agents = accepted_setting(algorithm, 1, 3)
    forecast = ct.dry_run([f"prompt {i}" for i in range(12)], 1, agents=agents, horizon=500, algorithm=algorithm)
    assert 0 < forecast.fewest <= forecast.most
    assert forecast.pulls <= forecast.most_cost <= 500 * agents * 1.001
    assert forecast.smallest_horizon <= 500


def test_each_candidate_has_its_price():
    forecast = ct.dry_run(["a", "bb"], 1, agents=2, budget=300, cost=len, algorithm="uniform")
    rows = forecast.by_candidate()
    assert [row["label"] for row in rows] == ["a", "bb"]
    assert [row["most_cost"] for row in rows] == [100, 200]
    assert forecast.most_cost == 300


def test_a_dry_run_can_be_read():
    text = " ".join(str(ct.dry_run(list("abcd"), 1, agents=2, horizon=500, algorithm="kzz")).split())
    assert "A dry run of kzz: the best 1 of 4, 2 agents" in text
    assert "a candidate gets 125 to 375 pulls" in text.replace("\n", " ")


def test_it_raises_what_the_run_would_raise():
    with pytest.raises(ct.HorizonError, match="horizon is 3, but 4 arms"):
        ct.dry_run(list("abcd"), 1, agents=2, horizon=3, algorithm="uniform")
    with pytest.raises(ct.InputError, match="exactly one of horizon, budget and confidence"):
        ct.dry_run(list("abcd"), 1, agents=2)


def test_all_candidates_wanted_is_no_work():
    forecast = ct.dry_run(list("abcd"), 4, agents=2, horizon=1)
    assert (forecast.pulls, forecast.most_cost, forecast.rounds) == (0, 0.0, ())
