"""KZZ as the authors of the paper ran it, and with balanced pulls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.algorithms.kzz import largest_alpha, sizes_of
from collabtop.algorithms.shared.allocation import round_robin_shares

# No two means are near each other, so no run stops early and words come out by the formula.
ARMS = ct.BernoulliArms(np.random.default_rng(1).permutation(np.linspace(0.01, 0.99, 588)))


def run(algorithm, agents=10, horizon=30_000, m=1, seed=1):
    return ct.identify(ARMS, m, agents=agents, horizon=horizon, algorithm=algorithm, seed=seed)


@pytest.mark.parametrize(
    ("n", "sizes"), [(588, [588, 294, 147, 73, 36, 18, 9, 4, 2, 0]), (2, [2, 0]), (3, [3, 0]), (16, [16, 8, 4, 2, 0])]
)
def test_arms_are_halved_while_above_one_and_then_none_is_left(n, sizes):
    assert sizes_of(n) == sizes


def test_words_are_exactly_17540_for_588_arms_and_10_agents():
    # 2 K |I_r| per round, but the first list is free: the authors count 23,420.
    result = run("kzz")
    assert result.words == 17_540
    assert result.ledger.words_by("direction") == {"up": 11_710, "down": 5_830}
    assert result.round_trips == len(result.rounds) == 9


def test_words_grow_linearly_with_the_agents_and_not_with_the_horizon():
    assert run("kzz", agents=5).words == 17_540 // 2
    assert run("kzz", horizon=60_000).words == 17_540


def test_balanced_pulls_take_about_twice_arms_plus_agents_words_per_round():
    result = run("kzz-balanced")
    for round_ in result.rounds[1:]:
        assert 2 * round_.live <= round_.words <= 2 * (round_.live + 10)
    assert result.algorithm == "kzz-balanced"
    assert result.time == pytest.approx(run("kzz").time)
    assert result.pulls_by_arm[0] is not None


@given(n=st.integers(2, 300), agents=st.integers(1, 60), spare=st.integers(0, 10_000))
def test_alpha_is_the_largest_that_fits_into_the_horizon(n, agents, spare):
    problem = ct.Problem(n, 1, agents, 1)
    least = ct.KZZ().smallest_horizon(problem)
    problem = ct.Problem(n, 1, agents, least + spare)

    def time(alpha):  # of the busiest agent
        total = 0
        for size in sizes_of(n)[:-1]:
            total += -(-size * (alpha // size) // agents)
        return total

    alpha = largest_alpha(problem)
    assert alpha >= n
    assert time(alpha) <= problem.horizon
    pulls = [alpha // size for size in sizes_of(n)[:-1]]
    larger = next(a for a in range(alpha + 1, alpha + n + 1) if [a // size for size in sizes_of(n)[:-1]] != pulls)
    assert time(larger) > problem.horizon


def test_the_busiest_agent_has_exactly_the_time_that_was_planned():
    result = run("kzz", agents=7, horizon=5_000)
    alpha = largest_alpha(ct.Problem(588, 1, 7, 5_000))
    for round_ in result.rounds:
        busiest = max(int(times.sum()) for times in round_robin_shares(round_.live, alpha // round_.live, 7))
        assert round_.time == busiest


def test_nearly_the_whole_horizon_is_spent_and_never_more():
    # The authors' rounding runs 3 steps past 30,000.
    for algorithm in ("kzz", "kzz-balanced"):
        assert 29_900 <= run(algorithm).time <= 30_000


def test_the_coordinator_knows_the_pulls_of_every_arm():
    result = run("kzz")
    assert sum(result.pulls_by_arm) == result.pulls
    assert result.pulls_by_arm == result.observed.pulls.tolist()
