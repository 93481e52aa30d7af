"""The plan of frugal-top: sizes fall, pulls grow, and the time is never above the horizon and nearly all spent."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collabtop.algorithms.shared.allocation import balanced_time
from collabtop.algorithms.shared.frugal_plan import (
    arms_to_hand_over,
    frugal_plan,
    most_in_a_hand,
    noniid_plan,
    pulls_share,
    smallest_frugal_horizon,
    smallest_noniid_horizon,
)
from collabtop.problem import Problem
from collabtop.stats import hypergeometric_tail
from tests.support import naive

RISK = 0.001


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Any n, m, K, and a horizon that frugal-top accepts."""
    n = draw(st.one_of(st.integers(2, 40), st.integers(2, 3_000)))
    m = draw(st.one_of(st.just(1), st.integers(1, min(9, n // 2)), st.integers(1, n // 2)))
    agents = draw(st.one_of(st.integers(1, 12), st.integers(1, 300)))
    least = smallest_frugal_horizon(n, m, agents, RISK)
    spare = draw(st.one_of(st.just(0), st.integers(0, 100), st.integers(0, 10**6)))
    return Problem(n, m, agents, least + spare)


def frugal_time(problem: Problem, round_trips: int | None = None) -> int:
    """The time that a plan takes, added up here once more."""
    plan, time, before = frugal_plan(problem, RISK, round_trips), 0, 0
    for size, pulls in zip(plan.local_sizes, plan.local_pulls, strict=False):
        time, before = time + size * (pulls - before), pulls
    for size, pulls in zip(plan.shared_sizes, plan.shared_pulls, strict=True):
        time, before = time + balanced_time(size, pulls - before, problem.agents), pulls
    return time


@given(problem=problems())
@example(problem=Problem(n=588, m=1, agents=10, horizon=12_000))
@example(problem=Problem(n=10_000, m=3, agents=4, horizon=500_000))  # hands that are large at first
def test_the_plan_is_that_of_the_naive_implementation(problem):
    plan = frugal_plan(problem, RISK)
    local, shared, totals = naive.frugal_stages(problem.n, problem.m, problem.agents, problem.horizon)
    assert (list(plan.local_sizes), list(plan.shared_sizes)) == (local, shared)
    assert [*plan.local_pulls, *plan.shared_pulls] == totals


@given(problem=problems())
def test_the_plan_for_non_iid_arms_is_that_of_the_naive_implementation(problem):
    horizon = problem.horizon + smallest_noniid_horizon(problem.n, problem.m)
    plan = noniid_plan(problem.at_horizon(horizon))
    assert list(zip(plan.sizes, plan.pulls, strict=True)) == naive.noniid_rounds(problem.n, problem.m, horizon)


@given(problem=problems())
def test_the_time_is_never_above_the_horizon_and_less_than_one_more_pull_of_the_last_arms_is_left(problem):
    time = frugal_time(problem)
    last = frugal_plan(problem, RISK).shared_sizes[-1]
    assert time <= problem.horizon < time + -(-last // problem.agents) + 1


@given(problem=problems())
def test_sizes_fall_strictly_and_pulls_never_do(problem):
    plan = frugal_plan(problem, RISK)
    assert all(before > after for before, after in pairwise(plan.local_sizes))
    assert all(before > after for before, after in pairwise(plan.shared_sizes))
    pulls = [*plan.local_pulls, *plan.shared_pulls]
    assert pulls[0] >= 1
    assert pulls == sorted(pulls)


@given(problem=problems())
def test_no_agent_keeps_fewer_arms_than_is_safe_and_half_of_all_arms_at_most_are_handed_over(problem):
    plan = frugal_plan(problem, RISK)
    assert plan.local_sizes[0] == -(-problem.n // problem.agents)
    if plan.local_pulls:
        assert plan.local_sizes[-1] == arms_to_hand_over(problem, RISK)
        assert 2 * plan.shared_sizes[0] <= problem.n
    else:
        assert plan.shared_sizes[0] == problem.n


@given(problem=problems())
def test_a_horizon_of_one_less_than_the_smallest_does_not_suffice_for_one_pull_per_arm(problem):
    least = smallest_frugal_horizon(problem.n, problem.m, problem.agents, RISK)
    assert frugal_time(Problem(problem.n, problem.m, problem.agents, least)) <= least
    assert least >= -(-problem.n // problem.agents)


def test_with_more_agents_than_arms_the_first_round_gets_its_share_too():
    plan = frugal_plan(Problem(n=4, m=1, agents=50, horizon=100), RISK)
    first, last = plan.shared_pulls
    assert last / first == pytest.approx(pulls_share(2, m=1) / pulls_share(4, m=1), rel=0.02)


@given(n=st.integers(2, 400), m=st.integers(1, 200), spare=st.integers(0, 10**5))
def test_the_non_iid_plan_spends_the_horizon_and_leaves_out_idle_rounds(n, m, spare):
    m = min(m, n // 2)
    horizon = smallest_noniid_horizon(n, m) + spare
    plan = noniid_plan(Problem(n, m, 3, horizon))
    new = [after - before for before, after in pairwise([0, *plan.pulls])]
    time = sum(size * more for size, more in zip(plan.sizes, new, strict=True))
    assert time <= horizon < time + n
    assert all(more > 0 for more in new)
    assert plan.sizes[0] == n
    assert all(before > after for before, after in pairwise(plan.sizes))


@given(n=st.integers(2, 60), m=st.integers(1, 30), agents=st.integers(1, 20), risk=st.sampled_from([0.3, 0.01, 1e-6]))
def test_no_hand_holds_more_than_u_of_the_best_but_for_the_risk_and_u_is_no_larger_than_that_needs(n, m, agents, risk):
    m = min(m, n // 2)
    most, hand = most_in_a_hand(n, m, agents, risk), -(-n // agents)
    assert agents * hypergeometric_tail(n, m, hand, most) <= risk * (1 + 1e-9)
    if most > 1:
        assert agents * hypergeometric_tail(n, m, hand, most - 1) > risk * (1 - 1e-9)


@given(m=st.one_of(st.integers(1, 9), st.integers(1, 10**6)), size=st.integers(2, 10**6))
def test_pulls_grow_the_faster_the_fewer_arms_are_open_and_at_the_end_the_larger_m_is(m, size):
    def growth(size, m):
        return pulls_share(size, m) / pulls_share(2 * size, m)

    assert growth(size, 1) == pytest.approx(2**0.92)
    assert growth(size, m) * (1 + 1e-9) >= 2**0.85
    assert growth(size, m) <= 2**1.5 * (1 + 1e-9)
    assert growth(2 * size, m) <= growth(size, m) * (1 + 1e-9)
    assert growth(2, m) <= growth(2, m + 1) * (1 + 1e-9)
    assert growth(512, m) * (1 + 1e-9) >= growth(512, m + 1)


@given(problem=problems())
def test_shared_sizes_add_up_to_what_the_proof_of_the_words_says(problem):
    first, *later = frugal_plan(problem, RISK).shared_sizes
    assert sum(later) <= 2.5 * first + len(later) / 2
    assert len(later) <= 8.5 + math.log(first / 24) / math.log(1.75) + 1e-9


@given(problem=problems(), round_trips=st.one_of(st.integers(1, 5), st.integers(1, 400)))
def test_a_plan_for_few_round_trips_takes_no_more_of_them_and_spends_the_horizon(problem, round_trips):
    least = smallest_frugal_horizon(problem.n, problem.m, problem.agents, RISK, round_trips)
    problem = problem.at_horizon(max(least, problem.horizon))
    plan = frugal_plan(problem, RISK, round_trips)
    assert len(plan.shared_sizes) == len(plan.shared_pulls) <= round_trips
    assert plan.shared_sizes[0] > problem.m
    assert all(before > after for before, after in pairwise(plan.shared_sizes))
    assert all(before > after for before, after in pairwise(plan.local_sizes))
    pulls = [*plan.local_pulls, *plan.shared_pulls]
    assert pulls[0] >= 1
    assert pulls == sorted(pulls)
    time = frugal_time(problem, round_trips)
    last = plan.local_sizes[-1] if len(plan.shared_sizes) == 1 and plan.local_pulls else plan.shared_sizes[-1]
    assert time <= problem.horizon < time + last + 1


@given(problem=problems(), round_trips=st.integers(1, 10))
def test_a_hand_keeps_room_for_the_best_arms_that_it_may_hold_however_few_round_trips_there_are(problem, round_trips):
    plan = frugal_plan(problem.at_horizon(10**7), RISK, round_trips)
    most = most_in_a_hand(problem.n, problem.m, problem.agents, RISK)
    assert not plan.local_pulls or plan.local_sizes[-1] >= most


@given(problem=problems())
def test_as_many_round_trips_as_usual_change_nothing(problem):
    usual = frugal_plan(problem, RISK)
    assert frugal_plan(problem, RISK, len(usual.shared_sizes)) == usual
    assert frugal_plan(problem, RISK, 1_000) == usual


def test_large_hands_shrink_in_large_steps_so_that_few_draws_are_needed():
    plan = frugal_plan(Problem(n=10**6, m=1, agents=100, horizon=10**6), RISK)
    draws = 100 * sum(plan.local_sizes) + sum(plan.shared_sizes)
    assert draws < 3.5e6  # 13 million in steps of 8%
