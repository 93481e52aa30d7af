"""The coordinator's side of the connections: the slot of each site, its session, and pending requests."""

import asyncio
import time
from collections import deque
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
"""Bytes that gRPC adds to every message."""


class SiteTimeouts(msgspec.Struct, frozen=True):
    """How long the coordinator waits for sites, and whether the run continues without lost ones."""

    wait: float | None
    """Seconds within which all sites must connect at the start; None: no limit."""
    grace: float
    """Seconds that a site may be disconnected."""
    answer_within: float | None
    """Seconds that a connected site may take for one answer; None: no limit."""
    keepalive: float
    """Seconds between heartbeats."""
    tolerates_loss: bool = False
    """Whether the run continues without lost sites."""


class RunOffer(msgspec.Struct, frozen=True):
    """The run that sites are invited to, and what their arms must match."""

    run_id: str
    setup: Setup
    labels: str
    """A fingerprint of the arms' labels, or "" if they do not matter."""
    label: Callable[[int], str]
    """The label of an arm, to report failed pulls."""


class SiteSlot:
    """The place of one site in the run, whether it is connected or not."""

    def __init__(self, name: str, agents: tuple[int, ...]) -> None:
        self.name, self.agents = name, agents
        self.session: Session | None = None
        """Its connection; None while it is disconnected."""
        self.calls = 0
        """Calls of its peers, whether they got through the handshake or not."""
        self.handshakes = 0
        """Handshakes in progress."""
        self.has_joined = False
        """Whether it has been connected before."""
        self.disconnected_at = time.monotonic()
        self.failure: Exception | None = None
        """Why it takes no part any more; None while it does."""
        self.lost = False
        """Whether the run continues without it."""

    def end_call(self) -> None:
        """Note that a call has ended."""
        self.calls -= 1

    def __str__(self) -> str:  # for logs, which contain no names of sites
        return f"agent {self.agents[0]}" if len(self.agents) == 1 else f"agents {self.agents[0]} to {self.agents[-1]}"


class Session:
    """One connection of a site whose `Hello` was valid."""

    def __init__(self, context: Any, transport: TransportStats, process: int) -> None:
        self._context, self._transport = context, transport
        self.process = process
        self.life = 0
        """Id of the site's journal, from its `Ready`."""
        self.certificate = b""
        """The peer's certificate, in PEM format."""
        # Not an asyncio.Queue, which takes as long for a frame as everything else that is done here for it.
        self._outbox: deque[FromCoordinator | None] = deque()
        self._loop = asyncio.get_running_loop()
        self._filled = self._loop.create_future()
        self._writer = asyncio.ensure_future(self._write())
        self.ended = asyncio.Event()

    def send(self, frame: FromCoordinator) -> None:
        """Queue a frame for sending."""
        self._put(frame)

    async def close(self, frame: FromCoordinator | None = None) -> None:
        """Close the connection, after a last frame if one is given."""
        if frame is not None:
            self.send(frame)
        self._put(None)
        await asyncio.wait([self._writer], timeout=2)
        self._writer.cancel()
        self.ended.set()

    def _put(self, frame: FromCoordinator | None) -> None:
        self._outbox.append(frame)
        if not self._filled.done():
            self._filled.set_result(None)

    async def _write(self) -> None:
        try:
            while True:
                await self._filled
                while self._outbox:
                    frame = self._outbox.popleft()
                    if frame is None:
                        return
                    for piece in pieces(encode(frame)):
                        await self._context.write(piece)
                        self._transport.bytes += len(piece) + FRAMING
                self._filled = self._loop.create_future()
        except (grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError):
            # The server has stopped, or the peer is disconnected: pending requests are sent again when it is back.
            self.ended.set()


async def read_frame(context: Any, joiner: Joiner, transport: TransportStats) -> FromSite | None:
    """Read the next frame of a peer; None if it closed the connection."""
    while True:
        piece = await context.read()
        if piece is grpc.aio.EOF:
            return None
        transport.bytes += len(piece) + FRAMING
        whole = joiner.take(piece)
        if whole is not None:
            return read_from_site(whole)


class Replies:
    """The replies of one exchange that are still missing: one future for all of them, since each costs CPU time."""

    def __init__(self, count: int) -> None:
        self._missing = count
        self.complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when no reply is missing, or one of them failed."""
        if not count:
            self.complete.set_result(None)

    def add(self) -> None:
        """Note that a reply has arrived, or is not waited for any more."""
        self._missing -= 1
        if not self._missing and not self.complete.done():
            self.complete.set_result(None)

    def fail(self, error: Exception) -> None:
        """Note that a reply will not arrive, for this reason; only the first reason is kept."""
        if not self.complete.done():
            self.complete.set_exception(error)


class Pending:
    """A request, and its reply when it has arrived."""

    __slots__ = ("_replies", "is_done", "reply", "request", "sent", "waited")

    def __init__(self, request: Request, replies: Replies) -> None:
        self.request, self._replies = request, replies
        self.is_done = False
        """Whether no reply is waited for any more."""
        self.reply: Reply | None = None
        """The checked reply; None if there is none yet, or the site is lost."""
        self.sent = False
        self.waited = 0.0
        """Seconds that the connected site has taken so far."""

    def settle(self, reply: Reply | None) -> None:
        """Accept the reply, or stop waiting for one."""
        self.is_done, self.reply = True, reply
        self._replies.add()

    def fail(self, error: Exception) -> None:
        """Let the exchange fail."""
        self.is_done = True
        self._replies.fail(error)
