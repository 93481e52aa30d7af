"""The finished runs of a study on disk: append-only, checksummed, intact after a kill at any moment."""

from __future__ import annotations

import json
import os
import zlib
from contextlib import nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from collabtop.errors import FileError
from collabtop.runlog.file import lock_file


class Journal:
    """Records, one per line with a checksum; an incomplete last line is dropped when the journal is opened again.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "journal"
    >>> with Journal(path, fingerprint="f") as journal:
    ...     journal.append({"done": 1})
    >>> with Journal(path, fingerprint="f") as journal:
    ...     journal.records
    [{'done': 1}]
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._file = path.open("a+b")
        try:
            if not lock_file(self._file):
                raise FileError(f"{path} is in use: another process is running this study")
            data = self._read()
            lines, good = _records(data)
            head = {"study": fingerprint}
            # A kill may have cut off even the first record; any other file that does not begin with it is not ours.
            ours = lines[0] == head if lines else _line(head).startswith(data)
            if not ours:
                raise FileError(
                    f"{path} belongs to a different study or version of collabtop: use a different folder, or delete "
                    "this one"
                )
            self._file.truncate(good)
            if not lines:
                self.append(head)
        except BaseException:
            self._close(quietly=True)
            raise
        self.records = lines[1:]
        """The records that were appended before."""

    def append(self, record: dict[str, Any]) -> None:
        """Append a record and wait until it is on disk."""
        self._file.write(_line(record))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self) -> bytes:
        self._file.seek(0)
        return self._file.read()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(quietly=error is not None)

    def _close(self, *, quietly: bool) -> None:
        # On a full disk, closing fails again because of the record that failed already.
        with suppress(OSError) if quietly else nullcontext():
            self._file.close()


def _line(record: dict[str, Any]) -> bytes:
    body = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _records(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """The complete records at the start of a journal, and where they end."""
    records: list[dict[str, Any]] = []
    good = 0
    for line in data.splitlines(keepends=True):
        checksum, _, body = line.partition(b" ")
        if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(body[:-1]):
            break
        records.append(json.loads(body))
        good += len(line)
    return records, good
