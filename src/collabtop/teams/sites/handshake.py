"""The handshake: which peers are accepted as sites of the run."""

import asyncio
from typing import Any

from collabtop.errors import SiteError
from collabtop.protocol.ledger import TransportStats
from collabtop.teams.sites.connections import RunOffer, Session, SiteSlot, read_frame
from collabtop.teams.sites.frames import SMALL, VERSION, Declined, FromSite, Hello, Joiner, Ready, Welcome, WhyRefused
from collabtop.teams.sites.validation import PublicState

_HELLO_SECONDS, _READY_SECONDS = 10.0, 600.0
"""A reconnecting site may take a while to read its journal before it is ready."""
_MAX_HANDSHAKES = 2
"""Per site: one of them may hang on a dead connection that nothing has noticed yet."""


class Rejected(Exception):  # noqa: N818  (control flow, not an error)
    """A peer is rejected; `why` is the code that it is sent."""

    def __init__(self, why: WhyRefused) -> None:
        super().__init__(why)
        self.why: WhyRefused = why


class Handshake:
    """The exchange of Hello, Welcome and Ready, after which a site is connected."""

    def __init__(
        self, offer: RunOffer, states: list[PublicState], transport: TransportStats, latest_request: int
    ) -> None:
        self._offer, self._states, self._transport = offer, states, transport
        self.latest_request = latest_request
        """Number of the latest request. After a restart, one more than in the log, since it may have been sent."""

    async def accept(self, slot: SiteSlot, context: Any) -> Session:
        """Make the handshake and return the session; raise `Rejected` for an invalid peer."""
        if slot.handshakes >= _MAX_HANDSHAKES:
            raise Rejected("here already")
        slot.handshakes += 1
        session = None
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                hello = await read_frame(context, Joiner(SMALL), self._transport)
            session = Session(context, self._transport, self._checked_hello(slot, hello).process)
            session.send(Welcome(self._offer.run_id, self._offer.setup, slot.agents))
            async with asyncio.timeout(_READY_SECONDS):
                ready = await read_frame(context, Joiner(SMALL + 16 * len(slot.agents)), self._transport)
            session.life = self._checked_ready(slot, ready).life
            self._check_slot(slot, session.process)  # again: a different process may have connected meanwhile
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
        if hello.run not in ("", offer.run_id):
            raise Rejected("run")
        if hello.arms != offer.setup.problem.n:
            raise Rejected("arms")
        if offer.labels and hello.labels and hello.labels != offer.labels:
            raise Rejected("labels")
        self._check_slot(slot, hello.process)
        return hello

    def _check_slot(self, slot: SiteSlot, process: int) -> None:
        if slot.failure is not None:
            raise Rejected("lost" if slot.lost else "answer")
        if slot.session is not None and slot.session.process != process:
            raise Rejected("here already")

    def _checked_ready(self, slot: SiteSlot, ready: FromSite | None) -> Ready:
        if isinstance(ready, Declined):
            slot.failure = SiteError(f"site {slot.name} declined to take part: {why_declined(ready)}")
            raise Rejected("answer")
        if not isinstance(ready, Ready) or len(ready.answered) != len(slot.agents):
            raise Rejected("frame")
        for agent, answered in zip(slot.agents, ready.answered, strict=True):
            if answered < self._states[agent].last_request:
                raise Rejected("behind")  # the site lost its rewards, so its answers would be inconsistent
            if answered > self.latest_request:
                raise Rejected("ahead")  # this coordinator lost answers that it had received
        return ready


def why_declined(frame: Declined) -> str:
    """Why a site declined, as text.

    >>> why_declined(Declined("batch", 3))
    "the schedule has a batch of size 3, below the site's --min-batch: try a different horizon"
    """
    return _WHY_DECLINED[frame.why].format(frame.number)


_WHY_DECLINED = {
    "arms": "it has a different number of arms",
    "batch": "the schedule has a batch of size {}, below the site's --min-batch: try a different horizon",
    "request": "it received an invalid request",
    "policy": "its policy does not allow this run",
    "plan": "it received a question that does not follow from the announced algorithm and plan",
    "budget": "its budget for questions, pulls or privacy in all runs is used up",
    "extension": "it does not have the extension of this algorithm: import the module that registers it at the site",
    "privacy": "it cannot give the privacy of this run: its arms, policy for failures or empty secret do not allow it",
    "unit": "its rewards have a different direction or different bounds",
}
