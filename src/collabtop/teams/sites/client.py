"""The site's side of the connection: it reconnects until the run is over, while its agents answer requests."""

import asyncio
import random
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from os import PathLike
from threading import Event
from typing import Any, NoReturn

import grpc
import grpc.aio
import msgspec

from collabtop.arms import Arms
from collabtop.errors import FileError, InputError, ProtocolError, PullError, SettingError, SiteError
from collabtop.privacy import epsilon_of
from collabtop.protocol.extension import is_extension_name, registered_extensions
from collabtop.protocol.messages import Reply, kind_of
from collabtop.protocol.setup import Setup
from collabtop.teams.remote.envelope import SealedRequest, seal_reply
from collabtop.teams.sites import frames, tls
from collabtop.teams.sites.audit import Audit
from collabtop.teams.sites.journal import Journal, JournalledAgent
from collabtop.teams.sites.min_batch import SmallBatchError
from collabtop.teams.sites.rehearsal import rehearse
from collabtop.teams.sites.site_budget import SiteBudget
from collabtop.teams.sites.site_policy import PolicyError, PolicyGuard, SitePolicy
from collabtop.teams.sites.team import labels_fingerprint
from collabtop.teams.threads import AgentThread

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_FLUSH_SECONDS = 2.0
_MOST_AGENTS = 1 << 20

EMPTY_SECRET = "secret is empty, but with privacy it must not be: the coordinator could compute the noise"

_BROKEN = (grpc.RpcError, grpc.aio.UsageError, grpc.aio.InternalError, asyncio.InvalidStateError)
"""What gRPC raises when a connection is lost, depending on where it notices."""


class _ConnectionLost(Exception):  # noqa: N818  (control flow, not an error)
    """The connection was lost or not made; the site tries again."""


