"""The communication cost of a run, counted message by message as they pass, never from a formula."""

from collections.abc import Callable, Collection, Sequence
from functools import cache
from operator import add, attrgetter
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import numpy as np

from collabtop.errors import ProtocolError
from collabtop.protocol.messages import Message, Reply, is_extension_kind, kind_of
from collabtop.protocol.packing import Packed

Direction = Literal["down", "up"]

Form = tuple[type[Message], tuple[str, ...], tuple[str, ...]]
"""What the fixed part of a message's cost depends on: its kind, what is free in it, and what it was chosen from."""
form_of: Callable[[Message], Form] = attrgetter("__class__", "free", "chosen_from")

ValueOf = Callable[[Message], Any]
"""Reads a field of a message."""

_known_kind = cache(kind_of)  # the kind of every message is looked up

_BITS = {bool: 1, int: 32, float: 64}
_ARRAY_BITS = {"?": 1, "l": 32, "q": 32, "d": 64}  # by NumPy's type codes


def cost(message: Message) -> tuple[int, int]:
    """Words and bits of a message's payload: one word per number; 32 bits per integer, 64 per real, 1 per flag.

    If the kind of the message was chosen from several, the choice is one more word, of as many bits as tell the kinds
    apart. A number that may be missing is one word, and one more bit tells whether it is there. In a message of an
    extension, whether an array is there is one word of one bit.

    >>> import numpy as np
    >>> from collabtop.protocol.messages import Border, Pull
    >>> cost(Border(upper=0.8, lower=0.7, top=3))
    (3, 160)
    >>> cost(Pull(np.array([4, 7]), times=np.array([25]), free=("times",)))      # times follow from the schedule
    (2, 64)
    >>> cost(Border(upper=0.8, lower=0.7, top=3, chosen_from=("Narrow", "Border")))
    (4, 161)
    """
    return _cost_of_form(form_of(message), [message], 1)


def _cost_of_form(form: Form, messages: Collection[Message], count: int) -> tuple[int, int]:
    """Words and bits of `count` messages of the same form together; their arrays may be joined in fewer."""
    words, bits, optional, arrays = _fixed_cost(*form)
    words, bits = words * count, bits * count
    for value_of, width in optional:
        bits += width * sum(value is not None for value in map(value_of, messages))
    for value_of in arrays:
        for value in map(value_of, messages):
            if isinstance(value, np.ndarray):
                size = value.size
                words, bits = words + size, bits + size * _ARRAY_BITS[value.dtype.char]
            elif isinstance(value, Packed):
                words, bits = words + value.count, bits + value.bits
    return words, bits


@cache
def _fixed_cost(
    kind: type[Message], free: tuple[str, ...], chosen_from: tuple[str, ...]
) -> tuple[int, int, list[tuple[ValueOf, int]], list[ValueOf]]:
    """What is the same for all messages of a form, and which fields differ.

    Words and bits of the choice and of scalar fields, optional fields with the bits of their numbers, and array fields.
    """
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    unknown = set(free) - set(types)
    if unknown:
        raise ProtocolError(f"{kind_of(kind)} declares {sorted(unknown)} as free, but has no such field")
    counted = {name: type_ for name, type_ in types.items() if name not in {"free", "chosen_from", *free}}
    check_fields(kind)
    scalars = [_BITS[type_] for type_ in counted.values() if type_ in _BITS]
    sizes = {name: _optional_bits(type_) for name, type_ in counted.items()}
    optional: list[tuple[ValueOf, int]] = [(attrgetter(name), size) for name, size in sizes.items() if size is not None]
    scalars += [1 for type_ in counted.values() if presence_is_paid(kind, type_)]
    if chosen_from:
        scalars.append(_choice_bits(kind, chosen_from))
    arrays: list[ValueOf] = [attrgetter(name) for name, type_ in counted.items() if _is_array(type_)]
    return len(scalars), sum(scalars), optional, arrays


def check_fields(kind: type[Message]) -> None:
    """Raise `ProtocolError` if a field of a kind of message has a type that cannot be counted."""
    for field in msgspec.structs.fields(kind):
        known = field.type in _BITS or _optional_bits(field.type) is not None or _is_array(field.type)
        if field.name not in Message.__struct_fields__ and not known:
            type_ = field.type.__name__ if isinstance(field.type, type) else field.type
            raise ProtocolError(
                f"{field.name} of {kind_of(kind)} is {type_}, but a field is an int, float, bool, an array of these, "
                "or one of them or None"
            )


