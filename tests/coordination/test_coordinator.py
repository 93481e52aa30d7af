"""The seam: requests out, replies back, every message counted, and nothing believed that does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import ProtocolError
from collabtop.protocol.messages import Held, Means, Pull, PullHand, Reply, Sample, Values
from collabtop.protocol.setup import Setup
from collabtop.testing import ConstantArms


def held(requests):
    """One reply per request, each with the agent's number."""
    return [Reply(request.agent, request.number, 0, Held(request.agent)) for request in requests]


class Scripted(ct.Team):
    """A team that replies by a script."""

    def __init__(self, replies=held):
        self.replies, self.requests = replies, []

    def open(self, arms, setup, recorder):
        self.setup = setup

    def deliver(self, requests):
        self.requests.append(requests)
        return self.replies(requests)


QUESTION = Sample(1, 2)


def coordinator_of(team):
    """A coordinator of three agents."""
    coordinator = Coordinator(team, Setup(ct.Problem(1, 1, 3, 100), seed=1))
    coordinator.open(ConstantArms([0.5]))
    return coordinator


def test_all_are_asked_and_answers_come_in_the_order_of_the_agents():
    team = Scripted()
    coordinator = coordinator_of(team)
    assert coordinator.ask_all(QUESTION, Held) == [Held(0), Held(1), Held(2)]
    assert coordinator.ask({2: QUESTION, 0: QUESTION}, Held) == {2: Held(2), 0: Held(0)}
    assert [[r.agent for r in requests] for requests in team.requests] == [[0, 1, 2], [2, 0]]


def test_what_is_told_travels_with_the_next_question_and_only_once():
    team = Scripted()
    coordinator = coordinator_of(team)
    coordinator.tell_all(PullHand(5))
    coordinator.tell({1: PullHand(6)})
    coordinator.ask({0: QUESTION, 1: QUESTION}, Held)
    coordinator.ask_all(QUESTION, Held)
    first, second = team.requests
    assert [r.messages for r in first] == [(PullHand(5), QUESTION), (PullHand(5), PullHand(6), QUESTION)]
    assert [len(r.messages) for r in second] == [1, 1, 2]
    assert coordinator.meter.ledger().round_trips == 2


def test_a_broadcast_costs_as_many_words_as_there_are_agents():
    team = Scripted()
    coordinator = coordinator_of(team)
    coordinator.tell_all(PullHand(5))
    coordinator.ask_all(QUESTION, Held)
    assert coordinator.meter.ledger().words_by("kind") == {"PullHand": 3, "Sample": 6, "Held": 3}


def test_requests_are_numbered_one_after_the_other():
    team = Scripted()
    coordinator = coordinator_of(team)
    for _ in range(3):
        coordinator.ask_all(QUESTION, Held)
    assert [{r.number for r in requests} for requests in team.requests] == [{1}, {2}, {3}]


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        (lambda requests: [], "3 agents were asked, 0 replied"),
        (lambda requests: [Reply(0, 1, 0, Held(1))] * 4, "3 agents were asked, 4 replied"),
        (lambda requests: [Reply(0, 1, 0, Held(1))] * 3, "agent 1 was asked, agent 0 replied"),
        (lambda requests: [Reply(r.agent, 7, 0, Held(1)) for r in requests], "agent 0 was asked"),
        (lambda requests: [Reply(r.agent, 1, 0, Values(np.zeros(1))) for r in requests], "sent Values, not Held"),
    ],
)
def test_replies_that_do_not_fit_are_refused(replies, said):
    with pytest.raises(ProtocolError, match=said):
        coordinator_of(Scripted(replies)).ask_all(QUESTION, Held)


def test_a_team_can_be_used_for_one_run_after_another():
    team = ct.LocalTeam()
    arms = ct.BernoulliArms([0.9, 0.1, 0.5])
    run: dict[str, Any] = {"agents": 2, "horizon": 60, "algorithm": "kzz", "seed": 3}
    first = ct.identify(arms, 1, team=team, **run)
    assert ct.identify(arms, 1, team=team, **run) == first
    assert ct.identify(arms, 1, agents=5, horizon=60, algorithm="uniform", team=team).agents == 5


@pytest.mark.parametrize("fails", [True, False])
def test_a_team_is_closed_after_every_run(fails):
    closed = []

    class Careful(ct.LocalTeam):
        def close(self):
            closed.append(True)

    def pull(candidate, rng):
        return 7 if fails else 0.5

    arms = ct.FunctionArms(["a", "b"], pull)
    if fails:
        with pytest.raises(ct.PullError):
            ct.identify(arms, 1, agents=1, horizon=4, algorithm="uniform", team=Careful())
    else:
        ct.identify(arms, 1, agents=1, horizon=4, algorithm="uniform", team=Careful())
    assert closed == [True]


def test_a_recording_is_a_team_of_a_few_lines():
    heard = []

    class Recording(ct.LocalTeam):
        def deliver(self, requests):
            heard.extend(type(message).__name__ for request in requests for message in request.messages)
            return super().deliver(requests)

    ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, agents=2, horizon=10, algorithm="uniform", team=Recording())
    assert heard == ["Pull", "Pull"]


def test_agents_that_are_not_asked_do_nothing():
    team = ct.LocalTeam()
    coordinator = Coordinator(team, Setup(ct.Problem(2, 1, 3, 100), seed=1))
    coordinator.open(ConstantArms([0.5, 0.25]))
    coordinator.ask({1: Pull(None, np.array([2]))}, Means)
    assert len(team.observed()) == 1


class NeverOpened(ct.LocalTeam):
    """Fails in `open`, and then in `close` for want of what `open` would have made."""

    def open(self, arms, setup, recorder):
        raise OSError("no such host")

    def close(self):
        raise AttributeError("there is nothing to close")


def test_the_error_of_a_team_that_could_not_be_opened_is_the_one_that_is_raised():
    with pytest.raises(OSError, match="no such host"):
        ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, agents=2, horizon=10, algorithm="uniform", team=NeverOpened())


class Reversing(ct.LocalTeam):
    def deliver(self, requests):
        return reversed(super().deliver(requests))


def test_a_wrong_reply_is_not_logged_so_the_run_can_be_continued(tmp_path):
    run = {"agents": 2, "horizon": 10, "algorithm": "uniform", "seed": 1, "checkpoint": tmp_path / "run.ctlog"}
    arms = ct.BernoulliArms([0.9, 0.1])
    with pytest.raises(ProtocolError, match="agent 0 was asked, agent 1 replied"):
        ct.identify(arms, 1, team=Reversing(), **run)
    assert ct.identify(arms, 1, **run) == ct.identify(arms, 1, **(run | {"checkpoint": None}))
