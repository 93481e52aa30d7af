"""Logs with valid checksums whose records are wrong, for the tests of all readers of logs."""

from __future__ import annotations

import copy
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import collabtop as ct
from collabtop.protocol.setup import Setup
from collabtop.runlog.format import FRAME, MAGIC

Plain = dict[str, Any]
NASTY = [
    -1,
    0,
    1,
    2**31 - 1,
    2**31,
    10**9,
    2**63 - 1,
    2**64 - 1,
    -(2**63),
    0.5,
    -1.0,
    1e300,
    float("inf"),
    float("nan"),
    "",
    "x",
    "\x1b[31m",
    b"",
    b"\xff" * 7,
    b"\xff" * 8,
    None,
    True,
    [],
    [[]],
    [-1],
    [10**9],
    {},
    {"": {}},
]
"""Values of wrong types, signs and sizes."""


def score(candidate: Any, rng: Any) -> float | ct.Reward:
    """A reward, with a note for one of the candidates: logs have different records for both."""
    reward = float(rng.random() < 0.5)
    return ct.Reward(reward, note="a note") if candidate == "a" else reward


def real_log(path: Path) -> Path:
    """The log of a small finished run on a function, with failed pulls."""
    ct.identify(["a", "b", "c"], 1, pull=score, agents=2, horizon=20, seed=1, algorithm="kzz", checkpoint=path)
    return path


def sums_log(path: Path) -> Path:
    """The log of a small finished run on simulated arms, in which records hold sums."""
    arms = ct.BernoulliArms([0.2, 0.5, 0.9])
    ct.identify(arms, 1, agents=2, horizon=200, seed=1, algorithm="uniform", checkpoint=path)
    return path


def bodies(data: bytes) -> list[bytes]:
    """The records of a log as bytes."""
    start, found = len(MAGIC), []
    while start < len(data):
        size = int.from_bytes(data[start : start + 4], "little")
        start += FRAME.size + size
        found.append(data[start - size : start])
    return found


def plain_records(path: Path) -> list[Plain]:
    """The records of a log as plain data."""
    return [msgspec.msgpack.decode(body) for body in bodies(path.read_bytes())]


def frame(body: bytes) -> bytes:
    """A record with the right checksums."""
    size = len(body).to_bytes(4, "little")
    return FRAME.pack(len(body), zlib.crc32(size), zlib.crc32(body)) + body


def write_plain(path: Path, records: list[Any]) -> Path:
    """Write plain data as the records of a log."""
    path.write_bytes(MAGIC + b"".join(frame(msgspec.msgpack.encode(record)) for record in records))
    return path


def changed(records: list[Plain], kind: str, **fields: Any) -> list[Plain]:
    """Records in which the first one of a kind has other fields."""
    index = next(index for index, record in enumerate(records) if record["type"] == kind)
    return [*records[:index], {**records[index], **fields}, *records[index + 1 :]]