def _parts(type_: Any) -> list[Any]:
    """The types that a value can have, without None."""
    is_union = get_origin(type_) in (Union, UnionType)
    return [part for part in get_args(type_) if part is not NoneType] if is_union else [type_]


def _optional_bits(type_: Any) -> int | None:
    """The bits of a number that may be missing; None if it is no such number."""
    parts = _parts(type_)
    return _BITS.get(parts[0]) if type_ not in _BITS and len(parts) == 1 else None


def _is_array(type_: Any) -> bool:
    return all(part is Packed or get_origin(part) is np.ndarray for part in _parts(type_))


def presence_is_paid(kind: type[Message], type_: Any) -> bool:
    """Whether a field of this type may be missing, and a bit is paid for whether it is.

    In messages of the package, whether an array is there follows from what agents know; `check_algorithm` checks that.
    """
    return NoneType in get_args(type_) and (_optional_bits(type_) is not None or is_extension_kind(kind))


def _choice_bits(kind: type[Message], chosen_from: tuple[str, ...]) -> int:
    """Bits that tell a kind of message from those that could have been sent instead."""
    if kind_of(kind) not in chosen_from or len(set(chosen_from)) < max(2, len(chosen_from)):
        raise ProtocolError(
            f"{kind_of(kind)} declares that it was chosen from {list(chosen_from)}, but {kind_of(kind)} and at least "
            "one different kind are needed, each once"
        )
    return (len(chosen_from) - 1).bit_length()


class Entry(msgspec.Struct, frozen=True, gc=False):
    """The messages of one kind in one direction in one round."""

    round: int
    kind: str
    direction: Direction
    messages: int
    """The number of messages; a broadcast to K agents is K messages."""
    words: int
    bits: int


class Round(msgspec.Struct, frozen=True, gc=False):
    """The cost of one round."""

    round: int
    phase: str
    live: int
    """Arms still open when the round began (the paper's |I_r|)."""
    pulls: int
    """Pulls of all agents."""
    time: int
    """Pulls of the agent that made the most."""
    words: int
    bits: int
    round_trips: int


class TransportStats(msgspec.Struct):
    """Statistics of the transport, which may differ between teams.

    They cover this process only: a run that is resumed from a log starts at zero, without what the log contains.
    """

    bytes: int = 0
    """Bytes sent in both directions, if there is a network: messages, envelopes and their framing."""
    repeats: int = 0
    """Requests that were sent again after a fault."""
    refused: int = 0
    """Messages that were rejected."""
    reconnects: int = 0
    """How often an agent's connection was lost and restored."""
    absent: float = 0.0
    """Seconds of waiting during which a requested agent could not be reached."""
    seconds: float = 0.0
    """Wall-clock time spent waiting for replies."""


