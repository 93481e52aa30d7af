"""The table of all candidates of a result, for the terminal, notebooks and data frames."""

import html
import math
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import msgspec
from rich.table import Table

from collabtop.arms.unit import Unit
from collabtop.coordination.scoreboard import Estimate
from collabtop.errors import InputError
from collabtop.runs.result import Result, plain_text, printable
from collabtop.stats import wilson_interval
from collabtop.validation import wrong_value

_SHOWN = 30


class TableRow(msgspec.Struct, frozen=True):
    """One candidate, in the user's unit; None where the coordinator does not know a value."""

    rank: int | None
    """Rank in the answer, 1 for the best."""
    arm: int
    label: str
    verdict: str
    round: int | None
    """The round that settled the candidate."""
    phase: str | None
    mean: float | None
    low: float | None
    """Lower end of the 95% interval of its mean (not a joint interval for all candidates)."""
    high: float | None
    pulls: int | None
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
        ranks = {arm: rank for rank, arm in enumerate(result.top_indices, 1)}
        rows = [_row(result, estimate, ranks.get(estimate.arm)) for estimate in result.estimates]
        self.rows = sorted(rows, key=partial(_order, result))

    def __len__(self) -> int:
        return len(self.rows)

    def __rich__(self) -> Table:
        result = self._result
        title = f"{result.n:,} candidates, the best {result.m} by {result.algorithm}"
        table = Table(title=title, caption=_left_out(len(self.rows), "rows"))
        for name in _columns(result):
            table.add_column(name, justify="left" if name in ("candidate", "verdict", "settled") else "right")
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

    def to_dataframe(self, library: str | None = None) -> Any:
        """The rows as a data frame of pandas or polars, by default the first of them that is installed."""
        columns = {name: [getattr(row, name) for row in self.rows] for name in TableRow.__struct_fields__}
        if library not in (None, "pandas", "polars"):
            raise wrong_value("library", library, "'pandas' or 'polars' is needed")
        for name in ("pandas", "polars") if library is None else (library,):
            with suppress(ImportError):
                return import_module(name).DataFrame(columns)
        needed = library or "pandas or polars"
        raise InputError(f"a data frame needs {needed}, which is not installed: pip install {library or 'pandas'}")


def _row(result: Result, estimate: Estimate, rank: int | None) -> TableRow:
    arm, mean, pulls, unit = estimate.arm, estimate.mean, estimate.pulls, result.unit
    label = result.labels[arm] if result.labels else str(arm)
    failed = result.failures.get(label, 0)
    low, high = None, None
    if mean is not None and pulls is not None and unit.bounded:
        # Failed pulls gave no reward, so they do not make the interval shorter.
        internal = wilson_interval(unit.internal(mean), max(1, pulls - failed), population=result.pull_limit)
        low, high = unit.shown_interval(*internal)
    verdict, settled = (estimate.verdict, estimate.round, estimate.phase), estimate.settled
    return TableRow(rank, arm, label, *verdict, mean, low, high, pulls, failed, settled)


def _order(result: Result, row: TableRow) -> tuple[Any, ...]:
    last_first = math.inf if not row.settled else -1 if row.round is None else row.round
    best_first = math.inf if row.mean is None else -result.unit.internal(row.mean)
    return row.rank is None, row.rank or 0, -last_first, best_first, row.arm


def _columns(result: Result) -> list[str]:
    names = ["rank", "candidate", "verdict", "settled", "mean", "95% interval", "pulls"]
    return [*names, "failed"] if result.failures else names


def _cells(row: TableRow, result: Result) -> list[str]:
    cells = [
        "-" if row.rank is None else str(row.rank),
        row.label,
        row.verdict,
        "open" if not row.settled else "inside an agent" if row.round is None else f"round {row.round}",
        "-" if row.mean is None else result.unit.text(row.mean),
        _interval(row, result.unit),
        "-" if row.pulls is None else f"{row.pulls:,}",
    ]
    return [*cells, f"{row.failed:,}"] if result.failures else cells


def _interval(row: TableRow, unit: Unit) -> str:
    if row.low is None or row.high is None:
        return "-"
    return "exact" if row.low == row.high else f"{unit.text(row.low)} to {unit.text(row.high)}"


def _left_out(count: int, what: str) -> str | None:
    return None if count <= _SHOWN else f"{count - _SHOWN:,} more {what}: see rows, or to_dataframe()"
