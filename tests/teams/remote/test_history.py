"""The book from which lost agents are rebuilt: no reply of another life, and no other reply."""

from __future__ import annotations

import pytest

from collabtop.errors import ProtocolError
from collabtop.teams.remote.envelope import SealedReply, SealedRequest
from collabtop.teams.remote.history import AgentHistory, digest_of


def request(number, epoch=0):
    return SealedRequest(epoch, 0, number, (b"what?",))


def reply(number, epoch=0, answer=b"that"):
    return SealedReply(epoch, 0, number, 5, answer)


@pytest.fixture
def book():
    """One agent that answered request 1 and was asked 2."""
    book = AgentHistory(agents=1)
    book.asked(request(1))
    book.answered(reply(1))
    book.asked(request(2))
    return book


def test_a_lost_agent_gets_what_it_answered_again_and_then_what_it_owes(book):
    book.lose(0)
    assert book.is_waiting(0)
    assert book.answered_requests(0) == [request(1, epoch=1)]
    assert book.latest(0) == request(2, epoch=1)
    book.answered(reply(2, epoch=1))
    assert not book.is_waiting(0)


def test_a_reply_from_a_life_that_is_over_is_no_reply(book):
    book.lose(0)
    with pytest.raises(ProtocolError, match=r"answered request 2 in epoch 0, but it is in epoch 1 and was asked 2"):
        book.answered(reply(2))


@pytest.mark.parametrize("number", [1, 3])
def test_a_reply_to_another_request_is_no_reply(book, number):
    with pytest.raises(ProtocolError, match=f"answered request {number} in epoch 0"):
        book.answered(reply(number))


def test_a_second_reply_is_refused(book):
    book.answered(reply(2))
    with pytest.raises(ProtocolError, match="answered request 2 twice"):
        book.answered(reply(2))


def test_a_rebuilt_agent_that_says_something_else_is_noticed(book):
    book.check(0, [digest_of(reply(1, epoch=7))])
    with pytest.raises(ProtocolError, match="gave other replies"):
        book.check(0, [digest_of(reply(1, answer=b"this"))])
