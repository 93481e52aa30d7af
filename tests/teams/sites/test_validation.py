"""The requests and answers of every algorithm are valid for both sides; changed ones are rejected."""

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
    """A local team that checks every message as a coordinator and a site do."""

    def open(self, arms, setup, recorder):
        super().open(arms, setup, recorder)
        self.states = [PublicState(agent, setup.problem) for agent in range(setup.problem.agents)]

    def deliver(self, requests):
        for request in requests:
            self.states[request.agent].check_request(request)
        replies = super().deliver(requests)
        for request, reply in zip(requests, replies, strict=True):
            self.states[request.agent].check_reply(request, reply)
            assert self.states[request.agent].total_pulls == self._members[request.agent].draws.pulls_made
        return replies


FEW = ["collab-top-iid", "frugal-top", "frugal-top-noniid", "confident-top"]  # every kind of message


@pytest.mark.parametrize("algorithms", [FEW, pytest.param(None, marks=pytest.mark.long)], ids=["few", "all"])
def test_the_messages_of_all_algorithms_are_valid(algorithms):
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
    """The state of an agent that holds six arms and has pulled each of them four times."""
    state = PublicState(0, PROBLEM)
    state.check_reply(asked(DEAL), Reply(0, 1, 0, HELD))
    question = asked(say.PullHand(4), say.Sample(3, 6), number=2)
    state.check_request(question)
    shown = len(ct.protocol.sampling.around(3, 6, 6))
    state.check_reply(question, Reply(0, 2, 24, say.Values(np.linspace(0, 1, shown))))
    return state


@pytest.mark.parametrize(
    ("question", "error"),
    [
        (say.Pull(np.array([0, N]), np.array([1])), "unknown or repeated arms"),
        (say.Pull(np.array([-1]), np.array([1])), "unknown or repeated arms"),
        (say.Pull(np.array([3, 3]), np.array([1])), "unknown or repeated arms"),
        (say.Pull(np.array([3, 4]), np.array([1, 1, 1])), "not one number of pulls per arm"),
        (say.Pull(None, np.array([0]), np.array([], np.int64)), "not one first pull per arm"),
        (say.Pull(None, np.array([1]), np.array([-1])), "number of a pull out of range"),
        (say.Pull(None, np.array([-1])), "number of pulls out of range"),
        (say.Pull(None, np.array([9])), "beyond the horizon"),
        (say.Deal(np.array([], np.int64)), "no coefficients or too many"),
        (say.Deal(np.array([-5])), "outside the field"),
        ((BORDER, say.Cut(7)), "count out of range"),
        ((BORDER, say.Cut(-1)), "count out of range"),
        (say.Narrow(0.0, 7, 1.0, -1), "position out of range"),
        (say.Sample(6, 6), "rank out of range"),
        (say.Prune(1, np.array([2]), np.array([1, 2])), "of different lengths"),
        (say.Prune(1, np.array([2, 1]), np.array([2, 1])), "decreasing order"),
        (say.PullOpen(np.ones(5, bool), 1, 0.0), "flags for a different number"),
        (say.PullOpen(None, 0, 0.0), "pulls or coarseness"),
        (say.Border(0.5, 0.5, 2), "without a question"),
        (say.Held(3), "without a question"),
    ],
)
def test_an_invalid_request_is_rejected(state, question, error):
    with pytest.raises(ProtocolError, match=error):
        state.check_request(asked(*as_messages(question), number=3))


def test_requests_for_other_agents_old_ones_and_empty_ones_are_rejected(state):
    for request, error in (
        (asked(say.Sample(3, 6), agent=1, number=3), "a different agent"),
        (asked(say.Sample(3, 6), number=2), "answered before"),
        (asked(number=3), "no messages or too many"),
        (asked(*[say.PullHand(1)] * 20, say.Sample(3, 6), number=3), "no messages or too many"),
        (asked(say.Means(ONES), say.Sample(3, 6), number=3), "Means is not a request"),
    ):
        with pytest.raises(ProtocolError, match=error):
            state.check_request(request)


@pytest.mark.parametrize(
    ("questions", "error"),
    [
        ([(DEAL,), (say.Sample(3, 6),)], "not pulled since the last deal"),
        ([(DEAL,), (PULL, say.Cut(3))], "a cut without a border"),
        ([(DEAL,), (PULL, BORDER, say.Cut(3)), (say.Cut(1),)], "a cut without a border"),
        ([(DEAL,), (PULL, BORDER, say.Cut(3)), (PULL, say.Cut(1))], "a cut without a border"),
        ([(DEAL,), (PULL, BORDER, say.Cut(3)), (say.Sample(1, 3),)], "not pulled since the last deal or cut"),
        (
            [(DEAL,), (PULL, BORDER, say.Cut(3)), (say.Narrow(0.0, 0, 1.0, 3),)],
            "not pulled since the last deal or cut",
        ),
        ([(DEAL,), (PULL, BORDER, say.Cut(3)), (BORDER, say.Cut(1))], "not pulled since the last border"),
        ([(DEAL,), (PULL, BORDER, BORDER, say.Cut(3))], "not pulled since the last border"),
        ([(DEAL,), (PULL, BORDER, say.Cut(3), say.HandOver(True))], "a cut without an answer"),
        ([(say.Prune(1, np.array([2]), np.array([3])),), (say.HandOver(True),)], "never pulled"),
    ],
)
def test_a_request_out_of_order_is_rejected_before_the_agent_sees_it(questions, error):
    """An agent would raise an arbitrary error: the site would end with a traceback."""
    agent = make_agent()
    for number, messages in enumerate(questions[:-1], 1):
        agent.answer(asked(*messages, number=number))
    before = dict(vars(agent.state))
    with pytest.raises(ProtocolError, match=error):
        agent.answer(asked(*questions[-1], number=len(questions)))
    assert vars(agent.state) == before


