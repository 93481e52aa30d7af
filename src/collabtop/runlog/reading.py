"""Reads the records of a log, and examines what follows them: a torn tail, as after a power cut, or damage.

A power cut can only undo what was written since the last fsync. There the file may be too short, or any of its pages
may be zeros, even one before pages that are intact. So the rest of a log is a torn tail if it holds no complete record,
or if it was not yet known to be on disk when its last record was written (`Timestamp.synced`). A torn tail is dropped.
Anything else is damage, and the log is refused.
"""

import zlib
from collections.abc import Iterator, Sequence
from os import PathLike

import msgspec
import numpy as np
from numpy.typing import NDArray

from collabtop.errors import FileError
from collabtop.runlog.format import (
    FORMAT,
    FRAME,
    MAGIC,
    NAME,
    Finished,
    Header,
    JournalHeader,
    Record,
    ReportedRewards,
    Rewards,
    SingleReward,
    Sums,
    Timestamp,
    decode_body,
    frame_body,
    frame_end,
)
from collabtop.runlog.gathering import gathered

_MOST_ZEROS = 1 << 20
"""A file of zeros up to this size is taken for a new log that a power cut has emptied."""
_CHUNK = 1 << 20
MOST_COMPARED = 1 << 28
"""Behind a torn record, complete records are looked for. A file may claim that one begins everywhere, each as long as
the rest of the log: no more bytes than these, and twice those of the rest, are compared with checksums."""
_TABLE: NDArray[np.uint32] = np.array(
    [zlib.crc32(bytes([index ^ 0xFF])) ^ 0xFF000000 for index in range(256)], np.uint32
)
"""The table of CRC-32: how one more byte changes a checksum."""


class Tail(msgspec.Struct, frozen=True):
    """What follows the usable records of a log."""

    start: int
    """Where it begins."""
    size: int
    """Bytes in it."""
    torn: bool
    """Whether it is a torn tail; otherwise it is damage."""
    records: int = 0
    """Complete records in it, which cannot be used without those before them."""
    pulls: int = 0
    """Pulls in these records."""


def read_records(data: bytes, path: str | PathLike[str]) -> tuple[list[Record], int]:
    """The complete records of a log, and where they end. A torn tail is left out; a damaged log is refused."""
    records, tail = examine(data, path)
    if tail is not None and not tail.torn:
        raise damaged(path, tail)
    return records, len(data) if tail is None else tail.start


def read_more_records(data: bytes, base: int, path: str | PathLike[str]) -> tuple[list[Record], int]:
    """The complete records of `data`, which begins at position `base` of a log, and where they end in `data`."""
    records, tail = _examine_from(data, 0, base, path)
    if tail is not None and not tail.torn:
        raise damaged(path, tail)
    return records, len(data) if tail is None else tail.start - base


def examine(data: bytes, path: str | PathLike[str]) -> tuple[list[Record], Tail | None]:
    """The usable records of a log, and what follows them, if anything does."""
    if data.startswith(MAGIC):
        return _examine_from(data, len(MAGIC), 0, path)
    written = data.rstrip(b"\0") if len(data) <= _MOST_ZEROS else data
    if MAGIC.startswith(written):  # not even the first line was written
        return [], Tail(0, len(data), torn=True) if data else None
    version = data.removeprefix(NAME).partition(b"\n")[0].decode("ascii", "replace")
    if data.startswith(NAME) and version.isdigit():
        raise FileError(
            f"{str(path)!r} has log format {version}, but this version of collabtop reads format {FORMAT}: "
            "use the version that wrote it, or a different file",
            argument="checkpoint",
        )
    raise FileError(f"{str(path)!r} is not a collabtop log: use a different path or delete it", argument="checkpoint")


def damaged(path: str | PathLike[str], tail: Tail) -> FileError:
    """The error for a log that is damaged before its end."""
    return FileError(
        f"log {str(path)!r} is damaged at byte {tail.start:,}, before {tail.records:,} complete records: take it from "
        "a backup, or run collabtop repair to see what can be kept",
        argument="checkpoint",
    )


def _examine_from(data: bytes, start: int, base: int, path: str | PathLike[str]) -> tuple[list[Record], Tail | None]:
    end: int | None = start

    def usable() -> Iterator[Record]:
        nonlocal start, end
        while (end := frame_end(data, start)) is not None and (body := frame_body(data, start, end)) is not None:
            try:
                record = decode_body(body)
            except msgspec.DecodeError as error:
                raise FileError(
                    f"checkpoint {str(path)!r}: a record cannot be read ({error})", argument="checkpoint"
                ) from None
            start = end
            yield from record.batches if isinstance(record, ReportedRewards) else [record]

    records: list[Record] = list(gathered(usable()))
    if start == len(data):
        return records, None
    if end is not None and end > len(data):  # the last record is incomplete, as while it is being written
        return records, Tail(base + start, len(data) - start, torn=True)
    return records, _examine_tail(data, start, base, records)


def _examine_tail(data: bytes, start: int, base: int, before: Sequence[Record]) -> Tail:
    """Examine the bytes from `start` on, where no complete record begins."""
    # A study's journal has no marks: its records are synced one by one, so that at most the last one can be torn.
    synced = int(base > 0 or any(isinstance(record, Header | JournalHeader) for record in before[:1]))
    synced = max((synced, *(_synced(record, 0) for record in before)))
    count = pulls = 0
    for position, record in _complete_records(data, start + 1):
        if record is None:
            return Tail(base + start, len(data) - start, torn=False, records=count, pulls=pulls)
        count += 1
        pulls += record.pulls if isinstance(record, Rewards | SingleReward | ReportedRewards | Sums) else 0
        synced = max(synced, _synced(record, base + position))
    torn = not count or 0 < synced <= base + start
    return Tail(base + start, len(data) - start, torn, count, pulls)


def _synced(record: Record, position: int) -> int:
    """How many bytes at the beginning of the log were on disk when the record at this position was written."""
    if isinstance(record, Finished):  # everything before it is synced first
        return position
    return record.synced if isinstance(record, Timestamp) else 0


def _complete_records(data: bytes, start: int) -> Iterator[tuple[int, Record | None]]:
    """The complete records at any position from `start` on, with their positions; None if the search was given up."""
    left = MOST_COMPARED + 2 * (len(data) - start)
    for position in _possible_starts(data, start):
        end = frame_end(data, position) if position >= start else None  # otherwise it is inside the previous record
        if end is None or end > len(data):
            continue
        left -= end - position
        if left < 0:
            yield position, None
            return
        body = frame_body(data, position, end)
        if body is not None:
            try:
                yield position, decode_body(body)
            except msgspec.DecodeError:
                continue
            start = end


def _possible_starts(data: bytes, start: int) -> Iterator[int]:
    """The positions at which the checksum of a record's length is right: all at once, since there may be millions."""
    view = np.frombuffer(data, np.uint8)
    last = len(data) - FRAME.size
    for first in range(start, last + 1, _CHUNK):
        width = min(_CHUNK, last + 1 - first)
        checksum = np.full(width, 0xFFFFFFFF, np.uint32)
        expected = np.zeros(width, np.uint32)
        for index in range(4):
            checksum = _TABLE[(checksum ^ view[first + index : first + index + width]) & 0xFF] ^ (checksum >> 8)
            expected |= view[first + 4 + index : first + 4 + index + width].astype(np.uint32) << (8 * index)
        yield from (first + np.flatnonzero((checksum ^ 0xFFFFFFFF) == expected)).tolist()
