"""Requests and replies as bytes, for teams whose agents are somewhere else.

An envelope says whose it is (`agent`), which exchange it belongs to (`number`), and which life of the agent is meant
(`epoch`). An agent that lost its state and began again lives in another epoch, so its answer never passes for an
answer. Envelopes are bookkeeping of the transport: the ledger counts the messages inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from collabtop.errors import ProtocolError
from collabtop.protocol import wire
from collabtop.protocol.messages import Message, Reply, Request

_Sealed = TypeVar("_Sealed", "SealedRequest", "SealedReply")


class SealedRequest(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A request on its way, its messages as bytes."""

    epoch: int
    agent: int
    number: int
    messages: tuple[bytes, ...]

    def open(self) -> Request:
        """The request; messages that are none are refused."""
        return Request(self.agent, self.number, tuple(wire.decode(data) for data in self.messages))


class SealedReply(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A reply on its way, its answer as bytes."""

    epoch: int
    agent: int
    number: int
    pulls: int
    answer: bytes

    def open(self) -> Reply:
        """The reply; an answer that is no message is refused."""
        return Reply(self.agent, self.number, self.pulls, wire.decode(self.answer))


def seal_requests(requests: list[Request], epochs: Sequence[int] | Mapping[int, int]) -> list[SealedRequest]:
    """Requests ready to go, to the current epoch of each agent; a message to many is encoded once.

    >>> from collabtop.protocol.messages import PullHand
    >>> sealed = seal_requests([Request(0, 1, (PullHand(5),))], epochs=[3])
    >>> sealed[0].epoch, sealed[0].open()
    (3, Request(agent=0, number=1, messages=(PullHand(times=5, free=()),)))
    """
    encoded: dict[int, bytes] = {}

    def as_bytes(message: Message) -> bytes:
        data = encoded.get(id(message))
        if data is None:
            data = encoded[id(message)] = wire.encode(message)
        return data

    return [
        SealedRequest(epochs[it.agent], it.agent, it.number, tuple(as_bytes(message) for message in it.messages))
        for it in requests
    ]


def seal_reply(reply: Reply, epoch: int) -> SealedReply:
    """A reply ready to go, from this epoch of its agent."""
    return SealedReply(epoch, reply.agent, reply.number, reply.pulls, wire.encode(reply.answer))


def pack(sealed: list[SealedRequest] | list[SealedReply]) -> bytes:
    """Several envelopes as bytes."""
    return _encoder.encode(sealed)


def unpack(data: bytes, kind: type[_Sealed]) -> list[_Sealed]:
    """Read envelopes back; anything else is refused.

    >>> unpack(pack([SealedReply(0, 1, 2, 30, b"...")]), SealedReply)
    [SealedReply(epoch=0, agent=1, number=2, pulls=30, answer=b'...')]
    """
    try:
        sealed: list[_Sealed] = msgspec.msgpack.decode(data, type=list[kind])  # type: ignore[valid-type]
    except (msgspec.DecodeError, ValueError) as error:
        raise ProtocolError(f"not envelopes: {error}") from None
    return sealed


class _Shared(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Requests whose messages are kept once, however many of them hold it."""

    messages: list[bytes]
    requests: list[tuple[int, int, int, tuple[int, ...]]]


def pack_shared(sealed: Iterable[SealedRequest]) -> bytes:
    """Requests to many agents of one host as bytes: what is said to all of them travels once."""
    places: dict[bytes, int] = {}
    requests = [
        (it.epoch, it.agent, it.number, tuple(places.setdefault(data, len(places)) for data in it.messages))
        for it in sealed
    ]
    return _encoder.encode(_Shared(list(places), requests))


def open_shared(data: bytes) -> list[tuple[int, Request]]:
    """Read such requests back, each with its epoch; anything else is refused. Each message is decoded once.

    >>> from collabtop.protocol.messages import PullHand
    >>> asked = [Request(agent, 1, (PullHand(5),)) for agent in (0, 1)]
    >>> open_shared(pack_shared(seal_requests(asked, epochs=[3, 0]))) == [(3, asked[0]), (0, asked[1])]
    True
    """
    try:
        shared = msgspec.msgpack.decode(data, type=_Shared)
        messages = [wire.decode(message) for message in shared.messages]
        return [
            (epoch, Request(agent, number, tuple(messages[place] for place in places)))
            for epoch, agent, number, places in shared.requests
        ]
    except (msgspec.DecodeError, ValueError, IndexError) as error:
        raise ProtocolError(f"not requests: {error}") from None


_encoder = msgspec.msgpack.Encoder()
