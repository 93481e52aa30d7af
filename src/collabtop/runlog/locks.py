"""Locks on files: one writer per file, across threads, handles and processes.

Each kind of lock belongs to an open handle, not to a process as POSIX locks do. So a second handle of the same process
is refused too, and opening and closing the file elsewhere, to read it, neither takes nor releases the lock.

========  ==============================================================================================
Linux     open file description locks
Windows   `msvcrt.locking`, on a byte far behind the contents, since a locked range cannot be read elsewhere
others    `flock`
========  ==============================================================================================
"""

import os
import struct
import sys
import threading
import time
from contextlib import suppress
from os import PathLike
from typing import IO, Any
from weakref import WeakValueDictionary

from collabtop.runlog.regular import open_regular

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_HAS_OFD_LOCKS = sys.platform == "linux"
_FLOCK = struct.Struct("hhqqi4x")
"""The layout of `struct flock`: type, whence, start, length, process."""
_LOCKED_BYTE = 1 << 40
_PROBES, _PROBE_SECONDS = 10, 0.01
"""On systems where asking for a lock's owner means taking the lock for a moment, a writer tries again this often."""

_locked: WeakValueDictionary[int, IO[Any]] = WeakValueDictionary()
"""The handles of this process that hold a lock, by their id."""
_registry = threading.Lock()
"""Held while a handle takes its lock and is added to `_locked`, so that other threads see both or neither."""


def lock_file(file: IO[Any]) -> bool:
    """Lock a file until it is closed; False if another handle has the lock, in this process or a different one.

    Forked children do not inherit the lock: their copy of the handle is closed.
    """
    for attempt in range(1 if _HAS_OFD_LOCKS else _PROBES):
        time.sleep(_PROBE_SECONDS if attempt else 0.0)
        with _registry:
            if _try_lock(file):
                _locked[id(file)] = file
                return True
    return False


def is_in_use(path: str | PathLike[str]) -> bool | None:
    """Whether a file is locked, by this process or a different one; None if there is no such file."""
    try:
        with open_regular(path) as file:
            if _HAS_OFD_LOCKS:
                return _has_owner(file)
            if not _try_lock(file):
                return True
            _unlock(file)
            return False
    except OSError:
        return None


def is_locked_here(file: IO[Any]) -> bool:
    """Whether a different handle of this process has the lock of this file."""
    status = os.fstat(file.fileno())
    for other in _open_handles():
        with suppress(ValueError, OSError):  # it was closed meanwhile
            if other is not file and os.path.samestat(os.fstat(other.fileno()), status):
                return True
    return False


def _open_handles() -> list[IO[Any]]:
    with _registry:
        handles = [reference() for reference in _locked.valuerefs()]
    return [handle for handle in handles if handle is not None and not handle.closed]


if sys.platform == "win32":

    def _try_lock(file: IO[Any]) -> bool:
        return _at_locked_byte(file, msvcrt.LK_NBLCK)

    def _unlock(file: IO[Any]) -> None:
        _at_locked_byte(file, msvcrt.LK_UNLCK)

    def _at_locked_byte(file: IO[Any], operation: int) -> bool:
        position = file.seek(0, os.SEEK_CUR)
        file.seek(_LOCKED_BYTE)
        try:
            msvcrt.locking(file.fileno(), operation, 1)
        except PermissionError:
            return False
        finally:
            file.seek(position)
        return True

else:

    def _try_lock(file: IO[Any]) -> bool:
        try:
            if _HAS_OFD_LOCKS:
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
            else:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # POSIX allows either
            return False
        return True

    def _unlock(file: IO[Any]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


def _has_owner(file: IO[Any]) -> bool:
    """Ask for the owner of a lock instead of trying to take it, so that a run that starts now is not disturbed."""
    answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def _close_inherited() -> None:
    """In a forked child: close the copies of locked files, which would keep the lock after the parent has ended."""
    for file in _open_handles():
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)
