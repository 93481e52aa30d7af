"""Collab-Top-m-NonIID: all agents pull every live arm, and arms are ranked by the average over the agents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.algorithms.shared.schedules import halving
from collabtop.testing import ConstantArms, WireTeam


def test_the_best_on_average_wins_though_no_agent_finds_it_best():
    table = [[1.0, 0.0, 0.25], [0.0, 1.0, 0.25], [0.5, 0.5, 0.5], [0.0, 0.0, 1.0]]
    assert ct.identify(ConstantArms(table), 1, horizon=200, algorithm="collab-top-noniid").top == [2]


def test_every_agent_pulls_every_live_arm_equally_often():
    arms = ct.HeterogeneousArms(np.random.default_rng(1).uniform(0.2, 0.8, (40, 3)))
    result = ct.identify(arms, 2, horizon=20_000, algorithm="collab-top-noniid", seed=1)
    assert result.pulls == 3 * result.time
    assert all(pulls % 3 == 0 for pulls in result.pulls_by_arm)


def test_words_are_k_means_up_and_the_survivors_down():
    # With 64 arms, 3 agents and m = 1: 64 up, then 32 + 32, 16 + 16, ... down and up for each agent.
    arms = ConstantArms(np.random.default_rng(2).permutation(64)[:, None].repeat(3, axis=1) / 1024)
    result = ct.identify(arms, 1, horizon=20_000, algorithm="collab-top-noniid", seed=1)
    live = [round_.live for round_ in result.rounds]
    assert result.words == 3 * (sum(live) + sum(live[1:]))
    assert result.round_trips == len(live)


def test_the_paper_schedule_is_as_printed():
    problem = ct.Problem(n=588, m=1, agents=10, horizon=20_000)
    new = ct.CollabTopNonIID().pulls(problem)
    so_far = np.cumsum(new).tolist()
    assert so_far == [20_000 * 10 * 2**r // (2 * 588 * 10) // 10 for r in range(1, 10)]


@given(n=st.integers(2, 300), agents=st.integers(1, 60), spare=st.integers(0, 5_000))
@pytest.mark.parametrize("schedule", ["paper", "full"])
def test_time_adds_up_to_at_most_the_horizon_and_every_round_pulls(schedule, n, agents, spare):
    algorithm = ct.CollabTopNonIID(schedule=schedule)
    horizon = algorithm.smallest_horizon(ct.Problem(n, 1, agents, 1)) + spare
    new = algorithm.pulls(ct.Problem(n, 1, agents, horizon))
    assert min(new) >= 1
    assert sum(size * pulls for size, pulls in zip(halving(n), new, strict=False)) <= horizon


def test_rejected_arms_are_not_pulled_again():
    team = WireTeam()
    arms = ct.HeterogeneousArms(np.random.default_rng(1).uniform(0.2, 0.8, (32, 2)))
    result = ct.identify(arms, 1, horizon=5_000, algorithm="collab-top-noniid", seed=1, team=team)
    settled = {estimate.arm: estimate.round for estimate in result.estimates}
    crossed: list[tuple[int, str, Any]] = team.crossed
    lists = [message.arms for agent, way, message in crossed if agent == 0 and way == "down"]
    for round_, live in enumerate(lists):
        assert live is None or all(settled[arm] >= round_ for arm in live.tolist())
