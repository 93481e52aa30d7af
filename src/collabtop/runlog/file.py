"""Logs on disk: append only, one writer at a time, intact after a kill or a power cut at any moment."""

import logging
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from io import FileIO
from os import PathLike
from pathlib import Path
from time import monotonic, sleep, time
from typing import IO, Any

from collabtop.errors import CheckpointError, FileError, reason
from collabtop.runlog.consistency import RecordCheck
from collabtop.runlog.flusher import Flusher
from collabtop.runlog.format import (
    MAGIC,
    AgentState,
    AgentStatus,
    Extended,
    Finished,
    Record,
    Timestamp,
    answer_in,
    framed,
)
from collabtop.runlog.locks import is_locked_here, lock_file
from collabtop.runlog.reading import Tail, damaged, examine, read_records
from collabtop.runlog.regular import open_regular, private_only, regular_only

if sys.platform == "darwin":
    import fcntl

_log = logging.getLogger("collabtop.runlog")

_SECONDS_UNTIL_SYNC = 0.5
"""A power cut may undo a second: this pause, and the time that the fsync itself takes."""
_SECONDS_BETWEEN_TIMESTAMPS = 1.0
_SECONDS_BETWEEN_TRIES = 0.01
LARGEST_LOG = 1 << 32
"""The most bytes of a log: it is read as a whole."""


