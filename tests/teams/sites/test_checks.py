"""Every algorithm's questions and answers pass the checks of both sides; what is changed in them does not."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import collabtop as ct
import collabtop.protocol.sampling
from collabtop.errors import ProtocolError
from collabtop.problem import Problem
from collabtop.protocol import messages as say
from collabtop.protocol.agent import Agent
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.packing import Packed
from collabtop.protocol.setup import Setup
from collabtop.teams.sites.journal import JournalledAgent
from collabtop.teams.sites.validation import PublicState
from collabtop.testing import check_team


class CheckedTeam(ct.LocalTeam):
    """A local team that looks at every message as a coordinator and a site do."""

    def open(self, arms, setup, recorder):
        super().open(arms, setup, recorder)
        self.states = [PublicState(agent, setup.problem) for agent in range(setup.problem.agents)]

    def deliver(self, requests):
        for request in requests:
            self.states[request.agent].check_request(request)
        replies = super().deliver(requests)
        for request, reply in zip(requests, replies, strict=True):
            self.states[request.agent].check_reply(request, reply)
            assert self.states[request.agent].made == self._members[request.agent]._draws.pulls_made
        return replies


FEW = ["collab-top-iid", "frugal-top", "frugal-top-noniid", "confident-top"]  # every kind of message


@pytest.mark.parametrize("algorithms", [FEW, pytest.param(None, marks=pytest.mark.long)], ids=["few", "all"])
def test_all_that_algorithms_ask_and_agents_answer_is_let_through(algorithms):
    check_team(CheckedTeam, algorithms=algorithms)


N = 12
PROBLEM = Problem(n=N, m=2, agents=2, horizon=100)
ONES = np.ones(N)
DEAL = say.Deal(np.array([1, 0]))  # agent 0 holds the odd arms
HELD = say.Held(6)
PULL, BORDER = say.PullHand(1), say.Border(0.6, 0.5, 2)


def asked(*messages, agent=0, number=1):
    return Request(agent, number, messages)


def as_messages(question):
    return question if isinstance(question, tuple) else (question,)


@pytest.fixture
def state():
    """An agent that holds six arms and has pulled each four times."""
    state = PublicState(0, PROBLEM)
    state.check_reply(asked(DEAL), Reply(0, 1, 0, HELD))
    question = asked(say.PullHand(4), say.Sample(3, 6), number=2)
    state.check_request(question)
    shown = len(ct.protocol.sampling.around(3, 6, 6))
    state.check_reply(question, Reply(0, 2, 24, say.Values(np.linspace(0, 1, shown))))
    return state


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (say.Pull(np.array([0, N]), np.array([1])), "arms that are none"),
        (say.Pull(np.array([-1]), np.array([1])), "arms that are none"),
        (say.Pull(np.array([3, 3]), np.array([1])), "the same twice"),
        (say.Pull(np.array([3, 4]), np.array([1, 1, 1])), "not one number of pulls an arm"),
        (say.Pull(None, np.array([-1])), "number of pulls that cannot be"),
        (say.Pull(None, np.array([9])), "past the horizon"),
        (say.Deal(np.array([], np.int64)), "no or too many coefficients"),
        (say.Deal(np.array([-5])), "outside of the field"),
        ((BORDER, say.Cut(7)), "count that cannot be"),
        ((BORDER, say.Cut(-1)), "count that cannot be"),
        (say.Narrow(0.0, 7, 1.0, -1), "place that the agent does not have"),
        (say.Sample(6, 6), "rank outside"),
        (say.Prune(1, np.array([2]), np.array([1, 2])), "stages that do not fit"),
        (say.Prune(1, np.array([2, 1]), np.array([2, 1])), "pulls that become fewer"),
        (say.PullOpen(np.ones(5, bool), 1, 0.0), "flags of another number"),
        (say.PullOpen(None, 0, 0.0), "pulls or rounding"),
        (say.Border(0.5, 0.5, 2), "asks nothing"),
        (say.Held(3), "asks nothing"),
    ],
)
def test_a_question_that_no_coordinator_would_ask_is_refused(state, question, said):
    with pytest.raises(ProtocolError, match=said):
        state.check_request(asked(*as_messages(question), number=3))


def test_questions_to_others_old_ones_and_empty_ones_are_refused(state):
    for request, said in (
        (asked(say.CountTies(0.5), agent=1, number=3), "another agent"),
        (asked(say.CountTies(0.5), number=2), "answered long ago"),
        (asked(number=3), "no or too many messages"),
        (asked(*[say.PullHand(1)] * 20, say.CountTies(0.5), number=3), "no or too many messages"),
        (asked(say.Means(ONES), say.CountTies(0.5), number=3), "Means is no question"),
    ):
        with pytest.raises(ProtocolError, match=said):
            state.check_request(request)


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ([(DEAL,), (say.CountTies(0.5),)], "not pulled since they were dealt"),
        ([(DEAL,), (PULL, say.Cut(3))], "a cut without a border"),
        ([(DEAL,), (PULL, BORDER, say.Cut(3)), (say.Cut(1),)], "a cut without a border"),
        ([(DEAL,), (PULL, BORDER, say.Cut(3)), (PULL, say.Cut(1))], "a cut without a border"),
        ([(DEAL,), (PULL, BORDER, say.Cut(3)), (say.Sample(1, 3),)], "not pulled since they were dealt or cut"),
        (
            [(DEAL,), (PULL, BORDER, say.Cut(3)), (say.Narrow(0.0, 0, 1.0, 3),)],
            "not pulled since they were dealt or cut",
        ),
        ([(DEAL,), (PULL, BORDER, say.Cut(3)), (say.CountTies(0.5),)], "not pulled since they were dealt or cut"),
        ([(DEAL,), (PULL, BORDER, say.Cut(3)), (BORDER, say.Cut(1))], "not pulled since the last one"),
        ([(DEAL,), (PULL, BORDER, BORDER, say.Cut(3))], "not pulled since the last one"),
        ([(DEAL,), (PULL, BORDER, say.Cut(3), say.HandOver(True, 1))], "a cut whose answer nobody waits for"),
        ([(say.Prune(1, np.array([2]), np.array([3])),), (say.HandOver(True, 1),)], "never pulled"),
    ],
)
def test_a_question_out_of_turn_is_refused_before_the_agent_sees_it(questions, said):
    """An agent has nothing to look it up in: to ask it would end a site with a traceback."""
    agent = an_agent()
    for number, messages in enumerate(questions[:-1], 1):
        agent.answer(asked(*messages, number=number))
    before = dict(vars(agent.state))
    with pytest.raises(ProtocolError, match=said):
        agent.answer(asked(*questions[-1], number=len(questions)))
    assert vars(agent.state) == before


def an_agent():
    """Agent 0 as a site has it."""
    arms = ct.BernoulliArms(np.linspace(0, 1, N))
    return JournalledAgent(Agent(0, arms, Setup(PROBLEM, seed=1)), PublicState(0, PROBLEM), 1, None)


def test_a_hand_dealt_anew_or_pruned_beside_it_begins_afresh():
    agent = an_agent()
    for number, messages in enumerate([(DEAL,), (PULL, BORDER, say.Cut(0)), (DEAL,)], 1):
        agent.answer(asked(*messages, number=number))
    # Arms accepted from the old hand are none of the new one's, and those of a pruned hand are not held.
    pruned = agent.answer(asked(say.Prune(1, np.array([2]), np.array([3])), number=4)).answer
    assert len(pruned.arms) == 2
    hand = agent.answer(asked(PULL, say.HandOver(True, 1), number=5)).answer
    assert hand.arms.tolist() == ODD.tolist()
    assert len(hand.accepted) == 0


ODD = np.arange(1, N, 2)
HAND = say.Hand(ODD, np.full(6, 0.5), np.empty(0, np.int64), np.empty(0))


def changed(message, **fields):
    return msgspec.structs.replace(message, **fields)


@pytest.mark.parametrize(
    ("question", "answer", "pulls", "said"),
    [
        (DEAL, say.Held(5), 0, "another number of arms than were dealt"),
        (DEAL, changed(HELD, free=("size",)), 0, "calls its numbers free"),
        (DEAL, say.Tied(1, 1), 0, "Tied is no answer to Deal"),
        (say.CountTies(0.5), say.Tied(4, 3), 0, "ties that cannot be"),
        (say.CountTies(0.5), say.Tied(-1, 3), 0, "ties that cannot be"),
        (say.CountTies(0.5), say.Tied(1, 3), 1, "another number of pulls"),
        ((BORDER, say.Cut(4)), say.Accepted(3), 0, "more accepted arms than were settled"),
        ((BORDER, say.Cut(4)), say.Accepted(-1), 0, "count that cannot be"),
        (say.HandOver(True, 7), changed(HAND, arms=ODD - 1), 0, "arms that the agent was not dealt"),
        (say.HandOver(True, 7), changed(HAND, arms=np.full(6, 3)), 0, "arms that the agent was not dealt"),
        (say.HandOver(True, 7), changed(HAND, arms=ODD[:5], means=np.ones(5)), 0, "another number of arms"),
        (say.HandOver(False, 7), HAND, 0, "another number of arms than it holds"),
        (say.HandOver(True, 7), changed(HAND, means=np.full(6, 1.5)), 0, r"outside \[0, 1\]"),
        (say.HandOver(True, 7), changed(HAND, accepted=np.array([1]), accepted_means=np.ones(1)), 0, "accepted arms"),
        (say.Narrow(0.2, -1, 0.8, -1), say.Window(0, 7, np.full(7, 0.5)), 0, "places that the agent does not have"),
        (say.Narrow(0.2, -1, 0.8, -1), say.Window(0, 2, np.full(3, 0.5)), 0, "more or fewer values"),
        (say.Narrow(0.2, -1, 0.8, -1), say.Window(0, 2, np.array([0.6, 0.5])), 0, "out of order"),
        (say.Narrow(0.2, -1, 0.8, -1), say.Window(0, 2, np.array([0.1, 0.5])), 0, "outside of the window"),
        (say.Pull(None, np.array([2])), say.Means(ONES[1:]), 24, "more or fewer means"),
        (say.Pull(None, np.array([2])), say.Means(ONES), 25, "another number of pulls"),
        (say.Pull(None, np.array([2])), say.Means(-ONES), 24, r"outside \[0, 1\]"),
        (say.PullOpen(None, 2, 0.0), say.CoarseMeans(0, None, None), 24, "no means"),
        (say.PullOpen(None, 2, 0.0), say.CoarseMeans(0, None, ONES[1:]), 24, "more or fewer means"),
        (say.PullOpen(None, 2, 0.0), say.CoarseMeans(2, Packed.of(np.full(N, 3), 3), None), 24, r"outside \[0, 1\]"),
        (say.PullOpen(None, 2, 0.0), say.CoarseMeans(2, Packed.of(np.full(5, 1), 2), None), 24, "more or fewer"),
        (say.PullOpen(None, 2, 0.0), say.CoarseMeans(2, Packed.of(np.full(N, 1), 9), None), 24, "another way"),
    ],
)
def test_an_answer_that_no_agent_would_give_is_refused_and_changes_nothing(state, question, answer, pulls, said):
    before = dict(vars(state))
    with pytest.raises(ProtocolError, match=said):
        state.check_reply(asked(*as_messages(question), number=3), Reply(0, 3, pulls, answer))
    assert vars(state) == before
