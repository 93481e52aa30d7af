"""A site's own journal: what its agents drew and answered, so that a restarted site is the same site."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import msgspec

from collabtop.arms import Arms
from collabtop.errors import FileError, ProtocolError, reason
from collabtop.protocol.agent import Agent
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import Exchange, JournalHeader
from collabtop.runlog.recorder import RewardRecorder
from collabtop.teams.logging_team import as_record, requests_in
from collabtop.teams.sites.min_batch import check_batch
from collabtop.teams.sites.validation import PublicState


class JournalledAgent:
    """An agent that looks at what it is asked, and writes down what it answered before anybody hears of it."""

    def __init__(self, agent: Agent, state: PublicState, min_batch: int, log: RunLog | None) -> None:
        self.number = agent.number
        self.state = state
        self._agent, self._min_batch, self._log = agent, min_batch, log
        self._last: tuple[Request, Reply] | None = None

    def answer(self, request: Request) -> Reply:
        """The agent's answer, on disk; a repeated request gets the same one."""
        if self._last is not None and request.number == self._last[0].number:
            if as_record([request], []).messages != as_record([self._last[0]], []).messages:
                raise ProtocolError(f"request {request.number} was another one when it was asked first")
            return self._last[1]
        return self._answer(request, self._log)

    def replay(self, request: Request) -> None:
        """Answer as in the life before, from the rewards in the journal."""
        self._answer(request, None)

    def halt(self) -> None:
        """Stop after the pull under way."""
        self._agent.halt()

    def _answer(self, request: Request, log: RunLog | None) -> Reply:
        self.state.check_request(request)
        check_batch(request, self._min_batch)
        reply = self._agent.answer(request)
        self.state.check_reply(request, reply)
        if log is not None:
            log.append(as_record([request], [reply]), sync=True)
        self._last = request, reply
        return reply


class Journal:
    """The agents of a site in one run, with or without a file behind them."""

    def __init__(
        self,
        folder: str | PathLike[str] | None,
        run: str,
        setup: Setup,
        agents: Sequence[int],
        arms: Arms,
        min_batch: int,
    ) -> None:
        visit = JournalHeader(
            run, msgspec.msgpack.encode(setup), tuple(agents), arms.fingerprint(), secrets.randbits(62)
        )
        self._log = None if folder is None else _open(Path(folder), run)
        records = [] if self._log is None else self._log.records
        try:
            if records:
                visit = _same_visit(records[0], visit, run)
            elif self._log is not None:
                self._log.append(visit, sync=True)
            self.life = visit.life
            """Drawn when the journal began."""
            recorder = RewardRecorder(self._log, None, records, arms.failure_mode)
            self.agents = {
                number: JournalledAgent(
                    Agent(number, arms, setup, recorder),
                    PublicState(number, setup.problem),
                    min_batch,
                    self._log,
                )
                for number in agents
            }
            for record in records:
                if isinstance(record, Exchange):
                    for request in requests_in(record):
                        self.agents[request.agent].replay(request)
        except BaseException:
            self.close()
            raise

    def answered(self) -> tuple[int, ...]:
        """The last request that each agent answered."""
        return tuple(agent.state.last for agent in self.agents.values())

    def close(self) -> None:
        """Let go of the file."""
        if self._log is not None:
            self._log.close()


def _open(folder: Path, run: str) -> RunLog:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"journal {str(folder)!r}: {reason(error)}", argument="journal") from None
    log = RunLog(folder / f"{run}.ctlog", private=True)  # every reward is in it
    log.seconds_at_risk = 0.0  # an answer that was sent cannot be taken back
    return log


def _same_visit(known: object, visit: JournalHeader, run: str) -> JournalHeader:
    if not isinstance(known, JournalHeader) or (known.run, known.setup, known.agents) != (
        run,
        visit.setup,
        visit.agents,
    ):
        raise FileError(
            f"journal of run {run} is of another set-up of that run: give another folder", argument="journal"
        )
    if known.arms != visit.arms:
        raise FileError(f"journal of run {run} is of other arms: give those that it was begun with", argument="arms")
    return known
