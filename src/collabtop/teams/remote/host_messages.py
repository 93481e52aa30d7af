"""Messages between the coordinator and a host of several agents, as MessagePack, decoded strictly.

==============  ===============================================================================================
RestoreAgents   to the host: create these agents, and repeat the requests that they answered before
AgentsRestored  to the coordinator: digests of their replies this time
Answers         to the coordinator: replies, errors, agents that the host does not have; and a report
Heartbeat       to the coordinator: the host is alive; and a report of rewards drawn since the last one
==============  ===============================================================================================

A host numbers its messages: a reply is accepted only after all rewards drawn for it have arrived. Requests are sent
to the host in envelopes (`envelope`), all requests for one host together.
"""

import traceback
from typing import TypeVar

import msgspec

from collabtop.arms.draws import AgentHalted
from collabtop.errors import CollabtopError, Fields, ProtocolError, PullError, error_fields, rebuild_error
from collabtop.runlog.format import Rewards, Sums
from collabtop.teams.remote.envelope import SealedReplies
from collabtop.teams.remote.reports import Item

_INTERRUPTED, _HALTED = "KeyboardInterrupt", "Halted"


class Fault(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An error that prevented an agent from answering."""

    agent: int
    kind: str
    message: str
    fields: Fields
    """The attributes of the error besides its message (`errors.error_fields`)."""
    trace: str

    @property
    def is_halt(self) -> bool:
        """Whether the agent was only asked to stop: by the user, or after an error of a different agent."""
        return self.kind == _HALTED

    def error(self) -> BaseException:
        """The error to raise: the same as for an agent in this process."""
        if self.kind == _INTERRUPTED:
            return KeyboardInterrupt()
        if self.is_halt:
            return AgentHalted()
        error = rebuild_error(self.kind, self.message, self.fields)
        error.add_note(f"traceback of agent {self.agent}:\n{self.trace}")
        return error


def fault_of(agent: int, error: BaseException) -> Fault:
    """Describe an error of an agent, for the coordinator to raise.

    >>> fault_of(3, ZeroDivisionError("division by zero")).error()
    PullError('a pull of agent 3 raised ZeroDivisionError: division by zero')
    """
    trace = "".join(traceback.format_exception(error))
    if isinstance(error, KeyboardInterrupt | AgentHalted):
        kind = _HALTED if isinstance(error, AgentHalted) else _INTERRUPTED
        return Fault(agent, kind, str(error), {}, trace)
    if not isinstance(error, CollabtopError):  # from the user's own arms
        error = PullError(f"a pull of agent {agent} raised {type(error).__name__}: {error}", "")
    kind, fields = error_fields(error)
    return Fault(agent, kind, str(error), fields, trace)


class RestoreAgents(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Create these agents."""

    agents: list[tuple[int, int]]
    """Agent and epoch of each."""
    requests: bytes
    """The requests that they answered before, agent by agent (`pack_shared`)."""
    records: list[Rewards | Sums]
    """Rewards that they drew before, which must not be drawn again."""


class AgentsRestored(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The agents were created."""

    number: int
    digests: dict[int, list[bytes]]
    """Digests of the replies of each agent to the repeated requests."""
    faults: list[Fault]
    items: list[Item]


class Answers(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The results of requests."""

    number: int
    replies: SealedReplies
    faults: list[Fault]
    forgotten: list[int]
    """Agents that the host does not have in the requested epoch: their state was lost."""
    items: list[Item]


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The host is alive."""

    number: int
    is_failing: bool
    """Whether an agent raised an error, and the others are about to stop."""
    items: list[Item]


_HostMessage = TypeVar("_HostMessage", RestoreAgents, AgentsRestored, Answers, Heartbeat)


def to_bytes(message: RestoreAgents | AgentsRestored | Answers | Heartbeat) -> bytes:
    """Encode a message."""
    return msgspec.msgpack.encode(message)


def from_bytes(data: bytes, kind: type[_HostMessage]) -> _HostMessage:
    """Decode a message; anything else is rejected.

    >>> from_bytes(to_bytes(Heartbeat(1, False, [])), Heartbeat)
    Heartbeat(number=1, is_failing=False, items=[])
    """
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, ValueError) as error:
        raise ProtocolError(f"invalid {kind.__name__}: {error}") from None
