"""Teams around a team: one that keeps a checkpoint, and one that tells what happens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collabtop.arms import Arms
from collabtop.arms.base import Ints, Reals
from collabtop.coordination.team import Answer, Team
from collabtop.errors import FileError
from collabtop.events import Exchanged, RoundBegan
from collabtop.protocol import wire
from collabtop.protocol.agent import Setup
from collabtop.protocol.messages import Message, Reply, Request
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import Exchange
from collabtop.runlog.recorder import RewardRecorder


class WrappedTeam(Team):
    """A team that lets another do the work."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self.tolerates_loss = team.tolerates_loss

    def open(self, arms: Arms, setup: Setup) -> None:
        """Open the other, which counts on our meter."""
        self._team.agents, self._team.meter = self.agents, self.meter
        self._team.open(arms, setup)

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Let the other deliver."""
        return self._team.deliver(requests)

    def finish(self) -> None:
        """Let the other tell its agents."""
        self._team.finish()

    def close(self) -> None:
        """Close the other."""
        self._team.close()

    def seen(self) -> list[tuple[Ints, Ints, Reals]] | None:
        """What the other saw."""
        return self._team.seen()


class LoggedTeam(WrappedTeam):
    """Writes every finished exchange to a log; resuming, checks that each comes out as it did."""

    def __init__(self, team: Team, log: RunLog) -> None:
        super().__init__(team)
        self._log = log
        self._known = {it.number: it for it in log.records if isinstance(it, Exchange)}
        if team.agents_outlive_run:  # an agent that goes on from an answer we forgot cannot go back
            log.seconds_at_risk = 0.0

    def open(self, arms: Arms, setup: Setup) -> None:
        """Open the other, which may need to know how far the run is."""
        self._team.remember(self._log)
        super().open(arms, setup)

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Deliver, and return when the exchange is on disk."""
        known = self._known.get(requests[0].number) if requests else None
        if known is not None and self._team.agents_outlive_run:
            replies: Sequence[Reply] = replies_in(known)
        else:
            replies = super().deliver(requests)
        record = as_record(requests, replies)
        if known is None:
            self._log.note_time()
            self._log.append(record, sync=True)
        elif known != record:
            raise FileError(
                f"checkpoint {str(self._log.path)!r} does not fit: exchange {record.number} came out differently, so "
                "the arms or this program are not what they were"
            )
        return replies


def as_record(requests: Sequence[Request], replies: Sequence[Reply]) -> Exchange:
    """An exchange as it is written down: every message once, however many agents got it."""
    messages = _Messages()
    return Exchange(
        requests[0].number if requests else 0,
        messages.data,
        [(it.agent, messages.places(it.messages)) for it in requests],
        [(it.agent, it.pulls, messages.places([it.answer])[0]) for it in replies],
    )


def requests_in(record: Exchange) -> list[Request]:
    """The requests of an exchange that was written down."""
    messages = [wire.decode(data) for data in record.messages]
    return [
        Request(agent, record.number, tuple(messages[place] for place in places)) for agent, places in record.requests
    ]


def replies_in(record: Exchange) -> list[Reply]:
    """The replies of an exchange that was written down."""
    answers = {place: wire.decode(record.messages[place]) for _, _, place in record.replies}
    return [Reply(agent, record.number, pulls, answers[place]) for agent, pulls, place in record.replies]


class _Messages:
    def __init__(self) -> None:
        self.data: list[bytes] = []
        self._places: dict[int, int] = {}

    def places(self, messages: Iterable[Message]) -> list[int]:
        return [self._place(message) for message in messages]

    def _place(self, message: Message) -> int:
        place = self._places.get(id(message))
        if place is None:
            place = self._places[id(message)] = len(self.data)
            self.data.append(wire.encode(message))
        return place


class WatchedTeam(WrappedTeam):
    """Tells when rounds begin and exchanges are over."""

    def __init__(self, team: Team, tape: RewardRecorder) -> None:
        super().__init__(team)
        self._tape = tape

    def begin_round(self, phase: str, live: int) -> None:
        """Say so."""
        super().begin_round(phase, live)
        self._tape.tell(RoundBegan(len(self.meter.rounds()) - 1, phase, live))

    def _exchange(self, questions: list[tuple[int, Message]], expect: type[Answer]) -> dict[int, Answer]:
        answers = super()._exchange(questions, expect)
        ledger, pulls = self.meter.ledger(), sum(it.pulls for it in self.meter.rounds())
        self._tape.tell(Exchanged(self._numbers, self.meter.time, pulls, ledger.words, ledger.bits))
        return answers
