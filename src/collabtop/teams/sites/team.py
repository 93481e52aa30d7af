"""A team whose agents run at remote sites."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from os import PathLike
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import msgspec

from collabtop.arms import Arms
from collabtop.arms.event_loop import EventLoopThread
from collabtop.arms.stand_ins import UnpullableArms
from collabtop.arms.unit import Bounds, Direction, Unit
from collabtop.coordination.team import Team
from collabtop.errors import FileError, InputError
from collabtop.events import Event, Listening, OnEvent, SiteChanged
from collabtop.protocol.ledger import TransportStats
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.format import AgentState, AgentStatus, Exchange, RemoteRun
from collabtop.runlog.recorder import RewardRecorder
from collabtop.teams.logging_team import replies_in, requests_in
from collabtop.teams.sites.certificates import check_site_name
from collabtop.teams.sites.revocation import REVOKED, RevocationList
from collabtop.teams.sites.tls import certificate_dates, file_paths
from collabtop.teams.sites.validation import PublicState
from collabtop.validation import positive_number, require, whole_number, wrong_value

if TYPE_CHECKING:  # they need an extra
    from collabtop.teams.sites.port import Port
    from collabtop.teams.sites.server import SiteServer


class RemoteArms(UnpullableArms):
    """Arms that only remote sites can pull. The coordinator knows their number and, optionally, their labels.

    Args:
        n: the number of arms.
        labels: their names.
        agents: the number of agents, if the arms differ between sites (non-IID); None if all agents see the same arms.
        weights: with `agents`, how much each agent counts in the value of an arm, such as the number of patients behind
            it; equally, if omitted. Only the coordinator uses them.
        direction: `"maximize"`, or `"minimize"` if small rewards are better; the same as for the arms of the sites.
        bounds: the smallest and the largest possible reward, or None; the same as for the arms of the sites.

    >>> RemoteArms(588).n
    588
    """

    def __init__(
        self,
        n: int,
        *,
        labels: Sequence[str] | None = None,
        agents: int | None = None,
        weights: Sequence[float] | None = None,
        direction: Direction = "maximize",
        bounds: Bounds = (0.0, 1.0),
    ) -> None:
        super().__init__(n, labels=labels, agents=agents, weights=weights)
        self.unit = Unit(direction, bounds)
        self.uses_examples_once = True  # or the sites decline


class SitesTeam(Team):
    """Agents at remote sites, which connect over mutual TLS (`join`) and keep their data.

    Sites mix a secret into their draws; without secrets, a run is identical to that of the local team. With
    `checkpoint=`, a coordinator that was killed continues from its log, and the sites reconnect on their own.

    Args:
        sites: names of the sites, as in their certificates, in the order of the agents; (name, count) for a site
            with several agents.
        listen: address and port; port 0 selects a free one (see `port`).
        cert: the coordinator's certificate, in PEM format.
        key: its key; default: the file beside it with the extension `.key`.
        authority: the authority that must have issued the sites' certificates; default: `authority.pem` beside `cert`.
        wait: seconds within which all sites must connect for the first time; None: no limit.
        grace: seconds that a site may be disconnected later on, also after a restart, before it counts as lost.
        on_lost: what happens then: `"fail"` (the run can be resumed from its log), or `"go-on"`: the run continues
            without the site, if the algorithm supports it, and the result's warnings report the loss.
        answer_within: seconds that a connected site may take for an answer; None: no limit.
        keepalive: seconds between heartbeats; a frozen peer is noticed after about twice as long.
        on_event: called when the port is open (`events.Listening`), and when a site connects or disconnects
            (`events.SiteChanged`), the latter from the team's own thread.

    >>> import tempfile, threading
    >>> import collabtop as ct
    >>> folder = tempfile.mkdtemp()
    >>> _ = ct.make_certificates(folder, ["north", "south"])
    >>> def site(name):
    ...     ct.join(f"localhost:{team.port}", ct.BernoulliArms([0.9, 0.5, 0.4]), cert=f"{folder}/{name}.pem")
    >>> with ct.SitesTeam(["north", "south"], listen="localhost:0", cert=f"{folder}/coordinator.pem") as team:
    ...     for name in ("north", "south"):
    ...         threading.Thread(target=site, args=[name]).start()
    ...     ct.identify(ct.RemoteArms(3), m=1, agents=2, horizon=300, algorithm="uniform", seed=1, team=team).top
    [0]
    """

    agents_outlive_run: ClassVar[bool] = True

    def __init__(
        self,
        sites: Sequence[str | tuple[str, int]],
        *,
        listen: str,
        cert: str | PathLike[str],
        key: str | PathLike[str] | None = None,
        authority: str | PathLike[str] | None = None,
        wait: float | None = None,
        grace: float = 60.0,
        answer_within: float | None = None,
        on_lost: Literal["fail", "go-on"] = "fail",
        keepalive: float = 10.0,
        on_event: OnEvent | None = None,
    ) -> None:
        require("sites", "grpc", "cryptography", what="a run over sites")
        from collabtop.teams.sites.connections import SiteTimeouts

        self._sites = roster(sites)
        self._paths = file_paths(cert, key, authority)
        certificate_dates(self._paths.read().certificate, self._paths.certificate)
        self._revoked = RevocationList(self._paths.authority.with_name(REVOKED), self._paths.authority)
        check_timeouts(wait, grace, answer_within, keepalive, on_lost)
        self.tolerates_loss = on_lost == "go-on"
        self._timeouts = SiteTimeouts(wait, grace, answer_within, keepalive, self.tolerates_loss)
        self._on_event = on_event
        self._recorder = RewardRecorder()
        self._stats = TransportStats()
        self._loop: EventLoopThread | None = None
        self._port: Port | None = None
        self._server: SiteServer | None = None
        self._binding = Lock()
        self._listen = host_and_port("listen", listen)

    @property
    def port(self) -> int:
        """The port that sites connect to. If port 0 was given, a free one is bound when this is first read.

        A run releases the port when it ends. `with SitesTeam(...) as team:` releases it even if `identify` rejects an
        argument and there is no run.
        """
        if not self._listen[1]:
            self._bind_port()
        return self._listen[1]

    def _bind_port(self) -> Port:
        """Bind the port once, whichever thread is first: the run and its sites may start at the same time."""
        from collabtop.teams.sites.port import Port

        with self._binding:
            if self._port is None:
                host, port = self._listen
                loop = EventLoopThread("coordinator")
                try:
                    binding = Port.bind(f"{host}:{port}", self._paths, self._timeouts.keepalive, len(self._sites))
                    self._port, self._loop = loop.run(binding), loop
                except BaseException:
                    loop.close()
                    raise
                self._listen = host, self._port.number
            return self._port

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Open the port: sites can connect from now on."""
        from collabtop.teams.sites.connections import RunOffer
        from collabtop.teams.sites.server import SiteServer

        agents = sum(count for _, count in self._sites)
        if agents != setup.problem.agents:
            raise wrong_value("agents", setup.problem.agents, f"the sites have {agents} agents in total")
        self._recorder, self._stats = recorder, TransportStats()
        run_id, states = (
            self._run_id(),
            [PublicState(agent, setup.problem, setup.noise_margin) for agent in range(agents)],
        )
        lost, last_request, begun = self._restore(states)
        recorder.note_status(set(range(agents)) - lost, "away")  # until they connect
        port = self._bind_port()
        assert self._loop is not None
        self._server = SiteServer(
            self._sites,
            RunOffer(run_id, setup, labels_fingerprint(arms), arms.label),
            states,
            self._timeouts,
            self._stats,
            self._on_site_event,
            self._revoked,
            lost,
            latest_request=last_request + 1,
            begun=begun,
        )
        self._loop.run(self._server.start(port))
        if self._on_event is not None:
            self._on_event(Listening(f"{self._listen[0]}:{self.port}"))

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Send the requests to the sites and wait for their replies."""
        assert self._loop is not None
        assert self._server is not None
        return self._loop.run(self._server.exchange(requests))

    def halt(self) -> None:
        """Stop waiting for the sites; they complete what they were asked, and keep it for a resumed run."""
        server = self._server
        if server is not None:
            server.halted = True

    def finish(self) -> None:
        """Tell the sites that the run is over, and wait a while for those that are just reconnecting."""
        if self._loop is not None and self._server is not None:
            self._loop.run(self._server.finish())

    def close(self) -> None:
        """Close the port. Unless the run has finished, the sites wait for a coordinator to come back."""
        loop, port = self._loop, self._port
        self._recorder = RewardRecorder()  # nothing is logged from now on
        if loop is not None and port is not None:
            self._loop = self._port = None
            if self._server is not None:
                self._server.stop_reporting()
                self._server = None
            try:
                loop.run(port.close())
            finally:  # Ctrl-C during this wait must not leave the thread running
                loop.close()

    def transport_stats(self) -> TransportStats:
        """Bytes, repeated requests, rejections and reconnects so far."""
        return self._stats

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _on_site_event(self, event: Event) -> None:
        """Log the new status of a site's agents and pass the event on."""
        if isinstance(event, SiteChanged):
            states: dict[str, AgentState] = {"here": "here", "back": "here", "gone": "away", "lost": "lost"}
            self._recorder.note_status(self._agents_of(event.site), states[event.state])
        if self._on_event is not None:
            self._on_event(event)

    def _agents_of(self, site: str) -> range:
        index = next(index for index, (name, _) in enumerate(self._sites) if name == site)
        first = sum(count for _, count in self._sites[:index])
        return range(first, first + self._sites[index][1])

    def _run_id(self) -> str:
        """The id of the run in the log, or a new one."""
        record = next((record for record in self._recorder.records if isinstance(record, RemoteRun)), None)
        if record is None:
            record = RemoteRun(secrets.token_hex(16), self._sites)
            self._recorder.append(record)
        if record.sites != self._sites:
            raise FileError("the log belongs to a run with different sites, or with a different order of sites")
        return record.id

    def _restore(self, states: list[PublicState]) -> tuple[frozenset[int], int, bool]:
        """Apply the logged exchanges to the states.

        Return the agents that were lost, the number of the last request, and whether the run had begun: all sites were
        connected at the same time, so that the first request may have been sent.
        """
        lost: set[int] = set()
        here: set[int] = set()
        last, begun = 0, False
        for record in self._recorder.records:
            if isinstance(record, AgentStatus):
                here = here | set(record.agents) if record.state == "here" else here - set(record.agents)
                if record.state == "lost":  # this was announced, even if its exchange was not completed
                    lost.update(record.agents)
                begun = begun or len(here) == len(states) or bool(lost)
            elif isinstance(record, Exchange):
                begun, last = True, max(last, record.number)
                replies = {reply.agent: reply for reply in replies_in(record)}
                for request in requests_in(record):
                    if request.agent in replies:
                        states[request.agent].check_reply(request, replies[request.agent])
                    else:
                        lost.add(request.agent)
        return frozenset(lost), last, begun


