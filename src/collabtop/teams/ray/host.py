"""A host of several agents: the class of a Ray actor. It uses Ray only for its location and its pickler."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import chain
from typing import TypeVar

import msgspec
import numpy as np

from collabtop._version import __version__
from collabtop.arms import Arms
from collabtop.protocol.agent import Agent
from collabtop.protocol.batches import ArmTotals
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.format import Rewards, Sums
from collabtop.teams.ray.cluster import add_folders
from collabtop.teams.remote import host_messages
from collabtop.teams.remote.envelope import digest_of, open_shared, seal_replies
from collabtop.teams.remote.host_messages import from_bytes, to_bytes
from collabtop.teams.remote.reports import ReportBuffer, ReportOptions

_Result = TypeVar("_Result")


class HostOptions(msgspec.Struct, frozen=True):
    """Options of a host."""

    max_concurrent_pulls: int
    """How many of its agents may pull at the same time, unless pulls are simulated."""
    reports: ReportOptions
    """What it reports besides replies."""
    extension_module: str = ""
    """The module that registers the agent extension of the algorithm, if it has one."""


class AgentHost:
    """Agents in one process. Its methods take and return bytes, and each call comes from a separate thread.

    A host starts without agents; `restore` creates them. A process that Ray has restarted therefore has none, and
    reports that instead of answering.
    """

    def __init__(self, folders: list[str], setup: bytes, options: bytes) -> None:
        add_folders(folders)  # before the arms arrive, which may need a module from there
        self._setup = msgspec.msgpack.decode(setup, type=Setup)
        self._options = msgspec.msgpack.decode(options, type=HostOptions)
        if self._options.extension_module:
            import_module(self._options.extension_module)
        self._members: dict[int, tuple[int, Agent]] = {}
        self._reports = ReportBuffer(self._options.reports)
        self._failing = threading.Event()
        self._threads: ThreadPoolExecutor | None = None

    def location(self) -> tuple[str, int, str]:
        """The node, the process id, and the version of collabtop there."""
        ray = import_module("ray")
        node = ray.get_runtime_context().get_node_id()
        return f"{ray.util.get_node_ip_address()} ({node[:8]})", os.getpid(), __version__

    def set_arms(self, arms: Arms) -> None:
        """Set the arms, and prepare them for pulls."""
        self._arms = arms
        if not arms.repeatable and self._options.max_concurrent_pulls > 1:  # simulated pulls are faster without threads
            self._threads = ThreadPoolExecutor(self._options.max_concurrent_pulls, thread_name_prefix="collabtop agent")
        # A function of the user's main script was pickled by value, so it has to be pickled by value again.
        arms.use_pickler(import_module("ray.cloudpickle").dumps)
        arms.open()

    def restore(self, data: bytes) -> bytes:
        """Create agents; those that were lost answer their earlier requests again."""
        message = from_bytes(data, host_messages.RestoreAgents)
        records: dict[int, list[Rewards | Sums]] = {agent: [] for agent, _ in message.agents}
        for record in message.records:
            records[record.agent].append(record)
        requests: dict[int, list[Request]] = {agent: [] for agent in records}
        for _, request in open_shared(message.requests):
            requests[request.agent].append(request)
        digests: dict[int, list[bytes]] = {}
        faults: list[host_messages.Fault] = []
        for agent, epoch in message.agents:
            try:
                digests[agent] = self._restore_agent(agent, epoch, requests[agent], records[agent])
            except BaseException as error:  # the coordinator has to know of any error
                faults.append(host_messages.fault_of(agent, error))
        number, items = self._reports.drain()
        return to_bytes(host_messages.AgentsRestored(number, digests, faults, items))

    def _restore_agent(
        self, number: int, epoch: int, requests: list[Request], records: list[Rewards | Sums]
    ) -> list[bytes]:
        recorder = self._reports.recorder(self._arms.failure_mode, records)
        agent = Agent(number, self._arms, self._setup, recorder)
        digests = [digest_of(agent.answer(request)) for request in requests]
        self._members[number] = epoch, agent
        return digests

    def answer(self, data: bytes) -> bytes:
        """Let agents answer, several in parallel; if one fails, the others stop after their current pull."""
        present, forgotten = [], []
        for epoch, request in open_shared(data):
            if self._members.get(request.agent, (None,))[0] == epoch:
                present.append(request)
            else:
                forgotten.append(request.agent)
        results = self._map(self._reply, present)
        replies = seal_replies(
            [(self._members[reply.agent][0], reply) for reply in results if isinstance(reply, Reply)]
        )
        faults = [fault for fault in results if isinstance(fault, host_messages.Fault)]
        number, items = self._reports.drain()
        return to_bytes(host_messages.Answers(number, replies, faults, forgotten, items))

    def heartbeat(self) -> bytes:
        """Report that this process is alive, and what was drawn since the last report."""
        number, items = self._reports.drain()
        return to_bytes(host_messages.Heartbeat(number, self._failing.is_set(), items))

    def halt(self) -> None:
        """Let every agent stop after its current pull."""
        for _, member in list(self._members.values()):
            member.halt()

    def totals(self) -> tuple[bytes, bytes]:
        """Pulls of each arm over all agents of this host; and the sums, then the sums of squares."""
        batches = chain.from_iterable(self._members[agent][1].batches for agent in sorted(self._members))
        totals = ArmTotals(self._setup.problem.n, batches)
        squares = np.full_like(totals.sums, np.nan) if totals.squares is None else totals.squares
        return totals.pulls.astype("<i8").tobytes(), np.stack((totals.sums, squares)).astype("<f8").tobytes()

    def close(self) -> None:
        """Stop the agents, and release threads and the resources of the arms."""
        self.halt()
        self._arms.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _reply(self, request: Request) -> Reply | host_messages.Fault:
        try:
            return self._members[request.agent][1].answer(request)
        except BaseException as error:  # the coordinator has to know of any error
            fault = host_messages.fault_of(request.agent, error)
            if not fault.is_halt:
                self._failing.set()
                self.halt()
            return fault

    def _map(self, function: Callable[[Request], _Result], requests: list[Request]) -> list[_Result]:
        if self._threads is None or len(requests) < 2:
            return [function(request) for request in requests]
        return list(self._threads.map(function, requests))
