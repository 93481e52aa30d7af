"""What a study gives: one row a run, and what each point's rows add up to."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from collabtop.errors import FileError
from collabtop.stats import wilson_interval
from collabtop.validation import require


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
    """`identify` with this seed makes the same run."""
    correct: bool
    time: int
    words: int
    bits: int
    round_trips: int
    pulls: int

    @property
    def schedule(self) -> str | None:
        """The algorithm's schedule, where it has one."""
        return _schedule(self.options)


class PointSummary(msgspec.Struct, frozen=True):
    """All runs of one point."""

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
    words_mean: float
    words_sd: float
    bits_mean: float
    bits_sd: float
    round_trips_mean: float
    round_trips_sd: float
    time_mean: float
    time_sd: float

    @property
    def schedule(self) -> str | None:
        """The algorithm's schedule, where it has one."""
        return _schedule(self.options)


def _schedule(options: str) -> str | None:
    schedule: str | None = json.loads(options).get("schedule")
    return schedule


class StudyTable:
    """The rows of a study, sorted; the same whatever number of processes made them."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: tuple[Row, ...] = tuple(sorted(rows))

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return self.rows == other.rows if isinstance(other, StudyTable) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def points(self) -> list[PointSummary]:
        """What the runs of each point add up to, in the order of the rows."""
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.rows:
            key = (row.arms, row.algorithm, row.options, row.m, row.agents, row.horizon)
            groups.setdefault(key, []).append(row)
        return [_summary(key, rows) for key, rows in groups.items()]

    def to_csv(self, path: str | Path) -> None:
        """Write one row a run, whole or not at all."""
        write_whole(Path(path), _csv(Row, self.rows))

    def to_parquet(self, path: str | Path) -> None:
        """Write one row a run as Parquet; needs polars (`pip install 'collabtop[parquet]'`)."""
        require("parquet", "polars", what="Parquet")
        import polars

        columns = {name: [getattr(row, name) for row in self.rows] for name in Row.__struct_fields__}
        buffer = io.BytesIO()
        polars.DataFrame(columns).write_parquet(buffer)
        write_whole(Path(path), buffer.getvalue())

    @classmethod
    def from_csv(cls, path: str | Path) -> StudyTable:
        """Read rows back."""
        return cls(_read_rows(Path(path)))


def options_text(options: dict[str, Any]) -> str:
    """An algorithm's options as they stand in a row.

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
        for line, record in enumerate(csv.DictReader(file), 2):
            try:
                record["correct"] = record["correct"] == "True"
                yield msgspec.convert(record, Row, strict=False)
            except (msgspec.ValidationError, KeyError) as error:
                raise FileError(f"{path}, line {line}: not a row of a study ({error})") from None


def _summary(key: tuple[Any, ...], rows: list[Row]) -> PointSummary:
    wrong = sum(not row.correct for row in rows)
    low, high = wilson_interval(wrong / len(rows), len(rows))
    spread: dict[str, float] = {}
    for column in ("words", "bits", "round_trips", "time"):
        values = np.array([getattr(row, column) for row in rows], np.float64)
        spread[f"{column}_mean"] = float(values.mean())
        spread[f"{column}_sd"] = float(values.std(ddof=1)) if len(rows) > 1 else 0.0
    arms, algorithm, options, m, agents, horizon = key
    return PointSummary(
        arms=arms,
        algorithm=algorithm,
        options=options,
        m=m,
        agents=agents,
        horizon=horizon,
        runs=len(rows),
        wrong=wrong,
        error=wrong / len(rows),
        error_low=low,
        error_high=high,
        **spread,
    )


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, whatever happens on the way."""
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