class SiteClient:
    """One site in one run, over one connection after another. It lives on one event loop."""

    def __init__(
        self,
        address: str,
        paths: tls.FilePaths,
        arms: Arms,
        folder: str | PathLike[str] | None,
        audit: Audit | None,
        min_batch: int,
        secret: bytes | None,
        policy: SitePolicy | None,
        budget: SiteBudget | None,
        run_id: str,
        give_up: float,
        keepalive: float,
        on_status: Callable[[str], None] | None,
    ) -> None:
        self._address, self._paths, self._arms = address, paths, arms
        self._folder, self._audit, self._min_batch, self._secret = folder, audit, min_batch, secret
        self._policy, self._budget = policy, budget
        self._guard: PolicyGuard | None = None
        self.run_id = run_id
        self._give_up, self._keepalive = give_up, keepalive
        self._report = on_status or (lambda line: None)
        self._welcome: frames.Welcome | None = None
        self._journal: Journal | None = None
        self._threads: dict[int, AgentThread] = {}
        self._busy: dict[int, int] = {}
        self._outbox: asyncio.Queue[frames.FromSite | None] | None = None
        self._closed = Event()
        """Set when the site leaves, so that a rehearsal ends."""
        self._failure: asyncio.Future[None] | None = None
        """Gets the exception that ends this site's part in the run."""

    def totals(self) -> tuple[tuple[int, ...], int, int]:
        """The agents, and how many answers they gave and pulls they made."""
        if self._journal is None:
            return (), 0, 0
        states = [agent.state for agent in self._journal.agents.values()]
        answers, pulls = sum(state.answers for state in states), sum(state.total_pulls for state in states)
        return tuple(self._journal.agents), answers, pulls

    def close(self) -> None:
        """Stop the agents, without waiting for a function that hangs."""
        self._closed.set()
        for thread in self._threads.values():
            thread.end()
        if self._journal is not None:
            for agent in self._journal.agents.values():
                agent.halt()
            for thread in self._threads.values():
                thread.join(timeout=_FLUSH_SECONDS)
            self._journal.close()

    # -- connecting

    async def run(self, process: int) -> None:
        """Take part until the run is over, and reconnect whenever the connection is lost."""
        self._failure = asyncio.get_running_loop().create_future()
        last_contact, pause, reported = time.monotonic(), _FIRST_PAUSE, ""
        while True:
            try:
                if await self._connect(process):
                    return
            except _ConnectionLost as lost:
                if self._outbox is not None:  # we were connected
                    last_contact, pause, reported = time.monotonic(), _FIRST_PAUSE, ""
                self._outbox = None
                if time.monotonic() - last_contact > self._give_up:
                    raise SiteError(f"no coordinator at {self._address} for {self._give_up:g} s: {lost}") from None
                if str(lost) != reported:  # once, not every five seconds
                    reported = str(lost)
                    self._report(f"{lost}; retrying")
            sleep = asyncio.ensure_future(asyncio.sleep(pause * random.uniform(0.5, 1.0)))  # not all sites at once
            await asyncio.wait([sleep, self._failure], return_when=asyncio.FIRST_COMPLETED)
            sleep.cancel()
            if self._failure.done():
                self._failure.result()
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _connect(self, process: int) -> bool:
        """Make one connection and use it while it lasts; return True if the run is over."""
        try:
            files = self._paths.read()  # each time, since they may have been renewed, or may have expired
            tls.certificate_dates(files.certificate, self._paths.certificate)
        except InputError as error:
            raise _ConnectionLost(str(error)) from None
        credentials = grpc.ssl_channel_credentials(files.authority, files.key, files.certificate)
        options = tls.client_options(self._keepalive)
        async with grpc.aio.secure_channel(self._address, credentials, options=options) as channel:
            call = channel.stream_stream(f"/{frames.SERVICE}/{frames.METHOD}")()
            try:
                return await self._take_part(call, process)
            except _BROKEN as error:
                if call.done():  # a write may have failed before the status was read
                    await self._check_status(call)
                raise _ConnectionLost(_describe(error)) from None
            finally:
                call.cancel()

    async def _take_part(self, call: Any, process: int) -> bool:
        labels = labels_fingerprint(self._arms) if self._policy is None or self._policy.labels else ""
        await self._send(call, frames.Hello(frames.VERSION, self.run_id, process, self._arms.n, labels))
        joiner = frames.Joiner(frames.SMALL)
        frame = await self._read(call, joiner)
        if isinstance(frame, frames.Refused):
            self._handle_refusal(frame)
        if not isinstance(frame, frames.Welcome):
            raise SiteError("the coordinator sent a frame out of order")
        await self._handle_welcome(call, frame)
        assert self._journal is not None
        self._outbox = asyncio.Queue()
        writer = asyncio.ensure_future(self._write(call, self._outbox))
        self._outbox.put_nowait(frames.Ready(self._journal.life, self._journal.answered()))
        self._report(f"connected to {self._address}")
        joiner.limit = frames.largest_frame(self._arms.n)
        try:
            return await self._read_requests(call, joiner, writer)
        finally:
            writer.cancel()

    async def _read_requests(self, call: Any, joiner: frames.Joiner, writer: asyncio.Future[None]) -> bool:
        assert self._failure is not None
        while True:
            reading = asyncio.ensure_future(self._read(call, joiner))
            try:
                waiting: list[asyncio.Future[Any]] = [reading, self._failure, writer]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if self._failure.done():
                    await self._flush(call, writer, reading)
                    self._failure.result()
                if writer.done():
                    writer.result()
                frame = await reading
            finally:
                reading.cancel()
            if isinstance(frame, frames.Done):
                self._report("done: the run is over")
                return True
            if isinstance(frame, frames.Refused):
                self._handle_refusal(frame)
            if not isinstance(frame, frames.Ask):
                self._stop(frames.Declined("request"), ProtocolError("the coordinator sent a frame out of order"))
                continue
            self._handle_request(frame.request)

    async def _flush(self, call: Any, writer: asyncio.Future[None], reading: asyncio.Future[Any]) -> None:
        """Wait until the last frame has arrived."""
        assert self._outbox is not None
        self._outbox.put_nowait(None)
        await asyncio.wait([writer], timeout=_FLUSH_SECONDS)
        await asyncio.wait([reading], timeout=_FLUSH_SECONDS)
        if reading.done() and reading.exception() is None:
            await _wait_for_end(call)

    # -- frames

    async def _send(self, call: Any, frame: frames.FromSite) -> None:
        if self._audit is not None:
            self._audit.note(frame)
        for piece in frames.pieces(frames.encode(frame)):
            await call.write(piece)

    async def _write(self, call: Any, outbox: asyncio.Queue[frames.FromSite | None]) -> None:
        while (frame := await outbox.get()) is not None:
            await self._send(call, frame)
        await call.done_writing()

    async def _read(self, call: Any, joiner: frames.Joiner) -> frames.FromCoordinator:
        while True:
            piece = await call.read()
            if piece is grpc.aio.EOF:
                await self._check_status(call)
                error = grpc.aio.AioRpcError(await call.code(), None, None, await call.details())
                raise _ConnectionLost(_describe(error))
            whole = joiner.take(piece)
            if whole is not None:
                return frames.read_from_coordinator(whole)

    async def _check_status(self, call: Any) -> None:
        """Raise an error if the coordinator ended a call with a status because it rejects this site."""
        if await call.code() == grpc.StatusCode.PERMISSION_DENIED:
            self._handle_refusal(frames.Refused("revoked" if await call.details() == "revoked" else "name"))

    def _handle_refusal(self, frame: frames.Refused) -> NoReturn:
        if frame.why == "here already":
            raise _ConnectionLost("another process with this certificate is connected")
        error = f"rejected by the coordinator: {_WHY_REFUSED[frame.why]}"
        if frame.why == "ahead" or (self._welcome is not None and frame.why in _PERHAPS_BY_MISTAKE):
            self._outbox = None  # this was no contact: the site gives up in the end
            raise _ConnectionLost(error)
        raise SiteError(error)

    # -- the run

    async def _handle_welcome(self, call: Any, welcome: frames.Welcome) -> None:
        """Open the journal when the run is first offered; after a reconnect the run must be the same."""
        if self._welcome is not None:
            if welcome != self._welcome:
                raise SiteError(f"the coordinator at {self._address} now has a different run")
            return
        if self.run_id not in ("", welcome.run):
            raise SiteError(f"the coordinator at {self._address} does not have the requested run")
        declined = await asyncio.to_thread(self._objection, welcome)
        if declined is not None:
            frame, error = declined
            if self._audit is not None and self._policy is not None:
                self._audit.note_event("stopped", why=str(error))
            await self._send(call, frame)
            await call.done_writing()
            await _wait_for_end(call)
            raise error
        run = (welcome.run, welcome.setup, welcome.agents)
        self._journal = await asyncio.to_thread(
            Journal, self._folder, *run, self._arms, self._min_batch, self._secret, self._guard
        )
        self._note_noise(welcome.setup)
        self._threads = {number: AgentThread(agent) for number, agent in self._journal.agents.items()}
        self._welcome, self.run_id = welcome, welcome.run

    def _note_noise(self, setup: Setup) -> None:
        """Write to the audit which noise is added, and what all runs have spent."""
        noise = None if self._guard is None else self._guard.noise
        if self._audit is None or noise is None or self._policy is None or self._policy.privacy is None:
            return
        privacy, total = self._policy.privacy, 0.0 if self._budget is None else self._budget.spent_rho()
        self._audit.note_event(
            "noise",
            **msgspec.structs.asdict(noise.spent(privacy)),
            requested=setup.privacy is not None,
            epsilon_of_all_runs=epsilon_of(total, privacy.delta) if total else None,
        )

    def _objection(self, welcome: frames.Welcome) -> tuple[frames.Declined, SiteError] | None:
        """Why this site declines the run: a frame for the coordinator and an error here. None if it takes part."""
        problem = welcome.setup.problem
        if problem.n != self._arms.n or self._arms.agents not in (None, problem.agents):
            theirs = f"{problem.n} arms and {problem.agents} agents"
            return _declined("arms", 0, f"the run has {theirs}, which does not match this site's arms")
        valid = 0 < problem.agents <= _MOST_AGENTS and 0 <= 2 * problem.m <= problem.n and problem.horizon > 0
        valid = valid and welcome.setup.seed >= 0 and problem.bounded == welcome.setup.unit.bounded
        numbers = set(welcome.agents)
        if not valid or not numbers or len(numbers) < len(welcome.agents) or max(numbers) >= problem.agents:
            return _declined("request", 0, "the coordinator offered an invalid run")
        unit = welcome.setup.unit
        if unit != self._arms.unit:
            return _declined("unit", 0, f"rewards of the run: {unit}; rewards of this site: {self._arms.unit}")
        privacy = welcome.setup.privacy
        if privacy is not None:
            try:
                self._arms.check_privacy(privacy)
            except SettingError as error:
                return _declined("privacy", 0, str(error))
            if self._secret == b"":
                return _declined("privacy", 0, EMPTY_SECRET)
        extension = welcome.setup.extension
        if extension and extension not in registered_extensions():
            if not is_extension_name(extension):
                return _declined("request", 0, "the coordinator offered an invalid run")
            why = (
                f"the run needs the extension {extension!r}, which is not registered here: import its module before "
                "joining (on the command line, in the module of --arms)"
            )
            return _declined("extension", 0, why)
        if self._min_batch > 1 or self._policy is not None:
            rehearsal = rehearse(welcome.setup, welcome.agents, min_batch=self._min_batch, halted=self._closed)
            smallest = rehearsal.smallest
            if smallest is not None and smallest < self._min_batch:
                why = (
                    f"the schedule of {welcome.setup.algorithm} at horizon {problem.horizon} has a batch of size "
                    f"{smallest}, but min_batch is {self._min_batch}: try a different horizon"
                )
                return _declined("batch", smallest, why)
            if self._policy is not None:
                try:
                    self._guard = PolicyGuard(
                        *(self._policy, welcome.setup, welcome.run, rehearsal, self._budget, self._arms.label),
                        agents=len(welcome.agents),
                    )
                except PolicyError as error:
                    return _declined(error.why, 0, str(error))
        return None

    def _handle_request(self, sealed: SealedRequest) -> None:
        """Pass a request to its agent, unless it is being answered or was answered already."""
        assert self._journal is not None
        agent = self._journal.agents.get(sealed.agent)
        if agent is None or sealed.epoch != self._journal.life:
            self._stop(frames.Declined("request"), ProtocolError("the coordinator sent a request for a different site"))
            return
        if self._busy.get(sealed.agent, -1) >= sealed.number:
            return  # the agent is at work on it, or on a later one
        if sealed.number < agent.state.last_request:
            return  # a late repeat: its answer is not needed any more
        try:
            request = sealed.open()
        except ProtocolError:  # its text may quote the peer
            self._stop(frames.Declined("request"), ProtocolError("the coordinator sent an invalid message"))
            return
        if self._audit is not None and self._policy is not None:
            kinds = [kind_of(type(message)) for message in request.messages]
            self._audit.note_event("asked", agent=sealed.agent, number=sealed.number, kinds=kinds)
        self._busy[sealed.agent] = sealed.number
        loop, future = asyncio.get_running_loop(), self._threads[sealed.agent].ask(request)
        future.add_done_callback(lambda done: _call_in_loop(loop, self._handle_answer, agent, sealed.number, done))

    def _handle_answer(self, agent: JournalledAgent, number: int, future: Future[Reply]) -> None:
        """Send an agent's answer; while disconnected, wait for the request to be repeated."""
        assert self._journal is not None
        self._busy.pop(agent.number, None)
        error = future.exception()
        if error is None:
            if self._outbox is not None:
                self._outbox.put_nowait(frames.Answer(seal_reply(future.result(), self._journal.life)))
        elif isinstance(error, PullError):
            self._stop(frames.Failed(agent.number, number, self._arm_with_label(error.candidate)), error)
        elif isinstance(error, SmallBatchError):
            self._stop(frames.Declined("batch", error.pulls), SiteError(str(error)))
        elif isinstance(error, PolicyError):
            self._stop(frames.Declined(error.why), SiteError(f"this site declined a question: {error}"))
        elif isinstance(error, ProtocolError):
            self._stop(frames.Declined("request"), SiteError(f"the coordinator sent an invalid request: {error}"))
        else:
            self._stop(None, error)

    def _stop(self, last_frame: frames.FromSite | None, error: BaseException) -> None:
        """End this site's part in the run with an error, after a last frame."""
        if last_frame is not None and self._outbox is not None:
            self._outbox.put_nowait(last_frame)
        if self._audit is not None and self._policy is not None:
            try:
                self._audit.note_event("stopped", why=str(error))
            except FileError as failed:  # the disk is full, for example
                error = failed
        assert self._failure is not None
        if not self._failure.done():
            self._failure.set_exception(error)
            self._failure.exception()  # asyncio logs exceptions that are never retrieved

    def _arm_with_label(self, label: str) -> int:
        return next((arm for arm in range(self._arms.n) if self._arms.label(arm) == label), 0)


