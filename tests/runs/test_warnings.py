"""A result says when the horizon could not tell the border apart, with the numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

import collabtop as ct
from collabtop.problem import Problem
from collabtop.runs.warnings import border, probability_wrong
from collabtop.testing import ConstantArms


def run(means, horizon, m=1, algorithm="kzz-balanced", seed=1, labels=None):
    arms = ct.BernoulliArms(means, labels=labels)
    return ct.identify(arms, m, agents=4, horizon=horizon, algorithm=algorithm, seed=seed)


def test_a_hopeless_horizon_is_said_with_gap_standard_error_and_what_it_would_take():
    result = run([0.5] * 20 + [0.501], 200, labels=[f"film {i}" for i in range(21)])
    (line,) = result.warnings
    assert line.startswith("the horizon of 200 is too short to separate the two sides of the border: film ")
    assert "(in) and film" in line
    assert "+-" in line
    assert "standard errors" in line
    assert "horizon" in line.split(";")[1]
    assert json.loads(result.to_json())["warnings"] == [line]
    printed = " ".join(str(result).split())
    assert f"warning: {line}" in printed


def test_an_ample_horizon_leaves_no_doubt():
    result = run([0.9, 0.4, 0.4, 0.3], 4_000)
    assert result.warnings == ()
    assert result.to_dict()["warnings"] == []
    assert "warning" not in str(result)


def test_of_hopeless_runs_most_are_warned_and_of_ample_ones_hardly_any():
    arms = ct.datasets.equal_gaps(32, m=2, gap=0.3)
    for horizon, least, most in ((40, 0.7, 1.0), (2_000, 0.0, 0.1)):
        runs = [ct.identify(arms, 2, agents=4, horizon=horizon, algorithm="kzz", seed=s) for s in range(60)]
        assert least <= np.mean([bool(one.warnings) for one in runs]) <= most


@pytest.mark.parametrize("algorithm", ["frugal-top", "collab-top-iid", "uniform", "kzz"])
@pytest.mark.parametrize("m", [1, 5, 25, 30])
def test_every_kind_of_run_can_be_asked(algorithm, m):
    arms = ct.BernoulliArms(np.linspace(0.2, 0.8, 30))
    result = ct.identify(arms, m, agents=3, horizon=400, algorithm=algorithm, seed=2)
    assert isinstance(result.warnings, tuple)


def test_where_all_arms_are_wanted_there_is_no_border():
    result = ct.identify(ct.BernoulliArms([0.5, 0.4]), 2, agents=1, horizon=1)
    assert border(result.estimates, Problem(2, 2, 1, 1)) is None
    assert result.warnings == ()


def test_a_gap_of_nothing_names_no_horizon():
    result = ct.identify(ConstantArms([0.5, 0.5]), 1, agents=1, horizon=100, algorithm="uniform", seed=1)
    assert "no horizon can be suggested" in result.warnings[0]


def test_a_run_that_is_sure_has_no_doubts_and_one_that_is_not_says_what_is_open():
    arms = ct.BernoulliArms([0.52, 0.5, 0.1])
    assert ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, agents=1, confidence=0.9, seed=1).warnings == ()
    lines = ct.identify(arms, 1, agents=1, confidence=0.9, max_horizon=500, seed=1).warnings
    assert lines[0] == "not sure: 2 of 3 arms are still open at the limit of 500"
    assert "standard errors" in lines[1]


def scored(candidate, example):
    return (example * 7 + candidate) % 100 < 50 + candidate


def test_candidates_that_were_scored_on_all_examples_are_exact_and_not_warned_about():
    arms = ct.DatasetArms(range(4), range(100), scored)
    result = ct.identify(arms, 1, agents=2, horizon=1_000, seed=1)
    assert result.top == ["3"]
    assert result.exact == ["0", "1", "2", "3"]
    assert result.warnings == ()  # the gap of .01 is certain
    assert "exact" in str(result.table())


def test_two_exact_candidates_that_tie_at_the_border_are_named():
    arms = ct.DatasetArms(["left", "right"], range(10), lambda candidate, example: example % 2)
    result = ct.identify(arms, 1, agents=1, horizon=100, seed=1)
    assert [line.partition("(out)")[2] for line in result.warnings] == [" have the same mean over all examples"]


def test_the_fewer_examples_are_left_the_smaller_the_error_of_a_mean():
    def standard_error(examples):
        arms = ct.DatasetArms(range(2), range(examples), lambda candidate, example: (example + candidate) % 2)
        result = ct.identify(arms, 1, agents=1, horizon=200, algorithm="uniform", seed=1)
        return border(result.estimates, Problem(2, 1, 1, 200, pull_limit=examples)).standard_error

    few, many = standard_error(101), standard_error(100_000)
    assert few < 0.2 * many


def alarm_rate(arms, m, agents, algorithm, horizon, runs=60):
    results = [
        ct.identify(arms, m, agents=agents, horizon=horizon, algorithm=algorithm, seed=seed) for seed in range(runs)
    ]
    wrong = np.mean([not ct.problem.is_best(arms.means, result.top_indices) for result in results])
    return wrong, np.mean([bool(result.warnings) for result in results])


def test_many_arms_dropped_after_few_pulls_are_no_reason_for_an_alarm():
    # At the wide standard errors of 100 arms with 4 pulls each, one of them would nearly always seem better.
    arms = ct.datasets.one_good_arm(100, 0.3)
    wrong, alarms = alarm_rate(arms, 1, 8, "kzz", 500)
    assert wrong <= 0.1
    assert alarms <= 0.2


@pytest.mark.parametrize(
    ("arms", "m", "algorithm", "horizon"),
    [(ct.BernoulliArms([0.6, 0.5]), 1, "kzz", 98), (ct.datasets.arithmetic(20), 10, "uniform", 3_000)],
    ids=["two arms", "evenly spaced"],
)
def test_where_few_answers_are_wrong_there_are_few_warnings(arms, m, algorithm, horizon):
    # 10% expected; 30% with the rule of 0.1.0, by which the closest pair alone decided. False alarm 5e-4.
    wrong, alarms = alarm_rate(arms, m, 2 if m == 1 else 4, algorithm, horizon, runs=300)
    assert wrong <= 0.14
    assert alarms < 0.17


def test_an_answer_that_is_mostly_wrong_has_a_warning_even_if_no_single_pair_is_close():
    arms = ct.datasets.arithmetic(30)
    wrong, alarms = alarm_rate(arms, 5, 3, "kzz", 200)
    assert wrong >= 0.5
    assert alarms >= 0.9


@pytest.mark.slow
def test_few_wrong_answers_have_no_warning_where_half_of_all_are_wrong():
    # 8% expected; 40% with the rule of 0.1.0. False alarm 1e-4.
    arms = ct.datasets.movielens_like()
    results = [ct.identify(arms, 8, agents=10, horizon=60_000, seed=seed) for seed in range(200)]
    wrong = [result for result in results if not ct.problem.is_best(arms.means, result.top_indices)]
    assert 60 < len(wrong) < 140
    assert np.mean([not result.warnings for result in wrong]) < 0.2


def test_the_probability_of_a_wrong_answer_is_zero_without_a_border_and_half_for_a_tie():
    everything = ct.identify(ct.BernoulliArms([0.5, 0.4]), 2, agents=1, horizon=1)
    assert probability_wrong(everything.estimates, Problem(2, 2, 1, 1)) == 0
    tied = ct.identify(ConstantArms([0.5, 0.5]), 1, agents=1, horizon=100, algorithm="uniform", seed=1)
    assert 0.4 < probability_wrong(tied.estimates, Problem(2, 1, 1, 100)) < 0.6


def test_of_very_many_rivals_the_hardest_count():
    result = run([0.5] * 2_500 + [0.51], 8_000)
    assert probability_wrong(result.estimates, Problem(2_501, 1, 4, 8_000)) > 0.5