class Ledger(msgspec.Struct, frozen=True):
    """All messages of a run, by kind, direction and round.

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
    """How often the coordinator had to wait for replies."""
    transport: TransportStats

    @property
    def words(self) -> int:
        """Numbers sent in either direction."""
        return sum(entry.words for entry in self.entries)

    @property
    def bits(self) -> int:
        """Bits sent in either direction, in the encoding that is actually used."""
        return sum(entry.bits for entry in self.entries)

    def words_by(self, column: Literal["kind", "direction", "round"]) -> dict[Any, int]:
        """Total words per kind of message, direction or round."""
        return self._total(column, "words")

    def bits_by(self, column: Literal["kind", "direction", "round"]) -> dict[Any, int]:
        """Total bits per kind of message, direction or round."""
        return self._total(column, "bits")

    def _total(self, column: str, unit: str) -> dict[Any, int]:
        totals: dict[Any, int] = {}
        for entry in self.entries:
            key = getattr(entry, column)
            totals[key] = totals.get(key, 0) + getattr(entry, unit)
        return totals

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        return (self.entries, self.round_trips) == (other.entries, other.round_trips)

    def __hash__(self) -> int:
        return hash((self.entries, self.round_trips))


class _RoundTotals:
    """The totals of one round."""

    __slots__ = ("bits", "entries", "live", "phase", "pulls", "round_trips", "words")

    def __init__(self, phase: str, live: int, agents: int) -> None:
        self.phase, self.live = phase, live
        self.pulls = [0] * agents
        self.round_trips, self.words, self.bits = 0, 0, 0
        self.entries: dict[tuple[str, Direction], list[int]] = {}

    def summary(self, number: int) -> Round:
        """The cost of this round, which has this number."""
        pulls, time = sum(self.pulls), max(self.pulls)
        return Round(number, self.phase, self.live, pulls, time, self.words, self.bits, self.round_trips)


class Meter:
    """Counts messages and pulls as they pass, and enforces the horizon."""

    def __init__(self, agents: int, horizon: int) -> None:
        self._agents, self._horizon = agents, horizon
        self._rounds: list[_RoundTotals] = []
        self._current = _RoundTotals("", 0, agents)  # until the first round begins, it is not among them
        self._time_before = 0
        self.agent_pulls = [0] * agents
        """Pulls of each agent so far."""

    def extend(self, time: int) -> None:
        """Allow so many time steps after the horizon."""
        self._horizon += time

    def begin_round(self, phase: str, live: int) -> None:
        """Begin a new round; messages before the first round are counted in it."""
        current = self._current
        if self._rounds:
            self._time_before += max(current.pulls)
            current = self._current = _RoundTotals(phase, live, self._agents)
        current.phase, current.live = phase, live
        self._rounds.append(current)

    def count(self, direction: Direction, messages: Collection[Message], copies: int = 1) -> None:
        """Count messages, each of them sent to or received from `copies` agents."""
        forms = set(map(form_of, messages))
        for form in forms:  # usually one
            same = messages if len(forms) == 1 else [message for message in messages if form_of(message) == form]
            self._count_alike(direction, form, same, copies)

    def _count_alike(self, direction: Direction, form: Form, messages: Collection[Message], copies: int = 1) -> None:
        words, bits = _cost_of_form(form, messages, len(messages))
        self._add(form, direction, copies * len(messages), copies * words, copies * bits)

    def count_joined(self, direction: Direction, joined: Message, copies: int) -> None:
        """Count so many messages of one form, whose arrays are joined in one message."""
        form = form_of(joined)
        words, bits = _cost_of_form(form, [joined], copies)
        self._add(form, direction, copies, words, bits)

    def _add(self, form: Form, direction: Direction, messages: int, words: int, bits: int) -> None:
        current = self._current
        current.words += words
        current.bits += bits
        entry = current.entries.setdefault((_known_kind(form[0]), direction), [0, 0, 0])
        entry[0] += messages
        entry[1] += words
        entry[2] += bits

    def count_replies(self, replies: Sequence[Reply]) -> None:
        """Count the replies to one question, whose answers have the same form, and the pulls made for them."""
        if replies:
            self._count_alike("up", form_of(replies[0].answer), [reply.answer for reply in replies])
        pulls = [0] * self._agents
        for reply in replies:
            pulls[reply.agent] += reply.pulls
        self.count_pulls(pulls)

    def count_pulls(self, pulls: Sequence[int]) -> None:
        """Count a round trip, and the pulls that each agent made for it."""
        current = self._current
        current.round_trips += 1
        current.pulls = list(map(add, current.pulls, pulls))
        self.agent_pulls = list(map(add, self.agent_pulls, pulls))
        if self.time > self._horizon:
            raise ProtocolError(f"time is {self.time}, past the horizon of {self._horizon}: a defect of the algorithm")

    @property
    def agent_pulls_in_round(self) -> list[int]:
        """Pulls of each agent in the current round."""
        return self._current.pulls

    @property
    def time(self) -> int:
        """Time steps so far: the pulls of the busiest agent in each round, added up."""
        return self._time_before + max(self._current.pulls)

    @property
    def time_left(self) -> int:
        """Time steps until the horizon."""
        return self._horizon - self.time

    def rounds(self) -> tuple[Round, ...]:
        """The cost of each round so far."""
        return tuple([totals.summary(number) for number, totals in enumerate(self._all_rounds)])

    def ledger(self, transport: TransportStats | None = None) -> Ledger:
        """All messages so far, and the statistics of their transport."""
        entries = tuple(
            [
                Entry(number, kind, direction, *counts)
                for number, totals in enumerate(self._all_rounds)
                for (kind, direction), counts in sorted(totals.entries.items())
            ]
        )
        round_trips = sum(totals.round_trips for totals in self._all_rounds)
        return Ledger(entries, round_trips, transport or TransportStats())

    @property
    def _all_rounds(self) -> list[_RoundTotals]:
        """The rounds so far; if none has begun, the messages sent so far count as one."""
        return self._rounds or ([self._current] if self._current.entries else [])
