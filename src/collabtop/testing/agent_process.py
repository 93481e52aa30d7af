"""A process that only has agents: it reads requests from its standard input and writes replies to its output."""

import os
import pickle
from importlib import import_module
from typing import Any

import msgspec

from collabtop.protocol.agent import Agent
from collabtop.protocol.setup import Setup
from collabtop.teams.remote.envelope import SealedReply, SealedRequest, pack, seal_reply, unpack
from collabtop.teams.remote.host_messages import Fault, fault_of


class AgentProcess:
    """The agents of all runs that are open."""

    def __init__(self) -> None:
        self._members: dict[int, list[Agent]] = {}

    def open(self, run: int, modules: list[str], setup: bytes, arms: bytes) -> None:
        """Create the agents of a run."""
        for module in modules:
            import_module(module)
        decoded, source = msgspec.msgpack.decode(setup, type=Setup), pickle.loads(arms)
        self._members[run] = [Agent(number, source, decoded) for number in range(decoded.problem.agents)]

    def close(self, run: int) -> None:
        """Drop the agents of a run."""
        self._members.pop(run, None)

    def ask(self, run: int, requests: bytes) -> bytes:
        """Let each agent answer its request."""
        replies: list[SealedReply] = []
        for sealed in unpack(requests, SealedRequest):
            replies.append(seal_reply(self._members[run][sealed.agent].answer(sealed.open()), sealed.epoch))
        return pack(replies)


def main() -> None:
    """Handle calls until the input ends."""
    calls, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # arms may print
    process = AgentProcess()
    while True:
        try:
            method, arguments = pickle.load(calls)
        except EOFError:
            return
        try:
            result: Any = getattr(process, method)(*arguments)
        except Exception as error:  # the coordinator has to know of any error
            result = fault_of(0, error)
        _send(results, result)


def _send(stream: Any, value: Fault | bytes | None) -> None:
    pickle.dump(value, stream)
    stream.flush()


if __name__ == "__main__":
    main()
