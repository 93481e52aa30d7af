"""The results of a study: one row per run, and a summary of the rows of each point."""

import csv
import html
import io
import json
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from collabtop.errors import FileError
from collabtop.stats import wilson_interval
from collabtop.validation import require

RowEngine = Literal["messages", "batched"]
"""How a run is made: message by message, or many runs at once in arrays."""


_SHOWN = 50
_BATCHED = ["", "", "", "", "", "batched"]  # the last columns of a batched run
_FLAGS = {"True": True, "False": False}
COSTS = ("words", "bits", "round_trips", "time")
"""What is summarized by mean and standard deviation."""


class Setting(NamedTuple):
    """What all runs of a point have in common."""

    arms: str
    algorithm: str
    options: str
    """The algorithm's options as JSON."""
    m: int
    agents: int
    horizon: int


class Row(msgspec.Struct, frozen=True, order=True):
    """One run."""

    arms: str
    algorithm: str
    options: str
    """The algorithm's options as JSON."""
    m: int
    agents: int
    horizon: int
    run: int
    seed: int
    """`identify` makes the same run with this seed; for a batched run, the seed of its batch."""
    correct: bool
    time: int | None
    """None, like the fields below, for a batched run, in which only the answer is simulated."""
    words: int | None
    bits: int | None
    round_trips: int | None
    pulls: int | None
    engine: RowEngine = "messages"

    @property
    def setting(self) -> "Setting":
        """The setting of the run, without its number and seed."""
        return Setting(self.arms, self.algorithm, self.options, self.m, self.agents, self.horizon)

    @property
    def schedule(self) -> str | None:
        """The algorithm's schedule, where it has one."""
        return _schedule(self.options)


class PointSummary(msgspec.Struct, frozen=True):
    """A summary of the runs of one point."""

    arms: str
    algorithm: str
    options: str
    m: int
    agents: int
    horizon: int
    runs: int
    wrong: int
    error: float
    """Share of wrong answers."""
    error_low: float
    """Lower end of its 95% interval (Wilson)."""
    error_high: float
    message_runs: int
    """Runs made message by message. The means and deviations below are theirs, NaN if there are none."""
    words_mean: float
    words_sd: float
    bits_mean: float
    bits_sd: float
    round_trips_mean: float
    round_trips_sd: float
    time_mean: float
    time_sd: float

    @property
    def setting(self) -> Setting:
        """What its runs have in common."""
        return Setting(self.arms, self.algorithm, self.options, self.m, self.agents, self.horizon)

    @property
    def schedule(self) -> str | None:
        """The algorithm's schedule, where it has one."""
        return _schedule(self.options)


@lru_cache(maxsize=256)  # a report asks for it again and again
def _schedule(options: str) -> str | None:
    schedule: str | None = json.loads(options).get("schedule")
    return schedule


