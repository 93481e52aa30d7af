"""Files that a user names, such as tables of means, settings and certificates: read up to a limit."""

import errno
import re
import tomllib
from collections.abc import Callable
from os import PathLike
from typing import Any

from collabtop.errors import FileError, reason

LARGEST_TEXT = 1 << 30
"""The most bytes of a text file."""
LARGEST_SETTINGS = 1 << 22
"""The most bytes of a file with settings, a certificate, a key or a secret."""
MAX_KEY_PARTS = 100
"""The most parts of a key in TOML (a.b.c has 3): reading a key takes memory proportional to their number squared."""
_BETWEEN_KEYS = re.compile(r"[,=\[\]{}\n]")


def read_limited(path: str | PathLike[str], most: int, opener: Callable[[str, int], int] | None = None) -> bytes:
    """Read a file; raise `OSError` if it has more than `most` bytes, without reading further.

    >>> read_limited("/dev/zero", 1_000)
    Traceback (most recent call last):
    OSError: [Errno 27] More than 1,000 bytes, the limit for such files: '/dev/zero'
    """
    with open(path, "rb", opener=opener) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"More than {most:,} bytes, the limit for such files", str(path))
    return data


def read_text(path: str | PathLike[str]) -> str:
    """Read a text file in UTF-8, with or without a byte order mark."""
    try:
        data = read_limited(path, LARGEST_TEXT)
    except OSError as error:
        raise FileError(f"{path}: {reason(error)}") from None
    except ValueError as error:  # an invalid file name
        raise FileError(f"{str(path)!r}: {error}") from None
    try:
        return _decoded(data)
    except ValueError as error:
        raise FileError(f"{path}, {error}") from None


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """Read settings in TOML; raise `ValueError` if the text is not valid, or nested too deeply.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "policy.toml"
    >>> _ = path.write_text("min_batch = 20")
    >>> read_toml(path)
    {'min_batch': 20}
    """
    text = _decoded(read_limited(path, LARGEST_SETTINGS))
    if any(part.count(".") >= MAX_KEY_PARTS for part in _BETWEEN_KEYS.split(text)):
        raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: byte {data[error.start]:#04x} is not UTF-8 text") from None
