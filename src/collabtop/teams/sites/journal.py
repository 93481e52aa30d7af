"""A site's journal: its agents' rewards and answers, from which a restarted site continues."""

import secrets
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import msgspec

from collabtop.arms import Arms
from collabtop.arms.draws import mixed_seed
from collabtop.errors import FileError, ProtocolError, reason
from collabtop.privacy import Noise
from collabtop.protocol.agent import Agent
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import Exchange, JournalHeader
from collabtop.runlog.recorder import RewardRecorder
from collabtop.teams.logging_team import as_record, requests_in
from collabtop.teams.sites.min_batch import check_batch, least_squares
from collabtop.teams.sites.site_policy import PolicyGuard, noise_of
from collabtop.teams.sites.validation import PublicState


class JournalledAgent:
    """An agent that validates requests, and writes each answer to the journal before it is sent."""

    def __init__(
        self, agent: Agent, state: PublicState, min_batch: int, log: RunLog | None, guard: PolicyGuard | None = None
    ) -> None:
        self.number = agent.number
        self.state = state
        self._agent, self._min_batch, self._log, self._guard = agent, min_batch, log, guard
        self._last: tuple[Request, Reply] | None = None

    def answer(self, request: Request) -> Reply:
        """Answer a request and write the answer to disk; a repeated request gets the same answer."""
        if self._last is not None and request.number == self._last[0].number:
            if as_record([request], []).messages != as_record([self._last[0]], []).messages:
                raise ProtocolError(f"request {request.number} was repeated with different messages")
            return self._last[1]
        return self._answer(request, self._log)

    def replay(self, request: Request) -> None:
        """Answer a request from the journal again, with the rewards in the journal."""
        self._answer(request, None)

    def halt(self) -> None:
        """Stop after the current pull."""
        self._agent.halt()

    def _answer(self, request: Request, log: RunLog | None) -> Reply:
        self.state.check_request(request)
        check_batch(request, self._min_batch)
        if self._guard is not None:
            self._guard.check_request(request, self.state.answers)
        reply = self._agent.answer(request)
        self.state.check_reply(request, reply)
        if log is not None:
            log.append(as_record([request], [reply]), sync=True)  # an answer that was sent must not be forgotten
        self._last = request, reply
        return reply


_SECRET_BYTES = 32


class Journal:
    """The agents of a site in one run, and their journal file if a folder is given.

    The coordinator chooses the seed of the run, so a secret is mixed into the agents' draws: without it, the
    coordinator could compute which example each pull used. None makes a random one, which the journal holds.
    """

    def __init__(
        self,
        folder: str | PathLike[str] | None,
        run_id: str,
        setup: Setup,
        agents: Sequence[int],
        arms: Arms,
        min_batch: int,
        secret: bytes | None = None,
        guard: PolicyGuard | None = None,
    ) -> None:
        header = JournalHeader(
            run_id,
            msgspec.msgpack.encode(setup),
            tuple(agents),
            arms.fingerprint(),
            secrets.randbits(62),
            secrets.token_bytes(_SECRET_BYTES) if secret is None else secret,
        )
        self._log = None if folder is None else _open(Path(folder), run_id)
        records = [] if self._log is None else self._log.records
        try:
            if records:
                header = _matching_header(records[0], header, secret)
            elif self._log is not None:
                self._log.append(header, sync=True)
            self.life = header.life
            """Random id of this journal."""
            drawn = msgspec.structs.replace(setup, seed=mixed_seed(setup.seed, header.secret))
            recorder = RewardRecorder(self._log, None, records, arms.failure_mode)
            scale = noise_of(setup, None, len(agents)) if guard is None else guard.noise
            self.agents = {
                number: JournalledAgent(
                    Agent(
                        *(number, arms, drawn, recorder, None if guard is None else guard.check_draw),
                        noise=None if scale is None else Noise(scale, setup.noise_margin, drawn.seed, number),
                        least_squares=least_squares(min_batch),
                    ),
                    PublicState(number, setup.problem, setup.noise_margin),
                    min_batch,
                    self._log,
                    guard,
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
        """The number of the last request that each agent answered."""
        return tuple(agent.state.last_request for agent in self.agents.values())

    def close(self) -> None:
        """Close the file."""
        if self._log is not None:
            self._log.close()


def make_folder(folder: Path) -> Path:
    """Make the folder for journals, unless it exists."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"journal {str(folder)!r}: {reason(error)}", argument="journal") from None
    return folder


def _open(folder: Path, run_id: str) -> RunLog:
    # Private: it holds every reward.
    return RunLog(make_folder(folder) / f"{run_id}.ctlog", private=True, name="journal", advice="join again")


def _matching_header(logged: object, header: JournalHeader, secret: bytes | None) -> JournalHeader:
    """The header in the journal, if it belongs to the same run and arms."""
    expected = (header.run, header.setup, header.agents)
    if not isinstance(logged, JournalHeader) or (logged.run, logged.setup, logged.agents) != expected:
        raise FileError(
            f"the journal of run {header.run} belongs to a different setup of that run: use a different folder",
            argument="journal",
        )
    if logged.arms != header.arms:
        raise FileError(
            f"the journal of run {header.run} was written with different arms: use the same arms again", argument="arms"
        )
    if secret is not None and secret != logged.secret:
        raise FileError(
            f"the journal of run {header.run} was written with a different secret: use the same one again, or none",
            argument="secret",
        )
    return logged
