"""What the coordinator keeps of each site: who it is, its connection, and what it was asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio
import msgspec

from collabtop.protocol.ledger import TransportStats
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.teams.sites.frames import FromCoordinator, FromSite, Joiner, encode, pieces, read_from_site

FRAMING = 5
"""Bytes that gRPC puts before every message."""


class SiteTimeouts(msgspec.Struct, frozen=True):
    """How long who is waited for, and what becomes of a run that lost a site."""

    wait: float | None
    """Seconds until all sites must be there at first; None: as long as it takes."""
    grace: float
    """Seconds that a site may be gone."""
    answer_within: float | None
    """Seconds that a site may take for one answer while it is there; None: as long as it takes."""
    keepalive: float
    go_on: bool = False
    """Whether the run goes on without sites that are gone for good."""


class RunOffer(msgspec.Struct, frozen=True):
    """What a site is told, and what it has to fit."""

    run: str
    setup: Setup
    labels: str
    """A fingerprint of the arms' labels, or "" where they do not matter."""
    label: Callable[[int], str]
    """What an arm is called, to name the one whose pull failed."""


class SiteSlot:
    """One site of the run: who it is, whether it is there, and why it is out."""

    def __init__(self, name: str, agents: tuple[int, ...]) -> None:
        self.name, self.agents = name, agents
        self.session: Session | None = None
        self.handshakes = 0
        self.seen = False
        self.gone_since = time.monotonic()
        self.out: Exception | None = None
        self.lost = False

    def __str__(self) -> str:  # for logs, which name nobody
        return f"agent {self.agents[0]}" if len(self.agents) == 1 else f"agents {self.agents[0]} to {self.agents[-1]}"


class Session:
    """One connection of a site that said what it should."""

    def __init__(self, context: Any, transport: TransportStats, process: int) -> None:
        self._context, self._transport = context, transport
        self.process = process
        self.life = 0
        self._outbox: asyncio.Queue[FromCoordinator | None] = asyncio.Queue()
        self._writer = asyncio.ensure_future(self._write())
        self.ended = asyncio.Event()

    def send(self, frame: FromCoordinator) -> None:
        """Send a frame when it is its turn."""
        self._outbox.put_nowait(frame)

    async def close(self, frame: FromCoordinator | None = None) -> None:
        """End the connection, after a last frame."""
        if frame is not None:
            self.send(frame)
        self._outbox.put_nowait(None)
        await asyncio.wait([self._writer], timeout=2)
        self._writer.cancel()
        self.ended.set()

    async def _write(self) -> None:
        try:
            while (frame := await self._outbox.get()) is not None:
                for piece in pieces(encode(frame)):
                    await self._context.write(piece)
                    self._transport.bytes += len(piece) + FRAMING
        except (grpc.RpcError, grpc.aio.UsageError, asyncio.InvalidStateError, grpc.aio.InternalError):
            self.ended.set()  # the peer is gone; what it did not get is sent again when it is back


async def read_frame(context: Any, joiner: Joiner, transport: TransportStats) -> FromSite | None:
    """The next frame of a peer, or None at its end."""
    while True:
        piece = await context.read()
        if piece is grpc.aio.EOF:
            return None
        transport.bytes += len(piece) + FRAMING
        whole = joiner.take(piece)
        if whole is not None:
            return read_from_site(whole)


class Pending:
    """A request that waits for its answer."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.reply: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()
        self.sent = False
        self.waited = 0.0
        """Seconds since it was first sent, but for those in which the site was gone."""
