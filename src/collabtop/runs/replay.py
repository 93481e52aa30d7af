"""Replays a run as its coordinator saw it: its algorithm runs again on the replies in the log.

An algorithm is deterministic given its seed and the replies. So the replay has the coordinator's exact state at every
moment (rounds, verdicts, estimates, agents it is waiting for, words counted), without any pulls.
"""

import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.registry import make_algorithm
from collabtop.arms import Arms
from collabtop.coordination.coordinator import Coordinator, Outcome
from collabtop.coordination.scoreboard import ACCEPTED, OPEN, REJECTED, Columns
from collabtop.coordination.team import Team
from collabtop.errors import CollabtopError, ProtocolError
from collabtop.events import Event, RoundBegan
from collabtop.protocol.ledger import Meter
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.format import Exchange, Header
from collabtop.runlog.recorder import RewardRecorder
from collabtop.teams.logging_team import as_record, replies_in

MAX_REPLAYED = 5_000_000
"""The most candidates times agents of a run that is replayed: its algorithm may keep some numbers for each."""
SECONDS_OF_REPLAY = 10.0
"""How long the algorithm may compute between two exchanges of a replay."""

INSIDE = 3
"""The verdict of an arm that was settled inside an agent: the coordinator does not learn when or how."""


def too_large(header: Header) -> str | None:
    """Why a run with as many candidates and agents is not replayed, or None if it is."""
    if header.n * header.agents <= MAX_REPLAYED:
        return None
    return (
        f"{header.n:,} candidates x {header.agents:,} agents is {header.n * header.agents:,}, but runs are "
        f"replayed up to {MAX_REPLAYED:,}"
    )


class Counts(NamedTuple):
    """The number of candidates by state at the start of a round, as the coordinator knows it."""

    live: int
    accepted: int
    rejected: int
    inside: int
    """Settled inside an agent."""


class Replay:
    """The algorithm of a run, run again on the exchanges that were added so far.

    The algorithm runs in a thread of its own, but never at the same time as the caller: `add` returns when the
    algorithm sends its next requests or is done, and its state may be read until the next call. `tolerates_loss` is
    for a run that continued without agents that were lost.
    """

    def __init__(self, header: Header, *, tolerates_loss: bool = False) -> None:
        self.header = header
        problem = header.problem
        self.problem, self.mirrored = problem.inner, problem.mirrored
        self.counts: list[Counts] = []
        """One entry for each round begun."""
        self.error: str | None = too_large(header)
        """Why the run cannot be replayed, if it cannot."""
        self.done = False
        if self.error is not None:
            return
        self._team = _ReplayTeam(tolerates_loss=tolerates_loss)
        budget, prices = (header.budget, header.costs or ()) if header.metered else (None, ())
        self._setup = Setup(
            self.problem,
            header.draw_seed,
            self.mirrored,
            budget=budget,
            prices=prices,
            iid=header.iid,
            unit=header.unit,
            privacy=header.privacy,
        )
        self._coordinator = Coordinator(self._team, self._setup, RewardRecorder(on_event=self._handle))
        try:
            algorithm = make_algorithm(header.algorithm, **header.options)
        except (CollabtopError, TypeError):  # options of a different version
            self.error = f"{header.algorithm} is not an algorithm that is registered here"
            return
        self._thread = threading.Thread(target=self._run, args=(algorithm,), name="collabtop replay", daemon=True)
        self._thread.start()
        self._wait()

    def add(self, exchange: Exchange) -> None:
        """Give the algorithm the replies of the next exchange, and wait for its next requests."""
        if self.error is None and not self.done:
            self._team.exchanges.put(exchange)
            self._wait()

    def _wait(self) -> None:
        if not self._team.wait_for_requests(SECONDS_OF_REPLAY):
            self.error = f"{self.header.algorithm} computes for more than {SECONDS_OF_REPLAY:g} s between two exchanges"
            self._team.exchanges.put(None)  # ends the thread at its next exchange

    def close(self) -> None:
        """Stop the algorithm."""
        if self.error is None and not self.done:
            self._team.exchanges.put(None)
            self._thread.join()

    @property
    def meter(self) -> Meter:
        """The rounds and messages counted so far."""
        return self._coordinator.meter

    @property
    def asked(self) -> list[int]:
        """The agents whose replies the coordinator is waiting for."""
        return [] if self.done else [request.agent for request in self._team.pending]

    def outcome(self) -> Outcome:
        """The outcome of the run, once it is done."""
        return self._coordinator.outcome()

    def columns(self) -> Columns:
        """What the coordinator knows about all candidates; verdicts may be `INSIDE`."""
        columns = self._coordinator.scoreboard.columns(mirrored=self.mirrored)
        return columns._replace(verdicts=np.where(self._settled_inside(columns), np.int8(INSIDE), columns.verdicts))

    def _settled_inside(self, columns: Columns) -> NDArray[np.bool_]:
        # If a shared round has fewer live arms than are open on the scoreboard, agents have settled the others.
        rounds = self.meter.rounds()
        is_open: NDArray[np.bool_] = columns.verdicts == OPEN
        if not rounds or rounds[-1].phase == "local" or np.count_nonzero(is_open) <= rounds[-1].live:
            return np.zeros(len(is_open), np.bool_)
        never_reported: NDArray[np.bool_] = is_open & (columns.pulls == 0)
        return never_reported

    def now(self) -> Counts:
        """The current number of candidates by state."""
        if self.done:
            return self._count(0)
        rounds = self.meter.rounds()
        return self._count(rounds[-1].live if rounds else self.header.n)

    def _count(self, live: int) -> Counts:
        verdicts = self.columns().verdicts
        accepted, rejected = (int(np.count_nonzero(verdicts == verdict)) for verdict in (ACCEPTED, REJECTED))
        live = min(live, self.header.n - accepted - rejected)  # the round that settled arms may not have ended yet
        return Counts(live, accepted, rejected, self.header.n - live - accepted - rejected)

    def _handle(self, event: Event) -> None:
        if isinstance(event, RoundBegan):
            self.counts.append(self._count(event.live))

    def _run(self, algorithm: Algorithm) -> None:
        try:
            algorithm.solve(self._coordinator, self._setup)
            self.done = self.error is None
        except _Closed:
            pass
        except Exception as error:
            self.error = self.error or f"{self.header.algorithm} as installed here does not reproduce the run ({error})"
        finally:
            self._team.has_requests.put(None)


class _Closed(BaseException):
    """Ends the algorithm's thread when the replay is closed."""


class _ReplayTeam(Team):
    """Replies from the log, and waits where the log ends."""

    def __init__(self, *, tolerates_loss: bool) -> None:
        self.tolerates_loss = tolerates_loss
        self.exchanges: SimpleQueue[Exchange | None] = SimpleQueue()
        self.has_requests: SimpleQueue[None] = SimpleQueue()
        self.pending: Sequence[Request] = ()

    def wait_for_requests(self, seconds: float) -> bool:
        """Whether the algorithm sent its next requests, or ended, within this time."""
        try:
            self.has_requests.get(timeout=seconds)
        except Empty:
            return False
        return True

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """There is nothing to open."""

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        self.pending = requests
        self.has_requests.put(None)
        exchange = self.exchanges.get()
        if exchange is None:
            raise _Closed
        if _messages_by_agent(as_record(requests, ())) != _messages_by_agent(exchange):
            raise ProtocolError(f"exchange {exchange.number} has different requests")
        return replies_in(exchange)


def _messages_by_agent(record: Exchange) -> list[tuple[int, list[bytes]]]:
    return [(agent, [record.messages[index] for index in indices]) for agent, indices in record.requests]
