"""The table of all candidates of a result, for the terminal, notebooks and data frames."""

import html
import math
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import msgspec
from rich.table import Table

from collabtop.arms.tables import Library
from collabtop.coordination.scoreboard import Estimate
from collabtop.errors import InputError
from collabtop.runs.evidence import Standing, shown_places
from collabtop.runs.printing import EVIDENCE, interval_text, plain_text, printable
from collabtop.runs.result import Result
from collabtop.validation import wrong_value

_SHOWN = 30
_TEXTS = ("candidate", "verdict", "settled", "evidence")


class TableRow(msgspec.Struct, frozen=True):
    """One candidate, in the user's unit; None where the coordinator does not know a value."""

    place: int | None
    """The best place in the answer that the evidence leaves open for it, 1 for the best ..."""
    last_place: int | None
    """... and the last one."""
    arm: int
    label: str
    verdict: str
    round: int | None
    """The round that settled the candidate."""
    phase: str | None
    mean: float | None
    low: float | None
    """Lower end of the 95% interval of its mean (one for each candidate, not a joint one for all)."""
    high: float | None
    pulls: int | None
    thin: bool | None
    """Whether it was accepted on thin evidence; None if it was rejected, or the coordinator does not know."""
    failed: int
    """Pulls that failed after all retries."""
    settled: bool = True
    """False if the verdict is a guess, because the candidate is still open."""


class ResultTable:
    """All candidates of a result: the answer first, then the others, those settled last (or still open) first.

    `print` it, show it in a notebook, or use `rows`.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1], labels=["a", "b", "c"])
    >>> table = ct.identify(arms, m=1, agents=2, horizon=300, algorithm="uniform", seed=7).table()
    >>> [(row.label, row.verdict, row.pulls) for row in table.rows]
    [('a', 'accepted', 200), ('b', 'rejected', 200), ('c', 'rejected', 200)]
    """

    def __init__(self, result: Result) -> None:
        self._result = result
        rows = [_row(result, estimate) for estimate in result.estimates]
        answer = [_with_standing(rows[standing.arm], standing) for standing in result.standings]
        others = [row for row in rows if row.verdict != "accepted"]
        self.rows = [*answer, *sorted(others, key=partial(_order, result))]

    def __len__(self) -> int:
        return len(self.rows)

    def __rich__(self) -> Table:
        result = self._result
        title = f"{result.n:,} candidates, the best {result.m} by {result.algorithm}"
        table = Table(title=title, caption=_left_out(len(self.rows), "rows"))
        for name in _columns(result):
            table.add_column(name, justify="left" if name in _TEXTS else "right")
        for row in self.rows[:_SHOWN]:
            table.add_row(*(printable(cell) for cell in _cells(row, result)))
        return table

    def __str__(self) -> str:
        return plain_text(self, width=110)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _columns(self._result))
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in _cells(row, self._result))}</tr>"
            for row in self.rows[:_SHOWN]
        )
        more = _left_out(len(self.rows), "candidates") or ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more and f'<p>{more}</p>'}"

    def to_dataframe(self, library: Library | None = None) -> Any:
        """The rows as a data frame of pandas or polars, by default the first of them that is installed."""
        columns = {name: [getattr(row, name) for row in self.rows] for name in TableRow.__struct_fields__}
        if library not in (None, "pandas", "polars"):
            raise wrong_value("library", library, "'pandas' or 'polars' is needed")
        for name in ("pandas", "polars") if library is None else (library,):
            with suppress(ImportError):
                return import_module(name).DataFrame(columns)
        needed = library or "pandas or polars"
        raise InputError(f"a data frame needs {needed}, which is not installed: pip install {library or 'pandas'}")


def _row(result: Result, estimate: Estimate) -> TableRow:
    arm = estimate.arm
    label = result.labels[arm] if result.labels else str(arm)
    low, high = (None if math.isnan(ends[arm]) else float(ends[arm]) for ends in result.intervals)
    return TableRow(
        place=None,
        last_place=None,
        arm=arm,
        label=label,
        verdict=estimate.verdict,
        round=estimate.round,
        phase=estimate.phase,
        mean=estimate.mean,
        low=low,
        high=high,
        pulls=estimate.pulls,
        thin=None,
        failed=result.failures.get(label, 0),
        settled=estimate.settled,
    )


def _with_standing(row: TableRow, standing: Standing) -> TableRow:
    return msgspec.structs.replace(row, place=standing.place, last_place=standing.last_place, thin=standing.thin)


def _order(result: Result, row: TableRow) -> tuple[Any, ...]:
    last_first = math.inf if not row.settled else -1 if row.round is None else row.round
    best_first = math.inf if row.mean is None else -result.unit.internal(row.mean)
    return -last_first, best_first, row.arm


def _columns(result: Result) -> list[str]:
    names = ["place", "candidate", "verdict", "settled", "mean", "95% interval", "pulls", "evidence"]
    return [*names, "failed"] if result.failures else names


def _cells(row: TableRow, result: Result) -> list[str]:
    cells = [
        shown_places(row.place, row.last_place),
        row.label,
        row.verdict,
        "open" if not row.settled else "inside an agent" if row.round is None else f"round {row.round}",
        "-" if row.mean is None else result.unit.text(row.mean),
        interval_text(row.low, row.high, result.unit),
        "-" if row.pulls is None else f"{row.pulls:,}",
        EVIDENCE[row.thin] if row.verdict == "accepted" else "",
    ]
    return [*cells, f"{row.failed:,}"] if result.failures else cells


def _left_out(count: int, what: str) -> str | None:
    return None if count <= _SHOWN else f"{count - _SHOWN:,} more {what}: see rows, or to_dataframe()"
