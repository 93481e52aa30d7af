"""Opens regular files only: a pipe or a device with the name of a log would block its reader, or never end."""

import errno
import os
import stat
from io import FileIO
from os import PathLike


def open_regular(path: str | PathLike[str]) -> FileIO:
    """Open a file for reading; raise `OSError` for a pipe, a device or a folder, without waiting for it."""
    return open(path, "rb", buffering=0, opener=regular_only)


def regular_only(path: str, flags: int, mode: int = 0o666) -> int:
    """An opener for `open`: anything but a regular file raises `OSError`, also what would block, such as a pipe.

    >>> open("/dev/null", "rb", opener=regular_only)
    Traceback (most recent call last):
    OSError: [Errno 22] Not a regular file: '/dev/null'
    """
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), mode)  # not on Windows
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    return descriptor


def private_only(path: str, flags: int) -> int:
    """An opener as `regular_only`; a new file is readable by its owner only, from the first byte on."""
    return regular_only(path, flags, 0o600)
