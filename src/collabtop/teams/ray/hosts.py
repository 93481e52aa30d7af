"""The hosts of a run, at the coordinator: sends requests, waits for heartbeats, and replaces lost hosts."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import msgspec

from collabtop.errors import AgentLostError, ProtocolError
from collabtop.protocol import wire
from collabtop.protocol.ledger import TransportStats
from collabtop.protocol.messages import Reply
from collabtop.runlog.format import AgentState
from collabtop.teams.remote import host_messages
from collabtop.teams.remote.envelope import pack_shared
from collabtop.teams.remote.history import AgentHistory
from collabtop.teams.remote.host_messages import from_bytes, to_bytes
from collabtop.teams.remote.reports import ReportSink

HostMessage = host_messages.AgentsRestored | host_messages.Answers | host_messages.Heartbeat

_GRACE = 1.0
"""Seconds that current pulls get to finish when the run is stopped."""

_SECONDS_BETWEEN_CHECKS = 1.0
"""Seconds between two checks whether Ray itself is alive."""


class HostTimeouts(msgspec.Struct, frozen=True):
    """Timeouts and limits for hosts."""

    heartbeat: float
    """Seconds between two heartbeats of a busy host."""
    silence: float
    """Seconds without a heartbeat after which a host counts as lost."""
    start: float
    """Seconds that a host may take to start."""
    recoveries: int
    """How often an agent may be lost and rebuilt in one exchange."""


class Host:
    """One host: its actor, its agents, and its pending calls."""

    def __init__(self, actor: Any, node: str, process: int) -> None:
        self.actor, self.node, self.process = actor, node, process
        self.agents: set[int] = set()
        self.calls: dict[Any, tuple[str, list[int]]] = {}
        """Pending calls: the method ("restore" or "answer"), and for which agents."""
        self.heartbeat: Any = None
        """The pending heartbeat, if one was requested."""
        self.since = 0.0
        """When it was requested; if none is pending, when the host was last called or heard from."""
        self.arrived: dict[int, tuple[HostMessage, list[int]]] = {}
        """Messages by number that arrived before an earlier one."""
        self.processed = 0
        """The number of the last message that was processed."""

    def call(self, method: str, data: bytes, agents: list[int]) -> None:
        """Call a method of the actor; the result arrives later."""
        if not self.is_busy:
            self.since = monotonic()
        self.calls[getattr(self.actor, method).remote(data)] = method, agents

    @property
    def is_busy(self) -> bool:
        """Whether a result is pending."""
        return bool(self.calls) or self.heartbeat is not None

    def pending(self) -> list[Any]:
        """References to all pending results."""
        return list(self.calls) if self.heartbeat is None else [*self.calls, self.heartbeat]

    def in_order(self) -> Iterator[tuple[HostMessage, list[int]]]:
        """The messages that have arrived, up to the first missing number."""
        while (message := self.arrived.pop(self.processed + 1, None)) is not None:
            self.processed += 1
            yield message


class _HostLost(Exception):  # noqa: N818  (not an error yet: its agents may be rebuilt)
    """A host is lost, for the stated reason."""


class HostPool:
    """All hosts of a run; agents of a lost host are rebuilt on the others."""

    def __init__(
        self,
        ray: Any,
        hosts: Sequence[Host],
        start_another: Callable[[], Host],
        history: AgentHistory,
        reports: ReportSink,
        timeouts: HostTimeouts,
        transport: TransportStats,
        *,
        cluster_loss: Callable[[], str | None],
        is_ours: bool,
        note_status: Callable[[Iterable[int], AgentState], None],
    ) -> None:
        self._ray, self._hosts, self._start_another = ray, list(hosts), start_another
        self._history, self._reports, self._timeouts, self._transport = history, reports, timeouts, transport
        self._is_ours, self._cluster_loss = is_ours, cluster_loss
        self._cluster_checked = monotonic()
        self._note_status = note_status
        self._away: set[int] = set()  # agents of lost hosts that are not rebuilt yet
        self._replies: dict[int, Reply] = {}
        self._faults: list[host_messages.Fault] = []
        self._losses: Counter[int] = Counter()
        self._stopping = False
        self._halted = False
        self._lost_while_stopping: AgentLostError | None = None

    # -- the interface for the team

    def start_agents(self, agents: Sequence[int]) -> None:
        """Create the agents, consecutive ones on the same host."""
        self._losses.clear()
        self._restore(agents, self._hosts)
        self._wait_until_idle()

    def exchange(self, agents: Iterable[int]) -> dict[int, Reply]:
        """Send each of these agents its latest request, and wait for all replies."""
        requested = set(agents)
        self._replies, self._losses = {}, Counter()
        for host in self._hosts:
            if on_host := sorted(host.agents & requested):
                self._ask(host, on_host)
        self._wait_until_idle()
        return self._replies

    def halt(self) -> None:
        """Let all agents stop after their current pulls; the exchange then raises `AgentHalted`."""
        self._halted = True  # the hosts are called by the thread that waits for them

    def totals(self) -> list[tuple[bytes, bytes]] | None:
        """Pulls, sums and sums of squares of each arm, host by host; None if a host is lost."""
        calls = [host.actor.totals.remote() for host in self._hosts]
        try:
            totals: list[tuple[bytes, bytes]] = self._ray.get(calls, timeout=self._timeouts.silence)
        except self._ray.exceptions.RayError:
            return None
        return totals

    def whereabouts(self) -> list[tuple[str, int, list[int]]]:
        """Node, process and agents of each host."""
        return [(host.node, host.process, sorted(host.agents)) for host in self._hosts]

    def close(self) -> None:
        """Let the hosts release their resources, then kill them."""
        with suppress(Exception):
            closing = [host.actor.close.remote() for host in self._hosts]
            self._ray.wait(closing, num_returns=len(closing), timeout=_GRACE)
            for host in self._hosts:
                self._ray.kill(host.actor, no_restart=True)
        # Ray prints a message about a process that ends without its doing, so it gets the time to end them itself.
        deadline = monotonic() + _GRACE
        while self._is_ours and any(_is_host(host.process) for host in self._hosts) and monotonic() < deadline:
            sleep(0.01)
        for host in self._hosts:
            self._kill(host)
        self._hosts.clear()

    # -- waiting

    def _wait_until_idle(self) -> None:
        try:
            while any(host.is_busy for host in self._hosts):
                self._poll()
        except BaseException:
            self._stop()
            self._poll_for(_GRACE)
            raise
        # An agent that was only asked to stop is not the cause.
        for fault in sorted(self._faults, key=lambda fault: (fault.is_halt, fault.agent)):
            raise fault.error()
        if self._lost_while_stopping is not None:
            raise self._lost_while_stopping

    def _poll_for(self, seconds: float) -> None:
        """Receive the rewards of pulls that end within this time; a second Ctrl-C is not suppressed."""
        until = monotonic() + seconds
        with suppress(Exception):
            while any(host.is_busy for host in self._hosts) and monotonic() < until:
                self._poll()

    def _poll(self) -> None:
        if self._halted:
            self._stop()
        pending = [ref for host in self._hosts for ref in host.pending()]
        ready, _ = self._ray.wait(pending, num_returns=1, timeout=self._timeouts.heartbeat)
        self._check_cluster()
        if ready and len(pending) > 1:
            ready, _ = self._ray.wait(pending, num_returns=len(pending), timeout=0)
        for host in list(self._hosts):
            try:
                self._receive(host, ready)
                self._check_heartbeat(host)
            except _HostLost as reason:
                self._replace(host, str(reason))

    def _check_cluster(self) -> None:
        if monotonic() - self._cluster_checked < _SECONDS_BETWEEN_CHECKS:
            return
        loss = self._cluster_loss()
        self._cluster_checked = monotonic()
        if loss is not None:
            host = self._hosts[0]
            raise AgentLostError(
                f"all agents are lost: {loss}. With a checkpoint, resume() continues the run",
                min(host.agents, default=0),
                host.node,
            )

    def _receive(self, host: Host, ready: list[Any]) -> None:
        for ref in [ref for ref in host.pending() if ref in ready]:
            if ref == host.heartbeat:
                message: HostMessage = from_bytes(self._fetch(ref), host_messages.Heartbeat)
                agents: list[int] = []
                host.heartbeat, host.since = None, monotonic()
            else:
                method, agents = host.calls.pop(ref)
                data = self._fetch(ref)
                message = (
                    from_bytes(data, host_messages.Answers)
                    if method == "answer"
                    else from_bytes(data, host_messages.AgentsRestored)
                )
            host.arrived[message.number] = message, agents
            if message.number <= host.processed:  # the numbering has started again
                raise _HostLost("its host has lost its state")
        for message, agents in host.in_order():
            self._process(host, message, agents)
        if host.arrived and not host.is_busy:
            raise _HostLost("a message of its host did not arrive")

    def _check_heartbeat(self, host: Host) -> None:
        silent = monotonic() - host.since
        if host.heartbeat is None:
            if host.calls and silent >= self._timeouts.heartbeat:
                host.heartbeat, host.since = host.actor.heartbeat.remote(), monotonic()
        elif silent > self._timeouts.silence:
            # It may be this process that was suspended, and the heartbeat is about to arrive.
            arrived, _ = self._ray.wait([host.heartbeat], timeout=self._timeouts.heartbeat)
            if not arrived:
                raise _HostLost(f"its host sent no heartbeat for {self._timeouts.silence:g} s")

    def _fetch(self, ref: Any) -> bytes:
        errors = self._ray.exceptions
        try:
            data: bytes = self._ray.get(ref, timeout=self._timeouts.silence)
        except errors.RayTaskError as error:
            raise ProtocolError(f"a host failed: {error}") from None
        except errors.RayError as error:
            raise _HostLost(f"its host is gone ({type(error).__name__})") from None
        self._transport.bytes += len(data)
        return data

    # -- messages of hosts

    def _process(self, host: Host, message: HostMessage, agents: list[int]) -> None:
        self._reports.take(message.items)
        if isinstance(message, host_messages.Heartbeat):
            if message.is_failing:
                self._stop()
            return
        self._faults += message.faults
        if isinstance(message, host_messages.Answers):
            if message.forgotten:
                raise _HostLost("its host has lost its state")
            for epoch, digest, reply in message.replies.open():
                self._history.add_reply(reply, epoch, digest)
                self._replies[reply.agent] = reply
        if self._faults:
            self._stop()
        elif isinstance(message, host_messages.AgentsRestored) and not self._stopping:
            for agent in agents:
                self._history.check(agent, message.digests[agent])
            self._note_status(self._away & set(agents), "here")
            self._away -= set(agents)
            if waiting := [agent for agent in agents if self._history.is_waiting(agent)]:
                self._transport.repeats += len(waiting)
                self._ask(host, waiting)

    def _ask(self, host: Host, agents: list[int]) -> None:
        data = pack_shared([self._history.latest(agent) for agent in agents])
        self._transport.bytes += len(data)
        host.call("answer", data, agents)

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            for host in self._hosts:
                with suppress(Exception):
                    host.actor.halt.remote()

    # -- lost hosts

    def _replace(self, host: Host, reason: str) -> None:
        self._hosts.remove(host)
        self._kill(host)
        lost = sorted(host.agents)
        self._away |= host.agents
        self._note_status(lost, "away")
        if self._stopping:
            self._lost_while_stopping = self._lost_error(lost[0], host, reason, "the run is stopping after an error")
            return
        for agent in lost:
            self._losses[agent] += 1
            if self._losses[agent] > self._timeouts.recoveries:
                raise self._lost_error(agent, host, reason, "lost too often in one exchange")
            self._history.begin_epoch(agent)
            self._reports.begin_epoch(agent)
        if not self._hosts:
            try:
                self._hosts.append(self._start_another())
            except Exception as error:
                failure = f"no other host could be started: {error}"
                raise self._lost_error(lost[0], host, reason, failure) from None
        self._restore(lost, self._hosts)

    def _restore(self, agents: Sequence[int], hosts: Sequence[Host]) -> None:
        """Create the agents on these hosts, or rebuild them from their history."""
        for index, host in enumerate(hosts):
            share = list(agents[len(agents) * index // len(hosts) : len(agents) * (index + 1) // len(hosts)])
            if not share:
                continue
            host.agents.update(share)
            requests = pack_shared([request for agent in share for request in self._history.answered_requests(agent)])
            records = [record for agent in share for record in self._reports.records[agent]]
            epochs = [(agent, self._history.epochs[agent]) for agent in share]
            data = to_bytes(host_messages.RestoreAgents(epochs, requests, records))
            self._transport.bytes += len(data)
            host.call("restore", data, share)

    def _lost_error(self, agent: int, host: Host, reason: str, failure: str) -> AgentLostError:
        doing = "idle"
        if self._history.is_waiting(agent):
            request = self._history.latest(agent)
            doing = f"answering request {request.number} ({type(wire.decode(request.messages[-1])).__name__})"
        others = f" and {len(host.agents) - 1} others" if len(host.agents) > 1 else ""
        return AgentLostError(
            f"agent {agent}{others} on node {host.node}, process {host.process}, was lost while {doing}: {reason}; "
            f"{failure} (recoveries={self._timeouts.recoveries}). With a checkpoint, resume() continues the run",
            agent,
            host.node,
        )

    def _kill(self, host: Host) -> None:
        with suppress(Exception):
            self._ray.kill(host.actor, no_restart=True)
        if self._is_ours:  # a frozen process does not respond to Ray, but on this machine it can be killed
            _kill_process(host.process)


def _kill_process(process: int) -> None:
    if _is_host(process):
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)


def _is_host(process: int) -> bool:
    """Whether this process runs, and is an actor of Ray."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::")
    except OSError:
        return False