class RunLog:
    """A log that is open for writing. If `private`, a new file is readable by its owner only.

    A kill undoes nothing that was appended, and a power cut at most a second of it: a thread calls fsync for all that
    was appended in the meantime. A torn tail, which a power cut leaves, is dropped when the log is opened.

    Errors call the log by its `name`, and recommend `advice` when a write has failed. A log that is in use is waited
    for, up to `wait` seconds.

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
        wait: float = 0.0,
    ) -> None:
        self.path = Path(path)
        self._shown, self._advice = f"{name} {str(path)!r}", advice
        self._lock = threading.Lock()
        self._sync_lock = threading.Lock()
        self._next_timestamp = -math.inf
        self._error: CheckpointError | None = None
        self._flusher = Flusher(self._sync_in_background, _SECONDS_UNTIL_SYNC)
        self._file = open_locked(path, self._shown, private=private, wait=wait)
        try:
            records, tail = examine(contents(self._file, self._shown), self.path)
            RecordCheck(self.path).add(records)
            if tail is not None:
                self._drop(tail)
            self.records = records
            """The records that the file held when it was opened."""
            self.answer = answer_in(records)
            """The answer of the run, once it is logged."""
            self._size = self._file.seek(0, os.SEEK_END)
            self._synced = 0
            self._is_new = not self._size
            if self._is_new:
                self._write(MAGIC)
            else:
                self.sync()  # an earlier process may have been killed before it called fsync
        except BaseException:
            self._file.close()
            raise

    def append(self, record: Record, *, sync: bool = False) -> None:
        """Append a record; with `sync`, return when it is on disk."""
        frame, kind = framed(record), type(record)  # isinstance is slow for these classes
        if kind is Finished:
            self.sync()  # so that a complete answer proves that everything before it was complete
        with self._lock:
            if self._file.closed:  # by an agent that nothing waits for any more, or in a forked child
                return
            if kind is AgentStatus and self.answer is not None:  # nothing follows the answer
                return
            self._write(frame)
            if kind is Finished or kind is Extended:
                self.answer = answer_in([record])
        if sync:
            self.sync()
        else:
            self._flusher.request()

    def sync(self) -> None:
        """Return when everything that was appended is on disk."""
        with self._sync_lock:
            with self._lock:
                if self._file.closed or self._size == self._synced:
                    return
                if self._error is not None:  # a second fsync may succeed though the first one has lost data
                    raise self._error
                size = self._size
            try:  # without the first lock: other threads may append meanwhile
                sync_file(self._file)
            except OSError as error:
                raise self._failed(error) from None
            self._synced = size

    def read(self) -> list[Record]:
        """All records that the file holds now."""
        with self._lock:
            self._file.seek(0)
            records, _ = read_records(contents(self._file, self._shown), self.path)
        return records

    def note_time(self) -> None:
        """Append the time of day, at most once per second."""
        if monotonic() >= self._next_timestamp:
            with self._lock:
                if monotonic() >= self._next_timestamp:
                    self._write_timestamp()

    def note_status(self, agents: Iterable[int], state: AgentState) -> None:
        """Append that agents became reachable or unreachable, unless the run is over.

        A restarted coordinator relies on who was connected and who was lost, so that is on disk at once. If it fails,
        the next exchange raises the error.
        """
        numbers = sorted(agents)
        if numbers:
            with suppress(CheckpointError):
                self.append(AgentStatus(numbers, state, time()), sync=state != "away")

    def close(self) -> None:
        """Close the file and release its lock."""
        self._flusher.stop()
        with suppress(CheckpointError):  # a failed write was already reported
            self.sync()
            with self._lock:
                if self._next_timestamp > -math.inf and self.answer is None:
                    self._write_timestamp()  # from now on, damage is not taken for a torn tail
        self._sync_folder()
        with self._sync_lock, self._lock:
            self._file.close()

    def _sync_in_background(self) -> None:
        with suppress(CheckpointError):  # the next write raises it
            self.sync()
        self._sync_folder()

    def _sync_folder(self) -> None:
        if self._is_new:
            self._is_new = False
            sync_folder(self.path.parent)

    def _drop(self, tail: Tail) -> None:
        if not tail.torn:
            raise damaged(self.path, tail)
        self._file.truncate(tail.start)
        inside = f", with {tail.records:,} complete records ({tail.pulls:,} pulls)" if tail.records else ""
        _log.warning(
            "%s ended in a torn record, as after a power cut: dropped the last %s bytes%s",
            *(self._shown, f"{tail.size:,}", inside),
        )

    def _write_timestamp(self) -> None:
        if not self._file.closed:
            self._next_timestamp = monotonic() + _SECONDS_BETWEEN_TIMESTAMPS
            self._write(framed(Timestamp(time(), self._synced)))

    def _write(self, data: bytes) -> None:
        if self._error is not None:  # nothing after a torn record can be read
            raise self._error
        if self._size + len(data) > LARGEST_LOG:
            self._error = CheckpointError(
                f"{self._shown} would have more than {LARGEST_LOG:,} bytes, which no reader accepts: run without a "
                "checkpoint, or with a shorter horizon"
            )
            raise self._error
        try:
            write_all(self._file, data)
        except OSError as error:
            raise self._failed(error) from None
        self._size += len(data)

    def _failed(self, error: OSError) -> CheckpointError:
        self._error = CheckpointError(f"{self._shown}: {reason(error)}; fix this and {self._advice}")
        return self._error


def open_locked(
    path: str | PathLike[str], name: str, *, private: bool = False, create: bool = True, wait: float = 0.0
) -> FileIO:
    """Open a file to read it and append to it, as its only writer; errors call it by its `name`."""
    deadline = monotonic() + wait
    while True:
        try:
            file = open(path, "a+b" if create else "r+b", buffering=0, opener=private_only if private else regular_only)  # noqa: SIM115
        except OSError as error:
            raise FileError(f"{name}: {reason(error)}", argument="checkpoint") from None
        try:
            if _lock_current(file, path, name, deadline):
                file.seek(0)
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _lock_current(file: FileIO, path: str | PathLike[str], name: str, deadline: float) -> bool:
    """Lock a file; False if the path meanwhile leads to a different one."""
    try:
        while not (locked := lock_file(file)) and monotonic() < deadline:
            sleep(_SECONDS_BETWEEN_TRIES)
        if not locked:
            user = "this process" if is_locked_here(file) else "another process"
            raise FileError(f"{name} is in use by {user}", argument="checkpoint")
        return os.path.samestat(os.fstat(file.fileno()), Path(path).stat())
    except FileNotFoundError:
        return False
    except OSError as error:
        raise FileError(f"{name}: {reason(error)}", argument="checkpoint") from None


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
    records, _ = read_records(data, path)
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
    written = file.write(data)
    while written < len(data):
        written += file.write(memoryview(data)[written:])


def sync_file(file: IO[Any]) -> None:
    """Return when everything written to a file is on disk."""
    if sys.platform == "darwin":
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)  # fsync leaves it in the cache of the disk there
    else:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make sure that a power cut does not undo the creation of a file in this folder, if the system supports that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
