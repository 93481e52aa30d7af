"""How the pulls of a shared round are divided: all are made, and no agent has much more to do than another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabtop.algorithms.shared.allocation import (
    AllAgents,
    balanced_share,
    balanced_time,
    pull_balanced,
    pull_in_turn,
    round_robin_shares,
)
from collabtop.coordination.coordinator import Coordinator
from collabtop.problem import Problem
from collabtop.protocol.messages import Pull
from collabtop.protocol.setup import Setup
from collabtop.testing import ConstantArms, WireTeam

ROUNDS = {"arms": st.integers(1, 60), "pulls": st.integers(1, 80), "agents": st.integers(1, 40)}


def balanced_table(arms, pulls, agents):
    """How often each agent pulls each arm under BalancedPullDist."""
    table = np.zeros((agents, arms), int)
    for agent in range(agents):
        first, times = balanced_share(arms, pulls, agents, agent)
        table[agent, first : first + len(times)] = times
    return table


def test_three_arms_of_five_pulls_for_two_agents_are_eight_and_seven():
    # As printed BalancedPullDist evaluates min(T_i, r) twice and assigns 15 and 0.
    assert balanced_table(arms=3, pulls=5, agents=2).tolist() == [[5, 3, 0], [0, 2, 5]]


@given(**ROUNDS)
def test_balanced_shares_add_up_and_none_is_above_the_average_rounded_up(arms, pulls, agents):
    table = balanced_table(arms, pulls, agents)
    assert (table.sum(axis=0) == pulls).all()
    assert table.max(initial=0) <= pulls
    share = balanced_time(arms, pulls, agents)
    assert table.sum(axis=1).max() == share == -(-arms * pulls // agents)
    # All agents but the last ones have the full share.
    busy = table.sum(axis=1)
    assert (np.diff(busy) <= 0).all()
    assert (busy[: arms * pulls // share] == share).all()


@given(**ROUNDS)
def test_a_balanced_share_is_a_run_of_neighbouring_arms_so_that_few_words_are_needed(arms, pulls, agents):
    table = balanced_table(arms, pulls, agents)
    assert (table > 0).sum() <= arms + agents - 1
    for row in table:
        pulled = np.flatnonzero(row)
        assert (np.diff(pulled) == 1).all()


@given(**ROUNDS)
def test_round_robin_shares_add_up_and_differ_by_one_at_most(arms, pulls, agents):
    table = np.array(round_robin_shares(arms, pulls, agents))
    assert (table.sum(axis=0) == pulls).all()
    assert np.ptp(table, axis=0).max() <= 1  # every agent has its share of every arm
    assert np.ptp(table.sum(axis=1)) <= 1
    assert table.sum(axis=1).max() == balanced_time(arms, pulls, agents)


def test_left_over_pulls_go_to_the_agents_in_turn_from_arm_to_arm():
    table = np.array(round_robin_shares(arms=4, pulls=1, agents=3))
    assert table.argmax(axis=0).tolist() == [0, 1, 2, 0]


def coordinator_of(agents, means, horizon=10_000):
    team = WireTeam()
    coordinator = Coordinator(team, Setup(Problem(len(means), 1, agents, horizon), seed=1))
    coordinator.open(ConstantArms(means))
    return coordinator, team


MEANS = [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("pull", [pull_balanced, pull_in_turn])
@pytest.mark.parametrize("agents", [1, 2, 3, 7, 30])
@pytest.mark.parametrize("pulls", [1, 5, 16])
def test_the_sums_of_a_round_are_those_of_its_pulls(pull, agents, pulls):
    live = np.array([3, 1, 2])
    coordinator, team = coordinator_of(agents, MEANS)
    sums, made = pull(coordinator, live, pulls)
    assert sums == pytest.approx(np.array(MEANS)[live] * pulls)
    assert made == pulls
    assert sum(int(times.sum()) for _, times, *_ in team.observed()) == 3 * pulls
    assert coordinator.meter.time == balanced_time(3, pulls, agents)


def test_pulls_by_all_agents_are_added_up():
    coordinator, _ = coordinator_of(3, MEANS)
    sums, pulls = AllAgents(coordinator).pull(np.array([2, 0]), times=4)
    assert sums == pytest.approx([0.75 * 12, 0.25 * 12])
    assert pulls == 12
    assert coordinator.meter.time == 8


def all_agents_pull(coordinator, live, times, *, all_live):
    return AllAgents(coordinator).pull(live, times, all_live=all_live)


@pytest.mark.parametrize("pull", [pull_balanced, pull_in_turn, all_agents_pull])
def test_while_all_arms_are_live_their_list_costs_no_words(pull):
    def words_down(all_live):
        coordinator, _ = coordinator_of(2, MEANS)
        pull(coordinator, np.arange(4), 5, all_live=all_live)
        return coordinator.meter.ledger().words_by("direction")["down"]

    assert words_down(all_live=True) == 0
    assert words_down(all_live=False) >= 4


def test_an_agent_without_a_pull_is_not_asked():
    coordinator, team = coordinator_of(5, MEANS)
    pull_in_turn(coordinator, np.array([0, 1]), 1)
    assert {agent for agent, _, message in team.crossed if isinstance(message, Pull)} == {0, 1}


def test_without_pulls_no_message_is_sent():
    coordinator, team = coordinator_of(2, MEANS)
    sums, made = pull_balanced(coordinator, np.arange(4), 0)
    assert (sums.tolist(), made) == ([0, 0, 0, 0], 0)
    assert team.crossed == []
