"""What a study has done so far, on disk: append only, checksummed, whole after a kill at any moment."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any

from collabtop.errors import FileError


class Journal:
    """Records, one a line with its checksum; a torn last line is dropped when the journal is opened again.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "journal"
    >>> with Journal(path, fingerprint="f") as journal:
    ...     journal.append({"done": 1})
    >>> with Journal(path, fingerprint="f") as journal:
    ...     journal.records
    [{'done': 1}]
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        lines, good = _read(path)
        if lines and lines[0].get("study") != fingerprint:
            raise FileError(f"{path} belongs to another study: choose another folder, or remove that one")
        self.records = lines[1:]
        """What was appended before."""
        self._file = path.open("ab")
        self._file.truncate(good)
        if not lines:
            self.append({"study": fingerprint})

    def append(self, record: dict[str, Any]) -> None:
        """Add a record, and return when it is on disk."""
        body = json.dumps(record, separators=(",", ":")).encode()
        self._file.write(b"%08x %s\n" % (zlib.crc32(body), body))
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def _read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The whole records at the start of the file, and where they end."""
    records: list[dict[str, Any]] = []
    good = 0
    if not path.exists():
        return records, good
    for line in path.read_bytes().splitlines(keepends=True):
        checksum, _, body = line.partition(b" ")
        if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(body[:-1]):
            break
        records.append(json.loads(body))
        good += len(line)
    return records, good
