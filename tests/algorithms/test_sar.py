"""The baselines for one agent: Successive Accepts and Rejects, and Sequential Halving."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.algorithms.sar import total_pulls
from collabtop.testing import ConstantArms


def test_phases_are_those_of_the_published_formula():
    # n = 4: lb = 1/2 + 1/2 + 1/3 + 1/4 = 19/12; N_k = ceil((100 - 4) / (lb (5 - k))).
    problem = ct.Problem(n=4, m=2, agents=1, horizon=100)
    expected = [math.ceil(96 * 12 / (19 * (5 - k))) for k in (1, 2, 3)]
    assert [total_pulls(k, problem) for k in (1, 2, 3)] == expected == [16, 21, 31]


@given(n=st.integers(2, 120), spare=st.integers(1, 5_000))
def test_the_phases_together_stay_within_the_budget(n, spare):
    problem = ct.Problem(n, 1, 1, n + spare)
    so_far = [0, *(total_pulls(k, problem) for k in range(1, n))]
    assert so_far[1] >= 1
    assert sum((n + 1 - k) * (so_far[k] - so_far[k - 1]) for k in range(1, n)) <= problem.horizon


def test_sar_settles_one_arm_per_phase_and_in_the_end_the_last_two():
    result = ct.identify(ConstantArms([0.125, 0.25, 0.5, 0.875, 1.0]), 2, agents=1, horizon=100, algorithm="sar")
    settled = [sum(estimate.round == r for estimate in result.estimates) for r in range(len(result.rounds))]
    assert sum(settled) == 5
    assert settled[0] == 1
    assert result.top == [4, 3]


def test_sequential_halving_spends_equally_and_keeps_the_better_half():
    arms = ConstantArms(np.arange(9) / 8)
    result = ct.identify(arms, 1, agents=1, horizon=1_000, algorithm="sequential-halving", seed=1)
    assert [round_.live for round_ in result.rounds] == [9, 5, 3, 2]
    assert [round_.pulls for round_ in result.rounds] == [live * (1_000 // (live * 4)) for live in (9, 5, 3, 2)]
    assert result.top == [8]


@pytest.mark.parametrize("algorithm", ["sar", "sequential-halving"])
def test_more_agents_than_one_are_refused_with_a_hint(algorithm):
    with pytest.raises(ct.SettingError, match=rf"agents is 3, but {algorithm} runs with 1 agent .*horizon=300\)"):
        ct.identify(ct.BernoulliArms([0.1, 0.2]), 1, agents=3, horizon=100, algorithm=algorithm)


def test_sequential_halving_finds_one_arm_only():
    with pytest.raises(ct.SettingError, match="m is 2, but sequential-halving finds the best arm only"):
        ct.identify(ct.BernoulliArms([0.1, 0.2, 0.3, 0.4]), 2, agents=1, horizon=100, algorithm="sequential-halving")


def test_nsar_with_power_1_is_sar():
    arms = ct.BernoulliArms(np.linspace(0.2, 0.8, 12))
    for m in (1, 4, 11):
        sar, nsar = (
            ct.identify(arms, m, agents=1, horizon=500, algorithm=algorithm, seed=m)
            for algorithm in (ct.SAR(), ct.NSAR(power=1.0))
        )
        assert (nsar.top, nsar.ledger, nsar.observed.pulls.tolist()) == (
            sar.top,
            sar.ledger,
            sar.observed.pulls.tolist(),
        )


def test_a_larger_power_of_nsar_moves_pulls_to_the_arms_that_are_settled_last():
    problem = ct.Problem(n=20, m=1, agents=1, horizon=5_000)
    last = [ct.NSAR(power=power).most_pulls(problem)[-1][1] for power in (0.5, 0.85, 1.0, 1.3)]
    assert last == sorted(last)
    for power in (0.1, 0.5, 1.3, 4.0):
        assert sum(live * new for live, new in ct.NSAR(power=power).most_pulls(problem)) <= 5_000


@pytest.mark.parametrize("power", [0, -1.0, float("nan"), "p"])
def test_a_power_of_nsar_that_is_not_above_0_is_refused(power):
    with pytest.raises(ct.InputError, match=r"^power is ") as caught:
        ct.NSAR(power=power)
    assert caught.value.argument == "power"
