"""A run seen from the coordinator's chair: its algorithm, run again on the answers that the log holds.

An algorithm is deterministic given its seed and the replies. So what it thought at every moment (rounds, verdicts,
estimates, whom it is waiting for, every word counted) comes out exactly, without a pull.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.registry import make_algorithm
from collabtop.arms import Arms
from collabtop.coordination.coordinator import Coordinator, Outcome
from collabtop.coordination.scoreboard import ACCEPTED, OPEN, REJECTED, Columns, Scoreboard
from collabtop.coordination.team import Team
from collabtop.errors import CollabtopError, ProtocolError
from collabtop.events import Event, RoundBegan
from collabtop.problem import Problem
from collabtop.protocol.ledger import Meter
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.format import Exchange, Header
from collabtop.runlog.recorder import RewardRecorder
from collabtop.teams.logging_team import as_record, replies_in

INSIDE = 3
"""The verdict of an arm that was settled inside an agent: the coordinator is not told when, nor how."""


class Counts(NamedTuple):
    """The candidates at the start of a round, as the coordinator knows them."""

    live: int
    accepted: int
    rejected: int
    inside: int
    """Settled inside an agent."""


class Replay:
    """An algorithm that is run again, as far as the exchanges go that were taken in.

    The algorithm runs in a thread of its own, but never at the same time as the caller: `take` returns when it asks
    the next question, or is done. What it has learnt may be looked at in between. A run that went on without agents
    that were lost is followed with `tolerates_loss`.
    """

    def __init__(self, header: Header, *, tolerates_loss: bool = False) -> None:
        self.header = header
        problem = Problem(header.n, header.m, header.agents, header.horizon)
        self.problem, self.mirrored = problem.inner, problem.mirrored
        self.counts: list[Counts] = []
        """One for each round begun."""
        self.trouble: str | None = None
        """Why the run cannot be followed, if it cannot."""
        self.done = False
        self._team = _ReplayTeam(tolerates_loss=tolerates_loss)
        self._setup = Setup(self.problem, header.seed, self.mirrored)
        self._coordinator = Coordinator(self._team, self._setup, RewardRecorder(on_event=self._hear))
        try:
            algorithm = make_algorithm(header.algorithm, **header.options)
        except CollabtopError:
            self.trouble = f"{header.algorithm} is not an algorithm that this program has"
            return
        self._thread = threading.Thread(target=self._run, args=(algorithm,), name="collabtop replay", daemon=True)
        self._thread.start()
        self._team.wait_for_question()

    def take(self, exchange: Exchange) -> None:
        """Let the algorithm have these answers, and go on to its next question."""
        if self.trouble is None and not self.done:
            self._team.answers.put(exchange)
            self._team.wait_for_question()

    def close(self) -> None:
        """End the algorithm where it is."""
        if self.trouble is None and not self.done:
            self._team.answers.put(None)
            self._thread.join()

    @property
    def meter(self) -> Meter:
        """What was counted."""
        return self._coordinator.meter

    @property
    def asked(self) -> list[int]:
        """The agents whose answers it waits for."""
        return [] if self.done else [request.agent for request in self._team.pending]

    @property
    def lost(self) -> frozenset[int]:
        """The agents that the run continued without."""
        return self._coordinator.lost

    @property
    def board(self) -> Scoreboard:
        """What the coordinator has learnt."""
        return self._coordinator.scoreboard

    def outcome(self) -> Outcome:
        """What the run led to, once it is done."""
        return self._coordinator.outcome()

    def columns(self) -> Columns:
        """What the coordinator knows about all candidates; verdicts may be `INSIDE`."""
        columns = self.board.columns(mirrored=self.mirrored)
        columns.verdicts[self._settled_inside(columns)] = INSIDE
        return columns

    def _settled_inside(self, columns: Columns) -> NDArray[np.bool_]:
        # When a shared round has fewer live arms than are open on the board, the others never left their agents.
        rounds = self.meter.rounds()
        is_open: NDArray[np.bool_] = columns.verdicts == OPEN
        if not rounds or rounds[-1].phase == "local" or np.count_nonzero(is_open) <= rounds[-1].live:
            return np.zeros(len(is_open), np.bool_)
        unheard_of: NDArray[np.bool_] = is_open & (columns.pulls == 0)
        return unheard_of

    def now(self) -> Counts:
        """The candidates at this moment."""
        if self.done:
            return self._count(0)
        rounds = self.meter.rounds()
        return self._count(rounds[-1].live if rounds else self.header.n)

    def _count(self, live: int) -> Counts:
        verdicts = self.columns().verdicts
        accepted, rejected = (int(np.count_nonzero(verdicts == one)) for one in (ACCEPTED, REJECTED))
        live = min(live, self.header.n - accepted - rejected)  # a round that settled arms has not ended yet
        return Counts(live, accepted, rejected, self.header.n - live - accepted - rejected)

    def _hear(self, event: Event) -> None:
        if isinstance(event, RoundBegan):
            self.counts.append(self._count(event.live))

    def _run(self, algorithm: Algorithm) -> None:
        try:
            algorithm.solve(self._coordinator, self._setup)
            self.done = True
        except _Closed:
            pass
        except Exception as error:
            self.trouble = f"this program's {self.header.algorithm} does not do what the run did ({error})"
        finally:
            self._team.at_question.put(None)


class _Closed(BaseException):
    """Nobody looks any more."""


class _ReplayTeam(Team):
    """Answers from the log, and waits where it ends."""

    def __init__(self, *, tolerates_loss: bool) -> None:
        self.tolerates_loss = tolerates_loss
        self.answers: SimpleQueue[Exchange | None] = SimpleQueue()
        self.at_question: SimpleQueue[None] = SimpleQueue()
        self.pending: Sequence[Request] = ()

    def wait_for_question(self) -> None:
        self.at_question.get()

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """There is nothing to open."""

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        self.pending = requests
        self.at_question.put(None)
        exchange = self.answers.get()
        if exchange is None:
            raise _Closed
        if _messages_by_agent(as_record(requests, ())) != _messages_by_agent(exchange):
            raise ProtocolError(f"exchange {exchange.number} asks for something else")
        return replies_in(exchange)


def _messages_by_agent(record: Exchange) -> list[tuple[int, list[bytes]]]:
    return [(agent, [record.messages[index] for index in indices]) for agent, indices in record.requests]
