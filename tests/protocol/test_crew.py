"""Agents that pull together send what each of them sends on its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.arms.base import Recorder
from collabtop.arms.division import Division
from collabtop.arms.draws import AgentHalted
from collabtop.errors import ProtocolError
from collabtop.protocol.agent import Agent
from collabtop.protocol.batches import ArmTotals
from collabtop.protocol.crew import Crew
from collabtop.protocol.messages import Prune, Pull, PullOpen, Request, SendSquares
from collabtop.protocol.setup import Setup

N, AGENTS = 40, 6
MEANS = np.linspace(0.0, 1.0, N)
ARMS = ct.BernoulliArms(MEANS)
GROUPS = ct.HeterogeneousArms(np.array([np.roll(MEANS, agent) for agent in range(AGENTS)]).T)


class CountedArms(ct.BernoulliArms):
    """Arms that pull in their own way."""

    def pull(self, arms, times, draws):
        self.calls = getattr(self, "calls", 0) + 1
        return super().pull(arms, times, draws)


class BusyRecorder(Recorder):
    """A recorder that has to see all rewards."""

    is_idle = False


class ByMessages(ct.LocalTeam):
    """A local team that sees all messages."""

    def deliver(self, requests):
        return super().deliver(requests)


def setup_of(*, mirrored=False, horizon=10_000):
    return Setup(ct.Problem(n=N, m=1, agents=AGENTS, horizon=horizon), seed=3, mirrored=mirrored)


def pulled_together(crew, parts):
    arms, times = (np.concatenate([np.array(part[i]) for part in parts]) for i in (0, 1))
    division = Division(N, arms, times, [len(arms) for arms, _ in parts])
    return crew.pull_together(Pull(arms, times), np.arange(N), division).means.tolist()


def requests_for(parts, number):
    return [
        Request(agent, number, (Pull(np.array(arms), np.array(times)),)) for agent, (arms, times) in enumerate(parts)
    ]


def sent(replies):
    return [mean for reply in replies for mean in reply.answer.means.tolist()]


def handed_over(replies):
    return [(reply.pulls, reply.answer.arms.tolist(), reply.answer.means.tolist()) for reply in replies]


@st.composite
def part(draw):
    arms = draw(st.lists(st.integers(0, N - 1), min_size=1, max_size=N, unique=True))
    return arms, draw(st.lists(st.integers(1, 30), min_size=len(arms), max_size=len(arms)))


@given(
    rounds=st.lists(st.tuples(st.lists(part(), min_size=1, max_size=AGENTS), st.booleans()), max_size=4),
    arms=st.sampled_from([ARMS, GROUPS]),
    mirrored=st.booleans(),
)
def test_means_and_totals_are_those_of_agents_on_their_own(rounds, arms, mirrored):
    setup = setup_of(mirrored=mirrored)
    crew = Crew(arms, setup, Recorder())
    alone = [Agent(number, arms, setup) for number in range(AGENTS)]
    for number, (parts, together) in enumerate(rounds, start=1):
        requests = requests_for(parts, number)
        expected = sent([alone[request.agent].answer(request) for request in requests])
        if together:
            assert pulled_together(crew, parts) == expected
        else:
            assert sent(crew.answer(requests)) == expected
    totals = ArmTotals(N, crew.batches)
    expected_totals = ArmTotals(N, [batch for agent in alone for batch in agent.batches])
    assert totals.pulls.tolist() == expected_totals.pulls.tolist()
    assert totals.sums.tolist() == expected_totals.sums.tolist()


@pytest.mark.parametrize("algorithm", ["collab-top-iid", "kzz", "kzz-balanced", "uniform", "frugal-top"])
@pytest.mark.parametrize("m", [2, 38])
def test_a_run_with_joined_pulls_is_the_same_as_one_with_messages(algorithm, m):
    joined, by_messages = (
        ct.identify(ARMS, m, agents=AGENTS, horizon=2_000, algorithm=algorithm, seed=5, team=team)
        for team in (ct.LocalTeam(), ByMessages())
    )
    assert joined == by_messages
    assert joined.ledger == by_messages.ledger
    assert joined.rounds == by_messages.rounds
    assert joined.observed.pulls.tolist() == by_messages.observed.pulls.tolist()


@pytest.mark.parametrize("algorithm", ["collab-top-noniid", "uniform", "frugal-top-noniid"])
def test_a_non_iid_run_with_joined_pulls_is_the_same_as_one_with_messages(algorithm):
    joined, by_messages = (
        ct.identify(GROUPS, 2, horizon=2_000, algorithm=algorithm, seed=5, team=team)
        for team in (ct.LocalTeam(), ByMessages())
    )
    assert joined == by_messages
    assert joined.ledger == by_messages.ledger


@given(
    rounds=st.lists(st.tuples(st.integers(1, 9), st.integers(1, AGENTS)), min_size=1, max_size=5),
    mirrored=st.booleans(),
)
def test_open_arms_are_the_same_for_agents_that_are_asked_together_or_not(rounds, mirrored):
    setup = setup_of(mirrored=mirrored)
    crew = Crew(GROUPS, setup, Recorder())
    alone = [Agent(number, GROUPS, setup) for number in range(AGENTS)]
    survived, asked = None, AGENTS
    for number, (times, present) in enumerate(rounds, start=1):
        question, asked = PullOpen(survived, times, 0.3), asked if times % 2 else min(asked, present)
        requests = [Request(agent, number, (question,)) for agent in range(asked)]
        assert crew.answer(requests) == [alone[request.agent].answer(request) for request in requests]
        survived = np.arange(N if survived is None else survived.sum()) % 4 < 3
    totals = ArmTotals(N, crew.batches)
    expected = ArmTotals(N, [batch for agent in alone for batch in agent.batches])
    assert totals.pulls.tolist() == expected.pulls.tolist()
    assert totals.sums.tolist() == expected.sums.tolist()


@given(
    agents=st.integers(1, N + 5),
    sizes=st.lists(st.integers(1, N), min_size=1, max_size=4).map(lambda sizes: sorted(sizes, reverse=True)),
    pulls=st.lists(st.integers(1, 9), min_size=4, max_size=4).map(sorted),
    absent=st.booleans(),
    mirrored=st.booleans(),
)
def test_hands_are_pruned_alike_by_agents_that_are_asked_together_or_not(agents, sizes, pulls, absent, mirrored):
    setup = Setup(ct.Problem(n=N, m=1, agents=agents, horizon=10_000), seed=3, mirrored=mirrored)
    crew = Crew(ARMS, setup, Recorder())
    alone = [Agent(number, ARMS, setup) for number in range(agents)]
    question = Prune(7, np.array(sizes), np.array(pulls[: len(sizes)]))
    requests = [Request(agent, 1, (question,)) for agent in range(agents - (absent and agents > 1))]
    for asked in (requests, requests):  # the second time, it is repeated
        assert handed_over(crew.answer(asked)) == handed_over(
            [alone[request.agent].answer(request) for request in asked]
        )
    totals = ArmTotals(N, crew.batches)
    expected_totals = ArmTotals(N, [batch for agent in alone for batch in agent.batches])
    assert totals.pulls.tolist() == expected_totals.pulls.tolist()
    assert totals.sums.tolist() == expected_totals.sums.tolist()


def test_a_repeated_request_gets_the_same_reply_without_new_pulls():
    crew = Crew(ARMS, setup_of(), Recorder())
    requests = requests_for([([agent], [5]) for agent in range(AGENTS)], number=1)
    assert crew.answer(requests) == crew.answer(requests)
    assert ArmTotals(N, crew.batches).pulls.sum() == 5 * AGENTS


@pytest.mark.parametrize("arms", [CountedArms(MEANS), ct.BetaArms(MEANS)])
def test_arms_that_pull_in_their_own_way_are_asked_agent_by_agent(arms):
    assert Crew(arms, setup_of(), Recorder()).pull_together is None


def test_rewards_that_are_recorded_are_drawn_agent_by_agent():
    assert Crew(ARMS, setup_of(), BusyRecorder()).pull_together is None


def test_agents_that_send_squares_are_asked_one_by_one():
    crew = Crew(ARMS, setup_of(), Recorder())
    crew.answer([Request(2, 1, (SendSquares(), Pull(np.array([1]), np.array([5]))))])
    assert crew.pull_together is None


def test_an_agent_does_not_pull_past_the_horizon():
    crew = Crew(ARMS, setup_of(horizon=9), Recorder())
    with pytest.raises(ProtocolError, match="agent 0 was asked to pull past the horizon"):
        pulled_together(crew, [([1, 2], [5, 6])] * AGENTS)


def test_no_request_gets_no_reply():
    assert Crew(ARMS, setup_of(), Recorder()).answer([]) == []


def test_a_halted_agent_pulls_no_more():
    crew = Crew(ARMS, setup_of(), Recorder())
    crew.members[2].halt()
    with pytest.raises(AgentHalted):
        crew.answer(requests_for([([1], [5])] * AGENTS, number=1))
