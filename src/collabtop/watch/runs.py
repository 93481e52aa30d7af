"""The runs that a page shows: logs by name, each read on when somebody looks."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Literal

from collabtop.errors import FileError
from collabtop.runlog.file import is_in_use
from collabtop.runlog.format import Exchange, Header, Record
from collabtop.runs.result import Observed, Result
from collabtop.watch.baselines import Order, Rival, order_of, rival_of
from collabtop.watch.follow import LogFollower
from collabtop.watch.log_state import Tally, lost_in
from collabtop.watch.replay import Replay

Status = Literal["waiting", "reading", "running", "stopped", "finished", "unreadable"]

_SECONDS_BETWEEN_READS = 0.15
_SILENCE = 15.0
"""Seconds without a word after which a run counts as stopped, where the system does not tell who uses its log."""


class WatchedRun:
    """One run: what its log tells, and from the moment somebody looks closer what its coordinator thinks."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.lock = threading.Lock()
        """Held by whoever reads or writes the fields below."""
        self.tally = Tally()
        self.replay: Replay | None = None
        self.trouble: str | None = None
        """Why the log cannot be read, where it cannot."""
        self.rival: Rival | None = None
        self.version = 0
        """Another number whenever the log was begun again."""
        self._follower = LogFollower(path)
        self._closer = False
        self._may_lose = False
        self._unread: deque[Record] = deque()
        self._read_at = 0.0
        self._grew_at = time.monotonic()
        self._in_use: bool | None = None

    # -- reading on

    def read_on(self, *, closer: bool, seconds: float = math.inf) -> None:
        """Take in what was added to the log; `closer` also runs the algorithm on it.

        After that many seconds the rest is left for the next time, so that a long log does not keep a page waiting.
        """
        with self.lock:
            if closer and not self._closer:
                self._begin_again(closer=True)  # the algorithm needs the exchanges from the first one on
            until = time.monotonic() + seconds
            if self.trouble or (not self._is_behind and time.monotonic() - self._read_at < _SECONDS_BETWEEN_READS):
                return
            try:
                self._read()
                while self._is_behind and time.monotonic() < until:
                    if not self._unread:
                        self._read()
                    self._take_some(until)
            except FileError as error:
                self.trouble = str(error)
            self._read_at = time.monotonic()

    @property
    def _is_behind(self) -> bool:
        return bool(self._unread) or self._follower.has_more

    def _read(self) -> None:
        if self._unread:
            return
        self._in_use = is_in_use(self.path)  # before reading: what is written before an end is read after it
        records = self._follower.read()
        if self._follower.began_again:
            self._begin_again(closer=self._closer, rewind=False)
        if records:
            self._grew_at = time.monotonic()
        self._unread.extend(records)

    def _take_some(self, until: float) -> None:
        while self._unread and time.monotonic() < until:
            self._take(self._unread.popleft())

    def _take(self, record: Record) -> None:
        if self.replay is not None and isinstance(record, Exchange):
            if lost_in(record) and not self._may_lose:
                self._may_lose = True  # the algorithm has to expect it from the first exchange on
                self._begin_again(closer=True)
                self._read()
                return
            self.replay.take(record)
        self.tally.take(record)
        if self._closer and isinstance(record, Header):
            self.replay = Replay(record, tolerates_loss=self._may_lose)
            threading.Thread(target=self._find_rival, args=(record, self.version), daemon=True).start()

    def _begin_again(self, *, closer: bool, rewind: bool = True) -> None:
        if self.replay is not None:
            self.replay.close()
        self.tally, self.replay, self.rival = Tally(), None, None
        self.version += 1
        self._closer = closer
        self._unread.clear()
        if rewind:
            self._follower, self._read_at = LogFollower(self.path), 0.0
        else:
            self._may_lose = False  # that was about the log before

    def _find_rival(self, header: Header, version: int) -> None:
        rival = rival_of(header)
        with self.lock:
            if version == self.version:  # else it may be another log by now, whose own rival was quicker
                self.rival = rival

    # -- what is known

    @property
    def header(self) -> Header | None:
        """What is run."""
        return self.tally.header

    @property
    def status(self) -> Status:
        """Whether it goes on, and if not, why."""
        if self.trouble is not None:
            return "unreadable"
        if self.tally.top is not None:
            return "finished"
        if self._is_behind:
            return "reading"
        quiet = time.monotonic() - self._grew_at > _SILENCE if self._in_use is None else not self._in_use
        if quiet:
            return "waiting" if self.header is None else "stopped"
        return "waiting" if self.header is None else "running"

    @property
    def order(self) -> Order | None:
        """The order of words that the paper proves."""
        return None if self.header is None else order_of(self.header)

    def label(self, arm: int) -> str:
        """What a candidate is called."""
        labels = self.header.labels if self.header else None
        return labels[arm] if labels else str(arm)

    def result(self) -> Result | None:
        """The result of a finished run, as the run itself had it."""
        replay, header, tally = self.replay, self.header, self.tally
        if replay is None or header is None or not replay.done:
            return None
        observed = Observed(tally.seen_pulls.copy(), tally.means) if tally.seen_pulls.any() else None
        failures = {self.label(arm): count for arm, count in sorted(tally.failed.items())}
        return Result(header, replay.outcome(), observe=lambda: observed, failures=failures)


class Runs:
    """Logs to show: files, and all `*.ctlog` of folders, also those that come later.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> runs = Runs([folder])
    >>> (folder / "kzz.ctlog").touch()
    >>> [run.name for run in runs.all()]
    ['kzz.ctlog']
    """

    def __init__(self, sources: Iterable[str | PathLike[str]] = ()) -> None:
        self._lock = threading.Lock()
        self._sources: list[Path] = []
        self._runs: dict[Path, WatchedRun] = {}
        for source in sources:
            self.add(source)

    def add(self, source: str | PathLike[str]) -> None:
        """Show this file, or this folder, as well."""
        path = Path(source).absolute()
        with self._lock:
            if path not in self._sources:
                self._sources.append(path)

    def all(self) -> list[WatchedRun]:
        """All runs there are now, in the order of their names."""
        with self._lock:
            found = [path for source in self._sources for path in self._logs(source)]
            for gone in self._runs.keys() - set(found):
                del self._runs[gone]
            for path in found:
                if path not in self._runs:
                    self._runs[path] = WatchedRun(path, self._name(path))
            return [self._runs[path] for path in dict.fromkeys(found)]

    def named(self, name: str) -> WatchedRun | None:
        """The run with that name."""
        return next((run for run in self.all() if run.name == name), None)

    def _name(self, path: Path) -> str:
        taken = {run.name for run in self._runs.values()}
        names = [path.name, f"{path.parent.name} {path.name}"]
        names += [f"{path.parent.name} {path.name} {number}" for number in range(2, len(taken) + 3)]
        return next(name for name in names if name not in taken)

    def _logs(self, source: Path) -> list[Path]:
        return sorted(source.glob("*.ctlog")) if source.is_dir() else [source]
