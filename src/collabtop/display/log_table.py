"""What a checkpoint holds, for people."""

from __future__ import annotations

from os import PathLike
from typing import Any

import msgspec
import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from collabtop.runlog.file import read_log
from collabtop.runlog.format import Exchange, Header, Record, Rewards, Sums, answer_in
from collabtop.runs.checkpoint import header_of

_SHOWN = 20


class LogSummary(msgspec.Struct, frozen=True):
    """What a checkpoint holds."""

    header: Header
    exchanges: int
    pulls: int
    failed: int
    """Pulls that failed for good."""
    pulls_by_candidate: list[int]
    means: list[float | None]
    """Mean of the rewards that each candidate gave."""
    top: list[str] | None
    """The answer, if the run is finished."""

    def to_dict(self) -> dict[str, Any]:
        """As plain Python objects, without the candidates themselves."""
        plain = msgspec.to_builtins(self)
        plain["header"].pop("candidates")
        return {**plain, "finished": self.top is not None}


def summarize(path: str | PathLike[str]) -> LogSummary:
    """Read a checkpoint and add up what is in it."""
    records = read_log(path)
    header = header_of(records, path)
    pulls, given, sums = np.zeros(header.n, np.int64), np.zeros(header.n, np.int64), np.zeros(header.n)
    for record in records:
        _add(record, pulls, given, sums)
    answer = answer_in(records)
    labels = header.labels or tuple(str(arm) for arm in range(header.n))
    return LogSummary(
        header=header,
        exchanges=sum(isinstance(record, Exchange) for record in records),
        pulls=int(pulls.sum()) or _told_of(records),  # rewards drawn at remote sites are not in the log
        failed=int((pulls - given).sum()),
        pulls_by_candidate=pulls.tolist(),
        means=[float(total / count) if count else None for total, count in zip(sums, given, strict=True)],
        top=None if answer is None else [labels[arm] for arm in answer.top],
    )


def _told_of(records: list[Record]) -> int:
    """Pulls that agents said they made."""
    return sum(made for record in records if isinstance(record, Exchange) for _, made, _ in record.replies)


def _add(record: Record, pulls: Any, given: Any, sums: Any) -> None:
    if isinstance(record, Rewards):
        arms, rewards = record.unpack()
        np.add.at(pulls, arms, 1)
        np.add.at(given, arms, ~np.isnan(rewards))
        np.add.at(sums, arms, np.nan_to_num(rewards))
    elif isinstance(record, Sums):
        arms, times, totals = record.unpack()
        np.add.at(pulls, arms, times)
        np.add.at(given, arms, times)
        np.add.at(sums, arms, totals)


def log_tables(summary: LogSummary) -> RenderableType:
    """A checkpoint as two tables: the run, and what each candidate has had so far."""
    it = summary.header
    run = Table(show_header=False, box=None)
    options = ", ".join(f"{name}={value}" for name, value in it.options.items())
    most = it.agents * it.horizon
    for name, value in (
        ("run", f"the best {it.m} of {it.n:,} candidates, {it.agents} agents, horizon {it.horizon:,}, seed {it.seed}"),
        ("algorithm", it.algorithm + (f" ({options})" if options else "")),
        ("arms", f"{it.arms_class}, fingerprint {it.arms}"),
        (
            "so far",
            f"{summary.pulls:,} of at most {most:,} pulls, {summary.failed:,} failed, {summary.exchanges} exchanges",
        ),
        ("answer", "not yet: collabtop resume goes on" if summary.top is None else ", ".join(summary.top)),
    ):
        run.add_row(name, escape(value))
    table = Table("candidate", "pulls", "mean so far", caption=_more(it.n))
    labels = it.labels or tuple(str(arm) for arm in range(it.n))
    for arm in sorted(range(it.n), key=lambda arm: -summary.pulls_by_candidate[arm])[:_SHOWN]:
        mean = summary.means[arm]
        pulls = f"{summary.pulls_by_candidate[arm]:,}"
        table.add_row(escape(labels[arm]), pulls, "-" if mean is None else f"{mean:.4f}")
    return Group(run, table)


def _more(n: int) -> str | None:
    return None if n <= _SHOWN else f"the {_SHOWN} pulled most, of {n:,}"
