"""Reads a log while it grows, piece by piece, and checks what it reads."""

import os
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from collabtop.errors import FileError, reason
from collabtop.runlog.consistency import RecordCheck
from collabtop.runlog.format import FRAME, MAGIC, Record, frame_end
from collabtop.runlog.reading import read_more_records, read_records
from collabtop.runlog.regular import open_regular

_MAX_BYTES = 8 << 20
"""Bytes read at a time: a long log is shown in pieces and never held in memory as a whole."""

LARGEST_RECORD_SHOWN = 1 << 26
"""The most bytes of a record that the page reads."""


class LogFollower:
    """Returns the records of a log as they are added; an incomplete last record is left for the next read.

    >>> import tempfile
    >>> from collabtop.runlog.file import RunLog
    >>> from collabtop.runlog.format import Finished
    >>> path = Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> log, follower = RunLog(path), LogFollower(path)
    >>> follower.read()
    []
    >>> log.append(Finished([3]))
    >>> follower.read(), follower.read()
    ([Finished(top=[3])], [])
    >>> log.close()
    """

    def __init__(self, path: str | PathLike[str], max_bytes: int = _MAX_BYTES) -> None:
        self.path = Path(path)
        self._max_bytes = max_bytes
        self._position = 0
        self._inode = 0
        self._torn: tuple[int, int] | None = None  # inode and size of a log that ends in an incomplete record
        self._check = RecordCheck(path)
        self.restarted = False
        """Whether the last `read` found a different log at the path and returned records from its beginning."""
        self.has_more = False
        """Whether the last `read` stopped because it had read `max_bytes`."""

    def read(self) -> list[Record]:
        """The complete records that were added, at most a few megabytes."""
        self.has_more = False
        try:
            with open_regular(self.path) as file:
                status = os.fstat(file.fileno())
                self.restarted = self._position > 0 and (
                    status.st_size < self._position or status.st_ino != self._inode
                )
                if self.restarted:
                    self._position, self._check = 0, RecordCheck(self.path)
                self._inode = status.st_ino
                if status.st_size == self._position or self._torn == (status.st_ino, status.st_size):
                    return []
                file.seek(self._position)
                records = self._read_from(file)
                self._torn = None if records else (status.st_ino, status.st_size)
                return records
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FileError(f"checkpoint {str(self.path)!r}: {reason(error)}", argument="checkpoint") from None

    def _read_from(self, file: BinaryIO) -> list[Record]:
        data = file.read(self._max_bytes)
        records, good = self._records_in(data)
        while not records and (rest := self._missing(data)):  # a record can be larger than a piece
            more = file.read(rest)
            if not more:
                break
            data += more
            records, good = self._records_in(data)
        if records:
            self._check.add(records)
            self.has_more = len(data) >= self._max_bytes
            self._position += good
        return records

    def _records_in(self, data: bytes) -> tuple[list[Record], int]:
        if self._position:
            return read_more_records(data, self._position, self.path)
        return read_records(data, self.path)

    def _missing(self, data: bytes) -> int:
        """The bytes that are missing of the first record in `data`, at least to know its size."""
        start = 0 if self._position else len(MAGIC)
        end = frame_end(data, start)
        if end is None:
            return max(0, start + FRAME.size - len(data))
        if end - start > LARGEST_RECORD_SHOWN:
            raise FileError(
                f"checkpoint {str(self.path)!r} has a record of {end - start:,} bytes, but the page reads at most "
                f"{LARGEST_RECORD_SHOWN:,}",
                argument="checkpoint",
            )
        return max(0, end - len(data))
