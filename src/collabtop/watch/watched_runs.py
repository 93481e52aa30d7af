"""The runs that a page shows. Each is a log that is read further when it is viewed."""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Literal

from collabtop.errors import CollabtopError, FileError
from collabtop.runlog.format import Exchange, Extended, Header, Record, Timestamp
from collabtop.runlog.locks import is_in_use
from collabtop.runlog.log_state import LogState, lost_in
from collabtop.runs.peeking import logged_result
from collabtop.runs.printing import printable
from collabtop.runs.replay import Replay
from collabtop.runs.result import Result
from collabtop.watch.baselines import Baseline, Order, baseline_of, order_of
from collabtop.watch.call_statistics import CallStatistics
from collabtop.watch.intervals import KnownIntervals, RewardEvidence, SeenIntervals
from collabtop.watch.log_follower import LogFollower
from collabtop.watch.pull_history import PullHistory

Status = Literal["waiting", "reading", "running", "stopped", "finished", "unreadable"]

_SECONDS_BETWEEN_READS = 0.15
_SECONDS_UNTIL_STOPPED = 15.0
"""Seconds without new records after which a run counts as stopped, on systems that cannot tell if a log is locked."""

MAX_ARMS_SHOWN, MAX_AGENTS_SHOWN = 100_000, 10_000
"""The most candidates and agents of a run that the page shows: it keeps several numbers for each, per viewer."""
MAX_WEIGHTED_SHOWN = 5_000_000
"""The most candidates times agents of a run with weights: the rewards of each agent are added up separately."""
MAX_RUNS_SHOWN = 1_000
"""The most runs that the page lists: those that were changed last."""
MAX_HISTORIES = 8
"""The most candidates of a run whose pulls are kept: those that a page asked for last."""

_log = logging.getLogger("collabtop.watch")


