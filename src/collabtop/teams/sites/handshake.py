"""Who is let in: the handshake of a peer whose certificate has a name of this run."""

from __future__ import annotations

import asyncio
from typing import Any

from collabtop.errors import SiteError
from collabtop.protocol.ledger import TransportStats
from collabtop.teams.sites.connections import RunOffer, Session, SiteSlot, read_frame
from collabtop.teams.sites.frames import SMALL, VERSION, Declined, FromSite, Hello, Joiner, Ready, Welcome, WhyRefused
from collabtop.teams.sites.validation import PublicState

_HELLO_SECONDS, _READY_SECONDS = 10.0, 600.0
"""A site that is back reads its journal before it is ready, which may take a while."""
_HANDSHAKES_AT_ONCE = 2
"""Of one name: one may hang in a connection that is dead without anybody having noticed."""


class Rejected(Exception):  # noqa: N818  (a way out, no error of ours)
    """A peer is turned away."""

    def __init__(self, why: WhyRefused) -> None:
        super().__init__(why)
        self.why: WhyRefused = why


class Handshake:
    """Hello, Welcome, Ready: after that a site is in."""

    def __init__(self, offer: RunOffer, states: list[PublicState], transport: TransportStats, under_way: int) -> None:
        self._offer, self._states, self._transport = offer, states, transport
        self.under_way = under_way
        """Number of the latest request; after a restart, one more than the log has, since that may have been made."""

    async def accept(self, slot: SiteSlot, context: Any) -> Session:
        """The session of a site that said what it should; anybody else is turned away."""
        if slot.handshakes >= _HANDSHAKES_AT_ONCE:
            raise Rejected("here already")
        slot.handshakes += 1
        session = None
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                hello = await read_frame(context, Joiner(SMALL), self._transport)
            session = Session(context, self._transport, self._checked_hello(slot, hello).process)
            session.send(Welcome(self._offer.run, self._offer.setup, slot.agents))
            async with asyncio.timeout(_READY_SECONDS):
                ready = await read_frame(context, Joiner(SMALL + 16 * len(slot.agents)), self._transport)
            session.life = self._checked_ready(slot, ready).life
            self._check_alone(slot, session.process)  # once more: another one may have come in meanwhile
        except BaseException as error:
            if session is not None:
                await session.close()
            if isinstance(error, TimeoutError):
                raise Rejected("frame") from None
            raise
        finally:
            slot.handshakes -= 1
        return session

    def _checked_hello(self, slot: SiteSlot, hello: FromSite | None) -> Hello:
        if not isinstance(hello, Hello):
            raise Rejected("frame")
        offer = self._offer
        if hello.version != VERSION:
            raise Rejected("version")
        if hello.run not in ("", offer.run):
            raise Rejected("run")
        if hello.arms != offer.setup.problem.n:
            raise Rejected("arms")
        if offer.labels and hello.labels and hello.labels != offer.labels:
            raise Rejected("labels")
        self._check_alone(slot, hello.process)
        return hello

    def _check_alone(self, slot: SiteSlot, process: int) -> None:
        if slot.out is not None:
            raise Rejected("lost" if slot.lost else "answer")
        if slot.session is not None and slot.session.process != process:
            raise Rejected("here already")

    def _checked_ready(self, slot: SiteSlot, ready: FromSite | None) -> Ready:
        if isinstance(ready, Declined):
            slot.out = SiteError(f"site {slot.name} does not take part: {why_declined(ready)}")
            raise Rejected("answer")
        if not isinstance(ready, Ready) or len(ready.answered) != len(slot.agents):
            raise Rejected("frame")
        for agent, answered in zip(slot.agents, ready.answered, strict=True):
            if answered < self._states[agent].last:
                raise Rejected("behind")  # it lost what it drew, so its answers would be another agent's
            if answered > self.under_way:
                raise Rejected("ahead")  # this coordinator has lost what it was answered
        return ready


def why_declined(frame: Declined) -> str:
    """What a site that does not take part, or no longer, says about it.

    >>> why_declined(Declined("batch", 3))
    'the schedule asks for a mean over 3 pulls, fewer than its --min-batch; another horizon may do'
    """
    return _DECLINED[frame.why].format(frame.number)


_DECLINED = {
    "arms": "it has another number of arms",
    "batch": "the schedule asks for a mean over {} pulls, fewer than its --min-batch; another horizon may do",
    "request": "it was asked what cannot be",
}
