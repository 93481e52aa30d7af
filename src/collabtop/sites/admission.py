"""Who is let in: the handshake of a peer whose certificate has a name of this run."""

from __future__ import annotations

import asyncio
from typing import Any

from collabtop.errors import SiteError
from collabtop.protocol.ledger import Transport
from collabtop.sites.checks import PublicState
from collabtop.sites.desks import Desk, Opening, Session, read_frame
from collabtop.sites.frames import SMALL, VERSION, Declined, FromSite, Hello, Joiner, Ready, Welcome, WhyRefused

_HELLO_SECONDS, _READY_SECONDS = 10.0, 600.0
"""A site that is back reads its journal before it is ready, which may take a while."""
_HANDSHAKES_AT_ONCE = 2
"""Of one name: one may hang in a connection that is dead without anybody having noticed."""


class Turned(Exception):  # noqa: N818  (a way out, no error of ours)
    """A peer is turned away."""

    def __init__(self, why: WhyRefused) -> None:
        super().__init__(why)
        self.why: WhyRefused = why


class Admission:
    """Hello, Welcome, Ready: after that a site is in."""

    def __init__(self, opening: Opening, states: list[PublicState], transport: Transport, under_way: int) -> None:
        self._opening, self._states, self._transport = opening, states, transport
        self.under_way = under_way
        """Number of the latest request; after a restart, one more than the log has, since that may have been made."""

    async def let_in(self, desk: Desk, context: Any) -> Session:
        """The session of a site that said what it should; anybody else is turned away."""
        if desk.handshakes >= _HANDSHAKES_AT_ONCE:
            raise Turned("here already")
        desk.handshakes += 1
        session = None
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                hello = await read_frame(context, Joiner(SMALL), self._transport)
            session = Session(context, self._transport, self._checked_hello(desk, hello).process)
            session.send(Welcome(self._opening.run, self._opening.setup, desk.agents))
            async with asyncio.timeout(_READY_SECONDS):
                ready = await read_frame(context, Joiner(SMALL + 16 * len(desk.agents)), self._transport)
            session.life = self._checked_ready(desk, ready).life
            self._check_alone(desk, session.process)  # once more: another one may have come in meanwhile
        except BaseException as error:
            if session is not None:
                await session.close()
            if isinstance(error, TimeoutError):
                raise Turned("frame") from None
            raise
        finally:
            desk.handshakes -= 1
        return session

    def _checked_hello(self, desk: Desk, hello: FromSite | None) -> Hello:
        if not isinstance(hello, Hello):
            raise Turned("frame")
        opening = self._opening
        if hello.version != VERSION:
            raise Turned("version")
        if hello.run not in ("", opening.run):
            raise Turned("run")
        if hello.arms != opening.setup.problem.n:
            raise Turned("arms")
        if opening.labels and hello.labels and hello.labels != opening.labels:
            raise Turned("labels")
        self._check_alone(desk, hello.process)
        return hello

    def _check_alone(self, desk: Desk, process: int) -> None:
        if desk.out is not None:
            raise Turned("lost" if desk.lost else "answer")
        if desk.session is not None and desk.session.process != process:
            raise Turned("here already")

    def _checked_ready(self, desk: Desk, ready: FromSite | None) -> Ready:
        if isinstance(ready, Declined):
            desk.out = SiteError(f"site {desk.name} does not take part: {why_declined(ready)}")
            raise Turned("answer")
        if not isinstance(ready, Ready) or len(ready.answered) != len(desk.agents):
            raise Turned("frame")
        for agent, answered in zip(desk.agents, ready.answered, strict=True):
            if answered < self._states[agent].last:
                raise Turned("behind")  # it lost what it drew, so its answers would be another agent's
            if answered > self.under_way:
                raise Turned("ahead")  # this coordinator has lost what it was answered
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
