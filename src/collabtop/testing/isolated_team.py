"""A team whose agents live in a process of their own, so that nothing but messages reaches the coordinator."""

import atexit
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from threading import Lock
from typing import Any

import msgspec

from collabtop.arms import Arms
from collabtop.coordination.team import Team
from collabtop.protocol.extension import module_of
from collabtop.protocol.messages import Message, Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.recorder import RewardRecorder
from collabtop.teams.remote.envelope import SealedReply, pack, seal_requests, unpack
from collabtop.teams.remote.host_messages import Fault
from collabtop.testing.wire_team import words_on_wire


class Crossing(msgspec.Struct, frozen=True):
    """A message that crossed between the coordinator and an agent."""

    number: int
    """The number of the exchange, from 1 on."""
    agent: int
    direction: str
    """`down` or `up`."""
    message: Message


class IsolatedTeam(Team):
    """Agents in a separate process. The arms, the rewards and the agents' state are there and nowhere else.

    An algorithm that reads rewards or means through its team fails here, or runs differently than on the local team.
    `words` is counted on the encoded messages, by the rule of `words_on_wire`. The process is started once, for the
    runs of all such teams.

    >>> import collabtop as ct
    >>> team = IsolatedTeam()
    >>> arms = ct.BernoulliArms([0.9, 0.5])
    >>> result = ct.identify(arms, m=1, agents=3, horizon=100, algorithm="uniform", seed=1, team=team)
    >>> result.words == team.words, result.observed
    (True, None)
    """

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Create the agents in their process; the team keeps nothing of the arms."""
        self.words = 0
        self.crossings: list[Crossing] = []
        """Every message that crossed."""
        self.busiest: dict[int, int] = {}
        """By the number of an exchange, the pulls of the agent that made the most in it."""
        self._epochs = [0] * setup.problem.agents
        modules = [module_of(setup.extension)] if setup.extension else []
        self._run = next(_runs)
        _process().call("open", self._run, modules, msgspec.msgpack.encode(setup), pickle.dumps(arms))

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Pass requests and replies on as bytes, and count them."""
        sealed = seal_requests(list(requests), self._epochs)
        answered = unpack(_process().call("ask", self._run, pack(sealed)), SealedReply)
        replies = [reply.open() for reply in answered]
        for request, envelope in zip(requests, sealed, strict=True):
            self.words += sum(words_on_wire(data) for data in envelope.messages)
            self.crossings += [Crossing(request.number, request.agent, "down", message) for message in request.messages]
        for reply, reply_envelope in zip(replies, answered, strict=True):
            self.words += words_on_wire(reply_envelope.answer)
            self.crossings.append(Crossing(reply.number, reply.agent, "up", reply.answer))
            self.busiest[reply.number] = max(self.busiest.get(reply.number, 0), reply.pulls)
        return replies

    def close(self) -> None:
        """Drop the agents."""
        _process().call("close", self._run)


_runs = count()


class _Process:
    """The process of the agents."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folder or "." for folder in sys.path)}
        command = [sys.executable, "-m", "collabtop.testing.agent_process"]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._lock = Lock()
        atexit.register(self.close)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of `AgentProcess`; an error there is raised here."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        with self._lock:
            try:
                pickle.dump((method, arguments), self._child.stdin)
                self._child.stdin.flush()
                result = pickle.load(self._child.stdout)
            except BaseException:  # such as Ctrl-C: a result that nothing waits for must not reach the next call
                self._child.kill()
                _process.cache_clear()
                raise
        if isinstance(result, Fault):
            raise result.error()
        return result

    def close(self) -> None:
        """End the process."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        with suppress(OSError):  # it was killed
            self._child.stdin.close()
        self._child.stdout.close()
        self._child.wait()


@cache
def _process() -> _Process:
    """The process, started when it is first needed."""
    return _Process()
