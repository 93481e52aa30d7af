"""The checkpoint of a run on disk: append only, checksummed, whole after a kill at any moment.

A file is a line that says what it is, then records: length, checksum of the length, checksum of the body, body
(MessagePack). An algorithm is deterministic given its seed and the replies, and an agent is a fold over the
messages it got and the rewards it drew, so these are all that is needed to go on:

=========  ============================================================================
Header     what is run: arms, m, agents, horizon, algorithm with options, seed
Rewards    pulls of one agent, one reward each (NaN: the pull failed for good)
Sums       pulls of one agent as a sum an arm, and the state of its generator after them
Exchange   what was asked and answered, as it crossed
Moment     what the clock said; for those who watch, not for going on
Presence   agents that went away, came back or are lost for good; for those who watch, too
Finished   the answer
Run        the id of a run whose agents live elsewhere, and the names of their sites
Visit      in a site's own journal: the run, what was told of it, and which arms
=========  ============================================================================
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from os import PathLike
from pathlib import Path
from time import monotonic, time
from typing import Any, Literal

import msgspec

from collabtop.errors import CheckpointError, FileError, reason
from collabtop.protocol.appending import owner_only, write_all
from collabtop.protocol.locking import lock_file

_MAGIC = b"collabtop log 1\n"
_FRAME = struct.Struct("<III")
_LARGEST = 1 << 31
_SECONDS_AT_RISK = 1.0
"""How much of a run a power cut may undo: waiting for the disk at every exchange would hold up quick ones."""
_SECONDS_BETWEEN_MOMENTS = 1.0


class Header(msgspec.Struct, frozen=True, tag=True):
    """What is run: the same for the first process and for every one that goes on."""

    n: int
    m: int
    agents: int
    horizon: int
    seed: int
    algorithm: str
    options: dict[str, Any]
    why: str
    arms: str
    """A fingerprint of the arms."""
    kind: str
    """What kind of arms they are."""
    labels: tuple[str, ...] | None
    candidates: bytes | None
    """The candidates themselves, where they are plain data."""
    budget: float | None = None
    costs: tuple[float, ...] | None = None
    """The price of a pull of each candidate, where the run has a budget."""


class Rewards(msgspec.Struct, frozen=True, tag=True):
    """Pulls of one agent in a row, from number `first` on."""

    agent: int
    first: int
    arms: bytes
    """Which arms, 32 bits each ..."""
    counts: bytes
    """... and how many pulls of each in a row."""
    rewards: bytes
    failures: str = ""
    """What became of the failed ones among them: "zero" or "skip"."""


class Sums(msgspec.Struct, frozen=True, tag=True):
    """A batch of pulls whose arms give sums only."""

    agent: int
    first: int
    arms: bytes
    times: bytes
    sums: bytes
    state: bytes
    """The agent's generator after the batch."""


class Exchange(msgspec.Struct, frozen=True, tag=True):
    """One question to some agents, and their answers; messages as they cross, each kept once."""

    number: int
    messages: list[bytes]
    requests: list[tuple[int, list[int]]]
    """Agent, and the messages it got."""
    replies: list[tuple[int, int, int]]
    """Agent, pulls made, and the message it sent."""


class Moment(msgspec.Struct, frozen=True, tag=True):
    """What follows was written at this time, or up to a second later."""

    at: float
    """Seconds since 1970."""


Reach = Literal["here", "away", "lost"]
"""Whether an agent can be reached: away is not there now, lost is gone for good."""


class Presence(msgspec.Struct, frozen=True, tag=True):
    """From then on, so it is with these agents, as far as their team knows; who is never named is here."""

    agents: list[int]
    state: Reach
    at: float
    """Seconds since 1970."""


class Finished(msgspec.Struct, frozen=True, tag=True):
    """The best m, best first."""

    top: list[int]


class Run(msgspec.Struct, frozen=True, tag=True):
    """A run whose agents outlive the coordinator's process."""

    id: str
    sites: tuple[tuple[str, int], ...]
    """Name of each site, and how many agents it has: agent 0 is the first of the first site."""


class Visit(msgspec.Struct, frozen=True, tag=True):
    """What a site took part in: the first record of its journal."""

    run: str
    setup: bytes
    """What it was told, as it crossed."""
    agents: tuple[int, ...]
    arms: str
    """A fingerprint of its arms."""
    life: int
    """A number drawn once: envelopes of other lives are not this journal's."""


Record = Header | Rewards | Sums | Exchange | Moment | Presence | Finished | Run | Visit
_decoder = msgspec.msgpack.Decoder(Record)
_encoder = msgspec.msgpack.Encoder()


