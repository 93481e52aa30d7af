"""The format of logs: records with pinned tags, each behind its length and checksums.

A file is a line with the version of the format, then records: length, checksum of the length, checksum of the body,
body (MessagePack). An algorithm is deterministic given its seed and the replies, and an agent's state follows from the
messages it received and the rewards it drew, so these records are all that a resumed run needs:

===============  ============================================================================
Header           the run: arms, m, agents, horizon, algorithm with options, seed
Rewards          pulls of one agent, one reward each (NaN: the pull failed for good), with costs and notes
SingleReward     a pull that gave a reward, without cost and note
ReportedRewards  pulls made outside the program, as one call reported them: all of them, or none
FailedAttempt    an attempt at a pull that failed, and what it was charged
Sums             pulls of one agent as one sum per arm, and the state of its generator afterwards
Exchange         requests and replies, as they crossed
Finished         the answer
Extended         a longer horizon: the records after it are of a run that uses the rewards before it
RemoteRun        the id of a run whose agents are at remote sites, and the names of the sites
JournalHeader    in a site's own journal: the run, its set-up, and the site's arms
StudyHeader      in a study's journal: the study
StudyRows        in a study's journal: finished runs
Timestamp        the time of day, for display, and how much of the log was on disk by then
AgentStatus      agents that became unreachable, came back or are lost for good
===============  ============================================================================
"""

import math
import struct
import zlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

import msgspec
import numpy as np

from collabtop.arms.base import Charge, Drawn
from collabtop.arms.draws import leg_seed
from collabtop.arms.unit import LARGEST_REWARD, Bounds, Direction, Unit
from collabtop.errors import CheckpointError
from collabtop.privacy import Privacy
from collabtop.problem import Problem
from collabtop.protocol.setup import MOST_EXTRA_PULLS
from collabtop.runlog.packing import (
    MAX_INT,
    STATE_BYTES,
    Ints,
    Reals,
    check_reals,
    largest_int,
    pack_ints,
    pack_state,
    sum_of_ints,
    unpack_ints,
    unpack_state,
)

FORMAT = 2
"""The version of the format; a log of a different one is refused."""
NAME = b"collabtop log "
MAGIC = NAME + b"%d\n" % FORMAT
"""The first line of a log."""
FRAME = struct.Struct("<III")
"""What precedes the body of a record: its length, the checksum of the length, the checksum of the body."""
LARGEST_RECORD = 1 << 30
"""The most bytes of a record."""
MAX_ARMS, MAX_AGENTS = 10_000_000, 1_000_000
"""The most candidates and agents of a run with a log: a reader allocates a few numbers for each of them."""
MAX_HORIZON = 10**15
MAX_WEIGHTED = 100_000_000
"""The most candidates times agents of a run with weights and a log: a reader adds up the rewards of each agent."""

Index = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""The number of an arm, an agent or a message."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
MAX_COST = 1e300
Price = Annotated[float, msgspec.Meta(gt=0, le=MAX_COST)]
Time = Annotated[float, msgspec.Meta(ge=0, le=253_402_300_799)]
"""Seconds since 1970, at most until the year 9999."""