class StudyTable:
    """The rows of a study, sorted; the same for any number of processes."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: tuple[Row, ...] = tuple(sorted(rows))

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return self.rows == other.rows if isinstance(other, StudyTable) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def points(self) -> "list[PointSummary]":
        """A summary of each point, in the order of the rows."""
        groups: dict[Setting, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(row.setting, []).append(row)
        return [_summary(setting, rows) for setting, rows in groups.items()]

    def _repr_html_(self) -> str:
        columns = ("arms", "algorithm", "options", "m", "agents", "horizon", "runs", "error", "95% interval", "words")
        points = self.points()
        rows = (
            (
                *(point.arms, point.algorithm, point.options, str(point.m), f"{point.agents:,}", f"{point.horizon:,}"),
                *(f"{point.runs:,}", f"{point.error:.4f}", f"{point.error_low:.4f} to {point.error_high:.4f}"),
                f"{point.words_mean:,.0f}" if point.message_runs else "-",
            )
            for point in points[:_SHOWN]
        )
        head = "".join(f"<th>{column}</th>" for column in columns)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        more = f"<p>{len(points) - _SHOWN:,} more points: see points()</p>" if len(points) > _SHOWN else ""
        return f"<p>{len(self):,} runs</p><table><tr>{head}</tr>{body}</table>{more}"

    def to_csv(self, path: str | Path) -> None:
        """Write one row per run, completely or not at all."""
        write_whole(Path(path), _csv(Row, self.rows))

    def to_parquet(self, path: str | Path) -> None:
        """Write one row per run as Parquet; needs polars (`pip install 'collabtop[parquet]'`)."""
        require("parquet", "polars", what="Parquet")
        import polars

        columns = {name: [getattr(row, name) for row in self.rows] for name in Row.__struct_fields__}
        buffer = io.BytesIO()
        polars.DataFrame(columns).write_parquet(buffer)
        write_whole(Path(path), buffer.getvalue())

    @classmethod
    def from_csv(cls, path: str | Path) -> "StudyTable":
        """Read the rows that `to_csv` wrote."""
        return cls(_read_rows(Path(path)))


def options_text(options: dict[str, Any]) -> str:
    """An algorithm's options as they appear in a row.

    >>> options_text({"schedule": "full"})
    '{"schedule":"full"}'
    """
    return msgspec.json.encode(options, order="sorted").decode()


def points_csv(points: Sequence[PointSummary]) -> bytes:
    """Summaries as CSV."""
    return _csv(PointSummary, points)


def _csv(kind: type[msgspec.Struct], rows: Sequence[msgspec.Struct]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(kind.__struct_fields__)
    writer.writerows(msgspec.structs.astuple(row) for row in rows)
    return text.getvalue().encode()


def _read_rows(path: Path) -> Iterable[Row]:
    with path.open(newline="") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        as_written = header == list(Row.__struct_fields__)
        for line, record in enumerate(filter(None, reader), 2):  # empty lines are no rows
            try:
                yield (_batched_row(record) if as_written else None) or _checked_row(header, record)
            except (msgspec.ValidationError, KeyError, ValueError) as error:
                raise FileError(f"{path}, line {line}: not a row of a study ({error})") from None


def _batched_row(record: list[str]) -> Row | None:
    """The row of a batched run, several times faster than `_checked_row`; None if the record is of a different kind."""
    if len(record) != len(Row.__struct_fields__) or record[9:] != _BATCHED or record[8] not in _FLAGS:
        return None
    arms, algorithm, options, m, agents, horizon, run, seed, correct, *_ = record
    numbers = int(m), int(agents), int(horizon), int(run), int(seed)
    return Row(arms, algorithm, options, *numbers, _FLAGS[correct], None, None, None, None, None, "batched")


def _checked_row(header: list[str], record: list[str]) -> Row:
    by_name = dict(zip(header, record, strict=False))
    fields: dict[str, Any] = {name: value or None for name, value in by_name.items()}
    fields["correct"] = by_name["correct"] == "True"
    return msgspec.convert(fields, Row, strict=False)


def _summary(setting: Setting, rows: list[Row]) -> "PointSummary":
    wrong = sum(not row.correct for row in rows)
    low, high = wilson_interval(wrong / len(rows), len(rows))
    fields: dict[str, Any] = setting._asdict()
    measured = [row for row in rows if row.engine == "messages"]
    for column in COSTS:
        values = np.array([getattr(row, column) for row in measured], np.float64)
        fields[f"{column}_mean"] = float(values.mean()) if measured else math.nan
        fields[f"{column}_sd"] = float(values.std(ddof=1)) if len(measured) > 1 else 0.0 if measured else math.nan
    return PointSummary(
        runs=len(rows),
        wrong=wrong,
        error=wrong / len(rows),
        error_low=low,
        error_high=high,
        message_runs=len(measured),
        **fields,
    )


def write_whole(path: Path, data: bytes) -> None:
    """Write a file completely or not at all, whatever happens on the way."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
