"""A site's side of the connection: one stream after the other until all is done, and agents that answer meanwhile."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from os import PathLike
from typing import Any, NoReturn

import grpc
import grpc.aio

from collabtop.arms import Arms
from collabtop.errors import ProtocolError, PullError, SiteError
from collabtop.protocol.messages import Reply
from collabtop.teams.remote.envelope import SealedRequest, seal_reply
from collabtop.teams.sites import tls
from collabtop.teams.sites.audit import Audit
from collabtop.teams.sites.frames import (
    SMALL,
    VERSION,
    Answer,
    Ask,
    Declined,
    Done,
    Failed,
    FromCoordinator,
    FromSite,
    Hello,
    Joiner,
    Ready,
    Refused,
    Welcome,
    WhyDeclined,
    encode,
    largest_frame,
    pieces,
    read_from_coordinator,
)
from collabtop.teams.sites.journal import Journal, JournalledAgent
from collabtop.teams.sites.min_batch import SmallBatchError, rehearsed_smallest_batch
from collabtop.teams.sites.port import METHOD, SERVICE
from collabtop.teams.sites.team import labels_fingerprint
from collabtop.teams.threads import AgentThread

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_FLUSH_SECONDS = 2.0
_MOST_AGENTS = 1 << 20

_BROKEN = (grpc.RpcError, grpc.aio.UsageError, grpc.aio.InternalError, asyncio.InvalidStateError)
"""What gRPC raises when a connection is lost, depending on where it is noticed."""


class _Lost(Exception):  # noqa: N818  (the way back to dialling)
    """The connection is gone; it is worth another try."""


class SiteClient:
    """One site in one run, over as many connections as it takes. Lives on one event loop."""

    def __init__(
        self,
        address: str,
        files: tls.Files,
        arms: Arms,
        folder: str | PathLike[str] | None,
        audit: Audit | None,
        min_batch: int,
        run: str,
        give_up: float,
        keepalive: float,
        on_status: Callable[[str], None] | None,
    ) -> None:
        self._address, self._files, self._arms = address, files, arms
        self._folder, self._audit, self._min_batch = folder, audit, min_batch
        self.run = run
        self._give_up, self._keepalive = give_up, keepalive
        self._say = on_status or (lambda line: None)
        self._welcome: Welcome | None = None
        self._journal: Journal | None = None
        self._threads: dict[int, AgentThread] = {}
        self._busy: dict[int, int] = {}
        self._outbox: asyncio.Queue[FromSite | None] | None = None
        self._trouble: asyncio.Future[None] | None = None

    def done(self) -> tuple[tuple[int, ...], int, int]:
        """Agents, answers and pulls."""
        if self._journal is None:
            return (), 0, 0
        states = [agent.state for agent in self._journal.agents.values()]
        return tuple(self._journal.agents), sum(state.answers for state in states), sum(state.made for state in states)

    def close(self) -> None:
        """End the agents; one whose function hangs is left to it."""
        for thread in self._threads.values():
            thread.end()
        if self._journal is not None:
            for agent in self._journal.agents.values():
                agent.halt()
            for thread in self._threads.values():
                thread.join(timeout=_FLUSH_SECONDS)
            self._journal.close()

    # -- dialling

    async def stay(self, process: int) -> None:
        """Dial, and dial again, until the coordinator says that the answer is known."""
        self._trouble = asyncio.get_running_loop().create_future()
        last_contact, wait, said = time.monotonic(), _FIRST_WAIT, ""
        while True:
            try:
                if await self._one_connection(process):
                    return
            except _Lost as lost:
                if self._outbox is not None:  # we were in
                    last_contact, wait, said = time.monotonic(), _FIRST_WAIT, ""
                self._outbox = None
                if time.monotonic() - last_contact > self._give_up:
                    raise SiteError(f"no coordinator at {self._address} for {self._give_up:g} s: {lost}") from None
                if str(lost) != said:  # once, not every five seconds
                    said = str(lost)
                    self._say(f"{lost}; trying again")
            pause = asyncio.ensure_future(asyncio.sleep(wait * random.uniform(0.5, 1.0)))  # not all sites at once
            await asyncio.wait([pause, self._trouble], return_when=asyncio.FIRST_COMPLETED)
            pause.cancel()
            if self._trouble.done():
                self._trouble.result()
            wait = min(2 * wait, _LONGEST_WAIT)

    async def _one_connection(self, process: int) -> bool:
        credentials = grpc.ssl_channel_credentials(self._files.authority, self._files.key, self._files.certificate)
        options = tls.client_options(self._keepalive)
        async with grpc.aio.secure_channel(self._address, credentials, options=options) as channel:
            call = channel.stream_stream(f"/{SERVICE}/{METHOD}")()
            try:
                return await self._talk(call, process)
            except _BROKEN as error:
                raise _Lost(_what_happened(error)) from None
            finally:
                call.cancel()

    async def _talk(self, call: Any, process: int) -> bool:
        await self._send(call, Hello(VERSION, self.run, process, self._arms.n, labels_fingerprint(self._arms)))
        joiner = Joiner(SMALL)
        frame = await self._read(call, joiner)
        if isinstance(frame, Refused):
            self._refused(frame)
        if not isinstance(frame, Welcome):
            raise SiteError("the coordinator did not say welcome: is it one of collabtop?")
        await self._settle_in(call, frame)
        assert self._journal is not None
        self._outbox = asyncio.Queue()
        writer = asyncio.ensure_future(self._write(call, self._outbox))
        self._outbox.put_nowait(Ready(self._journal.life, self._journal.answered()))
        self._say(f"connected to {self._address}")
        joiner.limit = largest_frame(self._arms.n)
        try:
            return await self._listen(call, joiner, writer)
        finally:
            writer.cancel()

    async def _listen(self, call: Any, joiner: Joiner, writer: asyncio.Future[None]) -> bool:
        assert self._trouble is not None
        while True:
            reading = asyncio.ensure_future(self._read(call, joiner))
            try:
                waiting: list[asyncio.Future[Any]] = [reading, self._trouble, writer]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if self._trouble.done():
                    await self._flush(call, writer, reading)
                    self._trouble.result()
                if writer.done():
                    writer.result()
                frame = await reading
            finally:
                reading.cancel()
            if isinstance(frame, Done):
                self._say("done: the answer is known")
                return True
            if isinstance(frame, Refused):
                self._refused(frame)
            if not isinstance(frame, Ask):
                self._stop(Declined("request"), ProtocolError("the coordinator sent a frame out of order"))
                continue
            self._asked(frame.request)

    async def _flush(self, call: Any, writer: asyncio.Future[None], reading: asyncio.Future[Any]) -> None:
        """Let a last word arrive before we leave."""
        assert self._outbox is not None
        self._outbox.put_nowait(None)
        await asyncio.wait([writer], timeout=_FLUSH_SECONDS)
        await asyncio.wait([reading], timeout=_FLUSH_SECONDS)
        if reading.done() and reading.exception() is None:
            await _ended(call)

    # -- frames

    async def _send(self, call: Any, frame: FromSite) -> None:
        if self._audit is not None:
            self._audit.note(frame)
        for piece in pieces(encode(frame)):
            await call.write(piece)

    async def _write(self, call: Any, outbox: asyncio.Queue[FromSite | None]) -> None:
        while (frame := await outbox.get()) is not None:
            await self._send(call, frame)
        await call.done_writing()

    async def _read(self, call: Any, joiner: Joiner) -> FromCoordinator:
        while True:
            piece = await call.read()
            if piece is grpc.aio.EOF:
                raise _Lost(_what_happened(grpc.aio.AioRpcError(await call.code(), None, None, await call.details())))
            whole = joiner.take(piece)
            if whole is not None:
                return read_from_coordinator(whole)

    def _refused(self, frame: Refused) -> NoReturn:
        if frame.why == "here already":
            raise _Lost("another process with this certificate is connected")
        raise SiteError(f"turned away by the coordinator: {_REFUSED[frame.why]}")

    # -- the run

    async def _settle_in(self, call: Any, welcome: Welcome) -> None:
        """Look at what the run is, once; a coordinator that comes back has to have the same."""
        if self._welcome is not None:
            if welcome != self._welcome:
                raise SiteError(f"the coordinator at {self._address} has another run now")
            return
        if self.run not in ("", welcome.run):
            raise SiteError(f"the coordinator at {self._address} has another run than the one asked for")
        declined = await asyncio.to_thread(self._objection, welcome)
        if declined is not None:
            frame, error = declined
            await self._send(call, frame)
            await call.done_writing()
            await _ended(call)
            raise error
        self._journal = await asyncio.to_thread(
            Journal, self._folder, welcome.run, welcome.setup, welcome.agents, self._arms, self._min_batch
        )
        self._threads = {number: AgentThread(agent) for number, agent in self._journal.agents.items()}
        self._welcome, self.run = welcome, welcome.run

    def _objection(self, welcome: Welcome) -> tuple[Declined, SiteError] | None:
        problem = welcome.setup.problem
        if problem.n != self._arms.n or self._arms.agents not in (None, problem.agents):
            return _declined("arms", 0, f"the run is about {problem.n} arms and {problem.agents} agents, unlike ours")
        valid = 0 < problem.agents <= _MOST_AGENTS and 0 <= 2 * problem.m <= problem.n and problem.horizon > 0
        valid = valid and welcome.setup.seed >= 0
        numbers = set(welcome.agents)
        if not valid or not numbers or len(numbers) < len(welcome.agents) or max(numbers) >= problem.agents:
            return _declined("request", 0, "the coordinator describes a run that cannot be")
        if self._min_batch > 1:
            smallest = rehearsed_smallest_batch(welcome.setup)
            if smallest is not None and smallest < self._min_batch:
                said = (
                    f"the schedule of {welcome.setup.algorithm} at horizon {problem.horizon} asks for a mean over "
                    f"{smallest} pulls, and min_batch is {self._min_batch}: another horizon may do"
                )
                return _declined("batch", smallest, said)
        return None

    def _asked(self, sealed: SealedRequest) -> None:
        assert self._journal is not None
        agent = self._journal.agents.get(sealed.agent)
        if agent is None or sealed.epoch != self._journal.life:
            self._stop(Declined("request"), ProtocolError("a request to an agent or a life that is not ours"))
            return
        if self._busy.get(sealed.agent, -1) >= sealed.number:
            return  # its answer goes out when it is there; a late copy of an older request needs none
        if sealed.number < agent.state.last:
            return  # a late repeat: nobody waits for it
        try:
            request = sealed.open()
        except ProtocolError:  # whose text may quote what the peer sent
            self._stop(Declined("request"), ProtocolError("the coordinator sent a question that is not a message"))
            return
        self._busy[sealed.agent] = sealed.number
        loop, future = asyncio.get_running_loop(), self._threads[sealed.agent].ask(request)
        future.add_done_callback(lambda it: _in_loop(loop, self._answered, agent, sealed.number, it))

    def _answered(self, agent: JournalledAgent, number: int, future: Future[Reply]) -> None:
        """An agent has its answer: send it, or if nobody is there wait to be asked again."""
        assert self._journal is not None
        self._busy.pop(agent.number, None)
        error = future.exception()
        if error is None:
            if self._outbox is not None:
                self._outbox.put_nowait(Answer(seal_reply(future.result(), self._journal.life)))
        elif isinstance(error, PullError):
            self._stop(Failed(agent.number, number, self._number_of(error.candidate)), error)
        elif isinstance(error, SmallBatchError):
            self._stop(Declined("batch", error.pulls), SiteError(str(error)))
        elif isinstance(error, ProtocolError):
            self._stop(Declined("request"), SiteError(f"the coordinator asked for what cannot be: {error}"))
        else:
            self._stop(None, error)

    def _stop(self, last_word: FromSite | None, error: BaseException) -> None:
        if last_word is not None and self._outbox is not None:
            self._outbox.put_nowait(last_word)
        assert self._trouble is not None
        if not self._trouble.done():
            self._trouble.set_exception(error)
            self._trouble.exception()  # or asyncio complains that nobody looked, as when we are leaving anyway

    def _number_of(self, label: str) -> int:
        return next((arm for arm in range(self._arms.n) if self._arms.label(arm) == label), 0)


async def _ended(call: Any) -> None:
    """Wait until the other side has read all and ended the stream, which it does at once.

    The end is behind all that it sent before, so that has to be read.
    """
    with suppress(TimeoutError, *_BROKEN):
        async with asyncio.timeout(_FLUSH_SECONDS):
            while await call.read() is not grpc.aio.EOF:
                pass


def _in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *arguments: Any) -> None:
    """Go on in the loop, if it is still there: an agent may finish after its site gave up."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback, *arguments)


