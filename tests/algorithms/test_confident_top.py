"""Runs with a confidence: rarely wrong, not slow, and open arms are reported if the limit comes first."""

from __future__ import annotations

import math

import numpy as np
import pytest

import collabtop as ct
from collabtop.algorithms.confident_top import times_before
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.protocol import messages
from collabtop.testing import ConstantArms, WireTeam

EASY = ct.BernoulliArms([0.9, 0.5, 0.4, 0.1])
HARD = ct.BernoulliArms([0.55, 0.5, 0.45, 0.45, 0.4])
LEVEL = ct.BernoulliArms([0.52, 0.5, 0.5, 0.5])
MIXED = ct.HeterogeneousArms([[0.9, 0.2], [0.2, 0.7], [0.6, 0.3], [0.1, 0.3]])  # 0.55, 0.45, 0.45, 0.2
CLOSE = ct.HeterogeneousArms([[1.0, 0.1], [0.5, 0.5], [0.0, 0.9]])  # 0.55, 0.5, 0.45


def failures(arms, m, confidence, tolerance, runs, agents=None, **more):
    """Runs that are sure of an answer that is wrong by more than the tolerance."""
    values = arms.means if arms.iid else arms.means.mean(axis=1)
    least = np.sort(values)[arms.n - m] - tolerance - 1e-12
    wrong = 0
    for seed in range(runs):
        result = ct.identify(
            arms, m, agents=agents, confidence=confidence, tolerance=tolerance, seed=seed, max_horizon=10**6, **more
        )
        wrong += bool(result.sure) and values[result.top_indices].min() < least
    return wrong


CASES = [
    ("easy", EASY, 1, 3, 0.0),
    ("easy, two of them", EASY, 2, 3, 0.0),
    ("easy, three of them", EASY, 3, 1, 0.0),
    ("hard", HARD, 1, 2, 0.0),
    ("hard, tolerant", HARD, 2, 2, 0.06),
    ("nearly level, tolerant", LEVEL, 1, 4, 0.03),
    ("non-IID", MIXED, 1, None, 0.0),
    ("non-IID, tolerant", CLOSE, 1, None, 0.04),
]
each_case = pytest.mark.parametrize(
    ("arms", "m", "agents", "tolerance"), [pytest.param(*case, id=name) for name, *case in CASES]
)


def wrongly_settled(arms, confidence, limit, runs):
    """Runs that settle the best arm as one of the others, or another as the best, even if a limit ends them."""
    best = int(arms.means.reshape(arms.n, -1).mean(axis=1).argmax())
    wrong = 0
    for seed in range(runs):
        result = ct.identify(arms, 1, agents=2, confidence=confidence, max_horizon=limit, seed=seed)
        wrong += best not in {*result.top_indices, *result.open}
    return wrong


# 20 arms, the best of them by next to nothing: each can go wrong.
NEARLY = {
    "IID": (ct.BernoulliArms([0.51] + [0.5] * 19), 190),
    "non-IID": (ct.HeterogeneousArms([[0.53, 0.49], [0.4, 0.6], [0.7, 0.3]] + [[0.5, 0.5]] * 17), 380),
}


@pytest.mark.slow
@pytest.mark.parametrize("setting", NEARLY)
def test_over_2000_runs_of_nearly_level_arms_it_is_wrong_no_more_often_than_its_confidence_allows(setting):
    arms, limit = NEARLY[setting]
    assert wrongly_settled(arms, 0.99, limit, runs=2_000) <= 0.01 * 2_000


@pytest.mark.slow
@pytest.mark.parametrize("setting", NEARLY)
def test_intervals_half_as_long_would_be_wrong_more_often(setting, monkeypatch):
    def halved(board, arms, error):
        low, high = whole(board, arms, error)
        means = board.means(arms)
        return (low + means) / 2, (high + means) / 2

    whole = Scoreboard.bounds
    monkeypatch.setattr(Scoreboard, "bounds", halved)
    arms, limit = NEARLY[setting]
    assert wrongly_settled(arms, 0.99, limit, runs=400) > 0.01 * 400


@pytest.mark.long
@each_case
@pytest.mark.parametrize("confidence", [0.3, 0.9])
def test_over_thousands_of_runs_it_is_wrong_no_more_often_than_its_confidence_allows(
    arms, m, agents, tolerance, confidence
):
    assert failures(arms, m, confidence, tolerance, runs=2_000, agents=agents) <= (1 - confidence) * 2_000


@pytest.mark.long
def test_kl_lucb_is_wrong_no_more_often_than_its_confidence_allows():
    runs = 300
    for arms, m, tolerance in ((EASY, 1, 0.0), (HARD, 2, 0.06)):
        assert failures(arms, m, 0.8, tolerance, runs, agents=1, algorithm="kl-lucb") <= 0.2 * runs


@pytest.mark.parametrize(
    ("arms", "m"),
    [
        (EASY, 1),
        (ct.BernoulliArms([0.9] + [0.5] * 15), 1),
        (ct.BernoulliArms([0.9, 0.8, 0.4, 0.3, 0.2]), 2),
        (ct.BernoulliArms([0.4, 0.1, 0.1, 0.05]), 1),
        pytest.param(ct.BernoulliArms([0.6, 0.5, 0.4]), 1, marks=pytest.mark.slow, id="hard"),
        pytest.param(EASY, 2, marks=pytest.mark.long),
        pytest.param(ct.BernoulliArms(np.linspace(0.05, 0.95, 10)), 3, marks=pytest.mark.long),
    ],
)
@pytest.mark.slow
def test_it_takes_at_most_three_times_the_pulls_of_kl_lucb(arms, m):
    def pulls(algorithm, agents):
        runs = [ct.identify(arms, m, agents=agents, confidence=0.95, algorithm=algorithm, seed=s) for s in range(3)]
        assert all(run.sure for run in runs)
        return np.mean([run.pulls for run in runs])

    baseline = pulls("kl-lucb", 1)
    assert pulls("confident-top", 1) <= 3 * baseline
    assert pulls("confident-top", 4) <= 3 * baseline


