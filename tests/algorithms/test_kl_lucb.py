"""KL-LUCB, the baseline for confident-top: one agent, two pulls at a time."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.testing import ConstantArms

ARMS = ct.BernoulliArms([0.9, 0.5, 0.4, 0.1])


def run(arms=ARMS, m=1, **more):
    return ct.identify(arms, m, agents=1, algorithm="kl-lucb", **{"confidence": 0.95, "seed": 1, **more})


def test_it_finds_the_best_and_pulls_those_at_the_border_most():
    result = run(arms=ct.BernoulliArms([0.95, 0.6, 0.3, 0.05]), m=2)
    assert sorted(result.top) == [0, 1]
    assert result.sure
    pulls = result.pulls_by_arm
    assert min(pulls[1], pulls[2]) > max(pulls[0], pulls[3])


def test_it_pulls_every_arm_once_and_then_two_at_a_time():
    result = run()
    assert (result.pulls - 4) % 2 == 0
    assert result.time == result.pulls


def test_it_is_for_one_agent():
    with pytest.raises(ct.SettingError, match="kl-lucb runs with 1 agent"):
        ct.identify(ARMS, 1, agents=2, algorithm="kl-lucb", confidence=0.9)


def test_a_limit_makes_it_give_its_best_guess():
    result = run(arms=ct.BernoulliArms([0.5, 0.5, 0.1]), max_horizon=200)
    assert result.sure is False
    assert result.time <= 200
    assert result.open == [0, 1, 2]


def test_a_tolerance_ends_it_earlier():
    arms = ct.BernoulliArms([0.8, 0.5])
    assert run(arms, tolerance=0.2).pulls < run(arms).pulls


def test_ties_are_guessed_at_random():
    arms = ConstantArms([0.5] * 3)
    guesses = [run(arms, max_horizon=20, seed=seed).top_indices[0] for seed in range(150)]
    assert np.bincount(guesses, minlength=3).min() > 20  # 50 are expected, 5 sigma


def test_if_all_arms_are_wanted_none_is_pulled():
    assert run(arms=ct.BernoulliArms([0.9, 0.1]), m=2).pulls == 0
