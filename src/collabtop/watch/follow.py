"""Reads a log while it is being written: complete new records only."""

from os import PathLike
from pathlib import Path
from typing import BinaryIO

from collabtop.errors import FileError, reason
from collabtop.runlog.format import Record, read_more_records, read_records

_MAX_BYTES = 8 << 20
"""Bytes read at a time: a long log is shown in pieces and never held in memory as a whole."""


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
        self.restarted = False
        """Whether the last `read` found a different log at the path and returned records from its beginning."""
        self.has_more = False
        """Whether the last `read` stopped because it had read `max_bytes`."""

    def read(self) -> list[Record]:
        """The complete records that were added, at most a few megabytes."""
        self.has_more = False
        try:
            with self.path.open("rb") as file:
                status = self.path.stat()
                self.restarted = self._position > 0 and (
                    status.st_size < self._position or status.st_ino != self._inode
                )
                if self.restarted:
                    self._position = 0
                self._inode = status.st_ino
                if status.st_size == self._position:
                    return []
                file.seek(self._position)
                return self._read_from(file)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FileError(f"checkpoint {str(self.path)!r}: {reason(error)}", argument="checkpoint") from None

    def _read_from(self, file: BinaryIO) -> list[Record]:
        data = file.read(self._max_bytes)
        while True:
            records, good = read_more_records(data, 0, self.path) if self._position else read_records(data, self.path)
            if records:
                self.has_more = len(data) >= self._max_bytes
                self._position += good
                return records
            more = file.read(self._max_bytes)  # a record can be larger than a piece
            if not more:
                return []
            data += more
