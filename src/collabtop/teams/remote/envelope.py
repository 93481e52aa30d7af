"""Requests and replies as bytes, for teams whose agents run in other processes.

An envelope names the agent, the number of the exchange, and the agent's epoch. An agent that lost its state starts
again in a new epoch, so an answer from an earlier epoch is never accepted. Envelopes belong to the transport: the
ledger only counts the messages inside.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from collabtop.errors import ProtocolError
from collabtop.protocol import wire
from collabtop.protocol.messages import Message, Reply, Request

_Sealed = TypeVar("_Sealed", "SealedRequest", "SealedReply")


class SealedRequest(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A request with encoded messages."""

    epoch: int
    agent: int
    number: int
    messages: tuple[bytes, ...]

    def open(self) -> Request:
        """Decode the request; invalid messages are rejected."""
        return Request(self.agent, self.number, tuple(wire.decode(data) for data in self.messages))


class SealedReply(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A reply with an encoded answer."""

    epoch: int
    agent: int
    number: int
    pulls: int
    answer: bytes

    def open(self) -> Reply:
        """Decode the reply; an invalid answer is rejected."""
        return Reply(self.agent, self.number, self.pulls, wire.decode(self.answer))


def seal_requests(requests: list[Request], epochs: Sequence[int] | Mapping[int, int]) -> list[SealedRequest]:
    """Encode requests for the current epoch of each agent; a message to several agents is encoded once.

    >>> from collabtop.protocol.messages import PullHand
    >>> sealed = seal_requests([Request(0, 1, (PullHand(5),))], epochs=[3])
    >>> sealed[0].epoch, sealed[0].open()
    (3, Request(agent=0, number=1, messages=(PullHand(times=5),)))
    """
    encoded: dict[int, bytes] = {}
    lists: dict[tuple[int, ...], tuple[bytes, ...]] = {}  # by the ids of their messages

    def as_bytes(message: Message) -> bytes:
        data = encoded.get(id(message))
        if data is None:
            data = encoded[id(message)] = wire.encode(message)
        return data

    def sealed(request: Request) -> SealedRequest:
        ids = tuple(map(id, request.messages))
        messages = lists.get(ids)
        if messages is None:
            messages = lists[ids] = tuple(map(as_bytes, request.messages))
        return SealedRequest(epochs[request.agent], request.agent, request.number, messages)

    return list(map(sealed, requests))


def seal_reply(reply: Reply, epoch: int) -> SealedReply:
    """Encode a reply from this epoch of its agent."""
    return SealedReply(epoch, reply.agent, reply.number, reply.pulls, wire.encode(reply.answer))


def pack(sealed: list[SealedRequest] | list[SealedReply]) -> bytes:
    """Encode several envelopes."""
    return _encoder.encode(sealed)


def unpack(data: bytes, kind: type[_Sealed]) -> list[_Sealed]:
    """Decode envelopes; anything else is rejected.

    >>> unpack(pack([SealedReply(0, 1, 2, 30, b"...")]), SealedReply)
    [SealedReply(epoch=0, agent=1, number=2, pulls=30, answer=b'...')]
    """
    try:
        sealed: list[_Sealed] = msgspec.msgpack.decode(data, type=list[kind])  # type: ignore[valid-type]
    except (msgspec.DecodeError, ValueError) as error:
        raise ProtocolError(f"invalid envelopes: {error}") from None
    return sealed


class SealedReplies(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The replies of several agents of one host, with one column per field, and their answers encoded together."""

    epochs: list[int]
    agents: list[int]
    numbers: list[int]
    pulls: list[int]
    digests: list[bytes]
    """The `digest_of` each reply."""
    answers: bytes

    def open(self) -> list[tuple[int, bytes, Reply]]:
        """Decode the replies, each with its epoch and its digest; an invalid answer is rejected."""
        answers = wire.decode_all(self.answers)
        columns = zip(self.epochs, self.digests, self.agents, self.numbers, self.pulls, answers, strict=True)
        try:
            return [(epoch, digest, Reply(*fields)) for epoch, digest, *fields in columns]
        except ValueError:
            raise ProtocolError("invalid replies: the columns have different lengths") from None


def seal_replies(replies: Sequence[tuple[int, Reply]]) -> SealedReplies:
    """Encode replies, each with the epoch of its agent.

    >>> from collabtop.protocol.messages import Held
    >>> reply = Reply(agent=4, number=1, pulls=0, answer=Held(58))
    >>> seal_replies([(2, reply)]).open() == [(2, digest_of(reply), reply)]
    True
    """
    return SealedReplies(
        [epoch for epoch, _ in replies],
        [reply.agent for _, reply in replies],
        [reply.number for _, reply in replies],
        [reply.pulls for _, reply in replies],
        [digest_of(reply) for _, reply in replies],
        wire.encode_all([reply.answer for _, reply in replies]),
    )


def digest_of(reply: Reply) -> bytes:
    """A hash of a reply: equal if and only if the replies are."""
    return hashlib.blake2b(_reply_encoder.encode(reply), digest_size=16).digest()


class _SharedRequests(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Requests that refer to a common list of messages, in which each is stored once."""

    messages: list[bytes]
    epochs: list[int]
    agents: list[int]
    numbers: list[int]
    indices: list[tuple[int, ...]]


def pack_shared(sealed: Iterable[SealedRequest]) -> bytes:
    """Encode requests to several agents of one host; a message to all of them is sent once."""
    sealed, indices = list(sealed), dict[bytes, int]()
    by_messages = {
        messages: tuple(indices.setdefault(data, len(indices)) for data in messages)
        for messages in dict.fromkeys(request.messages for request in sealed)
    }
    shared = _SharedRequests(
        list(indices),
        [request.epoch for request in sealed],
        [request.agent for request in sealed],
        [request.number for request in sealed],
        [by_messages[request.messages] for request in sealed],
    )
    return _encoder.encode(shared)


def open_shared(data: bytes) -> list[tuple[int, Request]]:
    """Decode such requests, each with its epoch; anything else is rejected. Each message is decoded once.

    >>> from collabtop.protocol.messages import PullHand
    >>> requests = [Request(agent, 1, (PullHand(5),)) for agent in (0, 1)]
    >>> open_shared(pack_shared(seal_requests(requests, epochs=[3, 0]))) == [(3, requests[0]), (0, requests[1])]
    True
    """
    try:
        shared = msgspec.msgpack.decode(data, type=_SharedRequests)
        messages = [wire.decode(message) for message in shared.messages]
        by_indices = {indices: tuple(messages[index] for index in indices) for indices in set(shared.indices)}
        columns = shared.epochs, shared.agents, shared.numbers, shared.indices
        return [
            (epoch, Request(agent, number, by_indices[indices]))
            for epoch, agent, number, indices in zip(*columns, strict=True)
        ]
    except (msgspec.DecodeError, ValueError, IndexError) as error:
        raise ProtocolError(f"invalid requests: {error}") from None


_encoder = msgspec.msgpack.Encoder()
_reply_encoder = msgspec.msgpack.Encoder(enc_hook=np.ndarray.tobytes)
