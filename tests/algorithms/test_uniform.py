"""Uniform: K n words, one round trip, no elimination."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.testing import ConstantArms


@pytest.mark.parametrize(("n", "agents"), [(3, 2), (40, 7), (588, 10)])
def test_it_takes_k_n_words_and_one_round_trip(n, agents):
    arms = ct.BernoulliArms(np.linspace(0.1, 0.9, n))
    result = ct.identify(arms, 1, agents=agents, horizon=5 * n + 2, algorithm="uniform", seed=1)
    assert (result.words, result.bits, result.round_trips) == (agents * n, 64 * agents * n, 1)
    assert result.ledger.words_by("direction") == {"up": agents * n, "down": 0}
    assert result.pulls_by_arm == [5 * agents] * n
    assert result.time == 5 * n


def test_it_accepts_arms_that_differ_between_agents():
    assert ct.identify(ConstantArms([[1.0, 0.0], [0.75, 0.75]]), 1, horizon=2, algorithm="uniform").top == [1]


def test_a_horizon_below_one_pull_per_arm_is_refused():
    with pytest.raises(ct.HorizonError, match="horizon is 2, but 3 arms and 5 agents need at least 3 with uniform"):
        ct.identify(ct.BernoulliArms([0.1, 0.2, 0.3]), 1, agents=5, horizon=2, algorithm="uniform")
