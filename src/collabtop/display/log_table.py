"""The contents of a checkpoint as tables: the run, and the answer so far."""

from os import PathLike
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collabtop.runlog.file import read_log
from collabtop.runlog.format import Header
from collabtop.runlog.log_state import Note, notes_in
from collabtop.runlog.totals import Totals
from collabtop.runs.checkpoint import leg_of, read_header
from collabtop.runs.peeking import peek
from collabtop.runs.printing import printable
from collabtop.runs.result import Result
from collabtop.validation import counted, wrong_value


class LogSummary:
    """What a checkpoint contains: the run, and its result or the answer so far."""

    def __init__(self, checkpoint: str | PathLike[str]) -> None:
        self.header: Header = read_header(checkpoint)
        self.result: Result = peek(checkpoint)

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain Python objects, without the candidates themselves."""
        header = msgspec.to_builtins(self.header)
        del header["candidates"]
        observed = self.result.observed
        return {
            "header": header,
            "finished": self.result.complete,
            "failed": sum(self.result.failures.values()),
            "pulls_by_candidate": None if observed is None else observed.pulls.tolist(),
            **self.result.to_dict(),
        }

    def __rich__(self) -> RenderableType:
        warnings = (Text(printable(f"warning: {line}", markup=False), style="yellow") for line in self.result.warnings)
        return Group(self._run_table(), self.result.table(), *warnings)

    def _run_table(self) -> Table:
        header, result = self.header, self.result
        n, agents, horizon = header.n, header.agents, header.horizon
        options = ", ".join(f"{name}={value}" for name, value in header.options.items())
        failed = sum(result.failures.values())
        pulls = f"{result.pulls:,} of at most {agents * horizon:,} pulls, {failed:,} failed"
        answer = ", ".join(map(str, result.top))
        rows = {
            "name": header.name or "-",
            "run": f"the best {header.m} of {n:,} candidates, {counted(agents, 'agent')}, horizon {horizon:,}, "
            f"seed {header.seed}",
            "algorithm": header.algorithm + (f" ({options})" if options else ""),
            "arms": f"{header.arms_class}, fingerprint {header.arms}",
            "rewards": str(header.unit),
            "so far": f"{pulls}, {result.round_trips} exchanges",
            **_calls(result.totals),
            "answer": answer if result.complete else f"not yet, the best so far: {answer}",
        }
        table = Table(show_header=False, box=None)
        for name, value in rows.items():
            if value != "-":
                table.add_row(name, printable(value))
        return table


def _calls(totals: Totals) -> dict[str, str]:
    """What the calls took, if anything is known about them."""
    if not totals.seconds:
        return {}
    cost = "" if totals.cost is None else f"cost {totals.cost:,.6g}, "
    failed = f"{totals.attempts_failed:,} failed attempts, {totals.retries:,} retries"
    return {"calls": f"{cost}{totals.seconds:,.1f} s in all, {failed}"}


def notes_table(path: str | PathLike[str], candidate: str) -> tuple[Table, list[Note]]:
    """The notes about the pulls of one candidate, by its label or number, as a table and as data."""
    records = read_log(path)
    header = leg_of(records, path).header
    labels = header.labels or tuple(map(str, range(header.n)))
    if candidate not in labels:
        raise wrong_value("candidate", candidate, "the label of a candidate is needed; collabtop show lists them")
    notes = [
        note if note.reward is None else msgspec.structs.replace(note, reward=header.unit.shown(note.reward))
        for note in notes_in(records, labels.index(candidate))
    ]
    table = Table("agent", "pull", "reward", "cost", "note", title=printable(candidate))
    for note in notes:
        numbers = ("-" if number is None else f"{number:.6g}" for number in (note.reward, note.cost))
        table.add_row(str(note.agent), f"{note.pull:,}", *numbers, printable(note.note))
    return table, notes
