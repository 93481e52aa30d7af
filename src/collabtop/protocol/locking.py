"""One process at a time on a file that is appended to."""

from __future__ import annotations

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
