"""What crosses between a coordinator and a site: typed frames, decoded strictly, in pieces of a bounded size.

========  ==============  ====================================================================
frame     from            says
========  ==============  ====================================================================
Hello     site            which version, run and process this is, and how many arms it has
Welcome   coordinator     the run: its id, what all know of it, and which agents the site has
Refused   coordinator     turned away, and why
Ready     site            how far each of its agents is
Declined  site            it does not take part, and why
Ask       coordinator     a request to one agent, sealed
Answer    site            the reply of one agent, sealed
Failed    site            a pull failed for good; which arm it was, not what was said
Done      coordinator     the answer is known, nothing more will be asked
========  ==============  ====================================================================

Ids and fingerprints are 32 digits, so they can be shown and be names of files. The one text of a peer's own making, the
algorithm's name and options in a `Welcome`, is looked up and never shown: nothing a peer sends ends up on the other's
screen or decides where it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from collabtop.errors import InputError, ProtocolError
from collabtop.protocol.setup import Setup
from collabtop.teams.remote.envelope import SealedReply, SealedRequest

VERSION = 1

RunId = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]
"""Names a file at a site and is printed there, so a coordinator may not choose it freely."""
Digits = Annotated[str, msgspec.Meta(pattern=r"\A([0-9a-f]{32})?\Z")]
"""An id or a fingerprint, or "" for none."""
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

WhyRefused = Literal[
    "version", "name", "run", "arms", "labels", "here already", "behind", "ahead", "frame", "answer", "lost"
]
WhyDeclined = Literal["arms", "batch", "request"]


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=1, forbid_unknown_fields=True):
    """A site's first frame."""

    version: Number
    run: Digits
    """The run it wants to go on with, or "" for any."""
    process: Number
    """Drawn when the process began: a connection of the same process takes the place of its last one."""
    arms: Number
    labels: Digits
    """A fingerprint of the arms' labels, or ""."""


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=2, forbid_unknown_fields=True):
    """A coordinator's answer to it."""

    run: RunId
    setup: Setup
    agents: tuple[Number, ...]


class Refused(msgspec.Struct, frozen=True, array_like=True, tag=3, forbid_unknown_fields=True):
    """Rejected away: the coordinator ends the connection after it."""

    why: WhyRefused


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=4, forbid_unknown_fields=True):
    """A site takes part: the life of its journal, and the last request that each agent answered (0: none)."""

    life: Number
    answered: tuple[Number, ...]


class Declined(msgspec.Struct, frozen=True, array_like=True, tag=5, forbid_unknown_fields=True):
    """A site does not take part; `number` is what it would have needed or met."""

    why: WhyDeclined
    number: Number = 0


class Ask(msgspec.Struct, frozen=True, array_like=True, tag=6, forbid_unknown_fields=True):
    """A request to one agent."""

    request: SealedRequest


class Answer(msgspec.Struct, frozen=True, array_like=True, tag=7, forbid_unknown_fields=True):
    """The reply of one agent."""

    reply: SealedReply


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=8, forbid_unknown_fields=True):
    """A pull of this arm failed for good, so the request stays unanswered; why is told at the site alone."""

    agent: Number
    number: Number
    arm: Number


class Done(msgspec.Struct, frozen=True, array_like=True, tag=9, forbid_unknown_fields=True):
    """The answer is known."""


FromSite = Hello | Ready | Declined | Answer | Failed
FromCoordinator = Welcome | Refused | Ask | Done
_from_site: msgspec.msgpack.Decoder[FromSite] = msgspec.msgpack.Decoder(FromSite)
_from_coordinator: msgspec.msgpack.Decoder[FromCoordinator] = msgspec.msgpack.Decoder(FromCoordinator)
_encoder = msgspec.msgpack.Encoder()


def encode(frame: FromSite | FromCoordinator) -> bytes:
    """A frame as bytes.

    >>> read_from_site(encode(Failed(agent=0, number=3, arm=7)))
    Failed(agent=0, number=3, arm=7)
    """
    return _encoder.encode(frame)


def read_from_site(data: bytes) -> FromSite:
    """A frame that a site may send; anything else is refused."""
    try:
        return _from_site.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):  # whose text may quote what the peer sent
        raise ProtocolError("not a frame of a site") from None


def read_from_coordinator(data: bytes) -> FromCoordinator:
    """A frame that a coordinator may send; anything else is refused."""
    try:
        return _from_coordinator.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):  # whose text may quote what the peer sent
        raise ProtocolError("not a frame of a coordinator") from None


def check_run_id(run: str) -> str:
    """The id of a run, or "" for any, as somebody typed it.

    >>> check_run_id("../north")
    Traceback (most recent call last):
    collabtop.errors.InputError: run is '../north', but the id of a run is needed: 32 digits of 0 to 9 and a to f
    """
    try:
        return msgspec.convert(run, Digits)
    except msgspec.ValidationError:
        raise InputError(
            f"run is {run!r:.80}, but the id of a run is needed: 32 digits of 0 to 9 and a to f", argument="run"
        ) from None


# -- pieces: a frame grows with n, and what gRPC takes at once does not

PIECE = 1 << 18
"""Bytes of a frame that travel at once."""
_LAST, _MORE = b"\0", b"\1"

SMALL = 1 << 14
"""Bytes of the largest frame of a handshake."""


def largest_frame(n: int) -> int:
    """Bytes of the largest frame about n arms: four arrays of n numbers fit in, and nothing much larger.

    >>> largest_frame(588) < 60_000
    True
    """
    return SMALL + 64 * n


def pieces(data: bytes) -> Iterator[bytes]:
    """A frame cut up; the first byte of each piece says whether more follow.

    >>> [len(piece) for piece in pieces(bytes(600_000))]
    [262145, 262145, 75713]
    """
    for start in range(0, len(data), PIECE):
        part = data[start : start + PIECE]
        yield (_MORE if start + PIECE < len(data) else _LAST) + part


class Joiner:
    """Puts pieces together again, up to a limit.

    >>> joiner = Joiner(limit=1_000_000)
    >>> [joiner.take(piece) is None for piece in pieces(bytes(600_000))]
    [True, True, False]
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._so_far = bytearray()  # a list of pieces would take fifty bytes more for each, however small it is

    def take(self, piece: bytes) -> bytes | None:
        """The whole frame if this was its last piece, else None."""
        mark, part = piece[:1], piece[1:]
        if mark not in (_LAST, _MORE):
            raise ProtocolError("not a piece of a frame")
        if len(self._so_far) + len(part) > self.limit:
            raise ProtocolError(f"a frame is larger than {self.limit:,} bytes")
        self._so_far += part
        if mark == _MORE:
            if not part:
                raise ProtocolError("an empty piece of a frame")
            return None
        whole, self._so_far = bytes(self._so_far), bytearray()
        return whole
