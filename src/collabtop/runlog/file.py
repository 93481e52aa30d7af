"""Logs on disk: append only, one process at a time, intact after a kill at any moment."""

import os
import struct
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import FileIO
from os import PathLike
from pathlib import Path
from time import monotonic, time
from types import ModuleType
from typing import IO, Any

from collabtop.errors import CheckpointError, FileError, reason
from collabtop.runlog.consistency import RecordCheck
from collabtop.runlog.format import MAGIC, AgentState, AgentStatus, Record, Timestamp, answer_in, framed, read_records
from collabtop.runlog.regular import open_regular, private_only, regular_only

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

_SECONDS_AT_RISK = 1.0
"""How much of a run a power cut may undo: an fsync per exchange would slow down fast ones."""
_SECONDS_BETWEEN_TIMESTAMPS = 1.0
LARGEST_LOG = 1 << 32
"""The most bytes of a log that is read as a whole."""


class RunLog:
    """A log that is open for writing. If `private`, a new file is readable by its owner only.

    Errors call the log by its `name`, and recommend `advice` when a write has failed.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> from collabtop.runlog.format import Finished
    >>> log = RunLog(path)
    >>> log.append(Finished([3]))
    >>> log.close()
    >>> read_log(path)
    [Finished(top=[3])]
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        private: bool = False,
        name: str = "checkpoint",
        advice: str = "call resume(): completed pulls are kept",
    ) -> None:
        self.path = Path(path)
        self._shown, self._advice = f"{name} {str(path)!r}", advice
        self._lock = threading.Lock()
        self._closed = False
        self._synced = 0.0
        self.seconds_at_risk = _SECONDS_AT_RISK
        """Seconds between two fsyncs of records written with `sync`."""
        self._timestamp: float | None = None
        self._error: CheckpointError | None = None
        try:
            self._file = open(self.path, "a+b", buffering=0, opener=private_only if private else regular_only)  # noqa: SIM115
        except OSError as error:
            raise FileError(f"{self._shown}: {reason(error)}", argument="checkpoint") from None
        try:
            if not lock_file(self._file):
                raise FileError(f"{self._shown} is in use by another process", argument="checkpoint")
            self._file.seek(0)
            self.records, good = read_records(contents(self._file, self._shown), self.path)
            """The records that the file held when it was opened."""
            RecordCheck(self.path).add(self.records)
            self.answer = answer_in(self.records)
            """The answer of the run, once it is logged."""
            self._file.truncate(good)
            if not good:
                self._write(MAGIC)
        except BaseException:
            self._file.close()
            raise

    def append(self, record: Record, *, sync: bool = False) -> None:
        """Append a record. A kill cannot undo it; with `sync`, a power cut undoes at most `seconds_at_risk`."""
        frame = framed(record)
        with self._lock:
            if self._closed:  # by an agent that nothing waits for any more
                return
            if self.answer is not None and isinstance(record, AgentStatus):  # nothing follows the answer
                return
            self._write(frame)
            self.answer = self.answer or answer_in([record])
            if sync and monotonic() - self._synced >= self.seconds_at_risk:
                os.fsync(self._file.fileno())
                self._synced = monotonic()

    def note_time(self) -> None:
        """Append the time of day, at most once per second."""
        now = monotonic()
        with self._lock:
            if not self._closed and (self._timestamp is None or now - self._timestamp >= _SECONDS_BETWEEN_TIMESTAMPS):
                self._timestamp = now
                self._write(framed(Timestamp(time())))

    def note_status(self, agents: Iterable[int], state: AgentState) -> None:
        """Append that agents became reachable or unreachable, unless the run is over.

        If that fails, the next exchange raises the error.
        """
        numbers = sorted(agents)
        if numbers:
            with suppress(CheckpointError):
                self.append(AgentStatus(numbers, state, time()))

    def close(self) -> None:
        """Close the file and release its lock."""
        with self._lock:
            if not self._closed:
                self._closed = True
                with suppress(OSError):  # a failed write was already reported
                    os.fsync(self._file.fileno())
                self._file.close()

    def _write(self, data: bytes) -> None:
        if self._error is not None:  # nothing after a torn record can be read
            raise self._error
        try:
            write_all(self._file, data)
        except OSError as error:
            self._error = CheckpointError(f"{self._shown}: {reason(error)}; fix this and {self._advice}")
            raise self._error from None


def open_log(path: str | PathLike[str], first: Record, check: Callable[[Record], None], **options: Any) -> RunLog:
    """Open a log, or start it with the record `first`; `check` raises if an existing log begins with a wrong one."""
    log = RunLog(path, **options)
    try:
        if log.records:
            check(log.records[0])
        else:
            log.append(first, sync=True)
    except BaseException:
        log.close()
        raise
    return log


def read_log(path: str | PathLike[str]) -> list[Record]:
    """All complete records of a log; the file is not changed."""
    shown = f"checkpoint {str(path)!r}"
    try:
        with open_regular(path) as file:
            data = contents(file, shown)
    except OSError as error:
        raise FileError(f"{shown}: {reason(error)}", argument="checkpoint") from None
    records, _ = read_records(data, Path(path))
    RecordCheck(path).add(records)
    return records


def contents(file: FileIO, shown: str) -> bytes:
    """All that follows in a file of limited size; `shown` is what an error calls it."""
    size = os.fstat(file.fileno()).st_size
    if size > LARGEST_LOG:
        raise FileError(
            f"{shown} has {size:,} bytes, but a log has at most {LARGEST_LOG:,}: it is damaged, or not a log",
            argument="checkpoint",
        )
    return file.readall()


def owner_only(path: str, flags: int) -> int:
    """An opener for `open`: a new file is readable by its owner only, from the first byte on.

    The permissions of an existing file stay as they are.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "journal"
    >>> open(path, "ab", opener=owner_only).close()
    >>> oct(path.stat().st_mode & 0o777)
    '0o600'
    """
    return os.open(path, flags, 0o600)


def write_all(file: FileIO, data: bytes) -> None:
    """Write all of `data`: a single unbuffered write may be partial, as on a disk that is nearly full."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def lock_file(file: IO[Any]) -> bool:
    """Lock a file; False if another process has the lock. Child processes do not inherit it."""
    if fcntl is None:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_in_use(path: str | PathLike[str]) -> bool | None:
    """Whether another process has a file locked; None if the platform cannot tell.

    It asks for the owner of the lock instead of trying to take it, so a run that starts at the same moment is not
    disturbed. It must not be called for a file that this process has locked: closing any handle releases the lock.
    """
    if fcntl is None or sys.platform not in _FLOCK:
        return None
    form, fields = _FLOCK[sys.platform]
    wanted = {"type": fcntl.F_WRLCK, "whence": 0, "start": 0, "length": 0, "process": 0}
    try:
        with open_regular(path) as file:
            answer = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(form, *(wanted[name] for name in fields)))
    except OSError:
        return None
    lock = dict(zip(fields, struct.unpack(form, answer), strict=True))
    return bool(lock["type"] != fcntl.F_UNLCK)


# The layout of `struct flock`.
_FLOCK = {
    "linux": ("hhqqi4x", ("type", "whence", "start", "length", "process")),
    "darwin": ("qqihh", ("start", "length", "process", "type", "whence")),
}
