"""The history from which lost agents are rebuilt rejects replies of earlier epochs and different replies."""

from __future__ import annotations

import pytest

from collabtop.errors import ProtocolError
from collabtop.protocol.messages import Held, Reply
from collabtop.teams.remote.envelope import SealedRequest, digest_of
from collabtop.teams.remote.history import AgentHistory


def request(number, epoch=0):
    return SealedRequest(epoch, 0, number, (b"question",))


def reply(number, answer=7):
    return Reply(0, number, 5, Held(answer))


def add(history, number, epoch=0):
    history.add_reply(reply(number), epoch, digest_of(reply(number)))


@pytest.fixture
def history():
    """The history of one agent that answered request 1 and not yet request 2."""
    history = AgentHistory(agents=1)
    history.add_request(request(1))
    add(history, 1)
    history.add_request(request(2))
    return history


def test_a_lost_agent_gets_the_answered_requests_again_and_then_the_open_one(history):
    history.begin_epoch(0)
    assert history.is_waiting(0)
    assert history.answered_requests(0) == [request(1, epoch=1)]
    assert history.latest(0) == request(2, epoch=1)
    add(history, 2, epoch=1)
    assert not history.is_waiting(0)


def test_a_reply_from_an_earlier_epoch_is_rejected(history):
    history.begin_epoch(0)
    with pytest.raises(
        ProtocolError, match="answered request 2 in epoch 0, but its epoch is 1 and its latest request is 2"
    ):
        add(history, 2)


@pytest.mark.parametrize("number", [1, 3])
def test_a_reply_to_a_different_request_is_rejected(history, number):
    with pytest.raises(ProtocolError, match=f"answered request {number} in epoch 0"):
        add(history, number)


def test_a_second_reply_is_rejected(history):
    add(history, 2)
    with pytest.raises(ProtocolError, match="answered request 2 twice"):
        add(history, 2)


def test_different_replies_of_a_rebuilt_agent_are_noticed(history):
    history.check(0, [digest_of(reply(1))])
    with pytest.raises(ProtocolError, match="gave different replies"):
        history.check(0, [digest_of(reply(1, answer=8))])
