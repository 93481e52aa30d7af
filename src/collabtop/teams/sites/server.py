"""The coordinator's server: sends requests to the connected sites, waits for the others, and checks every answer."""

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from typing import Any, Literal, NoReturn

import grpc
import grpc.aio

from collabtop.arms.draws import AgentHalted
from collabtop.errors import ProtocolError, PullError, SiteError
from collabtop.events import OnEvent, SiteChanged
from collabtop.protocol.ledger import TransportStats
from collabtop.protocol.messages import Reply, Request
from collabtop.teams.remote.envelope import seal_requests
from collabtop.teams.sites import frames, tls
from collabtop.teams.sites.connections import Pending, Replies, RunOffer, Session, SiteSlot, SiteTimeouts, read_frame
from collabtop.teams.sites.handshake import Handshake, Rejected, why_declined
from collabtop.teams.sites.port import MOST_CALLS, Port
from collabtop.teams.sites.revocation import RevocationList
from collabtop.teams.sites.validation import PublicState

log = logging.getLogger("collabtop.sites")

_TICK = 0.2
_RECONNECT_PENALTY = 1.0
"""Seconds of `answer_within` that a reconnect uses up, so that a site cannot extend its time by reconnecting."""
_FINISH_SECONDS = 30.0
"""The longest wait for disconnected sites at the end of a run; a site tries to reconnect every five seconds."""


