"""The coordinator: passes requests to the sites that are there, waits for the others, and checks every answer."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from typing import Any, Literal

from collabtop.errors import ProtocolError, PullError, SiteError
from collabtop.events import OnEvent, SiteChanged
from collabtop.protocol.ledger import TransportStats
from collabtop.protocol.messages import Reply, Request
from collabtop.teams.remote.envelope import seal_requests
from collabtop.teams.sites import tls
from collabtop.teams.sites.connections import Pending, RunOffer, Session, SiteSlot, SiteTimeouts, read_frame
from collabtop.teams.sites.frames import (
    Answer,
    Ask,
    Declined,
    Done,
    Failed,
    FromSite,
    Joiner,
    Refused,
    WhyRefused,
    largest_frame,
)
from collabtop.teams.sites.handshake import Handshake, Rejected, why_declined
from collabtop.teams.sites.port import Port
from collabtop.teams.sites.validation import PublicState

log = logging.getLogger("collabtop.sites")

_TICK = 0.2
_RETURN = 1.0
"""Seconds of its time for an answer that a site loses by coming back: it cannot put off the end by coming and going."""
_LINGER = 30.0
"""Seconds for which a site that is just coming back is waited for to be told the end: it tries every five."""


class SiteServer:
    """Behind the port: lives on one event loop, and is asked from another thread through it."""

    def __init__(
        self,
        sites: Sequence[tuple[str, int]],
        offer: RunOffer,
        states: list[PublicState],
        terms: SiteTimeouts,
        transport: TransportStats,
        on_event: OnEvent | None,
        lost: frozenset[int] = frozenset(),
        under_way: int = 1,
    ) -> None:
        self._offer, self._states, self._timeouts = offer, states, terms
        self._transport, self._on_event = transport, on_event
        self._handshake = Handshake(offer, states, transport, under_way)
        self._slots: list[SiteSlot] = []
        for name, count in sites:
            first = sum(len(slot.agents) for slot in self._slots)
            self._slots.append(SiteSlot(name, tuple(range(first, first + count))))
        self._by_name = {slot.name: slot for slot in self._slots}
        self._by_agent = {agent: slot for slot in self._slots for agent in slot.agents}
        self._pending: dict[int, Pending] = {}
        for agent in lost:
            self._by_agent[agent].lost, self._by_agent[agent].out = True, SiteError("gone for good")
        self._resumed = any(state.last for state in states)
        self._complete = False
        self._changed = asyncio.Event()

    # -- from the team

    async def start(self, port: Port) -> None:
        """Let the sites in that dial this port."""
        await port.open(self._serve)

    async def exchange(self, requests: Sequence[Request]) -> list[Reply]:
        """Ask, wait through faults, and return one checked reply a request."""
        if not self._complete:
            await self._wait_for_all()
        self._pending = {request.agent: Pending(request) for request in requests}
        self._handshake.under_way = max([self._handshake.under_way, *(it.number for it in requests)])
        self._looked = time.monotonic()
        try:
            for slot in self._slots:
                self._send_pending(slot)
            waiting = {pending.reply for pending in self._pending.values()}
            while waiting:
                done, waiting = await asyncio.wait(waiting, timeout=_TICK, return_when=asyncio.FIRST_EXCEPTION)
                for reply in done:
                    reply.result()
                self._look_at_clock()
            if all(slot.lost for slot in self._slots):  # not left to the algorithm, which does not know why
                raise SiteError(f"no site is left: {'; '.join(str(slot.out) for slot in self._slots)}")
            replies = [self._pending[request.agent].reply.result() for request in requests]
            return [reply for reply in replies if reply is not None]
        finally:
            for pending in self._pending.values():
                if not pending.reply.cancel() and not pending.reply.cancelled():
                    pending.reply.exception()  # one error was raised; asyncio complains about others nobody looked at
            self._pending = {}

    def fall_silent(self) -> None:
        """Report nothing any more: who leaves from now on is none of anybody's business."""
        self._on_event = None

    async def dismiss(self) -> None:
        """Tell the sites that all is done, also those that are just coming back."""
        self.fall_silent()
        deadline = time.monotonic() + min(_LINGER, self._timeouts.grace)
        untold = [slot for slot in self._slots if slot.session is not None or (slot.seen and slot.out is None)]
        while untold:
            here = [slot.session for slot in untold if slot.session is not None]
            untold = [slot for slot in untold if slot.session is None and slot.out is None]
            await asyncio.gather(*(session.close(Done()) for session in here))
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(0.05)

    # -- waiting

    async def _wait_for_all(self) -> None:
        goes_on = self._resumed and self._timeouts.go_on  # then whoever is asked and not there is lost
        limit = self._timeouts.grace if self._resumed else self._timeouts.wait
        deadline = math.inf if limit is None else time.monotonic() + limit
        while True:
            out = [slot.out for slot in self._slots if slot.out is not None and not slot.lost]
            if out and not goes_on:
                raise out[0]
            missing = [slot.name for slot in self._slots if slot.session is None and slot.out is None]
            if not missing:
                break
            if time.monotonic() > deadline:
                if goes_on:
                    break
                said = f"{len(missing)} of {len(self._slots)} sites did not come within {limit:g} s"
                raise SiteError(f"{said}: {', '.join(missing)}")
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), _TICK)
            except TimeoutError:
                continue
        self._complete = True

    def _look_at_clock(self) -> None:
        now = time.monotonic()
        passed, self._looked = now - self._looked, now
        for pending in self._pending.values():
            slot = self._by_agent[pending.request.agent]
            if pending.reply.done():
                continue
            if slot.session is not None:
                pending.waited += passed
            if slot.out is not None:
                self._lose(slot, slot.out)
            elif self._timeouts.answer_within is not None and pending.waited > self._timeouts.answer_within:
                self._lose(slot, SiteError(f"site {slot.name} gave no answer in {self._timeouts.answer_within:g} s"))
            elif slot.session is None and now - slot.gone_since > self._timeouts.grace:
                said = f"site {slot.name} has been gone for {self._timeouts.grace:g} s"
                self._lose(slot, SiteError(f"{said}; when it is back, the same command goes on from the log"))
        if any(self._by_agent[agent].session is None for agent, it in self._pending.items() if not it.reply.done()):
            self._transport.absent += passed

    def _send_pending(self, slot: SiteSlot) -> None:
        if slot.session is None:
            return
        for agent in slot.agents:
            pending = self._pending.get(agent)
            if pending is None or pending.reply.done():
                continue
            if pending.sent:
                self._transport.repeats += 1
                pending.waited += _RETURN
            pending.sent = True
            slot.session.send(Ask(seal_requests([pending.request], {agent: slot.session.life})[0]))

    # -- a connection

    async def _serve(self, _: Any, context: Any) -> None:
        """One peer, from its first frame to its end."""
        names = tls.peer_names(context.auth_context())
        slot = next((self._by_name[name] for name in names if name in self._by_name), None)
        session = None
        try:
            if slot is None or len(names) != 1:
                raise Rejected("name")
            session = await self._handshake.accept(slot, context)
            await self._replace(slot, session)
            await self._listen_to(slot, session, context)
        except Rejected as turned:
            self._changed.set()
            self._transport.refused += 1
            log.warning("a peer (%s) was turned away: %s", slot or "of no agent of this run", turned.why)
            await self._say_refused(session, context, turned.why)
        except ProtocolError as error:
            self._transport.refused += 1
            log.warning("%s sent what cannot be: %s", slot, error)
            if slot is not None and session is not None:
                slot.out = SiteError(f"site {slot.name} was turned away: it sent what cannot be ({error})")
                self._lose(slot, slot.out)
            await self._say_refused(session, context, "answer" if session else "frame")
        finally:
            if slot is not None and session is not None:
                self._leave(slot, session)
                await session.close()

    async def _say_refused(self, session: Session | None, context: Any, why: WhyRefused) -> None:
        if session is None:
            session = Session(context, self._transport, process=0)
        await session.close(Refused(why))

    async def _replace(self, slot: SiteSlot, session: Session) -> None:
        """The site is here; an older connection of the same process is dead, whether we noticed or not."""
        old, slot.session = slot.session, session
        if old is not None:
            await old.close()
        if slot.seen:
            self._transport.reconnects += 1
        self._tell(slot, "back" if slot.seen else "here")
        slot.seen = True
        self._changed.set()
        self._send_pending(slot)

    def _leave(self, slot: SiteSlot, session: Session) -> None:
        if slot.session is session:
            slot.session, slot.gone_since = None, time.monotonic()
            self._tell(slot, "gone")

    async def _listen_to(self, slot: SiteSlot, session: Session, context: Any) -> None:
        joiner = Joiner(largest_frame(self._offer.setup.problem.n))
        while True:
            reading = asyncio.ensure_future(read_frame(context, joiner, self._transport))
            ended = asyncio.ensure_future(session.ended.wait())
            try:
                await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
                frame = reading.result() if reading.done() else None
            finally:
                reading.cancel()
                ended.cancel()
            if frame is None:
                return
            self._take(slot, session, frame)

    def _take(self, slot: SiteSlot, session: Session, frame: FromSite) -> None:
        """An answer, checked against its question; one that came before is passed over."""
        if isinstance(frame, Declined):
            slot.out = SiteError(f"site {slot.name} stopped taking part: {why_declined(frame)}")
            self._lose(slot, slot.out)
            raise Rejected("answer")
        if isinstance(frame, Failed):
            self._pull_failed(slot, frame)
            return
        if not isinstance(frame, Answer):
            raise ProtocolError("a frame out of order")
        sealed = frame.reply
        if sealed.agent not in slot.agents:
            raise ProtocolError("an answer for an agent of another site")
        if sealed.epoch != session.life:
            raise ProtocolError("an answer from another life of the agent")
        pending = self._pending.get(sealed.agent)
        if pending is None or pending.reply.done() or sealed.number < pending.request.number:
            if sealed.number > self._handshake.under_way:
                raise ProtocolError("an answer to a request that was not made")
            # A repeat of one that was taken; or nobody waits: the run just failed, or this coordinator was restarted
            # while the agent was at it, and will ask again when all are there.
            return
        try:
            reply = sealed.open()
        except ProtocolError:  # whose text may quote what the peer sent
            raise ProtocolError("an answer that is not a message") from None
        self._states[sealed.agent].check_reply(pending.request, reply)
        pending.reply.set_result(reply)

    def _pull_failed(self, slot: SiteSlot, frame: Failed) -> None:
        pending = self._pending.get(frame.agent)
        if frame.agent not in slot.agents or frame.arm >= self._offer.setup.problem.n:
            raise ProtocolError("a failed pull that cannot be")
        if pending is not None and pending.request.number == frame.number and not pending.reply.done():
            label = self._offer.label(frame.arm)
            message = f"a pull of candidate {label!r} failed at site {slot.name}, whose own log says why"
            if not self._timeouts.go_on:  # its function can be mended, and the run gone on with
                pending.reply.set_exception(PullError(message, label))
                return
            self._lose(slot, PullError(message, label))
            raise Rejected("lost")

    def _lose(self, slot: SiteSlot, error: Exception) -> None:
        """A site is gone for good: the run goes on without it, or fails with this error."""
        slot.out = error
        for agent in slot.agents:
            pending = self._pending.get(agent)
            if pending is not None and not pending.reply.done():
                if self._timeouts.go_on:
                    slot.lost = True
                    pending.reply.set_result(None)
                else:
                    pending.reply.set_exception(error)
        if slot.lost:
            log.warning("%s: gone for good, and the run goes on without", slot)
            self._tell(slot, "lost")

    def _tell(self, slot: SiteSlot, state: Literal["here", "gone", "back", "lost"]) -> None:
        missing = tuple(it.name for it in self._slots if it.session is None and not it.lost)
        here = sum(it.session is not None for it in self._slots)
        log.info("%s: %s; %d of %d sites are there", slot, state, here, len(self._slots))
        if self._on_event is not None:
            self._on_event(SiteChanged(slot.name, state, missing))
