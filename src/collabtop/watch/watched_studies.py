"""The studies that a page shows: folders with the journal of a running study, or with the files of a finished one."""

import csv
import io
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from sys import intern
from typing import Any, Literal

import msgspec

from collabtop.errors import CollabtopError, FileError, reason
from collabtop.runlog.format import StudyRows
from collabtop.runlog.locks import is_in_use
from collabtop.runlog.regular import open_regular
from collabtop.studies.table import PointSummary, Row, Setting, StudyTable
from collabtop.watch.log_follower import LogFollower

StudyStatus = Literal["running", "stopped", "finished", "unreadable"]

MAX_STUDIES_SHOWN = 200
"""The most studies that the page lists."""
MAX_STUDY_RUNS_SHOWN = 200_000
"""The most runs of a running study that the page reads."""
LARGEST_POINTS_FILE = 1 << 22
"""The most bytes of the file with a finished study's points."""
_JOURNAL, _POINTS = "journal", "points.csv"


class WatchedStudy:
    """A study in a folder: its points, as far as its runs are made."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self._lock = threading.Lock()
        self._restart()

    def _restart(self) -> None:
        self._follower = LogFollower(self.folder / _JOURNAL)
        self._rows: dict[Setting, list[Row]] = {}
        self._points: dict[Setting, PointSummary] = {}
        self._runs = 0
        self._finished: tuple[int, list[PointSummary]] | None = None

    def view(self) -> dict[str, Any]:
        """What the page shows about it now."""
        with self._lock:
            try:
                status, points = self._read()
            except (CollabtopError, OSError) as error:
                message = reason(error) if isinstance(error, OSError) else str(error)
                return {"name": self.name, "status": "unreadable", "error": message, "runs": 0, "points": []}
        runs = sum(point.runs for point in points)
        return {"name": self.name, "status": status, "error": None, "runs": runs, "points": points}

    def summary(self) -> dict[str, Any]:
        """It as a row of the list."""
        view = self.view()
        errors = [point.error for point in view["points"]]
        return view | {"points": len(errors), "errors": [min(errors), max(errors)] if errors else None}

    def _read(self) -> tuple[StudyStatus, list[PointSummary]]:
        path = self.folder / _POINTS
        if path.exists():
            changed = path.stat().st_mtime_ns
            if self._finished is None or self._finished[0] != changed:
                self._finished = changed, read_points(path)
            return "finished", self._finished[1]
        self._read_journal()
        running = is_in_use(self.folder / _JOURNAL) is not False
        return "running" if running else "stopped", [self._points[setting] for setting in sorted(self._points)]

    def _read_journal(self) -> None:
        records = self._follower.read()
        if self._follower.restarted:
            self._restart()
            records = self._follower.read()
        changed = set()
        for record in records:
            if isinstance(record, StudyRows):
                changed.update(self._add(record))
        for setting in changed:
            self._points[setting] = StudyTable(self._rows[setting]).points()[0]

    def _add(self, record: StudyRows) -> set[Setting]:
        try:
            rows = msgspec.msgpack.decode(record.rows, type=list[Row])
        except (msgspec.DecodeError, RecursionError) as error:
            raise FileError(f"the journal of study {self.name!r} is damaged: {error}") from None
        self._runs += len(rows)
        if self._runs > MAX_STUDY_RUNS_SHOWN:
            raise FileError(
                f"the study has more than {MAX_STUDY_RUNS_SHOWN:,} runs in its journal, but the page reads at most so "
                "many; its points are shown when it is finished"
            )
        for row in rows:
            texts = {name: intern(getattr(row, name)) for name in ("arms", "algorithm", "options")}
            self._rows.setdefault(row.setting, []).append(msgspec.structs.replace(row, **texts))
        return {row.setting for row in rows}


def read_points(path: Path) -> list[PointSummary]:
    """The points of a finished study, from the file that it wrote."""
    with open_regular(path) as file:
        data = file.read(LARGEST_POINTS_FILE + 1)
    if len(data) > LARGEST_POINTS_FILE:
        raise FileError(f"{path.name} has more than {LARGEST_POINTS_FILE:,} bytes, which the page does not read")
    try:
        rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
        return msgspec.convert(rows, list[PointSummary], strict=False)
    except (UnicodeDecodeError, csv.Error, msgspec.ValidationError) as error:
        raise FileError(f"{path.name} does not hold the points of a study: {error}") from None


class Studies:
    """The studies in folders: the folder itself, its subfolders, and those of a reproduction (`studies/*`).

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "sweep").mkdir()
    >>> (folder / "sweep" / "journal").touch()
    >>> [study.name for study in Studies(lambda: [folder]).all()]
    ['sweep']
    """

    def __init__(self, folders: Callable[[], Iterable[Path]]) -> None:
        self._folders = folders
        self._lock = threading.Lock()
        self._studies: dict[Path, WatchedStudy] = {}

    def all(self) -> list[WatchedStudy]:
        """All studies that exist now."""
        with self._lock:
            paths = [path for folder in self._folders() for path in _studies_in(folder)][:MAX_STUDIES_SHOWN]
            for path in paths:
                if path not in self._studies:
                    self._studies[path] = WatchedStudy(path, self._name(path))
            return [self._studies[path] for path in dict.fromkeys(paths)]

    def named(self, name: str) -> WatchedStudy | None:
        """The study with this name, or None."""
        return next((study for study in self.all() if study.name == name), None)

    def _name(self, path: Path) -> str:
        taken = {study.name for study in self._studies.values()}
        names = (path.name, f"{path.parent.name} {path.name}", *(f"{path.name} {count}" for count in range(2, 999)))
        return next(name for name in names if name not in taken)


def _studies_in(folder: Path) -> list[Path]:
    folders = [folder, *sorted(folder.glob("*/")), *sorted(folder.glob("studies/*/"))]
    return [path for path in folders if (path / _JOURNAL).is_file() or (path / _POINTS).is_file()]
