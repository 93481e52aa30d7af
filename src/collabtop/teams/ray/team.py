"""The Ray team: agents in several host processes on a cluster; agents of a lost host are rebuilt."""

import math
import pickle
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np

from collabtop._version import __version__
from collabtop.arms import Arms
from collabtop.coordination.team import Team
from collabtop.errors import InputError
from collabtop.protocol.batches import Batch
from collabtop.protocol.extension import module_of
from collabtop.protocol.ledger import TransportStats
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.recorder import RewardRecorder
from collabtop.teams.ray.cluster import (
    Cluster,
    actor_options,
    advice,
    joined_cluster,
    module_folders,
    reason,
    require_ray,
    reserved,
)
from collabtop.teams.ray.host import AgentHost, HostOptions
from collabtop.teams.ray.hosts import Host, HostPool, HostTimeouts
from collabtop.teams.remote.envelope import seal_requests
from collabtop.teams.remote.history import AgentHistory
from collabtop.teams.remote.reports import ReportSink
from collabtop.validation import positive_number, whole_number


class RayTeam(Team):
    """Agents on a Ray cluster (`team="ray"`), for runs that need more than one machine.

    Results are the same as on the local team with the same seed, for any number of hosts, and even if hosts are
    lost during the run. Needs Ray: `pip install 'collabtop[ray]'`.

    Args:
        hosts: the number of processes that share the agents; the default is one per node, and at least two.
        agents_per_host: the number of agents per process, instead of `hosts`.
        resources: what Ray reserves for each host, such as `{"CPU": 2, "GPU": 1}`; the default is one CPU.
        max_concurrent_pulls: how many agents of a host may pull at the same time, unless pulls are simulated.
        address: the cluster to join, such as `"10.0.0.1:6379"`, or `"auto"` for the one on this machine. The default
            is the cluster this process is connected to, or the one in RAY_ADDRESS; if there is none, a private Ray
            is started for the run.
        runtime_env: Ray's runtime environment for the hosts: `{"working_dir": "."}` sends your modules.
        heartbeat: seconds between two heartbeats of a busy host; they contain the rewards drawn since the last one.
        silence: seconds without a heartbeat after which a host counts as lost. A pull may take longer, but must not
            block its whole process for that long.
        start_timeout: seconds that hosts may take to get their resources and to start.
        recoveries: how often an agent may be lost and rebuilt in one exchange.

    >>> import collabtop as ct
    >>> team = ct.RayTeam(hosts=2, resources={"CPU": 1}, silence=60)
    >>> team.whereabouts()                             # no hosts yet: identify(..., team=team) starts them
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
        heartbeat: float = 0.25,
        silence: float = 30.0,
        start_timeout: float = 60.0,
        recoveries: int = 3,
    ) -> None:
        require_ray()  # before anything is pulled or a checkpoint is created
        if hosts is not None and agents_per_host is not None:
            raise InputError("give hosts or agents_per_host, not both: one follows from the other", argument="hosts")
        self._hosts = None if hosts is None else whole_number("hosts", hosts, 1)
        self._agents_per_host = None if agents_per_host is None else whole_number("agents_per_host", agents_per_host, 1)
        self._resources = _checked_resources(resources)
        self._max_concurrent_pulls = whole_number("max_concurrent_pulls", max_concurrent_pulls, 1)
        self._address, self._runtime_env = address, runtime_env
        self._timeouts = HostTimeouts(
            positive_number("heartbeat", heartbeat, of="seconds"),
            positive_number("silence", silence, of="seconds"),
            positive_number("start_timeout", start_timeout, of="seconds"),
            whole_number("recoveries", recoveries, 0),
        )
        self._exit_stack = ExitStack()
        self._pool: HostPool | None = None
        self._stats = TransportStats()

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Join or start Ray, reserve resources, start the hosts, and create the agents."""
        agents = setup.problem.agents
        self._n, self._history, self._stats = setup.problem.n, AgentHistory(agents), TransportStats()
        reports = ReportSink(recorder, agents, repeatable=arms.repeatable)
        options = HostOptions(self._max_concurrent_pulls, reports.options, module_of(setup.extension))
        cpus = self._resources.get("CPU", 0) * self._host_count(agents, nodes=1)
        cluster = self._exit_stack.enter_context(joined_cluster(self._address, cpus))
        count = self._host_count(agents, nodes=sum(node["Alive"] for node in cluster.ray.nodes()))
        group = self._exit_stack.enter_context(reserved(cluster, count, self._resources, self._timeouts.start))
        # The hosts share the workers and the rate.
        arms = arms.with_calls(**msgspec.structs.asdict(arms.call_options.shared_by(count)))
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
            cluster_loss=cluster.loss,
            is_ours=cluster.is_ours,
            note_status=recorder.note_status,
        )
        self._pool.start_agents(range(agents))

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Send the requests to all hosts in parallel; the agents of a lost host answer from a different one."""
        assert self._pool is not None
        for sealed in seal_requests(list(requests), self._history.epochs):
            self._history.add_request(sealed)
        replies = self._pool.exchange(request.agent for request in requests)
        return [replies[request.agent] for request in requests]

    def halt(self) -> None:
        """Let the agents stop after their current pulls."""
        pool = self._pool
        if pool is not None:
            pool.halt()

    def close(self) -> None:
        """Kill the hosts, release their resources, and leave Ray; a private Ray is shut down."""
        pool, self._pool = self._pool, None
        with self._exit_stack:  # also if a second Ctrl-C arrives
            if pool is not None:
                pool.close()

    def transport_stats(self) -> TransportStats:
        """Bytes, repeats and reconnects so far."""
        return self._stats

    def observed(self) -> Sequence[Batch] | None:
        """The pulls of the agents, added up per host; None if a host was lost after the last answer."""
        totals = None if self._pool is None else self._pool.totals()
        if totals is None:
            return None
        arms = np.arange(self._n)
        return [
            (arms, np.frombuffer(pulls, "<i8"), *np.frombuffer(sums, "<f8").reshape(2, self._n))
            for pulls, sums in totals
        ]

    def whereabouts(self) -> list[tuple[str, int, list[int]]]:
        """Node, process and agents of each host, during a run."""
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
                f"runtime_env is {actor.get('runtime_env')!r}, which Ray rejects: {error}", argument="runtime_env"
            ) from None
        self._arguments = module_folders(), msgspec.msgpack.encode(setup), msgspec.msgpack.encode(options)
        try:
            self._arms = self._ray.put(arms)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            line = str(error.__cause__ or error).strip().splitlines()[0]
            raise InputError(
                f"these arms cannot be sent to Ray's hosts ({line}): pull may only use data and importable modules; "
                "open files and connections inside it",
                argument="arms",
            ) from None

    def start(self, count: int, timeout: float) -> list[Host]:
        """Start this many hosts, and wait until they are ready."""
        actors = [self._kind.remote(*self._arguments) for _ in range(count)]
        try:
            calls = [actor.set_arms.remote(self._arms) for actor in actors]
            calls += [actor.location.remote() for actor in actors]
            locations = self._ray.get(calls, timeout=timeout)[count:]
            _check_versions(locations)
        except BaseException as error:
            for actor in actors:
                self._ray.kill(actor, no_restart=True)
            if not isinstance(error, self._ray.exceptions.RayError):
                raise
            if isinstance(error, self._ray.exceptions.GetTimeoutError):
                raise InputError(
                    f"Ray's hosts did not start within start_timeout={timeout:g} seconds", argument="start_timeout"
                ) from None
            raise InputError(f"a host could not be started on Ray: {reason(error)}; {advice(error)}") from None
        return [Host(actor, node, process) for actor, (node, process, _) in zip(actors, locations, strict=True)]


def _check_versions(locations: Sequence[tuple[str, int, str]]) -> None:
    for node, _, version in locations:
        if version != __version__:
            raise InputError(
                f"node {node} has collabtop {version}, but this process has {__version__}: install the same "
                "version on all nodes"
            )


def _checked_resources(resources: Mapping[str, float] | None) -> dict[str, float]:
    amounts: dict[str, float] = {"CPU": 1} if resources is None else dict(resources)
    for name, amount in amounts.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 < amount < math.inf:
            raise InputError(
                f"resources has {amount!r} of {name!r}, but a positive number is needed", argument="resources"
            )
    if not amounts:
        raise InputError('resources is empty, but a host needs at least one, such as {"CPU": 1}', argument="resources")
    return amounts
