"""What was said and what it cost: counted message by message as they pass, never from a formula."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Literal

import msgspec
import numpy as np

from collabtop.errors import ProtocolError
from collabtop.protocol.messages import Message, Reply, kind_of
from collabtop.protocol.packing import Packed

Direction = Literal["down", "up"]

_BITS = {bool: 1, int: 32, float: 64}
_ARRAY_BITS = {"?": 1, "l": 32, "q": 32, "d": 64}  # by NumPy's type codes


def cost(message: Message) -> tuple[int, int]:
    """Words and bits of a message's payload: one word a number; 32 bits an integer, 64 a real, 1 a flag.

    >>> import numpy as np
    >>> from collabtop.protocol.messages import Border, Pull
    >>> cost(Border(upper=0.8, lower=0.7, top=3))
    (3, 160)
    >>> cost(Pull(np.array([4, 7]), times=np.array([25]), free=("times",)))      # times follow from the schedule
    (2, 64)
    """
    words, bits, arrays = _price_list(type(message), message.free)
    more_words, more_bits = _array_cost(message, arrays)
    return words + more_words, bits + more_bits


def _array_cost(message: Message, arrays: tuple[str, ...]) -> tuple[int, int]:
    words = bits = 0
    for name in arrays:
        array = getattr(message, name)
        if isinstance(array, np.ndarray):
            words += array.size
            bits += array.size * _ARRAY_BITS[array.dtype.char]
        elif isinstance(array, Packed):
            words += array.count
            bits += array.bits
    return words, bits


@cache
def _price_list(kind: type[Message], free: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
    """Words and bits of the single numbers that a kind of message holds, and how to read its arrays."""
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    unknown = set(free) - set(types)
    if unknown:
        raise ProtocolError(f"{kind_of(kind)} calls {sorted(unknown)} free, but has no such field")
    paid = {name: type_ for name, type_ in types.items() if name not in {"free", *free}}
    single = [_BITS[type_] for type_ in paid.values() if type_ in _BITS]
    return len(single), sum(single), tuple(name for name in paid if paid[name] not in _BITS)


class Entry(msgspec.Struct, frozen=True):
    """The messages of one kind that went in one direction in one round."""

    round: int
    kind: str
    direction: Direction
    messages: int
    """How many; a broadcast to K agents is K messages."""
    words: int
    bits: int


class Round(msgspec.Struct, frozen=True):
    """What one round cost."""

    round: int
    phase: str
    live: int
    """Arms still open when it began (the paper's |I_r|)."""
    pulls: int
    """Pulls by all agents."""
    time: int
    """Pulls by the agent that made most."""
    words: int
    bits: int
    round_trips: int


class TransportStats(msgspec.Struct):
    """What getting messages across took: no part of what must be equal between teams.

    It is of this process: one that goes on from a log starts at zero, and what is read back from the log is not in it.
    """

    bytes: int = 0
    """Bytes given to a wire in both directions, where there is one: messages, envelopes and their framing."""
    repeats: int = 0
    """Requests sent again after a fault."""
    refused: int = 0
    """Messages that were turned away."""
    reconnects: int = 0
    """Times an agent's connection was lost and made again."""
    absent: float = 0.0
    """Seconds of the waiting in which an agent that was asked could not be reached."""
    seconds: float = 0.0
    """Clock time spent waiting for replies."""


class Ledger(msgspec.Struct, frozen=True):
    """All that was said in a run, by kind of message, direction and round.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.4, 0.1])
    >>> ledger = ct.identify(arms, m=1, agents=2, horizon=400, algorithm="kzz", seed=1).ledger
    >>> ledger.words_by("direction")
    {'up': 12, 'down': 4}
    >>> ledger.words == sum(entry.words for entry in ledger.entries)
    True
    """

    entries: tuple[Entry, ...]
    round_trips: int
    """Times the coordinator had to wait for replies."""
    transport: TransportStats

    @property
    def words(self) -> int:
        """Numbers sent in either direction."""
        return sum(entry.words for entry in self.entries)

    @property
    def bits(self) -> int:
        """The same in bits, under the codec really used."""
        return sum(entry.bits for entry in self.entries)

    def words_by(self, column: Literal["kind", "direction", "round"]) -> dict[Any, int]:
        """Words added up by kind of message, direction or round."""
        return self._total(column, "words")

    def bits_by(self, column: Literal["kind", "direction", "round"]) -> dict[Any, int]:
        """Bits added up by kind of message, direction or round."""
        return self._total(column, "bits")

    def _total(self, column: str, what: str) -> dict[Any, int]:
        totals: dict[Any, int] = {}
        for entry in self.entries:
            key = getattr(entry, column)
            totals[key] = totals.get(key, 0) + getattr(entry, what)
        return totals

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        return (self.entries, self.round_trips) == (other.entries, other.round_trips)

    def __hash__(self) -> int:
        return hash((self.entries, self.round_trips))


class _OpenRound:
    """A round being counted."""

    def __init__(self, phase: str, live: int, agents: int) -> None:
        self.phase, self.live = phase, live
        self.pulls = [0] * agents
        self.round_trips = 0
        self.entries: dict[tuple[str, Direction], list[int]] = {}


class Meter:
    """Counts messages as a team passes them on, and holds every agent to the horizon."""

    def __init__(self, agents: int, horizon: int) -> None:
        self._agents, self._horizon = agents, horizon
        self._rounds: list[_OpenRound] = []
        self._early: _OpenRound | None = _OpenRound("", 0, agents)
        self._time_before = 0

    def begin_round(self, phase: str, live: int) -> None:
        """Count what follows in a new round; what was said before the first one belongs to it."""
        if self._rounds:
            self._time_before += max(self._rounds[-1].pulls)
        fresh = _OpenRound(phase, live, self._agents)
        if self._early is not None:
            fresh.entries, fresh.round_trips = self._early.entries, self._early.round_trips
            fresh.pulls = self._early.pulls
            self._early = None
        self._rounds.append(fresh)

    def count(self, direction: Direction, messages: Iterable[Message], copies: int = 1) -> None:
        """Count messages that pass, each of them to or from `copies` agents."""
        entries = self._now.entries
        kind, entry, free = None, [0, 0, 0], None
        words = bits = 0
        arrays: tuple[str, ...] = ()
        for message in messages:
            if type(message) is not kind or message.free is not free:  # most often all are of one kind
                kind, free = type(message), message.free
                entry = entries.setdefault((kind_of(kind), direction), [0, 0, 0])
                words, bits, arrays = _price_list(kind, free)
            more_words, more_bits = _array_cost(message, arrays) if arrays else (0, 0)
            entry[0] += copies
            entry[1] += (words + more_words) * copies
            entry[2] += (bits + more_bits) * copies

    def count_replies(self, replies: Iterable[Reply]) -> None:
        """Count the answers to one question, and the pulls made for them."""
        self.count("up", [reply.answer for reply in replies])
        self._now.round_trips += 1
        for reply in replies:
            self._now.pulls[reply.agent] += reply.pulls
        if self.time > self._horizon:
            raise ProtocolError(f"time is {self.time}, past the horizon of {self._horizon}: the algorithm's fault")

    @property
    def _now(self) -> _OpenRound:
        return self._early if self._early is not None else self._rounds[-1]

    @property
    def time(self) -> int:
        """Time steps so far: the busiest agent's pulls, round by round."""
        return self._time_before + max(self._now.pulls)

    @property
    def time_left(self) -> int:
        """Time steps until the horizon."""
        return self._horizon - self.time

    def rounds(self) -> tuple[Round, ...]:
        """What each round cost so far."""
        return tuple(
            Round(
                round=number,
                phase=it.phase,
                live=it.live,
                pulls=sum(it.pulls),
                time=max(it.pulls),
                words=sum(words for _, words, _ in it.entries.values()),
                bits=sum(bits for _, _, bits in it.entries.values()),
                round_trips=it.round_trips,
            )
            for number, it in enumerate(self._counted)
        )

    def ledger(self, transport: TransportStats | None = None) -> Ledger:
        """All messages so far, and what their transport cost."""
        entries = tuple(
            Entry(number, kind, direction, *counts)
            for number, it in enumerate(self._counted)
            for (kind, direction), counts in sorted(it.entries.items())
        )
        return Ledger(entries, sum(it.round_trips for it in self._counted), transport or TransportStats())

    @property
    def _counted(self) -> list[_OpenRound]:
        """The rounds begun, and what was said if none was."""
        early = self._early
        return self._rounds if early is None or not early.entries else [early]
