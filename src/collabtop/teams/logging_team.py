"""A wrapper that logs every exchange of a team, and the conversion of exchanges to log records."""

from collections.abc import Iterable, Sequence

from collabtop.arms import Arms
from collabtop.coordination.team import Team, check_replies
from collabtop.errors import FileError
from collabtop.protocol import wire
from collabtop.protocol.batches import Batch
from collabtop.protocol.ledger import TransportStats
from collabtop.protocol.messages import Message, Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import Exchange, Record
from collabtop.runlog.memory import MemoryLog
from collabtop.runlog.recorder import RewardRecorder


class LoggingTeam(Team):
    """Logs every exchange of the team that it wraps. In a resumed run, it checks that each one matches `records`."""

    def __init__(self, team: Team, log: RunLog | MemoryLog, records: Sequence[Record]) -> None:
        self._team, self._log = team, log
        self._logged = {record.number: record for record in records if isinstance(record, Exchange)}
        self.tolerates_loss = team.tolerates_loss

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Open the team."""
        self._team.open(arms, setup, recorder)

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Deliver the requests, and return when the exchange is logged."""
        logged = self._logged.get(requests[0].number) if requests else None
        if logged is not None and self._team.agents_outlive_run:
            replies: Sequence[Reply] = replies_in(logged)
        else:
            replies = check_replies(requests, self._team.deliver(requests), self)  # a wrong reply is not logged
        record = as_record(requests, replies)
        if logged is None:
            self._log.note_time()
            # An agent that outlives this process cannot go back behind an answer that a power cut undid here.
            self._log.append(record, sync=self._team.agents_outlive_run)
        elif logged != record:
            raise FileError(
                f"checkpoint {str(self._log.path)!r} does not fit this run: exchange {record.number} differs from the "
                "logged one, so the arms or this program have changed"
            )
        return replies

    def halt(self) -> None:
        """Halt the team."""
        self._team.halt()

    def finish(self) -> None:
        """Finish the team."""
        self._team.finish()

    def close(self) -> None:
        """Close the team."""
        self._team.close()

    def observed(self) -> Sequence[Batch] | None:
        """All batches of pulls that the team observed."""
        return self._team.observed()

    def transport_stats(self) -> TransportStats:
        """The transport statistics of the team."""
        return self._team.transport_stats()


def as_record(requests: Sequence[Request], replies: Sequence[Reply]) -> Exchange:
    """An exchange as a log record, in which a message to several agents is stored once."""
    messages = _Messages()
    return Exchange(
        requests[0].number if requests else 0,
        messages.data,
        [(request.agent, messages.indices(request.messages)) for request in requests],
        [(reply.agent, reply.pulls, messages.index(reply.answer)) for reply in replies],
    )


def requests_in(record: Exchange) -> list[Request]:
    """The requests of a logged exchange."""
    messages = [wire.decode(data) for data in record.messages]
    return [
        Request(agent, record.number, tuple(messages[index] for index in indices)) for agent, indices in record.requests
    ]


def replies_in(record: Exchange) -> list[Reply]:
    """The replies of a logged exchange."""
    answers = {index: wire.decode(record.messages[index]) for _, _, index in record.replies}
    return [Reply(agent, record.number, pulls, answers[index]) for agent, pulls, index in record.replies]


class _Messages:
    """Encoded messages, each of them once."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self._indices: dict[int, int] = {}

    def indices(self, messages: Iterable[Message]) -> list[int]:
        return [self.index(message) for message in messages]

    def index(self, message: Message) -> int:
        index = self._indices.get(id(message))
        if index is None:
            index = self._indices[id(message)] = len(self.data)
            self.data.append(wire.encode(message))
        return index
