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
from collabtop.teams.remote.envelope import SealedReply
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
        self.is_refused = False
        """Whether it was ended for an invalid answer."""

    def refuse(self) -> None:
        """End the session for an invalid answer."""
        self.is_refused = True
        self.ended.set()

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


class Pending:
    """A request, and its reply when it has arrived."""

    __slots__ = ("_replies", "answer", "is_settled", "reply", "request", "sent", "waited")

    def __init__(self, request: Request, replies: "Replies") -> None:
        self.request, self._replies = request, replies
        self.answer: SealedReply | None = None
        """What has arrived, and has not been checked yet."""
        self.is_settled = False
        """Whether the reply is checked, or none is waited for any more."""
        self.reply: Reply | None = None
        """The checked reply; None if there is none yet, or the site is lost."""
        self.sent = False
        self.waited = 0.0
        """Seconds that the connected site has taken so far."""

    @property
    def is_open(self) -> bool:
        """Whether an answer is still waited for."""
        return self.answer is None and not self.is_settled

    def settle(self, reply: Reply | None) -> None:
        """Accept the reply, or stop waiting for one."""
        self.is_settled, self.reply = True, reply
        self._replies.missing -= 1
        self._replies.wake_if_ready()

    def fail(self, error: Exception) -> None:
        """Let the exchange fail; only its first error is kept."""
        self.is_settled = True
        self._replies.failure = self._replies.failure or error
        self._replies.wake_if_ready()


class Replies:
    """The replies of one exchange that are still missing: they are waited for, and checked, together.

    One future for all of them, and one look at them when the last has arrived, take much less CPU time than one each.
    """

    def __init__(self, count: int) -> None:
        self.missing = count
        """How many requests are not settled."""
        self.failure: Exception | None = None
        """Why the exchange fails."""
        self._arrived: list[tuple[Session, Pending]] = []
        self._ready: asyncio.Future[None] | None = None

    def add(self, session: Session, pending: Pending, answer: SealedReply) -> None:
        """Note that an answer has arrived, to be checked."""
        pending.answer = answer
        self._arrived.append((session, pending))
        self.wake_if_ready()

    def take(self) -> list[tuple[Session, Pending]]:
        """The pending requests whose answers have arrived since the last call, with the session of each."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def raise_failure(self) -> None:
        """Raise the reason why the exchange fails, if it does."""
        if self.failure is not None:
            raise self.failure

    async def wait(self, seconds: float) -> None:
        """Wait until all answers that are missing have arrived or the exchange fails, but not longer than this."""
        if not self._is_ready:
            self._ready = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._ready], timeout=seconds)

    def wake_if_ready(self) -> None:
        """End the wait if there is nothing left to wait for."""
        if self._ready is not None and self._is_ready and not self._ready.done():
            self._ready.set_result(None)

    @property
    def _is_ready(self) -> bool:
        return self.failure is not None or len(self._arrived) >= self.missing
