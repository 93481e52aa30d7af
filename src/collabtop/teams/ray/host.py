"""A host of many agents: the class of a Ray actor. It knows nothing of Ray but where it is."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import TypeVar

import msgspec
import numpy as np

from collabtop.arms import Arms
from collabtop.protocol.agent import Agent
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.format import Rewards, Sums
from collabtop.teams.ray.cluster import add_folders
from collabtop.teams.remote.envelope import open_shared, seal_reply
from collabtop.teams.remote.history import digest_of
from collabtop.teams.remote.host_messages import (
    AgentsRestored,
    Answers,
    Fault,
    Heartbeat,
    RestoreAgents,
    fault_of,
    from_bytes,
    to_bytes,
)
from collabtop.teams.remote.reports import ReportBuffer, ReportOptions

_Result = TypeVar("_Result")


class HostOptions(msgspec.Struct, frozen=True):
    """How a host works."""

    max_concurrent_pulls: int
    """How many of its agents pull at the same time, where pulls are slow."""
    reports: ReportOptions
    """What it reports besides replies."""


class AgentHost:
    """Agents that live in one process. Bytes in, bytes out, each call from a thread of its own.

    A host is born without agents: they come by `adopt`. So a process that was restarted behind our back has none,
    and says so instead of answering.
    """

    def __init__(self, folders: list[str], setup: bytes, options: bytes) -> None:
        add_folders(folders)  # before arms arrive, which may need a module from there
        self._setup = msgspec.msgpack.decode(setup, type=Setup)
        self._options = msgspec.msgpack.decode(options, type=HostOptions)
        self._members: dict[int, tuple[int, Agent]] = {}
        self._reporter = ReportBuffer(self._options.reports)
        self._failing = threading.Event()
        self._threads: ThreadPoolExecutor | None = None

    def where(self) -> tuple[str, int, str]:
        """Which node this is, which process, and which version of this package."""
        import collabtop

        ray = import_module("ray")
        node = ray.get_runtime_context().get_node_id()
        return f"{ray.util.get_node_ip_address()} ({node[:8]})", os.getpid(), collabtop.__version__

    def equip(self, arms: Arms) -> None:
        """Take the arms."""
        self._arms = arms
        if not arms.repeatable and self._options.max_concurrent_pulls > 1:  # simulated pulls are quicker than a thread
            self._threads = ThreadPoolExecutor(self._options.max_concurrent_pulls, thread_name_prefix="collabtop agent")
        # A function of the user's main script was pickled by value, and has to be pickled like that again.
        arms.use_pickler(import_module("ray.cloudpickle").dumps)
        arms.open()

    def adopt(self, data: bytes) -> bytes:
        """Take on agents; those that lived before get the requests of that life again."""
        adoption = from_bytes(data, RestoreAgents)
        known: dict[int, list[Rewards | Sums]] = {agent: [] for agent, _ in adoption.agents}
        for record in adoption.records:
            known[record.agent].append(record)
        asked: dict[int, list[Request]] = {agent: [] for agent in known}
        for _, request in open_shared(adoption.requests):
            asked[request.agent].append(request)
        epochs = dict(adoption.agents)

        def take_on(agent: int) -> list[bytes] | Fault:
            try:
                recorder = self._reporter.recorder(self._arms.failure_mode, known[agent])
                member = Agent(agent, self._arms, self._setup, recorder)
                said = [digest_of(seal_reply(member.answer(request), epochs[agent])) for request in asked[agent]]
            except BaseException as error:
                return fault_of(agent, error)
            self._members[agent] = epochs[agent], member
            return said

        outcomes = [take_on(agent) for agent in epochs]
        said = {agent: it for agent, it in zip(epochs, outcomes, strict=True) if not isinstance(it, Fault)}
        faults = [it for it in outcomes if isinstance(it, Fault)]
        number, items = self._reporter.drain()
        return to_bytes(AgentsRestored(number, said, faults, items))

    def answer(self, data: bytes) -> bytes:
        """Let agents answer, up to the agreed number at once; when one fails the others stop after their pull."""
        present, forgotten = [], []
        for epoch, request in open_shared(data):
            if self._members.get(request.agent, (None,))[0] == epoch:
                present.append(request)
            else:
                forgotten.append(request.agent)
        outcomes = self._each(self._outcome, present)
        replies = [seal_reply(it, self._members[it.agent][0]) for it in outcomes if isinstance(it, Reply)]
        faults = [it for it in outcomes if isinstance(it, Fault)]
        number, items = self._reporter.drain()
        return to_bytes(Answers(number, replies, faults, forgotten, items))

    def beat(self) -> bytes:
        """Say that this process lives, and what was drawn since the last time."""
        number, items = self._reporter.drain()
        return to_bytes(Heartbeat(number, self._failing.is_set(), items))

    def halt(self) -> None:
        """Let every agent stop after the pull under way."""
        for _, member in list(self._members.values()):
            member.halt()

    def totals(self) -> tuple[bytes, bytes]:
        """Pulls and sums of each arm, over all agents here."""
        pulls, sums = np.zeros(self._setup.problem.n, np.int64), np.zeros(self._setup.problem.n)
        for agent in sorted(self._members):
            for arms, times, got in self._members[agent][1].batches:
                pulls[arms] += times
                sums[arms] += got
        return pulls.astype("<i8").tobytes(), sums.astype("<f8").tobytes()

    def close(self) -> None:
        """Let go of what pulling took."""
        self.halt()
        self._arms.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _outcome(self, request: Request) -> Reply | Fault:
        try:
            return self._members[request.agent][1].answer(request)
        except BaseException as error:  # whatever it is, the coordinator has to know
            fault = fault_of(request.agent, error)
            if not fault.is_halt:
                self._failing.set()
                self.halt()
            return fault

    def _each(self, function: Callable[[Request], _Result], requests: list[Request]) -> list[_Result]:
        if self._threads is None or len(requests) < 2:
            return [function(request) for request in requests]
        return list(self._threads.map(function, requests))
