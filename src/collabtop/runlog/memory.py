"""A log in memory, for runs that use their own earlier rewards but have no checkpoint."""

from collections.abc import Iterable

from collabtop.runlog.format import AgentState, Extended, Finished, Record, answer_in
from collabtop.runlog.gathering import gathered


class MemoryLog:
    """Keeps the records of a run, with the interface of `RunLog` that a run needs."""

    path = "memory"

    def __init__(self) -> None:
        self._records: list[Record] = []
        self.answer: Finished | None = None

    def append(self, record: Record, *, sync: bool = False) -> None:
        """Keep a record."""
        self._records.append(record)
        if isinstance(record, Finished | Extended):
            self.answer = answer_in([record])

    def take(self) -> list[Record]:
        """All records, which are no longer kept then."""
        records, self._records = self._records, []
        return list(gathered(records))

    def note_time(self) -> None:
        """Do nothing: the time of day is only for display."""

    def note_status(self, agents: Iterable[int], state: AgentState) -> None:
        """Do nothing: these agents are in this process."""

    def close(self) -> None:
        """Do nothing."""
