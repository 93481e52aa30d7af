"""One process at a time on a file that is appended to."""

from __future__ import annotations

import struct
import sys
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import IO, Any

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None


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
