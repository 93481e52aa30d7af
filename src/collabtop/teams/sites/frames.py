"""The frames that a coordinator and a site exchange. They are decoded strictly and sent in pieces of limited size.

========  ==============  ====================================================================
frame     sent by         content
========  ==============  ====================================================================
Hello     site            its protocol version, run, process and number of arms
Welcome   coordinator     the run: its id, its setup, and the site's agents
Refused   coordinator     the site is rejected, with the reason
Ready     site            the last request that each of its agents answered
Declined  site            the site does not take part, with the reason
Ask       coordinator     a request to one agent, sealed
Answer    site            the reply of one agent, sealed
Failed    site            a pull failed for good: the arm, but not the error
Done      coordinator     the run is over
========  ==============  ====================================================================

Ids and fingerprints are 32 hexadecimal digits, so they are safe to print and to use in file names. The only free text,
the names of the algorithm and its extension and the options in a `Welcome`, is looked up, and shown only if it has the
form of an extension's name. So a peer decides neither what appears on
the other's screen nor where it writes.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from collabtop.errors import ProtocolError
from collabtop.protocol.setup import Setup
from collabtop.teams.remote.envelope import SealedReply, SealedRequest
from collabtop.validation import wrong_value

SERVICE, METHOD = "collabtop.Sites", "Join"
"""The gRPC method that a site calls."""
VERSION = 2

RunId = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]
"""A run's id. It names a file at the site and is printed there, so its form is restricted."""
Digits = Annotated[str, msgspec.Meta(pattern=r"\A([0-9a-f]{32})?\Z")]
"""An id or a fingerprint, or "" for none."""
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

WhyRefused = Literal[
    "version", "name", "revoked", "run", "arms", "labels", "here already", "behind", "ahead", "frame", "answer", "lost"
]
WhyDeclined = Literal["arms", "batch", "request", "policy", "plan", "budget", "extension", "unit", "privacy"]


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=1, forbid_unknown_fields=True):
    """The first frame of a site."""

    version: Number
    run: Digits
    """The run to take part in, or "" for any."""
    process: Number
    """Random id of the process: a new connection of the same process replaces its previous one."""
    arms: Number
    labels: Digits
    """A fingerprint of the arms' labels, or ""."""


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=2, forbid_unknown_fields=True):
    """The coordinator's answer to a valid `Hello`."""

    run: RunId
    setup: Setup
    agents: tuple[Number, ...]


class Refused(msgspec.Struct, frozen=True, array_like=True, tag=3, forbid_unknown_fields=True):
    """The site is rejected; the coordinator closes the connection after this frame."""

    why: WhyRefused


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=4, forbid_unknown_fields=True):
    """The site takes part."""

    life: Number
    """Random id of the site's journal: a site that lost its journal has a different one."""
    answered: tuple[Number, ...]
    """The number of the last request that each agent answered; 0 if none."""


class Declined(msgspec.Struct, frozen=True, array_like=True, tag=5, forbid_unknown_fields=True):
    """The site does not take part."""

    why: WhyDeclined
    number: Number = 0
    """For "batch": the number of pulls in the batch that is too small."""


class Ask(msgspec.Struct, frozen=True, array_like=True, tag=6, forbid_unknown_fields=True):
    """A request to one agent."""

    request: SealedRequest


class Answer(msgspec.Struct, frozen=True, array_like=True, tag=7, forbid_unknown_fields=True):
    """The reply of one agent."""

    reply: SealedReply


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=8, forbid_unknown_fields=True):
    """A pull of this arm failed for good, so the request is not answered. The error itself stays at the site."""

    agent: Number
    number: Number
    arm: Number


class Done(msgspec.Struct, frozen=True, array_like=True, tag=9, forbid_unknown_fields=True):
    """The run is over."""


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
    """Decode a frame from a site; raise `ProtocolError` if it is invalid."""
    try:
        return _from_site.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):  # its text may quote the peer
        raise ProtocolError("malformed frame") from None


def read_from_coordinator(data: bytes) -> FromCoordinator:
    """Decode a frame from a coordinator; raise `ProtocolError` if it is invalid."""
    try:
        return _from_coordinator.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):  # its text may quote the peer
        raise ProtocolError("the coordinator sent a malformed frame") from None


def check_run_id(run: str) -> str:
    """Validate the id of a run as typed by a user; "" stands for any run.

    >>> check_run_id("../north")
    Traceback (most recent call last):
    collabtop.errors.InputError: run is '../north', but a run id is needed: 32 hexadecimal digits
    """
    try:
        return msgspec.convert(run, Digits)
    except msgspec.ValidationError:
        raise wrong_value("run", run, "a run id is needed: 32 hexadecimal digits") from None


# -- pieces: the size of a frame grows with n, but the size of a gRPC message is limited

PIECE = 1 << 18
"""The most bytes of a frame in one piece."""
_LAST, _MORE = b"\0", b"\1"

SMALL = 1 << 14
"""The most bytes of a frame during the handshake."""
BYTES_PER_ARM = 64
"""The bytes that a frame may have for each arm of the run besides: enough for four arrays of n numbers."""


def largest_frame(n: int) -> int:
    """The most bytes of a frame in a run with n arms.

    >>> largest_frame(588) < 60_000
    True
    """
    return SMALL + BYTES_PER_ARM * n


def pieces(data: bytes) -> Iterator[bytes]:
    """Split a frame; the first byte of each piece tells whether more follow.

    >>> [len(piece) for piece in pieces(bytes(600_000))]
    [262145, 262145, 75713]
    """
    for start in range(0, len(data), PIECE):
        part = data[start : start + PIECE]
        yield (_MORE if start + PIECE < len(data) else _LAST) + part


class Joiner:
    """Joins pieces into frames of limited size.

    >>> joiner = Joiner(limit=1_000_000)
    >>> [joiner.take(piece) is None for piece in pieces(bytes(600_000))]
    [True, True, False]
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._buffer = bytearray()  # a list of pieces would cost another fifty bytes per piece

    def take(self, piece: bytes) -> bytes | None:
        """Add a piece; return the whole frame if it was the last one, else None."""
        mark, part = piece[:1], piece[1:]
        if mark not in (_LAST, _MORE):
            raise ProtocolError("malformed piece of a frame")
        if len(self._buffer) + len(part) > self.limit:
            raise ProtocolError(f"a frame is larger than {self.limit:,} bytes")
        self._buffer += part
        if mark == _MORE:
            if not part:
                raise ProtocolError("an empty piece of a frame")
            return None
        whole, self._buffer = bytes(self._buffer), bytearray()
        return whole
