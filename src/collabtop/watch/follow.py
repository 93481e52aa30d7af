"""Reads a log that is still being written: what is new, whole records only."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import BinaryIO

from collabtop.errors import FileError, reason
from collabtop.runlog.format import Record, read_more_records, read_records

_MOST = 8 << 20
"""Bytes read at a time: a long log is shown piece by piece, and never held as a whole."""


class LogFollower:
    """Gives the records of a log as they are added; a torn last one is waited for.

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

    def __init__(self, path: str | PathLike[str], most: int = _MOST) -> None:
        self.path = Path(path)
        self._most = most
        self._at = 0
        self._file = 0
        self.began_again = False
        """Whether the last `read` found another log under that name, and gave its records from the first one on."""
        self.has_more = False
        """Whether the last `read` stopped because it had read enough."""

    def read(self) -> list[Record]:
        """The whole records that were added, at most a few megabytes of them."""
        self.has_more = False
        try:
            with self.path.open("rb") as file:
                status = self.path.stat()
                self.began_again = self._at > 0 and (status.st_size < self._at or status.st_ino != self._file)
                if self.began_again:
                    self._at = 0
                self._file = status.st_ino
                if status.st_size == self._at:
                    return []
                file.seek(self._at)
                return self._take(file)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FileError(f"checkpoint {str(self.path)!r}: {reason(error)}", argument="checkpoint") from None

    def _take(self, file: BinaryIO) -> list[Record]:
        data = file.read(self._most)
        while True:
            records, good = read_more_records(data, 0, self.path) if self._at else read_records(data, self.path)
            if records:
                self.has_more = len(data) >= self._most
                self._at += good
                return records
            more = file.read(self._most)  # one record can be larger than a piece
            if not more:
                return []
            data += more
