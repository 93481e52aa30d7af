"""Files that are appended to: whose they are, and that all of a record gets in."""

from __future__ import annotations

import os
from io import FileIO


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
