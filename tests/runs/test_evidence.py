"""What a result claims about its answer: intervals, places that are shared unless earned, and thin evidence."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.algorithms.registry import available_algorithms

IID = [
    name
    for name in available_algorithms()
    if name not in ("kl-lucb", "confident-top", "confident-top-noniid", "robust-top")
]


@pytest.mark.parametrize("algorithm", IID)
def test_two_pulls_never_make_an_unflagged_rank_1(algorithm):
    for seed in range(20):
        arms = ct.BernoulliArms([0.9, 0.1])
        result = ct.identify(arms, 1, agents=1, horizon=5, algorithm=algorithm, seed=seed)
        best = result.standings[0]
        assert best.thin is not False
        assert ("thin" if best.thin else "unknown") in str(result)
        assert ("thin" if best.thin else "unknown") in str(result.table())


def run(means, horizon=4_000, m=3, **more: Any):
    return ct.identify(ct.BernoulliArms(means), m, agents=2, horizon=horizon, algorithm="uniform", seed=1, **more)


def test_neighbours_share_a_place_unless_their_intervals_are_apart():
    result = run([0.9, 0.61, 0.6, 0.2, 0.1])
    assert [standing.places for standing in result.standings] == ["1", "2-3", "2-3"]
    assert [standing.thin for standing in result.standings] == [False, False, False]
    for standing in result.standings:
        assert standing.low < result.estimates[standing.arm].mean < standing.high
    assert result.standings[0].low > max(standing.high for standing in result.standings[1:])


def test_the_order_of_equal_candidates_is_not_shown():
    result = run([0.5, 0.5, 0.5, 0.1, 0.1])
    assert {standing.places for standing in result.standings} == {"1-3"}


def test_a_candidate_that_the_border_may_hold_was_accepted_on_thin_evidence():
    result = run([0.9, 0.52, 0.5, 0.1], m=2)
    assert [standing.thin for standing in result.standings] == [False, True]


def test_places_intervals_and_flags_are_in_the_json_and_in_the_table():
    result = run([0.9, 0.61, 0.6, 0.2, 0.1], horizon=40)
    answer = json.loads(result.to_json())["answer"]
    rows = {row.arm: row for row in result.table().rows}
    for entry, standing in zip(answer, result.standings, strict=True):
        row = rows[standing.arm]
        assert (entry["place"], entry["last_place"]) == (row.place, row.last_place)
        assert (entry["low"], entry["high"], entry["pulls"], entry["thin"]) == (row.low, row.high, row.pulls, row.thin)
    assert all(rows[arm].place is None for arm in rows if arm not in result.top_indices)


def test_a_run_with_a_confidence_flags_its_guesses():
    arms = ct.BernoulliArms([0.9, 0.51, 0.5, 0.1])
    sure = ct.identify(arms, 1, agents=2, confidence=0.9, seed=1)
    assert [standing.thin for standing in sure.standings] == [False]
    unsure = ct.identify(arms, 2, agents=2, confidence=0.9, max_horizon=500, seed=1)
    assert [standing.thin for standing in unsure.standings] == [False, True]


def test_a_mean_over_all_examples_has_no_interval_and_earns_its_place():
    def score(candidate, example):
        return example < 50 + candidate

    arms = ct.DatasetArms(range(4), range(100), score)
    result = ct.identify(arms, 2, agents=2, horizon=1_000, seed=1)
    assert [(standing.places, standing.low == standing.high) for standing in result.standings] == [
        ("1", True),
        ("2", True),
    ]
    assert [standing.thin for standing in result.standings] == [False, False]


def test_candidates_on_the_same_examples_are_separated_by_their_differences():
    """All candidates find the same questions hard: their means vary by .5, but their differences hardly at all."""
    easy = np.random.default_rng(1).random(4_000)

    def score(candidate, question):
        return bool(easy[question] < candidate)

    arms = ct.DatasetArms([0.5, 0.55, 0.6, *np.linspace(0.05, 0.3, 21).tolist()], range(4_000), score)
    result = ct.identify(arms, 2, agents=1, horizon=12_000, seed=3)
    best, second = result.standings
    assert best.low < second.high  # the intervals overlap
    assert (best.places, second.places) == ("1", "2")
    assert result.warnings == ()


def latencies(rng=None):
    """Latencies of 12 services in ms, rescaled by hand so that 0 to 2,000 ms become 1 to 0."""
    return [120 + 4 * number for number in range(12)]


@pytest.mark.slow
def test_a_latency_rescaled_to_the_unit_interval_is_right_and_not_warned():
    def pull(mean, rng):
        return 1 - rng.normal(mean, 6.0) / 2_000

    for seed in range(20):
        result = ct.identify(latencies(), 1, pull=pull, agents=4, horizon=400, seed=seed)
        assert result.top == ["120"]
        assert result.warnings == ()
        assert result.standings[0].thin is False


def test_all_teams_claim_the_same():
    def pull(mean, rng):
        return rng.beta(20 * mean, 20 - 20 * mean)

    asked: dict[str, Any] = {"pull": pull, "agents": 4, "horizon": 300, "seed": 1}
    local, threads = (ct.identify([0.5, 0.6, 0.4, 0.3, 0.2], 2, team=team, **asked) for team in ("local", "threads"))
    assert local.to_dict() == threads.to_dict()
