"""Logs on disk: append only, one process at a time, whole after a kill at any moment."""

from __future__ import annotations

import os
import struct
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from io import FileIO
from os import PathLike
from pathlib import Path
from time import monotonic, time
from types import ModuleType
from typing import IO, Any

from collabtop.errors import CheckpointError, FileError, reason
from collabtop.runlog.format import MAGIC, AgentState, AgentStatus, Record, Timestamp, answer_in, framed, read_records

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

_SECONDS_AT_RISK = 1.0
"""How much of a run a power cut may undo: waiting for the disk at every exchange would hold up quick ones."""
_SECONDS_BETWEEN_MOMENTS = 1.0


class RunLog:
    """The checkpoint of a run, open for going on; one that is `private` and new is readable by its owner alone.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> from collabtop.runlog.format import Finished
    >>> log = RunLog(path)
    >>> log.append(Finished([3]))
    >>> log.close()
    >>> read_log(path)
    [Finished(top=[3])]
    """

    def __init__(self, path: str | PathLike[str], *, private: bool = False) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._closed = False
        self._synced = 0.0
        self.seconds_at_risk = _SECONDS_AT_RISK
        """What a power cut may undo of that which is written with `sync`."""
        self._moment: float | None = None
        self._trouble: CheckpointError | None = None
        try:
            self._file = open(self.path, "a+b", buffering=0, opener=owner_only if private else None)  # noqa: SIM115
        except OSError as error:
            raise FileError(f"checkpoint {str(path)!r}: {reason(error)}", argument="checkpoint") from None
        try:
            if not lock_file(self._file):
                raise FileError(
                    f"checkpoint {str(path)!r} is in use: another process is running it", argument="checkpoint"
                )
            self._file.seek(0)
            data = self._file.read()
            self.records, good = read_records(data, self.path)
            """What was there when it was opened."""
            self.answer = answer_in(self.records)
            """The answer of the run, once it is logged."""
            self._file.truncate(good)
            if not good:
                self._write(MAGIC)
        except BaseException:
            self._file.close()
            raise

    def append(self, record: Record, *, sync: bool = False) -> None:
        """Add a record, and return when a kill cannot undo it (`sync`: nor a power cut, at most one second of it)."""
        frame = framed(record)
        with self._lock:
            if self._closed:  # an agent that was not waited for: nobody needs its pull any more
                return
            if self.answer is not None and isinstance(record, AgentStatus):  # the answer is the last
                return
            self._write(frame)
            self.answer = self.answer or answer_in([record])
            if sync and monotonic() - self._synced >= self.seconds_at_risk:
                os.fsync(self._file.fileno())
                self._synced = monotonic()

    def note_time(self) -> None:
        """Write down what the clock says, once a second at most."""
        now = monotonic()
        with self._lock:
            if not self._closed and (self._moment is None or now - self._moment >= _SECONDS_BETWEEN_MOMENTS):
                self._moment = now
                self._write(framed(Timestamp(time())))

    def note_status(self, agents: Iterable[int], state: AgentState) -> None:
        """Write down that agents come or go, unless the run is over.

        Where that fails, the next exchange says so, and ends the run.
        """
        named = sorted(agents)
        if named:
            with suppress(CheckpointError):
                self.append(AgentStatus(named, state, time()))

    def close(self) -> None:
        """Let others use the file."""
        with self._lock:
            if not self._closed:
                self._closed = True
                with suppress(OSError):  # what could not be written was said when it was
                    os.fsync(self._file.fileno())
                self._file.close()

    def _write(self, data: bytes) -> None:
        if self._trouble is not None:  # what comes after half a record could not be read
            raise self._trouble
        try:
            write_all(self._file, data)
        except OSError as error:
            self._trouble = CheckpointError(
                f"checkpoint {str(self.path)!r}: {reason(error)}; fix this and call resume(): completed pulls are kept"
            )
            raise self._trouble from None


def read_log(path: str | PathLike[str]) -> list[Record]:
    """All whole records of a checkpoint, without touching it."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"checkpoint {str(path)!r}: {reason(error)}", argument="checkpoint") from None
    return read_records(data, Path(path))[0]


def owner_only(path: str, flags: int) -> int:
    """An opener for `open`: a file that it makes is for its owner alone, from the first byte on.

    One that is there already stays as it is: somebody may have let others in on purpose.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "journal"
    >>> open(path, "ab", opener=owner_only).close()
    >>> oct(path.stat().st_mode & 0o777)
    '0o600'
    """
    return os.open(path, flags, 0o600)


def write_all(file: FileIO, data: bytes) -> None:
    """Write all of it or raise: an unbuffered write may take a part only, as on a disk that is nearly full."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def lock_file(file: IO[Any]) -> bool:
    """Keep other processes out, or say that one has it. The lock is this process's own: children do not inherit it."""
    if fcntl is None:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_in_use(path: str | PathLike[str]) -> bool | None:
    """Whether another process has a file locked, or None where that cannot be told. The file is left as it is.

    It asks who has the lock, and does not try to get it: a run that begins at that very moment is not in the way.
    Not for files that this very process has locked: closing any handle of one gives its lock back.
    """
    if fcntl is None or sys.platform not in _FLOCK:
        return None
    form, fields = _FLOCK[sys.platform]
    wanted = {"type": fcntl.F_WRLCK, "whence": 0, "start": 0, "length": 0, "process": 0}
    try:
        with Path(path).open("rb") as file:
            answer = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(form, *(wanted[name] for name in fields)))
    except OSError:
        return None
    found = dict(zip(fields, struct.unpack(form, answer), strict=True))
    return bool(found["type"] != fcntl.F_UNLCK)


# How the system writes down a lock (`struct flock`).
_FLOCK = {
    "linux": ("hhqqi4x", ("type", "whence", "start", "length", "process")),
    "darwin": ("qqihh", ("start", "length", "process", "type", "whence")),
}