def hostile(records: list[Plain], sums: list[Plain]) -> Iterator[tuple[str, list[Any]]]:
    """Names and records of logs that broke a reader, or might."""
    big = (2**31 - 1).to_bytes(4, "little")
    for name, value in (("n", -1), ("n", 0), ("n", 10**9), ("m", 0), ("m", 4), ("agents", 0), ("agents", 10**9)):
        yield f"{name}={value}", changed(records, "Header", **{name: value})
    yield "seed", changed(records, "Header", seed=-1)
    yield "extensions", changed(records, "Header", extensions=1)
    weights = {"n": 10_000_000, "agents": 100_000, "iid": False, "weights": [1.0] * 100_000}
    yield "weights", changed(records, "Header", labels=None, candidates=None, **weights)
    yield "nested setup", [journal_header(options=msgspec.Raw(b"\x81\xa1x" + b"\x91" * 100_000 + b"\xc0"))]
    yield "horizon", changed(records, "Header", horizon=2**63 - 1)
    yield "too few labels", changed(records, "Header", labels=["a"])
    yield "too few costs", changed(records, "Header", costs=[1.0])
    yield "no candidates", changed(records[:1], "Header", candidates=b"\xc1")
    yield "nested candidates", changed(records[:1], "Header", candidates=b"\x91" * 100_000)
    yield "nested options", changed(records, "Header", options=msgspec.Raw(b"\x81\xa1x" + b"\x91" * 100_000 + b"\xc0"))
    yield "counts", changed(records, "Rewards", counts=big)
    yield "negative counts", changed(records, "Rewards", arms=bytes(12), counts=b"\xff" * 8 + b"\3\0\0\0")
    yield "arm", changed(records, "Rewards", arms=b"\3\0\0\0" * (len(rewards_of(records)["arms"]) // 4))
    yield "negative arm", changed(records, "Rewards", arms=b"\xff" * len(rewards_of(records)["arms"]))
    yield "agent", changed(records, "Rewards", agent=2)
    yield "torn numbers", changed(records, "Rewards", arms=b"\0", counts=b"\0")
    yield "reward", changed(records, "Rewards", rewards=b"\xff" * 7 + b"\x7f" + rewards_of(records)["rewards"][8:])
    yield "first", changed(records, "Rewards", first=2**53)
    yield "gap", changed(records, "Rewards", first=3)
    single: list[tuple[str, float]] = [("a", 2), ("a", -1), ("n", 2**53), ("n", -1), ("i", 3), ("i", -1), ("i", 2**31)]
    single += [(name, value) for name in ("r", "s") for value in (-1.0, float("nan"), float("inf"))]
    for field, wrong in single:
        yield f"single reward, {field}={wrong}", changed(records, "Reward", **{field: wrong})
    yield "times", changed(sums, "Sums", times=big * 3)
    yield "negative times", changed(sums, "Sums", times=b"\xff" * 12)
    yield "state", changed(sums, "Sums", state=b"")
    yield "index", changed(records, "Exchange", requests=[[0, [99]]])
    yield "many requests", changed(records, "Exchange", requests=[[0, []]] * 100_000)
    yield "reply index", changed(records, "Exchange", replies=[[0, 1, 99]])
    yield "reply agent", changed(records, "Exchange", replies=[[7, 1, 0]])
    yield "reply pulls", changed(records, "Exchange", replies=[[0, 2**62, 0]])
    yield "no message", changed(records, "Exchange", messages=[b"\xc1"] * 9)
    yield "answer", changed(records, "Finished", top=[3])
    yield "no answer", changed(records, "Finished", top=[])
    yield "long answer", changed(records, "Finished", top=[0, 1])
    yield "time", changed(records, "Timestamp", at=1e300)
    yield "two headers", [records[0], *records]
    yield "no header", records[1:]
    yield "sites", [*records[:1], {"type": "RemoteRun", "id": "x", "sites": [["north", 2**62]]}]
    yield "status", [*records[:1], {"type": "AgentStatus", "agents": [9], "state": "lost", "at": 1.0}]
    yield "a list", [[]]
    yield "a number", [7]


def journal_header(**fields: Any) -> Plain:
    """The header of a site's journal, in whose set-up some fields are different."""
    setup = Setup(ct.Problem(n=3, m=1, agents=2, horizon=20), seed=1, algorithm="kzz")
    plain = {**msgspec.msgpack.decode(msgspec.msgpack.encode(setup)), **fields}
    names = {"type": "JournalHeader", "run": "0" * 32, "arms": "x", "life": 1}
    return {**names, "setup": msgspec.msgpack.encode(plain), "agents": [0]}


def claims(blocks: int) -> bytes:
    """The end of a log that states at each eighth byte that a record begins there, as long as the rest of it."""
    sizes = [max(1, 8 * left - FRAME.size).to_bytes(4, "little") for left in range(blocks, 0, -1)]
    return b"".join(size + zlib.crc32(size).to_bytes(4, "little") for size in sizes)


def rewards_of(records: list[Plain]) -> Plain:
    """The first record of rewards."""
    return next(record for record in records if record["type"] == "Rewards")


def mutated(records: list[Plain], rng: random.Random) -> list[Any]:
    """Records with one or two values replaced, removed, repeated or swapped."""
    copies: list[Any] = copy.deepcopy(records)
    for _ in range(rng.choice((1, 1, 2))):
        places = list(_places(copies))
        if not places:
            break
        container, key = rng.choice(places)
        kind = rng.random()
        if kind < 0.7:
            container[key] = rng.choice(NASTY)
        elif kind < 0.8 and isinstance(container[key], bytes) and container[key]:
            data = bytearray(container[key])
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            container[key] = bytes(data)
        elif kind < 0.9:
            del container[key]
        else:
            other, place = rng.choice(places)
            container[key] = copy.deepcopy(other[place])
    return copies


def _places(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    items: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        yield value, key
        if isinstance(inner, dict | list) and depth < 4:
            yield from _places(inner, depth + 1)