def make_agent():
    """Agent 0 of a site."""
    arms = ct.BernoulliArms(np.linspace(0, 1, N))
    return JournalledAgent(Agent(0, arms, Setup(PROBLEM, seed=1)), PublicState(0, PROBLEM), 1, None)


def test_a_new_hand_and_a_pruned_hand_are_independent_of_the_last_hand():
    agent = make_agent()
    for number, messages in enumerate([(DEAL,), (PULL, BORDER, say.Cut(0)), (DEAL,)], 1):
        agent.answer(asked(*messages, number=number))
    # Accepted arms of the old hand do not belong to the new one, and arms of a pruned hand are not held.
    pruned = agent.answer(asked(say.Prune(1, np.array([2]), np.array([3])), number=4)).answer
    assert len(pruned.arms) == 2
    hand = agent.answer(asked(PULL, say.HandOver(True), number=5)).answer
    assert hand.arms.tolist() == ODD.tolist()
    assert len(hand.accepted) == 0


ODD = np.arange(1, N, 2)
HAND = say.Hand(ODD, np.full(6, 0.5), np.empty(0, np.int64), np.empty(0))


OPEN, coarse = say.PullOpen(None, 2, 0.0), say.CoarseMeans


def changed(message, **fields):
    return msgspec.structs.replace(message, **fields)


@pytest.mark.parametrize(
    ("question", "answer", "pulls", "error"),
    [
        (DEAL, say.Held(5), 0, "a different number of arms than dealt"),
        (DEAL, changed(HELD, free=("size",)), 0, "marks its numbers as free"),
        (DEAL, say.Accepted(1), 0, "Accepted is not an answer to Deal"),
        (say.Narrow(0.2, -1, 0.8, -1), say.Window(2, 2, np.empty(0)), 1, "a different number of pulls"),
        ((BORDER, say.Cut(4)), say.Accepted(3), 0, "more accepted arms than were settled"),
        ((BORDER, say.Cut(4)), say.Accepted(-1), 0, "count out of range"),
        (say.HandOver(True), changed(HAND, arms=ODD - 1), 0, "arms that the agent was not dealt"),
        (say.HandOver(True), changed(HAND, arms=np.full(6, 3)), 0, "arms that the agent was not dealt"),
        (say.HandOver(True), changed(HAND, arms=ODD[:5], means=np.ones(5)), 0, "a different number of arms"),
        (say.HandOver(False), HAND, 0, "a different number of arms than held"),
        (say.HandOver(True), changed(HAND, means=np.full(6, 1.5)), 0, r"outside \[0, 1\]"),
        (say.HandOver(True), changed(HAND, accepted=np.array([1]), accepted_means=np.ones(1)), 0, "accepted arms"),
        (say.Narrow(0.2, -1, 0.8, -1), say.Window(0, 7, np.full(7, 0.5)), 0, "positions out of range"),
        (say.Narrow(0.2, -1, 0.8, -1), say.Window(0, 2, np.full(3, 0.5)), 0, "a different number of values"),
        (say.Narrow(0.2, -1, 0.8, -1), say.Window(0, 2, np.array([0.6, 0.5])), 0, "out of order"),
        (say.Narrow(0.2, -1, 0.8, -1), say.Window(0, 2, np.array([0.1, 0.5])), 0, "outside the window"),
        (say.Pull(None, np.array([2])), say.Means(ONES[1:]), 24, "a different number of means"),
        (say.Pull(None, np.array([2])), say.Means(ONES), 25, "a different number of pulls"),
        (say.Pull(None, np.array([2])), say.Means(-ONES), 24, r"outside \[0, 1\]"),
        (OPEN, coarse(0, False, None, None), 24, "no means"),
        (OPEN, coarse(0, True, None, ONES), 24, "no means"),
        (OPEN, coarse(0, False, None, ONES[1:]), 24, "a different number of means"),
        (OPEN, coarse(2, False, Packed.of(np.full(N, 3), 3), None), 24, r"outside \[0, 1\]"),
        (OPEN, coarse(2, True, Packed.of(np.full(N, 3), 3), None), 24, r"outside \[0, 1\]"),
        (OPEN, coarse(2, False, Packed.of(np.full(5, 1), 2), None), 24, "a different number of means"),
        (OPEN, coarse(2, False, Packed.of(np.full(N, 1), 9), None), 24, "the wrong width"),
    ],
)
def test_an_invalid_answer_is_rejected_and_changes_nothing(state, question, answer, pulls, error):
    before = dict(vars(state))
    with pytest.raises(ProtocolError, match=error):
        state.check_reply(asked(*as_messages(question), number=3), Reply(0, 3, pulls, answer))
    assert vars(state) == before
