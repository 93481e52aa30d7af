"""An agent answers typed messages, and never pulls past the horizon."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.errors import ProtocolError
from collabtop.protocol import messages as say
from collabtop.protocol.agent import Agent
from collabtop.protocol.setup import Setup
from collabtop.testing import ConstantArms

MEANS = [0.0, 0.25, 0.5, 0.75, 1.0]


def agent_of(means=MEANS, number=0, agents=1, horizon=1_000, *, mirrored=False, arms=None):
    arms = arms or ConstantArms(means)
    return Agent(number, arms, Setup(ct.Problem(arms.n, 1, agents, horizon), seed=1, mirrored=mirrored))


def ask(agent, *messages, number=1):
    return agent.answer(say.Request(agent.number, number, messages))


def test_an_agent_pulls_the_requested_arms_and_answers_with_means():
    reply = ask(agent_of(), say.Pull(np.array([4, 1]), np.array([2, 3])))
    assert reply.answer.means.tolist() == [1.0, 0.25]
    assert (reply.agent, reply.number, reply.pulls) == (0, 1, 5)


def test_one_number_is_for_all_arms_and_none_is_all_arms():
    reply = ask(agent_of(), say.Pull(None, np.array([2])))
    assert reply.answer.means.tolist() == MEANS
    assert reply.pulls == 10


def test_an_arm_without_a_pull_has_no_mean():
    assert ask(agent_of(), say.Pull(np.array([4, 1, 3]), np.array([2, 0, 1]))).answer.means.tolist() == [1.0, 0.75]
    assert ask(agent_of(), say.Pull(np.array([4, 1]), np.array([0]))).answer.means.tolist() == []


def test_a_repeated_request_gets_the_same_reply_and_nothing_is_pulled_again():
    agent = agent_of(arms=ct.BernoulliArms([0.5] * 20))
    request = say.Request(0, 1, (say.Pull(None, np.array([3])),))
    first = agent.answer(request)
    assert agent.answer(request) is first
    assert len(list(agent.batches)) == 1
    other = agent.answer(say.Request(0, 2, request.messages))
    assert not np.array_equal(first.answer.means, other.answer.means)
    assert len(list(agent.batches)) == 2


def test_an_agent_refuses_to_pull_past_the_horizon():
    agent = agent_of(horizon=12)
    ask(agent, say.Pull(None, np.array([2])), number=1)
    with pytest.raises(ProtocolError, match="agent 0 was asked to pull past the horizon"):
        ask(agent, say.Pull(np.array([0]), np.array([3])), number=2)
    assert ask(agent, say.Pull(np.array([0]), np.array([2])), number=3).pulls == 2


def test_an_unknown_message_is_rejected():
    with pytest.raises(ProtocolError, match="agent 0 does not understand Held"):
        ask(agent_of(), say.Held(3))


@pytest.mark.parametrize("messages", [(), (say.PullHand(1),)])
def test_a_request_without_a_question_is_rejected(messages):
    with pytest.raises(ProtocolError, match="request 1 to agent 0 contains no question"):
        ask(agent_of(), *messages)


def test_a_mirrored_agent_counts_a_reward_of_x_as_1_minus_x():
    agent = agent_of(mirrored=True)
    assert ask(agent, say.Pull(None, np.array([2]))).answer.means.tolist() == [1.0, 0.75, 0.5, 0.25, 0.0]


def test_a_local_round_by_hand():
    agent = agent_of()
    assert ask(agent, say.Deal(np.array([3])), number=1).answer == say.Held(5)  # one agent: all arms
    shown = ask(agent, say.PullHand(4), say.Sample(rank=3, total=5), number=2)
    assert shown.answer.values.tolist() == pytest.approx(MEANS, abs=1e-10)  # perturbed, so that no two are equal
    assert shown.pulls == 20
    # The best two are wanted: .75 and .5 are at the border, gaps are .75, .5, .25, .25, .5.
    gaps = ask(agent, say.Border(upper=0.75, lower=0.5, top=2), say.Sample(rank=2, total=5), number=3)
    assert gaps.answer.values.tolist() == pytest.approx([0.25, 0.25, 0.5, 0.5, 0.75], abs=1e-10)
    assert ask(agent, say.Cut(keep=2), number=4).answer == say.Accepted(1)
    hand = ask(agent, say.HandOver(live=True), number=5).answer
    assert dict(zip(hand.arms.tolist(), hand.means.tolist(), strict=True)) == {2: 0.5, 3: 0.75}
    assert (hand.accepted.tolist(), hand.accepted_means.tolist()) == ([4], [1.0])
    closed = ask(agent, say.HandOver(live=False), number=6).answer
    assert closed.arms.tolist() == []
    assert closed.accepted.tolist() == [4]


@pytest.mark.parametrize(
    ("low_place", "high_place", "window"),
    [
        (say.TIES_BEFORE, say.TIES_BEFORE, (3, 4)),
        (say.TIES_AFTER, say.TIES_BEFORE, (1, 4)),
        (say.TIES_BEFORE, say.TIES_AFTER, (3, 3)),
        (2, 4, (2, 4)),
    ],
)
def test_narrow_places_ties_before_or_after_the_bound(low_place, high_place, window):
    agent = agent_of()
    agent._hand = np.arange(5)
    agent._keys = np.array([0.1, 0.5, 0.5, 0.8, 0.9])
    reply = ask(agent, say.Narrow(0.5, low_place, 0.8, high_place)).answer
    assert (reply.start, reply.stop) == window
    assert reply.values.tolist() == [0.1, 0.5, 0.5, 0.8, 0.9][slice(*window)]


def test_what_an_agent_draws_depends_on_its_own_requests_only():
    arms = ct.BernoulliArms([0.5] * 30)
    alone, in_company = agent_of(arms=arms, number=1, agents=2), agent_of(arms=arms, number=1, agents=2)
    other = agent_of(arms=arms, number=0, agents=2)
    question = say.Pull(None, np.array([3]))
    ask(other, question)
    first, second = ask(alone, question), ask(in_company, question)
    assert np.array_equal(first.answer.means, second.answer.means)
    assert not np.array_equal(first.answer.means, ask(other, question, number=2).answer.means)
