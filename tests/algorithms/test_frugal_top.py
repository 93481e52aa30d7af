"""frugal-top: its messages, its costs and its error bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collabtop as ct
from collabtop.algorithms.shared.frugal_bound import frugal_round_trips_bound, frugal_words_bound
from collabtop.protocol import messages
from collabtop.testing import ConstantArms, WireTeam
from tests.support.frugal_simulation import first_errors


def run(n=200, m=3, agents=5, horizon=4_000, seed=1, means=None, team=None, **options):
    arms = ct.BernoulliArms(np.linspace(0.9, 0.1, n) if means is None else means)
    algorithm = ct.FrugalTop(**options)
    team = team or ct.LocalTeam()
    return ct.identify(arms, m, agents=agents, horizon=horizon, algorithm=algorithm, seed=seed, team=team)


def test_the_local_stages_take_one_round_trip_with_a_seed_down_and_hands_up():
    team = WireTeam()
    result = run(team=team)
    first = [(way, type(message)) for _, way, message in team.crossed[:10]]
    assert first == [("down", messages.Prune)] * 5 + [("up", messages.Hand)] * 5
    assert result.rounds[0].phase == "local"
    assert result.rounds[0].round_trips == 1
    assert result.ledger.words_by("kind")["Prune"] == 5


def test_small_hands_are_not_pruned_and_all_arms_are_shared_at_once():
    result = run(n=40, agents=10, horizon=500)
    assert [round_.phase for round_ in result.rounds] == ["shared"] * len(result.rounds)
    assert "Prune" not in result.ledger.words_by("kind")


def test_an_arm_that_an_agent_dropped_on_its_own_has_no_mean_and_no_round():
    result = run()
    unseen = [estimate for estimate in result.estimates if estimate.mean is None]
    handed_over = result.ledger.words_by("kind")["Hand"] // 2  # an arm and its mean
    assert len(unseen) == 200 - handed_over
    assert all((estimate.verdict, estimate.round, estimate.pulls) == ("rejected", None, None) for estimate in unseen)


@given(
    n=st.integers(2, 300),
    m=st.integers(1, 150),
    agents=st.integers(1, 40),
    spare=st.integers(0, 5_000),
    seed=st.integers(0, 1_000),
)
@settings(max_examples=settings().max_examples * 3 // 4)
def test_words_and_round_trips_are_never_above_those_of_the_plan(n, m, agents, spare, seed):
    m = min(m, n // 2)
    algorithm = ct.FrugalTop()
    horizon = algorithm.smallest_horizon(ct.Problem(n, m, agents, 1)) + spare
    arms = ct.BernoulliArms(np.random.default_rng(seed).random(n))
    result = ct.identify(arms, m, agents=agents, horizon=horizon, algorithm=algorithm, seed=seed)
    problem = ct.Problem(n, m, agents, horizon)
    assert result.words <= frugal_words_bound(problem)
    assert result.round_trips <= frugal_round_trips_bound(problem)


@pytest.mark.parametrize("agents", [2, 10, 100])
@pytest.mark.parametrize("n", [2**8, 2**12, 2**16])
def test_words_are_at_most_sixteen_times_k_log_n_plus_m(n, agents):
    for m in (1, 8, math.isqrt(n), n // 4):
        horizon = ct.FrugalTop().smallest_horizon(ct.Problem(n, m, agents, 1))
        assert frugal_words_bound(ct.Problem(n, m, agents, horizon)) <= 16 * (agents * math.log2(n) + m)


def test_ties_are_broken_at_random():
    arms = ConstantArms([0.5] * 30)
    winners = [run_once(arms, seed) for seed in range(400)]
    counts = np.bincount(winners, minlength=30)
    assert counts.max() < 40  # 13.3 are expected; Poisson exceeds 40 once in 10^8
    assert np.count_nonzero(counts) == 30


def run_once(arms, seed):
    return ct.identify(arms, 1, agents=3, horizon=200, algorithm="frugal-top", seed=seed).top_indices[0]


@pytest.mark.parametrize("risk", [0, 1, -0.1, float("nan")])
def test_a_risk_that_is_no_probability_is_refused(risk):
    with pytest.raises(ct.InputError, match="risk is"):
        ct.FrugalTop(risk=risk)


def test_a_smaller_risk_hands_over_more_arms():
    careless, careful = run(risk=0.1, horizon=9_000), run(risk=1e-9, horizon=9_000)
    assert careless.ledger.words_by("kind")["Hand"] < careful.ledger.words_by("kind")["Hand"]


@pytest.mark.parametrize("round_trips", [1, 2, 3, 4, 7, 100])
@pytest.mark.parametrize(
    ("n", "m", "agents"), [(200, 1, 5), (200, 8, 5), (64, 8, 10), (30, 2, 40), (9, 4, 1), (2, 1, 3)]
)
def test_a_run_takes_no_more_round_trips_than_allowed_and_finds_the_best_without_noise(n, m, agents, round_trips):
    algorithm = ct.FrugalTop(round_trips=round_trips)
    arms = ConstantArms(np.arange(n) / 1024)
    horizon = algorithm.smallest_horizon(ct.Problem(n, m, agents, 1)) + 50
    result = ct.identify(arms, m, agents=agents, horizon=horizon, algorithm=algorithm, seed=1)
    assert result.round_trips <= round_trips
    assert sorted(result.top_indices) == list(range(n - m, n))
    assert result.words <= algorithm.most_words(ct.Problem(n, m, agents, horizon))
    assert result.time <= horizon


def test_with_one_round_trip_each_agent_names_the_best_of_its_arms():
    team = WireTeam()
    result = run(m=1, round_trips=1, team=team)
    assert [type(message) for _, _, message in team.crossed] == [messages.Prune] * 5 + [messages.Hand] * 5
    assert result.words == 5 + 2 * 5


@pytest.mark.parametrize("round_trips", [0, -1, 2.5, "3", True])
def test_round_trips_that_are_no_positive_whole_number_are_refused(round_trips):
    with pytest.raises(ct.InputError, match="round_trips is"):
        ct.FrugalTop(round_trips=round_trips)


@pytest.mark.slow
def test_every_further_round_trip_lowers_the_error():
    means = np.sort(ct.datasets.movielens_like().means)[::-1]
    problem, runs = ct.Problem(588, 1, 10, 12_000), 500
    wrong = []
    for round_trips in (1, 2, 4):
        (plan,) = ct.FrugalTop(round_trips=round_trips).plans(problem)
        errors = first_errors(means, 1, 10, plan, runs, np.random.default_rng(round_trips))
        wrong.append(int(np.count_nonzero(errors >= 0)))
    # About 40, 12 and 4 are expected.
    assert wrong[0] > wrong[1] > wrong[2]


# The bound.


@given(
    values=st.lists(st.integers(0, 1024), min_size=2, max_size=60),
    m=st.integers(1, 59),
    agents=st.integers(1, 20),
    horizon=st.integers(1, 10**7),
    risk=st.sampled_from([0.2, 0.001, 1e-9]),
)
def test_the_bound_is_a_probability_for_every_instance(values, m, agents, horizon, risk):
    means = np.array(values) / 1024
    assert 0 <= ct.frugal_error_bound(means, min(m, len(means) - 1), agents, horizon, risk) <= 1


def test_the_bound_is_one_if_the_horizon_is_too_small_or_arms_tie():
    assert ct.frugal_error_bound([0.5, 0.5, 0.1], 1, 2, 10**9) == 1
    assert ct.frugal_error_bound([0.5, 0.4, 0.1], 1, 2, 1) == 1


def test_the_bound_falls_with_the_horizon_and_stays_positive_because_of_the_deal():
    means = [0.9] * 4 + [0.4] * 396
    bounds = [ct.frugal_error_bound(means, 4, 10, horizon, risk=0.01) for horizon in (10**4, 10**5, 10**6)]
    assert bounds == sorted(bounds, reverse=True)
    assert 0 < bounds[-1] <= 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.5, 0.4]], 1, 2, 100), "2 dimensions"),
        (([0.5, 1.4], 1, 2, 100), "mean lies in"),
        (([0.5, 0.4], 2, 2, 100), "m is 2"),
        (([0.5, 0.4], 1, 0, 100), "agents is 0"),
        (([0.5, 0.4], 1, 1, 100, 2.0), "risk is 2.0"),
        (([0.5, 0.4], 1, 1, 100, 0.1, 0), "round_trips is 0"),
    ],
)
def test_the_bound_refuses_bad_arguments(arguments, message):
    with pytest.raises(ct.InputError, match=message):
        ct.frugal_error_bound(*arguments)


EASY = {
    "one good arm, local stages": (ct.BernoulliArms([0.95] + [0.2] * 119), 1, 4, (760, 1_100)),
    "one good arm, all shared": (ct.BernoulliArms([0.95] + [0.2] * 19), 1, 5, (290, 400)),
    "four good arms": (ct.BernoulliArms([0.95] * 4 + [0.1] * 116), 4, 3, (2_400, 3_300)),
    "most of them wanted": (ct.BernoulliArms([0.95] * 37 + [0.1] * 3), 37, 2, (950, 1_300)),
    "all different": (ct.datasets.arithmetic(16), 4, 4, (4_000, 5_300)),
}


@pytest.mark.parametrize("name", EASY)
@pytest.mark.slow
def test_the_measured_error_is_never_above_the_bound(name):
    arms, m, agents, horizons = EASY[name]
    runs, informative = 300, 0
    for horizon in horizons:
        bound = ct.frugal_error_bound(arms, m, agents, horizon, risk=0.001)
        informative += bound < 1
        study = ct.Study(arms=arms, algorithms="frugal-top", m=m, agents=agents, horizon=horizon, runs=runs, seed=1)
        wrong = study.run(jobs=1).points()[0].wrong
        # One-sided, 4 standard deviations: a false alarm in 30,000.
        assert wrong <= runs * bound + 4 * math.sqrt(runs * bound * max(0.0, 1 - bound)) + 1e-9
    assert informative, "all bounds are 1: choose longer horizons"