def check_timeouts(
    wait: float | None, grace: float, answer_within: float | None, keepalive: float, on_lost: str
) -> None:
    """Validate the timeouts.

    >>> check_timeouts(None, grace=0, answer_within=None, keepalive=10, on_lost="fail")
    Traceback (most recent call last):
    collabtop.errors.InputError: grace is 0, but a positive number of seconds is needed
    """
    for name, seconds in (("grace", grace), ("keepalive", keepalive)):
        positive_number(name, seconds, of="seconds")
    for name, limit in (("wait", wait), ("answer_within", answer_within)):
        if limit is not None:
            positive_number(name, limit, of="seconds")
    if on_lost not in ("fail", "go-on"):
        raise wrong_value("on_lost", on_lost, "'fail' or 'go-on' is needed")


def roster(sites: Sequence[str | tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Validate a list of sites; return their names and numbers of agents.

    >>> roster(["north", ("south", 2)])
    (('north', 1), ('south', 2))
    """
    if isinstance(sites, str) or not isinstance(sites, Sequence) or not sites:
        raise wrong_value("sites", sites, "a list of names is needed")
    pairs = []
    for site in sites:
        entry = (site, 1) if isinstance(site, str) else site
        if not isinstance(entry, Sequence) or len(entry) != 2 or not isinstance(entry[0], str):
            raise InputError(f"sites has {site!r:.80}, but a name or (name, count) is needed", argument="sites")
        name = check_site_name(entry[0])
        pairs.append(
            (name, whole_number(f"the number of agents of site {name!r}", entry[1], least=1, argument="sites"))
        )
    if len({name for name, _ in pairs}) < len(pairs):
        raise InputError(
            "sites has the same name twice; use (name, count) for a site with several agents", argument="sites"
        )
    return tuple(pairs)


def host_and_port(name: str, address: str) -> tuple[str, int]:
    """Split HOST:PORT.

    >>> host_and_port("listen", "[::1]:7443")
    ('[::1]', 7443)
    """
    host, colon, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    if not (host and colon and port.isdecimal() and len(port) < 6 and int(port) < 65536):
        raise wrong_value(name, address, "HOST:PORT is needed, such as 0.0.0.0:7443")
    return host, int(port)


def labels_fingerprint(arms: Arms) -> str:
    """A hash of the labels, or "" if there are none. The labels themselves are never sent."""
    if arms.labels is None:
        return ""
    return hashlib.sha256(msgspec.msgpack.encode([arms.n, arms.labels])).hexdigest()[:32]
