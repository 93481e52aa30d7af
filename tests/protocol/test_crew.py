"""Agents that pull together reply as each of them does on its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.arms.base import Recorder
from collabtop.arms.draws import AgentHalted
from collabtop.errors import ProtocolError
from collabtop.protocol.agent import Agent
from collabtop.protocol.batches import ArmTotals
from collabtop.protocol.crew import Crew
from collabtop.protocol.messages import Pull, Request
from collabtop.protocol.setup import Setup

N, AGENTS = 40, 6
ARMS = ct.BernoulliArms(np.linspace(0.0, 1.0, N))


class CountedArms(ct.BernoulliArms):
    """Arms that pull in their own way."""

    def pull(self, arms, times, draws):
        self.calls = getattr(self, "calls", 0) + 1
        return super().pull(arms, times, draws)


def setup_of(*, mirrored=False, horizon=10_000):
    return Setup(ct.Problem(n=N, m=1, agents=AGENTS, horizon=horizon), seed=3, mirrored=mirrored)


def requests_for(shares, number):
    return [
        Request(agent, number, (Pull(None if len(arms) == N else np.array(arms, np.int64), np.array(times, np.int64)),))
        for agent, (arms, times) in enumerate(shares)
    ]


def shown(replies):
    return [(reply.agent, reply.number, reply.pulls, reply.answer.means.tolist()) for reply in replies]


@st.composite
def shares(draw):
    arms = draw(st.lists(st.integers(0, N - 1), max_size=N, unique=True))
    times = draw(st.lists(st.integers(0, 30), min_size=len(arms), max_size=len(arms)))
    return (arms, times) if draw(st.booleans()) else (list(range(N)), [draw(st.integers(1, 9))])


@given(rounds=st.lists(st.lists(shares(), min_size=AGENTS, max_size=AGENTS), max_size=4), mirrored=st.booleans())
def test_replies_and_totals_are_those_of_agents_on_their_own(rounds, mirrored):
    setup = setup_of(mirrored=mirrored)
    crew = Crew(ARMS, setup, Recorder())
    alone = [Agent(number, ARMS, setup) for number in range(AGENTS)]
    for number, round_ in enumerate(rounds, start=1):
        requests = requests_for(round_, number)
        assert shown(crew.answer(requests)) == shown([alone[request.agent].answer(request) for request in requests])
    together = ArmTotals(N, crew.batches)
    expected = ArmTotals(N, [batch for agent in alone for batch in agent.batches])
    assert together.pulls.tolist() == expected.pulls.tolist()
    assert together.sums.tolist() == expected.sums.tolist()


def test_a_repeated_request_gets_the_same_reply_without_new_pulls():
    crew = Crew(ARMS, setup_of(), Recorder())
    requests = requests_for([([agent], [5]) for agent in range(AGENTS)], number=1)
    assert crew.answer(requests) == crew.answer(requests)
    assert ArmTotals(N, crew.batches).pulls.sum() == 5 * AGENTS


def test_arms_that_pull_in_their_own_way_are_asked_agent_by_agent():
    arms = CountedArms(ARMS.means)
    Crew(arms, setup_of(), Recorder()).answer(requests_for([([1, 2], [5, 6])] * AGENTS, number=1))
    assert arms.calls == AGENTS


def test_an_agent_does_not_pull_past_the_horizon():
    crew = Crew(ARMS, setup_of(horizon=9), Recorder())
    with pytest.raises(ProtocolError, match="agent 0 was asked to pull past the horizon"):
        crew.answer(requests_for([([1, 2], [5, 6])] * AGENTS, number=1))


def test_a_halted_agent_pulls_no_more():
    crew = Crew(ARMS, setup_of(), Recorder())
    crew.members[2].halt()
    with pytest.raises(AgentHalted):
        crew.answer(requests_for([([1], [5])] * AGENTS, number=1))