class Header(msgspec.Struct, frozen=True, tag="Header"):
    """The arguments of a run: the same for the first process and for every one that resumes it."""

    n: Annotated[int, msgspec.Meta(ge=1, le=MAX_ARMS)]
    m: Annotated[int, msgspec.Meta(ge=1, le=MAX_ARMS)]
    agents: Annotated[int, msgspec.Meta(ge=1, le=MAX_AGENTS)]
    horizon: Annotated[int, msgspec.Meta(ge=1, le=MAX_HORIZON)]
    seed: Annotated[int, msgspec.Meta(ge=0)]
    algorithm: str
    options: dict[str, Any]
    why: str
    confidence: float | None
    """The probability with which the answer must be right; None for a run to a horizon."""
    arms: str
    """The fingerprint of the arms."""
    arms_class: str
    """The class of the arms, for messages."""
    takes_pull: bool
    """Whether the arms are candidates with a function `pull`."""
    iid: bool
    """Whether all agents see the same distributions."""
    labels: tuple[str, ...] | None
    candidates: bytes | None
    """The candidates themselves, if they are plain data."""
    paired: bool = False
    """Whether pull number t of every arm uses the same example, or the same random numbers."""
    pull_limit: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None
    """The most pulls of an arm by all agents together."""
    sample_size: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None
    """The number of distinct rewards of an arm, if they are only a sample of what it would return."""
    notes: tuple[str, ...] = ()
    """What was changed in the arguments before the run, such as a horizon that was lowered."""
    budget: float | None = None
    costs: tuple[Price, ...] | None = None
    """The price of a pull of each candidate, if the run has a budget."""
    metered: bool = False
    """Whether agents report what their pulls cost, and the rest of the budget is spent in top-up rounds."""
    charge: Charge = "reported"
    """What a pull costs: what it reports, or the seconds that it takes."""
    direction: Direction = "maximize"
    bounds: Bounds = (0.0, 1.0)
    """The bounds of rewards in the user's unit, or None; the log itself has internal values."""
    name: str | None = None
    """What the user calls the run."""
    doubling: bool = False
    """Whether the run has no limit: its horizon is doubled again and again until it is stopped."""
    extensions: Count = 0
    """How often the run was extended; 0 in the log itself, where `Extended` records follow."""
    numbered: bool = False
    """Whether pulls of IID arms are numbered over all agents although they are not paired: in an extended run."""
    weights: tuple[float, ...] | None = None
    """How much each agent counts in the value of an arm, 1 on average; None: all count the same."""
    privacy: Privacy | None = None
    """The differential privacy of the run."""

    def __post_init__(self) -> None:
        if self.m > self.n:
            raise ValueError(f"m is {self.m}, but there are {self.n} candidates")
        for name, values in (("labels", self.labels), ("costs", self.costs)):
            if values is not None and len(values) != self.n:
                raise ValueError(f"there are {len(values)} {name} for {self.n} candidates")
        if self.weights is not None and (
            self.iid or len(self.weights) != self.agents or not all(0 < weight < math.inf for weight in self.weights)
        ):
            raise ValueError(f"weights is {self.weights!r:.80}, but {self.agents} numbers above 0 are needed")
        self.unit  # noqa: B018  (raises an error if it is invalid)

    @property
    def draw_seed(self) -> int:
        """The seed of all draws: each leg of an extended run has its own, unless pull number t must stay the same."""
        return self.seed if self.paired or self.pull_limit is not None else leg_seed(self.seed, self.extensions)

    @property
    def most_pulls(self) -> int:
        """The most pulls of an agent: the horizon, and those of top-up rounds."""
        return self.horizon + (MOST_EXTRA_PULLS if self.metered else 0)

    @property
    def problem(self) -> Problem:
        """The numbers that every agent knew."""
        numbered = self.iid and (self.paired or self.numbered or self.sample_size is not None)
        bounded, counts = self.bounds is not None, (self.n, self.m, self.agents, self.horizon)
        reuses = self.numbered and not self.paired
        return Problem(
            *counts,
            self.pull_limit,
            numbered=numbered,
            bounded=bounded,
            sample_size=self.sample_size,
            reuses=reuses,
            weights=self.weights,
        )

    @property
    def unit(self) -> Unit:
        """The unit of the user's rewards."""
        return _unit(self.direction, self.bounds)


_unit = lru_cache(maxsize=16)(Unit)


