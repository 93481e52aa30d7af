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
from collabtop.arms import Arms, Draws
from collabtop.arms.draws import coordinator_rng
from collabtop.coordination.scoreboard import ACCEPTED, OPEN, REJECTED, Columns, Scoreboard, boards_made
from collabtop.coordination.team import Team
from collabtop.errors import CollabtopError, ProtocolError
from collabtop.problem import Problem
from collabtop.protocol import wire
from collabtop.protocol.ledger import Meter
from collabtop.protocol.messages import Ints, Message, Reals, Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.format import Exchange, Header

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
        self.mirrored = 2 * header.m > header.n
        self.problem = Problem(
            header.n, header.n - header.m if self.mirrored else header.m, header.agents, header.horizon
        )
        self.counts: list[Counts] = []
        """One for each round begun."""
        self.trouble: str | None = None
        """Why it cannot be told how the run thought, where it cannot."""
        self.done = False
        self._board: Scoreboard | None = None
        self._team = _ReplayTeam(self, tolerates_loss=tolerates_loss)
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
        return self._team.meter

    @property
    def asked(self) -> list[int]:
        """The agents whose answers it waits for."""
        return [] if self.done else [request.agent for request in self._team.pending]

    @property
    def lost(self) -> frozenset[int]:
        """The agents that the run went on without."""
        return self._team.lost

    @property
    def board(self) -> Scoreboard | None:
        """What the coordinator has learnt, from the moment it has a place for it."""
        return self._board

    def columns(self) -> Columns:
        """What the coordinator knows of all candidates; verdicts may be `INSIDE`."""
        if self._board is None:
            n = self.header.n
            nothing = np.zeros(n, np.int64)
            return Columns(np.zeros(n, np.int8), np.full(n, -1, np.int32), np.full(n, np.nan), nothing)
        columns = self._board.columns(mirrored=self.mirrored)
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

    def begin_round(self, live: int) -> None:
        """Take note of the candidates as a round begins."""
        self.counts.append(self._count(live))

    def _run(self, algorithm: Algorithm) -> None:
        try:
            with boards_made() as boards:
                self._team.boards = boards
                self._team.start(_NoArms(self.header.n), Setup(self.problem, self.header.seed, self.mirrored))
                if self.problem.m == 0:
                    board = Scoreboard(self.header.n)
                else:
                    board = algorithm.run(self._team, self.problem, coordinator_rng(self.header.seed))
                board.reject_rest()
                self._board, self.done = board, True
        except _Closed:
            pass
        except Exception as error:
            self.trouble = f"this program's {self.header.algorithm} does not do what the run did ({error})"
        finally:
            self._team.at_question.put(None)

    def look_at(self, boards: list[Scoreboard]) -> None:
        """Find the board that the algorithm writes: the first of all its arms."""
        if self._board is None:
            self._board = next((board for board in boards if board.n == self.header.n), None)


class _Closed(BaseException):
    """Nobody looks any more."""


class _ReplayTeam(Team):
    """Answers from the log, and waits where it ends."""

    def __init__(self, replay: Replay, *, tolerates_loss: bool) -> None:
        self._replay, self.tolerates_loss = replay, tolerates_loss
        self.answers: SimpleQueue[Exchange | None] = SimpleQueue()
        self.at_question: SimpleQueue[None] = SimpleQueue()
        self.pending: Sequence[Request] = ()
        self.boards: list[Scoreboard] = []

    def wait_for_question(self) -> None:
        self.at_question.get()

    def open(self, arms: Arms, setup: Setup) -> None:
        """There is nothing to open."""

    def begin_round(self, phase: str, live: int) -> None:
        super().begin_round(phase, live)
        self._replay.look_at(self.boards)
        self._replay.begin_round(live)

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        self._replay.look_at(self.boards)
        self.pending = requests
        self.at_question.put(None)
        exchange = self.answers.get()
        if exchange is None:
            raise _Closed
        if _as_logged(requests) != [
            (agent, [exchange.messages[at] for at in places]) for agent, places in exchange.requests
        ]:
            raise ProtocolError(f"exchange {exchange.number} asks for something else")
        return [
            Reply(agent, exchange.number, pulls, wire.decode(exchange.messages[place]))
            for agent, pulls, place in exchange.replies
        ]


def _as_logged(requests: Sequence[Request]) -> list[tuple[int, list[bytes]]]:
    encoded: dict[int, bytes] = {}

    def as_bytes(message: Message) -> bytes:
        if id(message) not in encoded:
            encoded[id(message)] = wire.encode(message)
        return encoded[id(message)]

    return [(it.agent, [as_bytes(message) for message in it.messages]) for it in requests]


class _NoArms(Arms):
    """Arms that are never pulled."""

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        raise ProtocolError("a replay pulls nothing")
