"""Agents on a Ray cluster: a few hosts, many agents each, and a lost host made up for."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np

import collabtop
from collabtop.arms import Arms
from collabtop.coordination.team import Batch, Team
from collabtop.errors import InputError
from collabtop.protocol.ledger import TransportStats
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.recorder import RewardRecorder
from collabtop.teams.ray.cluster import (
    Cluster,
    actor_options,
    joined_cluster,
    module_folders,
    placed,
    reason,
    require_ray,
    what_to_do,
)
from collabtop.teams.ray.host import AgentHost, HostOptions
from collabtop.teams.ray.hosts import Host, HostPool, HostTimeouts
from collabtop.teams.remote.envelope import seal_requests
from collabtop.teams.remote.history import AgentHistory
from collabtop.teams.remote.reports import ReportSink
from collabtop.validation import positive_number, whole_number


class RayTeam(Team):
    """Agents on a Ray cluster (`team="ray"`): for work that one machine is too small for.

    Results are those of the local team, for the same seed, for any number of hosts, and after any number of hosts
    that were lost and made up for. Needs Ray: `pip install 'collabtop[ray]'`.

    Args:
        hosts: how many processes the agents share; left out, one a node, and at least two.
        agents_per_host: instead of `hosts`: how many agents a process has.
        resources: what a host needs, such as `{"CPU": 2, "GPU": 1}`; one CPU if left out.
        max_concurrent_pulls: how many agents of a host pull at the same time, where pulls are slow.
        address: the cluster to join, such as `"10.0.0.1:6379"`, or `"auto"` for the one on this machine; left out,
            the one this process is connected to, the one that RAY_ADDRESS names, or else one of our own, which is
            started here and ended with the run.
        runtime_env: what hosts need besides collabtop, as Ray has it: `{"working_dir": "."}` sends your modules.
        beat: seconds between two signs of life of a host at work; they bring the rewards drawn meanwhile.
        silence: seconds without one after which a host is taken for lost. A pull may take as long as it likes, but
            must not keep its whole process from answering for that long.
        start_timeout: seconds that hosts may take to find room and to start.
        recoveries: how often an agent may be lost, and rebuilt, in one exchange.

    >>> import collabtop as ct
    >>> team = ct.RayTeam(hosts=2, resources={"CPU": 1}, silence=60)
    >>> team.whereabouts()                             # nowhere yet: identify(..., team=team) starts the hosts
    []
    """

    def __init__(
        self,
        hosts: int | None = None,
        *,
        agents_per_host: int | None = None,
        resources: Mapping[str, float] | None = None,
        max_concurrent_pulls: int = 32,
        address: str | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        beat: float = 0.25,
        silence: float = 30.0,
        start_timeout: float = 60.0,
        recoveries: int = 3,
    ) -> None:
        require_ray()  # before anything is pulled, or a checkpoint begun
        if hosts is not None and agents_per_host is not None:
            raise InputError("give hosts or agents_per_host, not both: one follows from the other")
        self._hosts = None if hosts is None else whole_number("hosts", hosts, 1)
        self._agents_per_host = None if agents_per_host is None else whole_number("agents_per_host", agents_per_host, 1)
        self._resources = _checked_resources(resources)
        self._max_concurrent_pulls = whole_number("max_concurrent_pulls", max_concurrent_pulls, 1)
        self._address, self._runtime_env = address, runtime_env
        self._timeouts = HostTimeouts(
            positive_number("beat", beat, of="seconds"),
            positive_number("silence", silence, of="seconds"),
            positive_number("start_timeout", start_timeout, of="seconds"),
            whole_number("recoveries", recoveries, 0),
        )
        self._held = ExitStack()
        self._pool: HostPool | None = None
        self._stats = TransportStats()

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Join or start Ray, find room for the hosts, start them, and bring the agents into them."""
        agents = setup.problem.agents
        self._n, self._history, self._stats = setup.problem.n, AgentHistory(agents), TransportStats()
        reports = ReportSink(recorder, agents, repeatable=arms.repeatable)
        options = HostOptions(self._max_concurrent_pulls, reports.options)
        cpus = self._resources.get("CPU", 0) * self._host_count(agents, nodes=1)
        cluster = self._held.enter_context(joined_cluster(self._address, cpus))
        count = self._host_count(agents, nodes=sum(node["Alive"] for node in cluster.ray.nodes()))
        group = self._held.enter_context(placed(cluster, count, self._resources, self._timeouts.start))
        starter = _Starter(cluster, actor_options(group, self._resources, self._runtime_env), arms, setup, options)

        def start_another() -> Host:
            return starter.start(1, self._timeouts.start)[0]

        self._pool = HostPool(
            cluster.ray,
            starter.start(count, self._timeouts.start),
            start_another,
            self._history,
            reports,
            self._timeouts,
            self._stats,
            is_ours=cluster.is_ours,
            note=recorder.note_status,
        )
        self._pool.settle(range(agents))

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Ask all hosts at once; what a lost one owes is answered by another."""
        assert self._pool is not None
        for sealed in seal_requests(list(requests), self._history.epochs):
            self._history.asked(sealed)
        replies = self._pool.exchange(request.agent for request in requests)
        return [replies[request.agent].open() for request in requests]

    def close(self) -> None:
        """End the hosts, give back their room, and leave Ray; one that was started here ends."""
        pool, self._pool = self._pool, None
        with self._held:  # left even if a second Ctrl-C comes
            if pool is not None:
                pool.close()

    def transport_stats(self) -> TransportStats:
        """Bytes, repeats and reconnects so far."""
        return self._stats

    def observed(self) -> Sequence[Batch] | None:
        """What the agents of each host pulled, added up; None if one was lost after the last answer."""
        totals = None if self._pool is None else self._pool.totals()
        if totals is None:
            return None
        arms = np.arange(self._n)
        return [(arms, np.frombuffer(pulls, "<i8"), np.frombuffer(sums, "<f8")) for pulls, sums in totals]

    def whereabouts(self) -> list[tuple[str, int, list[int]]]:
        """While a run goes on: node, process and agents of each host."""
        return [] if self._pool is None else self._pool.whereabouts()

    def _host_count(self, agents: int, nodes: int) -> int:
        if self._agents_per_host is not None:
            return -(-agents // self._agents_per_host)
        return min(agents, max(2, nodes) if self._hosts is None else self._hosts)


class _Starter:
    """Starts hosts."""

    def __init__(self, cluster: Cluster, actor: dict[str, Any], arms: Arms, setup: Setup, options: HostOptions) -> None:
        self._ray = cluster.ray
        try:
            self._kind = self._ray.remote(AgentHost).options(**actor)
        except (ValueError, TypeError) as error:
            raise InputError(
                f"runtime_env is {actor.get('runtime_env')!r}, which Ray does not take: {error}", argument="runtime_env"
            ) from None
        self._cargo = module_folders(), msgspec.msgpack.encode(setup), msgspec.msgpack.encode(options)
        try:
            self._arms = self._ray.put(arms)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            said = str(error.__cause__ or error).strip().splitlines()[0]
            raise InputError(
                f"these arms cannot be sent to Ray's hosts ({said}): what pull uses has to be data or importable; "
                "open files and connections inside it",
                argument="arms",
            ) from None

    def start(self, count: int, limit: float) -> list[Host]:
        """Start so many, and wait until they are there."""
        actors = [self._kind.remote(*self._cargo) for _ in range(count)]
        try:
            calls = [actor.equip.remote(self._arms) for actor in actors] + [actor.where.remote() for actor in actors]
            places = self._ray.get(calls, timeout=limit)[count:]
            _check_versions(places)
        except BaseException as error:
            for actor in actors:
                self._ray.kill(actor, no_restart=True)
            if not isinstance(error, self._ray.exceptions.RayError):
                raise
            if isinstance(error, self._ray.exceptions.GetTimeoutError):
                raise InputError(
                    f"Ray's hosts did not start within start_timeout={limit:g} seconds", argument="start_timeout"
                ) from None
            raise InputError(f"a host could not be started on Ray: {reason(error)}; {what_to_do(error)}") from None
        return [Host(actor, node, process) for actor, (node, process, _) in zip(actors, places, strict=True)]


def _check_versions(places: Sequence[tuple[str, int, str]]) -> None:
    for node, _, version in places:
        if version != collabtop.__version__:
            raise InputError(
                f"node {node} has collabtop {version}, this one {collabtop.__version__}: install the same on all"
            )


def _checked_resources(resources: Mapping[str, float] | None) -> dict[str, float]:
    wanted: dict[str, float] = {"CPU": 1} if resources is None else dict(resources)
    for name, amount in wanted.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount < math.inf:
            raise InputError(
                f"resources has {amount!r} of {name!r}, but a positive number is needed", argument="resources"
            )
    if not wanted:
        raise InputError('resources is empty, but a host needs something, such as {"CPU": 1}', argument="resources")
    return wanted