class Rewards(msgspec.Struct, frozen=True, omit_defaults=True, tag="Rewards"):
    """Consecutive pulls of one agent, from number `first` on."""

    agent: Index
    first: Count
    arms: bytes
    """The arms, 32 bits each."""
    counts: bytes
    """How many consecutive pulls of each arm."""
    rewards: bytes
    failures: str = ""
    """How failed pulls among them are handled: "zero" or "skip"."""
    costs: bytes = b""
    """What each pull was charged, with its failed attempts (NaN: unknown); empty if no cost is known."""
    notes: tuple[tuple[Count, str], ...] = ()
    """Notes about pulls, by their position in this record."""
    seconds: Seconds = 0.0
    """How long the calls took together."""
    waited: Seconds = 0.0
    """How long they waited together for rate limits."""

    def __post_init__(self) -> None:
        # Before anything is repeated that often.
        if len(self.arms) != len(self.counts) or sum_of_ints(self.counts) * 8 != len(self.rewards):
            raise ValueError("the number of rewards does not match their counts")
        if self.costs:
            if len(self.costs) != len(self.rewards):
                raise ValueError("the number of costs does not match that of the rewards")
            check_reals(self.costs, 0.0, MAX_COST, nan=True, name="cost")
        if any(position >= self.pulls for position, _ in self.notes):
            raise ValueError("a note is about a pull that is not in the record")

    @classmethod
    def pack(
        cls,
        agent: int,
        first: int,
        arms: Ints,
        counts: Ints,
        drawn: Drawn,
        failure_mode: str,
    ) -> Self:
        """Make a record of what was drawn: `counts[j]` pulls in a row of `arms[j]`."""
        rewards, costs, notes, seconds, waited = drawn
        failures = failure_mode if np.isnan(rewards.sum()) else ""
        packed = pack_ints(arms), pack_ints(counts), rewards.astype("<f8").tobytes()
        numbered = tuple((position, note) for position, note in enumerate(notes) if note is not None)
        packed_costs = b"" if costs is None else costs.astype("<f8").tobytes()
        return cls(agent, first, *packed, failures, packed_costs, numbered, seconds, waited)

    def check_range(self, *, bounded: bool) -> None:
        """Raise `ValueError` if a reward is not an internal value of a run with or without bounds."""
        least, most = (0.0, 1.0) if bounded else (-LARGEST_REWARD, LARGEST_REWARD)
        check_reals(self.rewards, least, most, nan=self.failures != "")

    def unpack(self) -> tuple[Ints, Reals]:
        """The arm and the reward of each pull."""
        arms = np.repeat(unpack_ints(self.arms), unpack_ints(self.counts))
        return arms, np.frombuffer(self.rewards, "<f8").astype(np.float64)

    def unpack_costs(self) -> Reals | None:
        """What each pull was charged (NaN: unknown); None if no cost is known."""
        return np.frombuffer(self.costs, "<f8").astype(np.float64) if self.costs else None

    @property
    def pulls(self) -> int:
        """The number of pulls in it."""
        return len(self.rewards) // 8


class SingleReward(
    msgspec.Struct,
    frozen=True,
    gc=False,
    tag="Reward",
    rename={"agent": "a", "number": "n", "arm": "i", "reward": "r", "seconds": "s"},
):
    """A pull that gave a reward, without cost and note: most records are of this kind, so they are short.

    Readers of a log get `Rewards` in its place.
    """

    agent: Index
    number: Count
    """The number of the pull, counted per agent."""
    arm: Index
    reward: float
    seconds: Seconds
    """How long the call took."""

    @property
    def pulls(self) -> int:
        """The number of pulls in it."""
        return 1


class ReportedRewards(msgspec.Struct, frozen=True, tag="ReportedRewards"):
    """Rewards that one call reported, of any agents. As one record they are written as a whole or not at all.

    Readers of a log get the batches in its place.
    """

    batches: list[Rewards]

    @property
    def pulls(self) -> int:
        """The number of pulls in it."""
        return sum(batch.pulls for batch in self.batches)


class FailedAttempt(msgspec.Struct, frozen=True, tag="FailedAttempt"):
    """An attempt at a pull that failed. `Rewards` holds its cost as well, once the pull is made."""

    agent: Index
    number: Count
    """The number of the pull, counted per agent."""
    candidate: str
    attempt: Count
    """0 for the first attempt."""
    error: str
    again: bool
    """Whether the pull was tried again."""
    cost: Annotated[float, msgspec.Meta(ge=0, le=MAX_COST)] | None = None
    seconds: Seconds = 0.0