def test_it_stops_earlier_for_less_confidence_and_for_more_tolerance():
    def time(**more):
        return np.mean([ct.identify(HARD, 1, agents=2, seed=s, **more).time for s in range(5)])

    assert time(confidence=0.6) < time(confidence=0.99)
    assert time(confidence=0.9, tolerance=0.2) < time(confidence=0.9, tolerance=0.0)


@pytest.mark.parametrize("arms", [LEVEL, CLOSE], ids=["IID", "non-IID"])
def test_if_the_limit_comes_first_the_result_lists_the_open_arms(arms):
    result = ct.identify(arms, 1, agents=arms.agents or 2, confidence=0.95, max_horizon=600, seed=1)
    assert result.sure is False
    assert result.time <= 600
    assert len(result.top) == 1
    assert len(result.open) >= 2
    assert set(result.top) <= set(result.open)
    assert [estimate.arm for estimate in result.estimates if not estimate.settled] == result.open
    assert "not sure" in result.warnings[0]
    assert result.to_dict()["sure"] is False


def test_what_is_settled_before_the_limit_stays_settled():
    arms = ct.BernoulliArms([0.95, 0.5, 0.5, 0.05], labels=["good", "left", "right", "bad"])
    result = ct.identify(arms, 2, agents=2, confidence=0.95, max_horizon=3_000, seed=1)
    assert result.open == ["left", "right"]
    assert "good" in result.top
    assert "bad" not in result.top


@pytest.mark.parametrize("arms", [ConstantArms([0.5, 0.5, 0.25]), ConstantArms([[0.25, 0.75], [0.5, 0.5], [0.0, 0.0]])])
def test_a_tie_ends_at_the_default_limit_and_is_reported(arms):
    result = ct.identify(arms, 1, agents=arms.agents or 2, confidence=0.95, seed=1)
    assert result.sure is False
    assert result.open == [0, 1]
    assert result.horizon == 10_000_000
    assert result.time > 0.99 * result.horizon


def test_ties_are_guessed_at_random():
    arms = ConstantArms([0.5] * 4)
    guesses = [
        ct.identify(arms, 1, agents=1, confidence=0.9, max_horizon=100, seed=s).top_indices[0] for s in range(200)
    ]
    assert np.bincount(guesses, minlength=4).min() > 20  # 50 are expected, 4.9 sigma


def test_a_tolerance_lets_a_tie_end():
    result = ct.identify(ConstantArms([0.5, 0.5, 0.25]), 1, agents=2, confidence=0.95, tolerance=0.05, seed=1)
    assert result.sure is True
    assert result.open == []
    assert result.top[0] in (0, 1)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7, 20, 31])
def test_the_smallest_limits_work_and_are_kept(limit):
    arms = ct.BernoulliArms([0.9, 0.5, 0.4, 0.1])
    result = ct.identify(arms, 1, agents=4, confidence=0.9, max_horizon=limit, seed=3)
    assert result.time <= limit


def test_a_round_cut_short_settles_nothing_and_its_pulls_are_sent_and_counted():
    team = WireTeam()
    arms = ct.BernoulliArms([1.0, 0.0])
    result = ct.identify(arms, 1, agents=1, confidence=0.95, max_horizon=15, seed=1, team=team)  # 8 per arm need 16
    assert result.sure is False
    assert result.top == [0]
    (sent,) = (message for _, _, message in team.crossed if isinstance(message, messages.OpenArms))
    assert (sent.count, sent.times, sent.free) == (2, 7, ("count",))


def test_messages_are_sent_only_at_growing_intervals():
    result = ct.identify(HARD, 1, agents=2, confidence=0.95, seed=1)
    assert result.round_trips == len(result.rounds)
    longest = max(estimate.pulls for estimate in result.estimates)
    assert longest == times_before(result.round_trips)
    assert result.round_trips < 10 + math.log(longest) / math.log(1.25)


def test_agents_without_pulls_get_no_message():
    team = WireTeam()
    result = ct.identify(ConstantArms([0.5, 0.5]), 1, agents=30, confidence=0.9, max_horizon=2, seed=1, team=team)
    assert result.words == team.words


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"confidence": 0}, "confidence is 0"),
        ({"confidence": float("nan")}, "confidence is nan"),
        ({"confidence": "0.9"}, "confidence is '0.9', but a number is needed"),
        ({"confidence": 0.9, "tolerance": -0.1}, "tolerance is -0.1"),
        ({"confidence": 0.9, "tolerance": 1}, "tolerance is 1"),
        ({"confidence": 0.9, "max_horizon": 0}, "max_horizon is 0"),
        ({"confidence": 0.9, "max_horizon": 1.5}, "max_horizon is 1.5"),
    ],
)
def test_an_invalid_confidence_tolerance_or_limit_is_refused(more, message):
    with pytest.raises(ct.InputError, match=message):
        ct.identify(EASY, 1, agents=2, **more)
