"""The hosts of a run, seen from the coordinator: asks them, listens for signs of life, replaces those that are lost."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec

from collabtop.errors import AgentLostError, ProtocolError
from collabtop.protocol import wire
from collabtop.protocol.ledger import TransportStats
from collabtop.runlog.format import AgentState
from collabtop.teams.remote.envelope import SealedReply, pack_shared
from collabtop.teams.remote.history import AgentHistory
from collabtop.teams.remote.host_messages import (
    AgentsRestored,
    Answers,
    Fault,
    Heartbeat,
    RestoreAgents,
    from_bytes,
    to_bytes,
)
from collabtop.teams.remote.reports import ReportSink

HostMessage = AgentsRestored | Answers | Heartbeat

_GRACE = 1.0
"""Seconds that pulls under way get to finish when somebody wants to stop."""


class HostTimeouts(msgspec.Struct, frozen=True):
    """How long, and how often, the coordinator puts up with what."""

    beat: float
    """Seconds between two signs of life that a busy host is asked for."""
    silence: float
    """Seconds without a sign of life after which a host is taken for lost."""
    start: float
    """Seconds that a host may take to start."""
    recoveries: int
    """How often an agent may be lost and rebuilt in one exchange."""


class Host:
    """One host: its actor, its agents, and what it was asked and has not answered."""

    def __init__(self, actor: Any, node: str, process: int) -> None:
        self.actor, self.node, self.process = actor, node, process
        self.agents: set[int] = set()
        self.calls: dict[Any, tuple[str, list[int]]] = {}
        """What is under way: "adopt" or "answer", and for which agents."""
        self.beat: Any = None
        """A sign of life that was asked for ..."""
        self.since = 0.0
        """... and since when; without one, when it was last asked something or heard of."""
        self.arrived: dict[int, tuple[HostMessage, list[int]]] = {}
        """What it sent, by number, as far as something sent before it is still to come."""
        self.taken = 0
        """The number of the last that was taken in."""

    def call(self, what: str, data: bytes, agents: list[int]) -> None:
        """Ask for something; the answer comes later."""
        if not self.is_busy:
            self.since = monotonic()
        self.calls[getattr(self.actor, what).remote(data)] = what, agents

    @property
    def is_busy(self) -> bool:
        """Whether something is still to come."""
        return bool(self.calls) or self.beat is not None

    def awaited(self) -> list[Any]:
        """What to wait for."""
        return list(self.calls) if self.beat is None else [*self.calls, self.beat]

    def in_order(self) -> Iterator[tuple[HostMessage, list[int]]]:
        """What has arrived and has its turn."""
        while (next_one := self.arrived.pop(self.taken + 1, None)) is not None:
            self.taken += 1
            yield next_one


class _Gone(Exception):  # noqa: N818  (not an error yet: its agents may be rebuilt)
    """A host is lost; says why."""


class HostPool:
    """All hosts of a run, and what is needed to make up for one that is lost."""

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
        is_ours: bool,
        note: Callable[[Iterable[int], AgentState], None],
    ) -> None:
        self._ray, self._hosts, self._start_another = ray, list(hosts), start_another
        self._history, self._reports, self._timeouts, self._transport = history, reports, timeouts, transport
        self._is_ours = is_ours
        self._note = note
        self._away: set[int] = set()  # agents whose host was lost, and that are not rebuilt yet
        self._replies: dict[int, SealedReply] = {}
        self._faults: list[Fault] = []
        self._losses: Counter[int] = Counter()
        self._stopping = False
        self._lost_while_stopping: AgentLostError | None = None

    # -- what a team does

    def settle(self, agents: Sequence[int]) -> None:
        """Bring the agents into the hosts, neighbours together."""
        self._losses.clear()
        self._adopt(agents, self._hosts)
        self._until_quiet()

    def exchange(self, agents: Iterable[int]) -> dict[int, SealedReply]:
        """Send each of these agents its latest request, and wait for all replies."""
        asked = set(agents)
        self._replies, self._losses = {}, Counter()
        for host in self._hosts:
            if mine := sorted(host.agents & asked):
                self._ask(host, mine)
        self._until_quiet()
        return self._replies

    def totals(self) -> list[tuple[bytes, bytes]] | None:
        """Pulls and sums of each arm, host by host; None if a host is gone."""
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
        """Let the hosts put things away, and end them."""
        with suppress(Exception):
            self._ray.wait([h.actor.close.remote() for h in self._hosts], num_returns=len(self._hosts), timeout=_GRACE)
        for host in self._hosts:
            self._end(host)
        self._hosts.clear()

    # -- waiting

    def _until_quiet(self) -> None:
        try:
            while any(host.is_busy for host in self._hosts):
                self._listen()
        except BaseException:
            self._stop()
            self._listen_for(_GRACE)
            raise
        # An agent that was only told to stop is not what went wrong.
        for fault in sorted(self._faults, key=lambda it: (it.is_halt, it.agent)):
            raise fault.error()
        if self._lost_while_stopping is not None:
            raise self._lost_while_stopping

    def _listen_for(self, seconds: float) -> None:
        """Take in rewards of the pulls that end within these seconds; a second Ctrl-C is not for us to keep."""
        until = monotonic() + seconds
        with suppress(Exception):
            while any(host.is_busy for host in self._hosts) and monotonic() < until:
                self._listen()

    def _listen(self) -> None:
        waiting = [ref for host in self._hosts for ref in host.awaited()]
        ready, _ = self._ray.wait(waiting, num_returns=1, timeout=self._timeouts.beat)
        if ready and len(waiting) > 1:
            ready, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=0)
        for host in list(self._hosts):
            try:
                self._hear(host, ready)
            except _Gone as gone:
                self._replace(host, str(gone))

    def _hear(self, host: Host, ready: list[Any]) -> None:
        for ref in [ref for ref in host.awaited() if ref in ready]:
            if ref == host.beat:
                letter: HostMessage = from_bytes(self._fetch(ref), Heartbeat)
                agents: list[int] = []
                host.beat, host.since = None, monotonic()
            else:
                what, agents = host.calls.pop(ref)
                data = self._fetch(ref)
                letter = from_bytes(data, Answers) if what == "answer" else from_bytes(data, AgentsRestored)
            host.arrived[letter.number] = letter, agents
            if letter.number <= host.taken:  # it counts from the beginning again
                raise _Gone("its host has lost its state")
        for letter, agents in host.in_order():
            self._take(host, letter, agents)
        if host.arrived and not host.is_busy:
            raise _Gone("what its host sent did not all arrive")
        silent = monotonic() - host.since
        if host.beat is None:
            if host.calls and silent >= self._timeouts.beat:
                host.beat, host.since = host.actor.beat.remote(), monotonic()
        elif silent > self._timeouts.silence and not self._is_there_after_all(host):
            raise _Gone(f"its host gave no sign of life for {self._timeouts.silence:g} s")

    def _is_there_after_all(self, host: Host) -> bool:
        """Whether it was this process that slept, and the sign of life is about to come in."""
        return bool(self._ray.wait([host.beat], timeout=self._timeouts.beat)[0])

    def _fetch(self, ref: Any) -> bytes:
        errors = self._ray.exceptions
        try:
            data: bytes = self._ray.get(ref, timeout=self._timeouts.silence)
        except errors.RayTaskError as error:
            raise ProtocolError(f"a host failed: {error}") from None
        except errors.RayError as error:
            raise _Gone(f"its host is gone ({type(error).__name__})") from None
        self._transport.bytes += len(data)
        return data

    # -- what hosts say

    def _take(self, host: Host, letter: HostMessage, agents: list[int]) -> None:
        self._reports.take(letter.items)
        if isinstance(letter, Heartbeat):
            if letter.is_failing:
                self._stop()
            return
        self._faults += letter.faults
        if isinstance(letter, Answers):
            if letter.forgotten:
                raise _Gone("its host has lost its state")
            for reply in letter.replies:
                self._history.answered(reply)
                self._replies[reply.agent] = reply
        if self._faults:
            self._stop()
        elif isinstance(letter, AgentsRestored) and not self._stopping:
            for agent in agents:
                self._history.check(agent, letter.said[agent])
            self._note(self._away & set(agents), "here")
            self._away -= set(agents)
            if again := [agent for agent in agents if self._history.is_waiting(agent)]:
                self._transport.repeats += len(again)
                self._ask(host, again)

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

    # -- hosts that are lost

    def _replace(self, host: Host, why: str) -> None:
        self._hosts.remove(host)
        self._end(host)
        lost = sorted(host.agents)
        self._away |= host.agents
        self._note(lost, "away")
        if self._stopping:
            self._lost_while_stopping = self._lost(lost[0], host, why, "an error is about to end the run")
            return
        for agent in lost:
            self._losses[agent] += 1
            if self._losses[agent] > self._timeouts.recoveries:
                raise self._lost(agent, host, why, "lost too often in one exchange")
            self._history.lose(agent)
            self._reports.begin_life(agent)
        if not self._hosts:
            try:
                self._hosts.append(self._start_another())
            except Exception as error:
                raise self._lost(lost[0], host, why, f"no other host could be started: {error}") from None
        self._adopt(lost, self._hosts)

    def _adopt(self, agents: Sequence[int], hosts: Sequence[Host]) -> None:
        for place, host in enumerate(hosts):
            share = list(agents[len(agents) * place // len(hosts) : len(agents) * (place + 1) // len(hosts)])
            if not share:
                continue
            host.agents.update(share)
            requests = pack_shared([request for agent in share for request in self._history.answered_requests(agent)])
            records = [record for agent in share for record in self._reports.records[agent]]
            adoption = RestoreAgents([(agent, self._history.epochs[agent]) for agent in share], requests, records)
            data = to_bytes(adoption)
            self._transport.bytes += len(data)
            host.call("adopt", data, share)

    def _lost(self, agent: int, host: Host, why: str, last: str) -> AgentLostError:
        doing = "idle"
        if self._history.is_waiting(agent):
            request = self._history.latest(agent)
            doing = f"answering request {request.number} ({type(wire.decode(request.messages[-1])).__name__})"
        others = f" and {len(host.agents) - 1} others" if len(host.agents) > 1 else ""
        return AgentLostError(
            f"agent {agent}{others} on node {host.node}, process {host.process}, was lost while {doing}: {why}; {last} "
            f"(recoveries={self._timeouts.recoveries}). With a checkpoint, resume goes on from there",
            agent,
            host.node,
        )

    def _end(self, host: Host) -> None:
        with suppress(Exception):
            self._ray.kill(host.actor, no_restart=True)
        if self._is_ours:  # a frozen process does not hear Ray; on this machine it can be ended all the same
            _end_process(host.process)


def _end_process(process: int) -> None:
    with suppress(OSError):
        if Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::"):
            os.kill(process, signal.SIGKILL)
