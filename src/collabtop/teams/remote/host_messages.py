"""What crosses between the coordinator and a host of many agents, as bytes: MessagePack, decoded strictly.

=========  ====================================================================================
RestoreAgents   down: take on these agents, give them the requests they answered in an earlier life
AgentsRestored    up: what they answered this time
Answers    up: replies, what went wrong, agents that are not (or no longer) here; and a report
Heartbeat       up: a sign of life, and a report of what was drawn meanwhile
=========  ====================================================================================

What goes up is numbered by its host: a reply counts only after all that was drawn for it has arrived.
Requests go down in the envelopes of `envelope`, all that are for one host together.
"""

from __future__ import annotations

import traceback
from typing import TypeVar

import msgspec

from collabtop.arms.draws import AgentHalted
from collabtop.errors import CollabtopError, Fields, ProtocolError, PullError, error_fields, rebuild_error
from collabtop.runlog.format import Rewards, Sums
from collabtop.teams.remote.envelope import SealedReply
from collabtop.teams.remote.reports import Item

_INTERRUPTED, _HALTED = "KeyboardInterrupt", "AgentHalted"


class Fault(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The error that kept an agent from answering."""

    agent: int
    kind: str
    message: str
    fields: Fields
    """What the error carries besides its message (`errors.error_fields`)."""
    trace: str

    @property
    def is_halt(self) -> bool:
        """Whether the agent was only stopped because of an error elsewhere."""
        return self.kind == _HALTED

    def error(self) -> BaseException:
        """The error to raise for it: the one an agent in this process would raise."""
        if self.kind == _INTERRUPTED:
            return KeyboardInterrupt()
        error = PullError(self.message, "") if self.is_halt else rebuild_error(self.kind, self.message, self.fields)
        error.add_note(f"where it was raised, by agent {self.agent}:\n{self.trace}")
        return error


def fault_of(agent: int, error: BaseException) -> Fault:
    """Describe an error that an agent met, for the coordinator to raise.

    >>> fault_of(3, ZeroDivisionError("division by zero")).error()
    PullError('a pull of agent 3 raised ZeroDivisionError: division by zero')
    """
    trace = "".join(traceback.format_exception(error))
    if isinstance(error, KeyboardInterrupt | AgentHalted):
        return Fault(agent, type(error).__name__, str(error), {}, trace)
    if not isinstance(error, CollabtopError):  # from the user's own arms
        error = PullError(f"a pull of agent {agent} raised {type(error).__name__}: {error}", "")
    kind, fields = error_fields(error)
    return Fault(agent, kind, str(error), fields, trace)


class RestoreAgents(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Take on these agents."""

    agents: list[tuple[int, int]]
    """Agent and epoch."""
    requests: bytes
    """What they were asked and answered before, agent by agent (`pack_shared`)."""
    records: list[Rewards | Sums]
    """Rewards they drew before, which must not be drawn again."""


class AgentsRestored(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The agents are there."""

    number: int
    said: dict[int, list[bytes]]
    """What each agent answered to the requests it was given again, as digests."""
    faults: list[Fault]
    items: list[Item]


class Answers(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What became of some requests."""

    number: int
    replies: list[SealedReply]
    faults: list[Fault]
    forgotten: list[int]
    """Agents that are not here in that epoch: their state was lost."""
    items: list[Item]


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A sign of life."""

    number: int
    is_failing: bool
    """Whether an agent met an error, and the others are about to stop."""
    items: list[Item]


_HostMessage = TypeVar("_HostMessage", RestoreAgents, AgentsRestored, Answers, Heartbeat)


def to_bytes(letter: RestoreAgents | AgentsRestored | Answers | Heartbeat) -> bytes:
    """A letter as bytes."""
    return msgspec.msgpack.encode(letter)


def from_bytes(data: bytes, kind: type[_HostMessage]) -> _HostMessage:
    """Read a letter back; anything else is refused.

    >>> from_bytes(to_bytes(Heartbeat(1, False, [])), Heartbeat)
    Heartbeat(number=1, is_failing=False, items=[])
    """
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, ValueError) as error:
        raise ProtocolError(f"not a letter of kind {kind.__name__}: {error}") from None
