"""Extensions at sites: known messages are checked like any other, and unknown ones are refused with a clear error."""

from __future__ import annotations

import re

import msgspec
import numpy as np
import pytest

import collabtop as ct
from collabtop.extending import ProtocolError, Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.teams.sites import client
from collabtop.teams.sites.frames import Declined, Welcome
from collabtop.teams.sites.min_batch import smallest_batch
from collabtop.teams.sites.validation import PublicState
from tests.support.peers import MaliciousCoordinator
from tests.support.thread_sites import ThreadSites
from tests.support.voting import CallVote, Majority, Vote

MEANS = [0.2, 0.9, 0.5, 0.8, 0.1]
PROBLEM = ct.Problem(n=5, m=2, agents=3, horizon=100)


def run(team):
    return ct.identify(ct.BernoulliArms(MEANS), 2, agents=3, horizon=500, algorithm=Majority(), seed=1, team=team)


def test_sites_that_know_the_extension_give_the_run_of_the_local_team(certs, tmp_path):
    team = ThreadSites(certs, journals=tmp_path, min_batch=2)
    result = run(team)
    assert result == run("local")
    assert result.ledger == run("local").ledger
    assert not team.errors


def test_a_site_that_does_not_know_the_extension_declines_and_both_sides_know_why(certs, monkeypatch):
    monkeypatch.setattr(client, "registered_extensions", dict)
    team = ThreadSites(certs)
    with pytest.raises(ct.SiteError, match="declined to take part: it does not have the extension of this algorithm"):
        run(team)
    assert any(
        re.search("the run needs the extension 'voting', which is not registered here: import its module", str(error))
        for error in team.errors
    )


def test_the_name_of_an_extension_is_not_shown_unless_it_is_one(certs):
    setup = Setup(ct.Problem(n=5, m=1, agents=1, horizon=300), seed=1, extension="\x1b[31mred")
    answers = []

    def talk(frames):
        next(frames)
        yield Welcome("ab" * 16, setup, (0,))
        answers.extend(frames)

    with MaliciousCoordinator(certs, talk) as coordinator, pytest.raises(ct.SiteError) as caught:
        ct.join(f"localhost:{coordinator.port}", ct.BernoulliArms(MEANS), cert=certs / "site0.pem", give_up=5)
    assert str(caught.value) == "this site declined to take part: the coordinator offered an invalid run"
    assert Declined("request") in answers


VOTE = Vote(np.array([1, 3]), np.array([0.5, 1.0]))


def request(*messages, number=1):
    return Request(0, number, messages)


def test_a_valid_exchange_passes_and_its_pulls_are_added():
    state = PublicState(0, PROBLEM)
    state.check_request(request(CallVote(4)))
    state.check_reply(request(CallVote(4)), Reply(0, 1, 20, VOTE))
    assert (state.total_pulls, state.last_request) == (20, 1)


def test_the_extension_checks_requests():
    with pytest.raises(ProtocolError, match="a vote without pulls"):
        PublicState(0, PROBLEM).check_request(request(CallVote(0)))
    with pytest.raises(ProtocolError, match="a request without a question"):
        PublicState(0, PROBLEM).check_request(request(VOTE))


@pytest.mark.parametrize(
    ("answer", "pulls", "error"),
    [
        (VOTE, 21, "a different number of pulls than requested"),
        (VOTE, -1, "a different number of pulls than requested"),
        (msgspec.structs.replace(VOTE, arms=np.array([1, 5])), 20, "a vote for unknown arms"),
        (msgspec.structs.replace(VOTE, means=np.array([1.0, 1.5])), 20, r"means outside \[0, 1\]"),
        (msgspec.structs.replace(VOTE, free=("means",)), 20, "marks its numbers as free"),
        (CallVote(4), 20, "CallVote is not an answer to CallVote"),
    ],
)
def test_the_extension_checks_answers(answer, pulls, error):
    with pytest.raises(ProtocolError, match=error):
        PublicState(0, PROBLEM).check_reply(request(CallVote(4)), Reply(0, 1, pulls, answer))


def test_the_pulls_of_an_extension_stay_within_the_horizon():
    state = PublicState(0, PROBLEM)
    state.check_reply(request(CallVote(20)), Reply(0, 1, 100, VOTE))
    with pytest.raises(ProtocolError, match="pulls beyond the horizon"):
        state.check_reply(request(CallVote(1), number=2), Reply(0, 2, 5, VOTE))


def test_the_smallest_batch_of_an_extension_is_checked_too():
    assert smallest_batch(request(CallVote(4))) == 4