class Sums(msgspec.Struct, frozen=True, tag="Sums"):
    """A batch of pulls of arms that return sums."""

    agent: Index
    first: Count
    arms: bytes
    times: bytes
    sums: bytes
    state: bytes
    """The state of the agent's generator after the batch."""
    squares: bytes = b""
    """The sums of the squared rewards, if the arms saw single rewards."""

    def __post_init__(self) -> None:
        sizes = (len(self.arms), len(self.times), len(self.sums) / 2, len(self.state))
        if sizes != (sizes[0], sizes[0], sizes[0], STATE_BYTES) or largest_int(self.times) > MAX_INT:
            raise ValueError("the numbers of arms, pulls and sums of a batch differ")
        if self.squares and len(self.squares) != len(self.sums):
            raise ValueError("the numbers of sums and of squares of a batch differ")

    @classmethod
    def pack(
        cls,
        agent: int,
        first: int,
        arms: Ints,
        times: Ints,
        sums: Reals,
        rng: np.random.Generator,
        squares: Reals | None = None,
    ) -> Self:
        """Make a record of a batch: `times[j]` pulls of `arms[j]` with the sum `sums[j]`."""
        packed = pack_ints(arms), pack_ints(np.broadcast_to(times, arms.shape)), sums.astype("<f8").tobytes()
        return cls(agent, first, *packed, pack_state(rng), b"" if squares is None else squares.astype("<f8").tobytes())

    def unpack_squares(self) -> Reals | None:
        """The sum of the squared rewards of each arm, if known."""
        return np.frombuffer(self.squares, "<f8").astype(np.float64) if self.squares else None

    def check_range(self, *, bounded: bool) -> None:
        """Raise `ValueError` if a sum is not one of internal values of a run with or without bounds."""
        least, most = (0.0, float(MAX_INT)) if bounded else (-LARGEST_REWARD * MAX_INT, LARGEST_REWARD * MAX_INT)
        check_reals(self.sums, least, most)
        check_reals(self.squares, 0.0, most if bounded else LARGEST_REWARD**2 * MAX_INT)

    def unpack(self) -> tuple[Ints, Ints, Reals]:
        """The arms, the pulls of each, and the sum of each."""
        return unpack_ints(self.arms), unpack_ints(self.times), np.frombuffer(self.sums, "<f8").astype(np.float64)

    def restore_state(self, rng: np.random.Generator) -> None:
        """Put a generator into the state that it had after the batch."""
        rng.bit_generator.state = unpack_state(self.state)

    @property
    def pulls(self) -> int:
        """The number of pulls in it."""
        return int(unpack_ints(self.times).sum())


class Exchange(msgspec.Struct, frozen=True, tag="Exchange"):
    """One question to one or more agents, and their answers. Each message is stored once, as it crossed."""

    number: Count
    messages: list[bytes]
    requests: Annotated[list[tuple[Index, list[Index]]], msgspec.Meta(max_length=MAX_AGENTS)]
    """Agent, and the indices of the messages sent to it."""
    replies: Annotated[list[tuple[Index, Count, Index]], msgspec.Meta(max_length=MAX_AGENTS)]
    """Agent, pulls made, and the index of its answer."""

    def __post_init__(self) -> None:
        used = [index for _, indices in self.requests for index in indices]
        used += [index for _, _, index in self.replies]
        if max(used, default=-1) >= len(self.messages):
            raise ValueError(f"there is no message {max(used)}: there are {len(self.messages)}")


class Timestamp(msgspec.Struct, frozen=True, tag="Timestamp"):
    """The records after it were written at this time, or up to a second later."""

    at: Time
    synced: Count = 0
    """How many bytes at the beginning of the log were on disk at this time; 0 if unknown."""


AgentState = Literal["here", "away", "lost"]
"""Whether an agent can be reached: "away" is unreachable now, "lost" is gone for good."""


class AgentStatus(msgspec.Struct, frozen=True, tag="AgentStatus"):
    """The state of these agents from this time on. An agent that is never named is reachable."""

    agents: list[Index]
    state: AgentState
    at: Time