class SiteServer:
    """Serves the port. It lives on one event loop, and the team calls it from a different thread."""

    def __init__(
        self,
        sites: Sequence[tuple[str, int]],
        offer: RunOffer,
        states: list[PublicState],
        timeouts: SiteTimeouts,
        transport: TransportStats,
        on_event: OnEvent | None,
        revoked: RevocationList,
        lost: frozenset[int] = frozenset(),
        latest_request: int = 1,
        begun: bool = False,
    ) -> None:
        self._offer, self._states, self._timeouts = offer, states, timeouts
        self._transport, self._on_event, self._revoked = transport, on_event, revoked
        self._handshake = Handshake(offer, states, transport, latest_request)
        self._slots: list[SiteSlot] = []
        for name, count in sites:
            first = sum(len(slot.agents) for slot in self._slots)
            self._slots.append(SiteSlot(name, tuple(range(first, first + count))))
        self._by_name = {slot.name: slot for slot in self._slots}
        self._by_agent = {agent: slot for slot in self._slots for agent in slot.agents}
        self._pending: dict[int, Pending] = {}
        self._replies = Replies(0)
        for agent in lost:
            slot = self._by_agent[agent]
            slot.lost, slot.failure = True, SiteError(f"site {slot.name} was lost before this run was resumed")
        self.halted = False
        """Set, by any thread, to stop waiting for sites: `exchange` then raises `AgentHalted`."""
        self._resumed = begun
        self._complete = False
        self._changed = asyncio.Event()

    # -- called by the team

    async def start(self, port: Port) -> None:
        """Accept sites on this port."""
        await port.open(self._serve)

    async def exchange(self, requests: Sequence[Request]) -> list[Reply]:
        """Send requests and return their checked replies; lost sites are left out if the run tolerates loss."""
        if not self._complete:
            await self._wait_for_all()
        replies = self._replies = Replies(len(requests))
        self._pending = {request.agent: Pending(request, replies) for request in requests}
        numbers = [request.number for request in requests]
        self._handshake.latest_request = max([self._handshake.latest_request, *numbers])
        self._checked_at = time.monotonic()
        try:
            self._send_pending(self._slots)
            while replies.missing:
                await replies.wait(_TICK)
                self._check_answers()
                replies.raise_failure()
                self._check_halted()
                self._check_timeouts()
                await self._check_revocations()
                replies.raise_failure()
            if all(slot.lost for slot in self._slots):  # raised here: the algorithm does not know the reasons
                raise SiteError(f"no site is left: {'; '.join(str(slot.failure) for slot in self._slots)}")
            checked = [self._pending[request.agent].reply for request in requests]
            return [reply for reply in checked if reply is not None]
        finally:
            self._pending, self._replies = {}, Replies(0)

    def stop_reporting(self) -> None:
        """Report no more events: sites that disconnect from now on do not matter."""
        self._on_event = None

    async def finish(self) -> None:
        """Tell the sites that the run is over, including those that are just reconnecting."""
        self.stop_reporting()
        deadline = time.monotonic() + min(_FINISH_SECONDS, self._timeouts.grace)
        remaining = [
            slot for slot in self._slots if slot.session is not None or (slot.has_joined and slot.failure is None)
        ]
        while remaining:
            sessions = [slot.session for slot in remaining if slot.session is not None]
            remaining = [slot for slot in remaining if slot.session is None and slot.failure is None]
            await asyncio.gather(*(session.close(frames.Done()) for session in sessions))
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(0.05)

    # -- waiting

    async def _wait_for_all(self) -> None:
        # A resumed run that tolerates loss starts without missing sites: those that are asked are lost then.
        may_miss = self._resumed and self._timeouts.tolerates_loss
        limit = self._timeouts.grace if self._resumed else self._timeouts.wait
        deadline = math.inf if limit is None else time.monotonic() + limit
        while True:
            failures = [slot.failure for slot in self._slots if slot.failure is not None and not slot.lost]
            if failures and not may_miss:
                raise failures[0]
            missing = [slot.name for slot in self._slots if slot.session is None and slot.failure is None]
            if not missing:
                break
            if time.monotonic() > deadline:
                if may_miss:
                    break
                count = f"{len(missing)} of {len(self._slots)} sites"
                raise SiteError(f"{count} did not connect within {limit:g} s: {', '.join(missing)}")
            await self._check_revocations()
            self._check_halted()
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), _TICK)
            except TimeoutError:
                continue
        self._complete = True

    def _check_answers(self) -> None:
        """Check the answers that have arrived; a site with an invalid one is lost."""
        invalid = []
        for session, pending in self._replies.take():
            if not session.is_refused:
                try:
                    pending.settle(self._checked_reply(pending))
                except ProtocolError as error:
                    session.refuse()
                    invalid.append((self._by_agent[pending.request.agent], error))
            pending.answer = None
        for slot, reason in invalid:
            self._lose_for_message(slot, reason)

    def _checked_reply(self, pending: Pending) -> Reply:
        assert pending.answer is not None
        try:
            reply = pending.answer.open()
        except ProtocolError:  # its text may quote the peer
            raise ProtocolError("an answer that is not a valid message") from None
        self._states[reply.agent].check_reply(pending.request, reply)
        return reply

    def _check_halted(self) -> None:
        if self.halted:
            raise AgentHalted

    def _check_timeouts(self) -> None:
        now = time.monotonic()
        passed, self._checked_at = now - self._checked_at, now
        grace, answer_within = self._timeouts.grace, self._timeouts.answer_within
        for pending in self._pending.values():
            slot = self._by_agent[pending.request.agent]
            if not pending.is_open:
                continue
            if slot.session is not None:
                pending.waited += passed
            if slot.failure is not None:
                self._lose(slot, slot.failure)
            elif answer_within is not None and pending.waited > answer_within:
                self._lose(slot, SiteError(f"site {slot.name} did not answer within {answer_within:g} s"))
            elif slot.session is None and now - slot.disconnected_at > grace:
                gone = f"site {slot.name} has been disconnected for {grace:g} s"
                self._lose(slot, SiteError(f"{gone}: start the run again when it is back to continue from the log"))
        unanswered = [agent for agent, pending in self._pending.items() if pending.is_open]
        if any(self._by_agent[agent].session is None for agent in unanswered):
            self._transport.absent += passed

    def _send_pending(self, slots: Sequence[SiteSlot]) -> None:
        """Send the requests without a reply to the connected ones of these sites."""
        sessions = {agent: slot.session for slot in slots if slot.session is not None for agent in slot.agents}
        unanswered = [
            pending for agent in sessions if (pending := self._pending.get(agent)) is not None and pending.is_open
        ]
        for pending in unanswered:
            if pending.sent:
                self._transport.repeats += 1
                pending.waited += _RECONNECT_PENALTY
            pending.sent = True
        lives = {agent: session.life for agent, session in sessions.items()}
        for sealed in seal_requests([pending.request for pending in unanswered], lives):
            sessions[sealed.agent].send(frames.Ask(sealed))

    async def _check_revocations(self) -> None:
        """Disconnect the sites whose certificates were revoked since the last time."""
        if self._revoked.refresh():
            for slot in self._slots:
                if slot.session is not None and self._revoked.has(slot.session.certificate):
                    self._transport.refused += 1
                    log.warning("disconnected %s: its certificate was revoked", slot)
                    await slot.session.close(frames.Refused("revoked"))

    # -- one connection

    async def _serve(self, _: Any, context: Any) -> None:
        """Serve one peer, from its first frame until it disconnects."""
        slot = await self._slot_for(context)
        session = None
        try:
            session = await self._handshake.accept(slot, context)
            session.certificate = tls.peer_certificate(context.auth_context())
            await self._connect(slot, session)
            await self._read_all(slot, session, context)
            if session.is_refused:
                await self._refuse(session, context, "answer")
        except Rejected as rejected:
            self._changed.set()
            self._transport.refused += 1
            log.warning("rejected a peer (%s): %s", slot, rejected.why)
            await self._refuse(session, context, rejected.why)
        except ProtocolError as error:
            self._lose_for_message(slot, error, joined=session is not None)
            await self._refuse(session, context, "answer" if session else "frame")
        finally:
            if session is not None:
                self._disconnect(slot, session)
                await session.close()

    async def _slot_for(self, context: Any) -> SiteSlot:
        """The slot of a peer; end the call if the peer is not a site of this run, or has too many calls."""
        names = tls.peer_names(context.auth_context())
        slot = next((self._by_name[name] for name in names if name in self._by_name), None)
        if slot is None or len(names) != 1:
            await self._end_call(context, None, "name")
        if self._revoked.has(tls.peer_certificate(context.auth_context())):
            await self._end_call(context, slot, "revoked")
        if slot.calls >= MOST_CALLS:
            await self._end_call(context, slot, "too many calls")
        slot.calls += 1
        context.add_done_callback(lambda _: slot.end_call())
        return slot

    async def _end_call(self, context: Any, slot: SiteSlot | None, why: str) -> NoReturn:
        """End a call with a status instead of a frame, which a peer that accepts no data would keep open."""
        self._transport.refused += 1
        log.warning("rejected a peer (%s): %s", slot or "not a site of this run", why)
        busy = why == "too many calls"
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED if busy else grpc.StatusCode.PERMISSION_DENIED, why)
        raise AssertionError("abort raises an error")

    async def _refuse(self, session: Session | None, context: Any, why: frames.WhyRefused) -> None:
        if session is None:
            session = Session(context, self._transport, process=0)
        await session.close(frames.Refused(why))

    async def _connect(self, slot: SiteSlot, session: Session) -> None:
        """Make this the site's session; an older one of the same process is dead, noticed or not."""
        previous, slot.session = slot.session, session
        if previous is not None:
            await previous.close()
        if slot.has_joined:
            self._transport.reconnects += 1
        self._report(slot, "back" if slot.has_joined else "here")
        slot.has_joined = True
        self._changed.set()
        self._send_pending([slot])

    def _lose_for_message(self, slot: SiteSlot, error: ProtocolError, *, joined: bool = True) -> None:
        """Note an invalid message of a peer; a site that had joined is lost."""
        self._transport.refused += 1
        log.warning("disconnected %s: invalid message (%s)", slot, error)
        if joined:
            self._lose(slot, SiteError(f"site {slot.name} was disconnected: invalid message ({error})"))

    def _disconnect(self, slot: SiteSlot, session: Session) -> None:
        self._check_answers()  # what a site may send when it comes back depends on what it has answered
        if slot.session is session:
            slot.session, slot.disconnected_at = None, time.monotonic()
            self._report(slot, "gone")

    async def _read_all(self, slot: SiteSlot, session: Session, context: Any) -> None:
        """Handle all frames of a site, until it closes the connection or its session ends."""
        reading = asyncio.ensure_future(self._handle_all(slot, session, context))
        ended = asyncio.ensure_future(session.ended.wait())
        try:
            await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
        finally:
            reading.cancel()
            ended.cancel()

    async def _handle_all(self, slot: SiteSlot, session: Session, context: Any) -> None:
        joiner = frames.Joiner(frames.largest_frame(self._offer.setup.problem.n))
        while (frame := await read_frame(context, joiner, self._transport)) is not None:
            if session.ended.is_set():
                return
            self._handle(slot, session, frame)

    def _handle(self, slot: SiteSlot, session: Session, frame: frames.FromSite) -> None:
        """Handle a frame of a connected site."""
        if isinstance(frame, frames.Answer):
            self._handle_answer(slot, session, frame)
        elif isinstance(frame, frames.Declined):
            self._lose(slot, SiteError(f"site {slot.name} stopped taking part: {why_declined(frame)}"))
            raise Rejected("answer")
        elif isinstance(frame, frames.Failed):
            self._handle_failed_pull(slot, frame)
        else:
            raise ProtocolError("a frame out of order")

    def _handle_answer(self, slot: SiteSlot, session: Session, frame: frames.Answer) -> None:
        """Keep an answer, to be checked with those of other sites; repeated answers are ignored."""
        sealed = frame.reply
        if sealed.agent not in slot.agents:
            raise ProtocolError("an answer for an agent of a different site")
        if sealed.epoch != session.life:
            raise ProtocolError("an answer from a different journal")
        pending = self._pending.get(sealed.agent)
        if pending is None or not pending.is_open or sealed.number < pending.request.number:
            if sealed.number > self._handshake.latest_request:
                raise ProtocolError("an answer to a request that was not made")
            # A repeated answer, or one that is not needed now: the run has just failed, or this coordinator was
            # restarted while the agent was working, and will ask again when all sites are connected.
            return
        self._replies.add(session, pending, sealed)

    def _handle_failed_pull(self, slot: SiteSlot, frame: frames.Failed) -> None:
        pending = self._pending.get(frame.agent)
        if frame.agent not in slot.agents or frame.arm >= self._offer.setup.problem.n:
            raise ProtocolError("a failed pull of an unknown agent or arm")
        if pending is not None and pending.request.number == frame.number and pending.is_open:
            label = self._offer.label(frame.arm)
            error = PullError(
                f"a pull of candidate {label!r} failed at site {slot.name}; the reason is reported there", label
            )
            if not self._timeouts.tolerates_loss:  # the site stays in the run: its function can be fixed
                pending.fail(error)
                return
            self._lose(slot, error)
            raise Rejected("lost")

    def _lose(self, slot: SiteSlot, error: Exception) -> None:
        """Remove a site for good: the run continues without it, or fails with this error."""
        slot.failure = error
        for agent in slot.agents:
            pending = self._pending.get(agent)
            if pending is not None and pending.is_open:
                if self._timeouts.tolerates_loss:
                    slot.lost = True
                    pending.settle(None)
                else:
                    pending.fail(error)
        if slot.lost:
            log.warning("%s: lost, the run continues without", slot)
            self._report(slot, "lost")

    def _report(self, slot: SiteSlot, state: Literal["here", "gone", "back", "lost"]) -> None:
        missing = tuple(other.name for other in self._slots if other.session is None and not other.lost)
        connected = sum(other.session is not None for other in self._slots)
        log.info("%s: %s; %d of %d sites are connected", slot, state, connected, len(self._slots))
        if self._on_event is not None:
            self._on_event(SiteChanged(slot.name, state, missing))