def _declined(why: WhyDeclined, number: int, said: str) -> tuple[Declined, SiteError]:
    return Declined(why, number), SiteError(f"this site does not take part: {said}")


def _what_happened(error: Exception) -> str:
    details = (error.details() if isinstance(error, grpc.aio.AioRpcError) else "") or ""
    return next((said for sign, said in _SIGNS.items() if sign in details), "the connection was lost")


_SIGNS = {
    "CERTIFICATE_VERIFY_FAILED": "the coordinator's certificate is not of our authority, or not for this address",
    "Connection refused": "nobody listens there",
    "resolving": "no machine of that name is known",
    "failed to connect": "no connection: the coordinator hangs up, or the way to it is closed",
}
"""What gRPC says of a connection that failed has one of these in it; the first that fits is passed on in our words."""

_REFUSED = {
    "version": "it speaks another version of the protocol",
    "name": "the certificate's name is not one of this run's sites",
    "run": "it has another run",
    "arms": "its run is about another number of arms",
    "labels": "its run is about arms with other labels",
    "behind": "it has answers of this site that the site does not know of: the journal is missing or too old",
    "ahead": "it knows less of the run than this site: it was restarted without its log",
    "lost": "it was gone for too long, and the run went on without it",
    "frame": "it did not understand what this site sent",
    "answer": "an answer of this site could not be, or the site declined",
}