class RunLog:
    """The checkpoint of a run, open for going on; one that is `private` and new is readable by its owner alone.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> log = RunLog(path)
    >>> log.append(Finished([3]))
    >>> log.close()
    >>> read_log(path)
    [Finished(top=[3])]
    """

    def __init__(self, path: str | PathLike[str], *, private: bool = False) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._closed = False
        self._synced = 0.0
        self.seconds_at_risk = _SECONDS_AT_RISK
        """What a power cut may undo of that which is written with `sync`."""
        self._moment: float | None = None
        self._trouble: CheckpointError | None = None
        try:
            self._file = open(self.path, "a+b", buffering=0, opener=owner_only if private else None)  # noqa: SIM115
        except OSError as error:
            raise FileError(f"checkpoint {str(path)!r}: {reason(error)}") from None
        try:
            if not lock_file(self._file):
                raise FileError(f"checkpoint {str(path)!r} is in use: another process is running it")
            self._file.seek(0)
            data = self._file.read()
            self.records, good = read_records(data, self.path)
            """What was there when it was opened."""
            self._over = any(isinstance(record, Finished) for record in self.records)
            self._file.truncate(good)
            if not good:
                self._write(_MAGIC)
        except BaseException:
            self._file.close()
            raise

    def append(self, record: Record, *, sync: bool = False) -> None:
        """Add a record, and return when a kill cannot undo it (`sync`: nor a power cut, at most one second of it)."""
        frame = _framed(record)
        with self._lock:
            if self._closed:  # an agent that was not waited for: nobody needs its pull any more
                return
            if self._over and isinstance(record, Presence):  # the answer is the last
                return
            self._write(frame)
            self._over = self._over or isinstance(record, Finished)
            if sync and monotonic() - self._synced >= self.seconds_at_risk:
                os.fsync(self._file.fileno())
                self._synced = monotonic()

    def note_time(self) -> None:
        """Write down what the clock says, once a second at most."""
        now = monotonic()
        with self._lock:
            if not self._closed and (self._moment is None or now - self._moment >= _SECONDS_BETWEEN_MOMENTS):
                self._moment = now
                self._write(_framed(Moment(time())))

    def note_presence(self, agents: Iterable[int], state: Reach) -> None:
        """Write down that agents come or go, unless the run is over.

        Where that fails, the next exchange says so, and ends the run.
        """
        named = sorted(agents)
        if named:
            with suppress(CheckpointError):
                self.append(Presence(named, state, time()))

    def close(self) -> None:
        """Let others use the file."""
        with self._lock:
            if not self._closed:
                self._closed = True
                with suppress(OSError):  # what could not be written was said when it was
                    os.fsync(self._file.fileno())
                self._file.close()

    def _write(self, data: bytes) -> None:
        if self._trouble is not None:  # what comes after half a record could not be read
            raise self._trouble
        try:
            write_all(self._file, data)
        except OSError as error:
            self._trouble = CheckpointError(
                f"checkpoint {str(self.path)!r}: {reason(error)}; when that is mended, resume goes on from there"
            )
            raise self._trouble from None


def _framed(record: Record) -> bytes:
    body = _encoder.encode(record)
    size = len(body).to_bytes(4, "little")
    return _FRAME.pack(len(body), zlib.crc32(size), zlib.crc32(body)) + body


def read_log(path: str | PathLike[str]) -> list[Record]:
    """All whole records of a checkpoint, without touching it."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"checkpoint {str(path)!r}: {reason(error)}") from None
    return read_records(data, Path(path))[0]


def read_records(data: bytes, path: Path) -> tuple[list[Record], int]:
    """The whole records of a log, and where they end; a torn last one is left out, a damaged log refused."""
    if not data.startswith(_MAGIC):
        if _MAGIC.startswith(data):  # not even the first line was written
            return [], 0
        raise FileError(f"{str(path)!r} is no checkpoint of collabtop: choose another name")
    return read_more_records(data, len(_MAGIC), path)


def read_more_records(data: bytes, start: int, path: Path) -> tuple[list[Record], int]:
    """The whole records from byte `start` on, which is where one begins or the data end; and where they end."""
    records: list[Record] = []
    good = start
    for body, end in _bodies(data, start, path):
        try:
            records.append(_decoder.decode(body))
        except msgspec.DecodeError as error:
            raise FileError(f"checkpoint {str(path)!r}: a record is of another version ({error})") from None
        good = end
    return records, good


def _bodies(data: bytes, start: int, path: Path) -> Iterator[tuple[memoryview, int]]:
    view = memoryview(data)
    while start + _FRAME.size <= len(data):
        size, size_sum, body_sum = _FRAME.unpack_from(data, start)
        body, end = start + _FRAME.size, start + _FRAME.size + size
        if zlib.crc32(data[start : start + 4]) != size_sum or size > _LARGEST:
            if any(data[start:]):  # after a power cut the end may be zeros, but nothing else
                raise _damaged(path, start)
            return
        if end > len(data):
            return
        if zlib.crc32(view[body:end]) != body_sum:
            if end < len(data):
                raise _damaged(path, start)
            return
        yield view[body:end], end
        start = end


def _damaged(path: Path, at: int) -> FileError:
    return FileError(f"checkpoint {str(path)!r} is damaged at byte {at}, with more after it: take it from a backup")