class Finished(msgspec.Struct, frozen=True, tag="Finished"):
    """The best m, best first."""

    top: list[Index]


class Extended(msgspec.Struct, frozen=True, tag="Extended"):
    """The run continues with a longer horizon: what follows is a run of its own that uses the rewards before it."""

    horizon: Annotated[int, msgspec.Meta(ge=1, le=MAX_HORIZON)]
    budget: float | None = None
    numbered: bool = True
    """Whether pulls of IID arms are numbered over all agents, so that any agent can use the rewards of all."""


class RemoteRun(msgspec.Struct, frozen=True, tag="RemoteRun"):
    """A run whose agents outlive the coordinator's process."""

    id: str
    sites: tuple[tuple[str, Index], ...]
    """Name and number of agents of each site: agent 0 is the first agent of the first site."""


class JournalHeader(msgspec.Struct, frozen=True, tag="JournalHeader"):
    """The run that a site takes part in: the first record of its journal."""

    run: str
    setup: bytes
    """The set-up, as it crossed."""
    agents: tuple[Index, ...]
    arms: str
    """The fingerprint of the site's arms."""
    life: int
    """A random number that identifies the journal: requests with a different one are not for it."""
    secret: bytes = b""
    """What the site mixes into its draws; empty: they follow from the seed of the run."""


class StudyHeader(msgspec.Struct, frozen=True, tag="StudyHeader"):
    """The study that a study's journal belongs to: its first record."""

    study: str


class StudyRows(msgspec.Struct, frozen=True, tag="StudyRows"):
    """Finished runs of one point of a study."""

    point: str
    rows: bytes
    """The rows, as MessagePack."""


Record = (
    Header
    | Rewards
    | SingleReward
    | ReportedRewards
    | FailedAttempt
    | Sums
    | Exchange
    | Timestamp
    | AgentStatus
    | Finished
    | Extended
    | RemoteRun
    | JournalHeader
    | StudyHeader
    | StudyRows
)
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
_encoder = msgspec.msgpack.Encoder()


def framed(record: Record) -> bytes:
    """A record as it is written: length, checksums, body."""
    body = _encoder.encode(record)
    if len(body) > LARGEST_RECORD:
        raise CheckpointError(
            f"a record of the run has {len(body):,} bytes, but a log takes at most {LARGEST_RECORD:,}: run without a "
            "checkpoint, or with fewer candidates or agents"
        )
    return _size_and_sum(len(body)) + zlib.crc32(body).to_bytes(4, "little") + body


@lru_cache(maxsize=256)
def _size_and_sum(size: int) -> bytes:
    # Most records have one of a few sizes.
    return FRAME.pack(size, zlib.crc32(size.to_bytes(4, "little")), 0)[:8]


def frame_end(data: bytes, start: int) -> int | None:
    """Where the record at `start` ends, perhaps behind the data; None if no record begins there."""
    if start + FRAME.size > len(data):
        return None
    size, size_sum, _ = FRAME.unpack_from(data, start)
    if zlib.crc32(data[start : start + 4]) != size_sum or size > LARGEST_RECORD:
        return None
    return start + FRAME.size + int(size)


def frame_body(data: bytes, start: int, end: int) -> memoryview | None:
    """The body of the record from `start` to `end`; None if it is incomplete or its checksum is wrong."""
    body = memoryview(data)[start + FRAME.size : end]
    return body if end <= len(data) and zlib.crc32(body) == FRAME.unpack_from(data, start)[2] else None


def decode_body(body: memoryview) -> Record:
    """The record in a body; raise `msgspec.DecodeError` if it is malformed, or this version does not know it."""
    try:
        return _decoder.decode(body)
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None


def answer_in(records: Iterable[Record]) -> Finished | None:
    """The answer of the run that a log holds, or None if the run is not finished.

    >>> answer_in([Timestamp(0.0)]) is None, answer_in([Finished([3])])
    (True, Finished(top=[3]))
    """
    answer = None
    for record in records:
        if isinstance(record, Finished | Extended):
            answer = record if isinstance(record, Finished) else None
    return answer
