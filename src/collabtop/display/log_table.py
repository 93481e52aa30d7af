"""The contents of a checkpoint as tables."""

from os import PathLike
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table

from collabtop.runlog.file import read_log
from collabtop.runlog.format import Header
from collabtop.runlog.log_state import LogState, Note, notes_in
from collabtop.runlog.totals import Totals
from collabtop.runs.checkpoint import header_of
from collabtop.runs.result import printable
from collabtop.validation import wrong_value

_SHOWN = 20


class LogSummary(msgspec.Struct, frozen=True):
    """What a checkpoint contains."""

    header: Header
    exchanges: int
    pulls: int
    failed: int
    """Pulls that failed for good."""
    pulls_by_candidate: list[int]
    means: list[float | None]
    """Mean of the rewards of each candidate, in the user's unit."""
    totals: Totals
    """What the calls of the user's function took."""
    top: list[str] | None
    """The answer, if the run is finished."""

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain Python objects, without the candidates themselves."""
        plain = msgspec.to_builtins(self)
        plain["header"].pop("candidates")
        return {**plain, "finished": self.top is not None}


def summarize(path: str | PathLike[str]) -> LogSummary:
    """Read a checkpoint and summarize its run."""
    records = read_log(path)
    header = header_of(records, path)
    state = LogState(records)
    return LogSummary(
        header=header,
        exchanges=state.round_trips,
        pulls=state.pulls,
        failed=int(state.failed.sum()),
        pulls_by_candidate=state.seen_pulls.tolist(),
        totals=state.calls.totals(),
        means=[None if mean != mean else mean for mean in header.unit.shown(state.means).tolist()],
        top=None if state.top is None else [_label(header, arm) for arm in state.top],
    )


def log_tables(summary: LogSummary) -> RenderableType:
    """A checkpoint as two tables: the run, and the pulls and mean of each candidate so far."""
    return Group(_run_table(summary), _candidate_table(summary))


def _run_table(summary: LogSummary) -> Table:
    header = summary.header
    n, agents, horizon = header.n, header.agents, header.horizon
    options = ", ".join(f"{name}={value}" for name, value in header.options.items())
    pulls = f"{summary.pulls:,} of at most {agents * horizon:,} pulls, {summary.failed:,} failed"
    rows = {
        "run": f"the best {header.m} of {n:,} candidates, {agents} agents, horizon {horizon:,}, seed {header.seed}",
        "algorithm": header.algorithm + (f" ({options})" if options else ""),
        "arms": f"{header.arms_class}, fingerprint {header.arms}",
        "rewards": str(header.unit),
        "so far": f"{pulls}, {summary.exchanges} exchanges",
        **_calls(summary.totals),
        "answer": "not yet: continue with collabtop resume" if summary.top is None else ", ".join(summary.top),
    }
    table = Table(show_header=False, box=None)
    for name, value in rows.items():
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
    header = header_of(records, path)
    labels = header.labels or tuple(map(str, range(header.n)))
    if candidate not in labels:
        raise wrong_value("candidate", candidate, "the label of a candidate is needed; collabtop show lists them")
    notes = list(notes_in(records, labels.index(candidate)))
    table = Table("agent", "pull", "reward", "cost", "note", title=printable(candidate))
    for note in notes:
        numbers = ("-" if number is None else f"{number:.6g}" for number in (note.reward, note.cost))
        table.add_row(str(note.agent), f"{note.pull:,}", *numbers, printable(note.note))
    return table, notes


def _candidate_table(summary: LogSummary) -> Table:
    n, pulls = summary.header.n, summary.pulls_by_candidate
    caption = None if n <= _SHOWN else f"the {_SHOWN} with the most pulls, of {n:,}"
    table = Table("candidate", "pulls", "mean so far", caption=caption)
    for arm in sorted(range(n), key=lambda arm: -pulls[arm])[:_SHOWN]:
        mean = summary.means[arm]
        table.add_row(
            printable(_label(summary.header, arm)),
            f"{pulls[arm]:,}",
            "-" if mean is None else summary.header.unit.text(mean),
        )
    return table


def _label(header: Header, arm: int) -> str:
    return header.labels[arm] if header.labels else str(arm)