class WatchedRun:
    """A run: the state of its log and, once a page shows it in detail, the replay of its coordinator."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.lock = threading.Lock()
        """Must be held to read or write the fields below."""
        self.labels: list[str] | None = None
        """The labels of the candidates, if they have some, with control characters as escapes."""
        self.error: str | None = None
        """Why the log cannot be read, if it cannot."""
        self.version = 0
        """Incremented whenever the log is read again from its beginning, and when the run is extended."""
        self._follower = LogFollower(path)
        self._replay: Replay | None = None
        self._wants_replay = False
        self._lossy_legs: set[int] = set()
        self._unprocessed: deque[Record] = deque()
        self._clear()
        self._last_read = 0.0
        self._last_growth = time.monotonic()
        self._in_use: bool | None = None
        self._histories: dict[int, PullHistory] = {}

    evidence: RewardEvidence
    """What the rewards say where each example is used once; there is none before the header is read."""
    known_intervals: KnownIntervals
    seen_intervals: SeenIntervals

    def _clear(self) -> None:
        """Forget what was read of the log."""
        if self._replay is not None:
            self._replay.close()
        self._replay = None
        self.state = LogState()
        self.calls = CallStatistics()
        self.baseline: Baseline | None = None
        self._unprocessed.clear()

    # -- reading

    def update(self, *, replay: bool, seconds: float = math.inf) -> None:
        """Process what was added to the log, with `replay` also by running the algorithm on it.

        After `seconds` the rest is left for the next call, so that a page does not have to wait for a long log.
        """
        with self.lock:
            if replay and not self._wants_replay:
                self._restart(replay=True)  # the algorithm needs the exchanges from the first one on
            deadline = time.monotonic() + seconds
            if self.error or (not self._is_behind and time.monotonic() - self._last_read < _SECONDS_BETWEEN_READS):
                return
            try:
                self._read()
                while self._is_behind and time.monotonic() < deadline:
                    if not self._unprocessed:
                        self._read()
                    while self._unprocessed and time.monotonic() < deadline:
                        self._process(self._unprocessed.popleft())
            except Exception as error:
                self._fail(error)
            self._last_read = time.monotonic()

    @property
    def _is_behind(self) -> bool:
        return bool(self._unprocessed) or self._follower.has_more

    def _read(self) -> None:
        if self._unprocessed:
            return
        self._in_use = is_in_use(self.path)  # before reading, so that all records of a run that has ended are read
        records = self._follower.read()
        if self._follower.restarted:
            self._restart(replay=self._wants_replay, rewind=False)
        if records:
            self._last_growth = time.monotonic()
        self._unprocessed.extend(records)

    def _process(self, record: Record) -> None:
        if self._replay is not None and isinstance(record, Exchange):
            if lost_in(record) and self._replay.header.extensions not in self._lossy_legs:
                self._lossy_legs.add(self._replay.header.extensions)  # the algorithm has to know it from the start
                self._restart(replay=True)
                self._read()
                return
            self._replay.add(record)
        if isinstance(record, Header):
            _check_size(record)
            self.labels = None if record.labels is None else [printable(label, markup=False) for label in record.labels]
        self.state.add(record)
        if isinstance(record, Exchange):
            self.evidence.end_batch()
        self.calls.add(record, self.state.pulls if isinstance(record, Timestamp) else 0)
        if isinstance(record, Header | Extended):
            self._begin_leg()

    def _begin_leg(self) -> None:
        """Replay the run from its header on, or the leg that extends it, whose algorithm begins anew."""
        header = self.header
        assert header is not None
        self.version += header.extensions > 0  # the page shows the rounds of the last leg only
        if self._replay is not None:
            self._replay.close()
        if not header.extensions:
            self.evidence = RewardEvidence(self.state.tally, header)
        self.known_intervals, self.seen_intervals = KnownIntervals(), SeenIntervals()
        if self._wants_replay:
            self._replay = Replay(header, tolerates_loss=header.extensions in self._lossy_legs)
            threading.Thread(target=self._simulate_baseline, args=(header, self.version), daemon=True).start()

    def fail(self, error: Exception) -> None:
        """Show the run as unreadable because of this error, so that the other runs can be shown."""
        with self.lock:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, CollabtopError):
            self.error = str(error)
        else:  # a defect of the page
            _log.exception("log %r cannot be shown", str(self.path), exc_info=error)
            self.error = f"checkpoint {str(self.path)!r} cannot be shown ({type(error).__name__}: {error})"
        self._clear()
        self._follower.has_more = False

    def _restart(self, *, replay: bool, rewind: bool = True) -> None:
        self._clear()
        self.version += 1
        self._wants_replay = replay
        if rewind:
            self._follower, self._last_read = LogFollower(self.path), 0.0
        else:
            self._lossy_legs.clear()  # these were found in the previous log

    def _simulate_baseline(self, header: Header, version: int) -> None:
        baseline = baseline_of(header)
        with self.lock:
            if version == self.version:  # otherwise this is the baseline of the previous log
                self.baseline = baseline

    # -- state

    @property
    def header(self) -> Header | None:
        """The description of the run, once it is read."""
        return self.state.header

    @property
    def n(self) -> int:
        """The number of candidates, as far as it is known."""
        return 0 if self.header is None else self.header.n

    @property
    def replay(self) -> Replay | None:
        """The replay of the run, if there is one and the run can be replayed."""
        return self._replay if self._replay is not None and self._replay.error is None else None

    @property
    def replay_error(self) -> str | None:
        """Why the run cannot be replayed, if it cannot."""
        return None if self._replay is None else self._replay.error

    @property
    def status(self) -> Status:
        """Whether the run is in progress, and if not, why."""
        if self.error is not None:
            return "unreadable"
        if self.state.top is not None:
            return "finished"
        if self._is_behind:
            return "reading"
        if self.header is None:
            return "waiting"
        silence = time.monotonic() - self._last_growth
        stopped = silence > _SECONDS_UNTIL_STOPPED if self._in_use is None else not self._in_use
        return "stopped" if stopped else "running"

    @property
    def order(self) -> Order | None:
        """The order of the words that the paper proves."""
        return None if self.header is None else order_of(self.header)

    def label(self, arm: int) -> str:
        """The label of a candidate, or its number."""
        labels = self.header.labels if self.header else None
        return labels[arm] if labels else str(arm)

    def history(self, arm: int) -> PullHistory:
        """The pulls of a candidate, to be read with its `update`."""
        with self.lock:
            history = self._histories.pop(arm, None) or PullHistory(self.path, arm)
            self._histories[arm] = history  # the latest one comes last
            while len(self._histories) > MAX_HISTORIES:
                del self._histories[next(iter(self._histories))]
            return history

    @property
    def title(self) -> str:
        """The name that the run was given, or that of its file."""
        return printable(self.header.name if self.header and self.header.name else self.name, markup=False)

    def result(self) -> Result:
        """The result of a finished run, equal to the one that the run itself returned; otherwise the answer so far."""
        assert self.header is not None
        return logged_result(self.state, self.header, self.replay)


def _check_size(header: Header) -> None:
    cells = 0 if header.weights is None else header.n * header.agents
    for name, count, most in (
        ("candidates", header.n, MAX_ARMS_SHOWN),
        ("agents", header.agents, MAX_AGENTS_SHOWN),
        ("candidates times agents with weights", cells, MAX_WEIGHTED_SHOWN),
    ):
        if count > most:
            raise FileError(f"the run has {count:,} {name}, but the page shows runs with at most {most:,}")


class Runs:
    """The logs to show: files, and all `*.ctlog` files in folders, including those that are added later.

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
        """Also show this file or folder."""
        path = Path(source).absolute()
        with self._lock:
            if path not in self._sources:
                self._sources.append(path)

    def folders(self) -> list[Path]:
        """The folders among the sources."""
        with self._lock:
            return [source for source in self._sources if source.is_dir()]

    def all(self) -> list[WatchedRun]:
        """All runs that exist now, by source and file name."""
        with self._lock:
            paths = list(dict.fromkeys(path for source in self._sources for path in self._logs(source)))
            if len(paths) > MAX_RUNS_SHOWN:
                latest = set(sorted(paths, key=_changed_at, reverse=True)[:MAX_RUNS_SHOWN])
                paths = [path for path in paths if path in latest]
            for deleted in self._runs.keys() - set(paths):
                del self._runs[deleted]
            for path in paths:
                if path not in self._runs:
                    self._runs[path] = WatchedRun(path, self._name(path))
            return [self._runs[path] for path in paths]

    def named(self, name: str) -> WatchedRun | None:
        """The run with this name, or None if there is none."""
        return next((run for run in self.all() if run.name == name), None)

    def _name(self, path: Path) -> str:
        taken = {run.name for run in self._runs.values()}
        names = [path.name, f"{path.parent.name} {path.name}"]
        names += [f"{path.parent.name} {path.name} {number}" for number in range(2, len(taken) + 3)]
        return next(name for name in names if name not in taken)

    def _logs(self, source: Path) -> list[Path]:
        return sorted(source.glob("*.ctlog")) if source.is_dir() else [source]


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
