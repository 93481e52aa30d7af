"""The format of logs: records with pinned tags, each behind its length and checksums.

A file is a line that says what it is, then records: length, checksum of the length, checksum of the body, body
(MessagePack). An algorithm is deterministic given its seed and the replies, and an agent is a fold over the
messages it got and the rewards it drew, so these are all that is needed to go on:

=========  ============================================================================
Header     what is run: arms, m, agents, horizon, algorithm with options, seed
Rewards    pulls of one agent, one reward each (NaN: the pull failed for good)
Sums       pulls of one agent as a sum an arm, and the state of its generator after them
Exchange   what was asked and answered, as it crossed
Timestamp     what the clock said; for those who watch, not for going on
AgentStatus   agents that went away, came back or are lost for good; for those who watch, too
Finished   the answer
RemoteRun        the id of a run whose agents live elsewhere, and the names of their sites
JournalHeader      in a site's own journal: the run, what was told of it, and which arms
=========  ============================================================================
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from collabtop.errors import FileError

MAGIC = b"collabtop log 1\n"
_FRAME = struct.Struct("<III")
_LARGEST = 1 << 31


class Header(msgspec.Struct, frozen=True, tag="Header"):
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


class Rewards(msgspec.Struct, frozen=True, tag="Rewards"):
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


class Sums(msgspec.Struct, frozen=True, tag="Sums"):
    """A batch of pulls whose arms give sums only."""

    agent: int
    first: int
    arms: bytes
    times: bytes
    sums: bytes
    state: bytes
    """The agent's generator after the batch."""


class Exchange(msgspec.Struct, frozen=True, tag="Exchange"):
    """One question to some agents, and their answers; messages as they cross, each kept once."""

    number: int
    messages: list[bytes]
    requests: list[tuple[int, list[int]]]
    """Agent, and the messages it got."""
    replies: list[tuple[int, int, int]]
    """Agent, pulls made, and the message it sent."""


class Timestamp(msgspec.Struct, frozen=True, tag="Timestamp"):
    """What follows was written at this time, or up to a second later."""

    at: float
    """Seconds since 1970."""


AgentState = Literal["here", "away", "lost"]
"""Whether an agent can be reached: away is not there now, lost is gone for good."""


class AgentStatus(msgspec.Struct, frozen=True, tag="AgentStatus"):
    """From then on, so it is with these agents, as far as their team knows; who is never named is here."""

    agents: list[int]
    state: AgentState
    at: float
    """Seconds since 1970."""


class Finished(msgspec.Struct, frozen=True, tag="Finished"):
    """The best m, best first."""

    top: list[int]


class RemoteRun(msgspec.Struct, frozen=True, tag="RemoteRun"):
    """A run whose agents outlive the coordinator's process."""

    id: str
    sites: tuple[tuple[str, int], ...]
    """Name of each site, and how many agents it has: agent 0 is the first of the first site."""


class JournalHeader(msgspec.Struct, frozen=True, tag="JournalHeader"):
    """What a site took part in: the first record of its journal."""

    run: str
    setup: bytes
    """What it was told, as it crossed."""
    agents: tuple[int, ...]
    arms: str
    """A fingerprint of its arms."""
    life: int
    """A number drawn once: envelopes of other lives are not this journal's."""


Record = Header | Rewards | Sums | Exchange | Timestamp | AgentStatus | Finished | RemoteRun | JournalHeader
_decoder = msgspec.msgpack.Decoder(Record)
_encoder = msgspec.msgpack.Encoder()


def framed(record: Record) -> bytes:
    """A record as it is written: length, checksums, body."""
    body = _encoder.encode(record)
    size = len(body).to_bytes(4, "little")
    return _FRAME.pack(len(body), zlib.crc32(size), zlib.crc32(body)) + body


def read_records(data: bytes, path: Path) -> tuple[list[Record], int]:
    """The whole records of a log, and where they end; a torn last one is left out, a damaged log refused."""
    if not data.startswith(MAGIC):
        if MAGIC.startswith(data):  # not even the first line was written
            return [], 0
        raise FileError(f"{str(path)!r} is no checkpoint of collabtop: choose another name")
    return read_more_records(data, len(MAGIC), path)


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