async def _wait_for_end(call: Any) -> None:
    """Wait until the coordinator has read everything and closed the stream, which it does at once.

    The end of the stream comes after all frames that it sent before, so these are read too.
    """
    with suppress(TimeoutError, *_BROKEN):
        async with asyncio.timeout(_FLUSH_SECONDS):
            while await call.read() is not grpc.aio.EOF:
                pass


def _call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *arguments: Any) -> None:
    """Call back in the loop, unless it is closed: an agent may finish after its site gave up."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback, *arguments)


def _declined(why: frames.WhyDeclined, number: int, text: str) -> tuple[frames.Declined, SiteError]:
    return frames.Declined(why, number), SiteError(f"this site declined to take part: {text}")


def _describe(error: Exception) -> str:
    """What happened to a connection, in our own words: gRPC's text may quote the peer."""
    details = (error.details() if isinstance(error, grpc.aio.AioRpcError) else "") or ""
    return next((text for part, text in _DESCRIPTIONS.items() if part in details), "connection lost")


_DESCRIPTIONS = {
    "certificate has expired": "the coordinator's certificate has expired, or the clock of this machine is fast",
    "certificate is not yet valid": "the coordinator's certificate is not valid yet: the clock of this machine is slow",
    "CERTIFICATE_VERIFY_FAILED": "the coordinator's certificate is not from our authority, or not for this address",
    "Connection refused": "connection refused",
    "resolving": "unknown host name",
    "too many calls": "too many connections with this certificate",
    "failed to connect": "cannot connect: the coordinator closes the connection, or a firewall blocks it",
}
"""By a part of gRPC's own text; the first match counts."""

_PERHAPS_BY_MISTAKE = ("version", "name", "run", "arms", "labels", "frame")
"""Why a coordinator may reject a site that it accepted before: it was started with wrong files, or read too slowly."""

_WHY_REFUSED = {
    "version": "it uses a different version of the protocol",
    "revoked": "the certificate of this site was revoked",
    "name": "the certificate's name is not one of this run's sites",
    "run": "it has a different run",
    "arms": "its run has a different number of arms",
    "labels": "its run has arms with different labels",
    "behind": "it has answers of this site that are not in the journal: the journal is missing or too old",
    "ahead": "this site has answered requests that it does not know: it was restarted with an old log, or without it",
    "lost": "this site was lost, and the run continues without it",
    "frame": "it could not read what this site sent",
    "answer": "this site gave an invalid answer, or declined",
}
