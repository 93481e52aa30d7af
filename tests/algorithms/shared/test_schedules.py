"""Rounds and pulls: as printed or the whole horizon, never past it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collabtop as ct
from collabtop.algorithms.shared.schedules import (
    SCHEDULES,
    FullSchedule,
    PaperSchedule,
    halving,
    largest_hand,
    smallest_that,
)
from collabtop.testing import ConstantArms

SIZES = st.one_of(st.integers(2, 300), st.sampled_from([2**power for power in range(1, 12)]))


@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        (2, [2, 0]),
        (3, [3, 1, 0]),
        (8, [8, 4, 2, 0]),  # for a power of two the paper's floor gives 1 at the end, one arm short
        (588, [588, 294, 147, 73, 36, 18, 9, 4, 2, 1, 0]),
    ],
)
def test_the_arms_are_halved_and_the_last_round_leaves_none(n, sizes):
    assert halving(n) == sizes


@given(n=st.integers(1, 10**6))
def test_there_are_as_many_rounds_as_the_paper_has(n):
    sizes = halving(n)
    assert len(sizes) == ct.Problem(n, 1, 1, 1).rounds + 1
    assert sizes[-1] == 0
    assert all(size >= 1 for size in sizes[:-1])


@pytest.mark.parametrize(("schedule", "smallest"), [("paper", 2), ("full", 2)])
def test_four_arms_fifty_agents_and_one_step_are_refused_and_the_error_states_the_smallest_horizon(schedule, smallest):
    # Each of two rounds takes a step, however few pulls it has.
    arms = ConstantArms([0.1015625, 0.25, 0.5, 0.75])
    algorithm = ct.CollabTopIID(schedule=schedule)
    with pytest.raises(ct.HorizonError, match=f"horizon is 1, but 4 arms and 50 agents need at least {smallest}"):
        ct.identify(arms, 1, agents=50, horizon=1, algorithm=algorithm)
    assert ct.identify(arms, 1, agents=50, horizon=smallest, algorithm=algorithm).time <= smallest


@given(live=st.integers(1, 60), agents=st.integers(1, 20))
def test_the_largest_hand_is_the_largest_of_any_balanced_partition(live, agents):
    def possible(hand):  # all others hold at least half, at most as much
        low, high = hand + (agents - 1) * -(-hand // 2), hand * agents
        return low <= live <= high

    possible_hands = [hand for hand in range(live + 1) if possible(hand)]
    assert largest_hand(live, agents) >= max(possible_hands, default=0)


def worst_time(schedule, problem):
    """The time a run takes if every round is as slow as hash and balance allow."""
    plan = SCHEDULES[schedule](problem)
    for r, live in enumerate(plan.sizes[:-1]):
        if live < 2:
            continue
        hand = largest_hand(live, problem.agents)
        before = plan.used
        shared = plan.shared(r)
        if schedule == "paper":
            plan.used = max(plan.used, before + shared * hand)
    return plan.used


@pytest.mark.parametrize("schedule", ["paper", "full"])
@given(n=SIZES, agents=st.one_of(st.integers(1, 20), st.integers(1, 2_000)), spare=st.integers(0, 500))
@settings(max_examples=settings().max_examples * 5 // 2)
def test_time_is_never_above_the_horizon_even_in_the_worst_case(schedule, n, agents, spare):
    least = SCHEDULES[schedule].smallest_horizon(ct.Problem(n, 1, agents, 1))
    horizon = least + spare
    assert worst_time(schedule, ct.Problem(n, 1, agents, horizon)) <= horizon


@given(
    n=SIZES,
    agents=st.integers(1, 30),
    spare=st.integers(0, 5_000),
    data=st.data(),
)
def test_the_full_schedule_never_passes_the_horizon_with_any_hands(n, agents, spare, data):
    horizon = FullSchedule.smallest_horizon(ct.Problem(n, 1, agents, 1)) + spare
    schedule = FullSchedule(ct.Problem(n, 1, agents, horizon))
    local = data.draw(st.integers(0, len(schedule.sizes) - 2), label="local rounds")
    for r, live in enumerate(size for size in schedule.sizes if size >= 2):
        if r < local:
            largest = data.draw(st.integers(-(-live // agents), max(largest_hand(live, agents), -(-live // agents))))
            pulls = schedule.local(r, [largest])
        else:
            pulls = schedule.shared(r)
        assert r > 0 or pulls >= 1
        assert schedule.used <= horizon


def test_the_paper_schedule_is_as_printed():
    problem = ct.Problem(n=588, m=1, agents=10, horizon=30_000)
    schedule = PaperSchedule(problem)
    assert [schedule.pulls_before(r) for r in range(4)] == [0, 25, 51, 102]  # floor(T K 2^r / (4 n R))
    assert schedule.shared(0) == 25
    assert schedule.shared(1) == 51 - 25
    assert schedule.pulls_so_far == 51


@pytest.mark.parametrize(("schedule", "low", "high"), [("paper", 0.22, 0.31), ("full", 0.97, 1.0)])
def test_the_paper_spends_a_quarter_of_the_horizon_and_full_nearly_all(schedule, low, high):
    arms = ct.BernoulliArms(np.random.default_rng(1).uniform(0.1, 0.9, 588))
    for seed in range(5):
        algorithm = ct.CollabTopIID(schedule=schedule)
        result = ct.identify(arms, 1, agents=10, horizon=30_000, algorithm=algorithm, seed=seed)
        assert low <= result.time / 30_000 <= high


@pytest.mark.parametrize(("schedule", "low", "high"), [("paper", 0.4, 0.6), ("full", 0.97, 1.0)])
def test_the_same_for_arms_that_differ_between_agents(schedule, low, high):
    arms = ct.HeterogeneousArms(np.random.default_rng(1).uniform(0.1, 0.9, (588, 3)))
    algorithm = ct.CollabTopNonIID(schedule=schedule)
    result = ct.identify(arms, 1, horizon=60_000, algorithm=algorithm, seed=1)
    assert low <= result.time / 60_000 <= high


def test_the_smallest_horizon_that_works_is_searched_upwards():
    assert smallest_that(lambda horizon: horizon >= 7, start=0) == 7
    assert smallest_that(lambda horizon: horizon >= 7, start=9) == 9


@pytest.mark.parametrize("make", [ct.CollabTopIID, ct.CollabTopNonIID])
def test_an_unknown_schedule_is_an_error_that_lists_the_schedules(make):
    with pytest.raises(ct.InputError, match="schedule is 'lazy', but 'paper' or 'full' is needed"):
        make(schedule="lazy")
