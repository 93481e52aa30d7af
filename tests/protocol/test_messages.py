"""Messages survive encoding, invalid bytes are rejected, and the ledger counts by the stated rule."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import collabtop as ct
from collabtop.errors import ProtocolError
from collabtop.protocol import ledger, wire
from collabtop.protocol import messages as say
from collabtop.testing import words_on_wire
from tests.support.untyped import untyped

whole = st.integers(-(2**31), 2**31 - 1)
real = st.floats(allow_nan=False)
wholes = npst.arrays(np.int64, st.integers(0, 20), elements=whole)
reals = npst.arrays(np.float64, st.integers(0, 20), elements=real)

KINDS = [kind for kind in vars(say).values() if isinstance(kind, type) and kind.__base__ is say.Message]
FIELDS: dict[Any, st.SearchStrategy[Any]] = {
    int: whole,
    float: real,
    bool: st.booleans(),
    say.Ints: wholes,
    say.Ints | None: st.one_of(st.none(), wholes),
    say.Reals: reals,
}


META = ("free", "chosen_from")
"""What every message has besides its payload."""


def messages_of(kind):
    """Any message of that kind, with any of its fields declared free, chosen from any kinds or none."""
    fields = {field.name: field.type for field in msgspec.structs.fields(kind) if field.name not in META}
    free = st.lists(st.sampled_from(sorted(fields)), unique=True).map(tuple) if fields else st.just(())
    others = st.lists(st.sampled_from([f"Kind{number}" for number in range(9)]), unique=True)
    chosen_from = others.map(lambda kinds: (*kinds, say.kind_of(kind)) if kinds else ())
    return st.builds(
        kind, **{name: FIELDS[type_] for name, type_ in fields.items()}, free=free, chosen_from=chosen_from
    )


def of_plain_numbers(kind):
    """Whether all fields have one of the types above; kinds with their own codec are tested elsewhere."""
    return all(field.type in FIELDS for field in msgspec.structs.fields(kind) if field.name not in META)


PLAIN = [kind for kind in KINDS if of_plain_numbers(kind)]
MESSAGES = st.sampled_from(PLAIN).flatmap(messages_of)


def test_all_messages_of_the_papers_algorithms_are_of_plain_numbers():
    assert len(PLAIN) >= 14


def same(first, second):
    if type(first) is not type(second):
        return False
    pairs = zip(msgspec.structs.astuple(first), msgspec.structs.astuple(second), strict=True)
    return all(
        np.array_equal(a, b) and a.dtype == b.dtype if isinstance(a, np.ndarray) else type(a) is type(b) and a == b
        for a, b in pairs
    )


@given(message=MESSAGES)
def test_a_message_comes_back_from_bytes_as_it_was(message):
    assert same(wire.decode(wire.encode(message)), message)


@given(message=MESSAGES, others=st.lists(MESSAGES, max_size=3))
@example(message=say.Bill(), others=[])
def test_messages_come_back_from_the_same_bytes_as_they_were(message, others):
    for together in ([], [message], [message] * 3, [message, *others]):
        decoded = wire.decode_all(wire.encode_all(together))
        assert len(decoded) == len(together)
        assert all(map(same, decoded, together))


def columns(kind="Means", count=2, lengths=(1, 2), array=(0.5, 0.25, 1.0)):
    """The bytes of messages in columns, some of them wrong."""
    field = msgspec.Raw(wire._encoder.encode((lengths, np.array(array))))
    return wire._encoder.encode(wire._Together(wire._Columns(kind, count, [field]), []))


def test_columns_that_do_not_fit_together_are_rejected():
    assert [untyped(message).means.tolist() for message in wire.decode_all(columns())] == [[0.5], [0.25, 1.0]]
    wrong = [
        columns(kind="Nonsense"),
        columns(kind="CoarseMeans"),
        columns(kind="Held"),
        columns(count=3),
        columns(lengths=(1, 1)),
        columns(lengths=(4, -1)),
        columns(array=(1, 2, 3)),
        columns(array=(0.5, np.nan, 0.5)),
        b"nothing",
    ]
    for data in wrong:
        with pytest.raises(ProtocolError, match="not messages"):
            wire.decode_all(data)


@given(message=MESSAGES, position=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_messages_with_a_damaged_byte_are_messages_or_a_protocol_error(message, position, byte):
    data = bytearray(wire.encode_all([message] * 2))
    data[position % len(data)] = byte
    with suppress(ProtocolError):
        wire.decode_all(bytes(data))


@given(message=MESSAGES)
def test_two_independent_counts_of_words_agree(message):
    assert ledger.cost(message)[0] == words_on_wire(wire.encode(message))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_is_documented_and_can_be_decoded(kind):
    assert re.search(rf"\b{kind.__name__}\b", say.__doc__)
    assert wire.kinds()[kind.__name__] is kind


@pytest.mark.parametrize(
    ("message", "words", "bits"),
    [
        (say.Border(upper=0.8, lower=0.7, top=3), 3, 64 + 64 + 32),
        (say.HandOver(live=True), 1, 1),
        (say.HandOver(live=True, chosen_from=("PullHand", "HandOver")), 2, 1 + 1),
        (say.Cut(5, chosen_from=("Narrow", "Cut")), 2, 32 + 1),
        (say.PullHand(7), 1, 32),
        (say.PullHand(7, free=("times",)), 0, 0),
        (say.Pull(None, np.array([5]), free=("times",)), 0, 0),
        (say.Pull(np.array([1, 2]), np.array([5])), 3, 96),
        (say.Window(1, 2, np.zeros(4)), 6, 64 + 256),
        (say.Hand(np.array([1]), np.zeros(1), np.array([2, 3]), np.zeros(2)), 6, 3 * 32 + 3 * 64),
    ],
)
def test_a_number_is_a_word_and_an_integer_has_32_bits_a_real_64_and_a_flag_1(message, words, bits):
    assert ledger.cost(message) == (words, bits)


@pytest.mark.parametrize("chosen_from", [("PullHand",), ("Narrow", "Cut"), ("PullHand", "PullHand")])
def test_a_choice_is_between_the_kind_itself_and_different_ones(chosen_from):
    with pytest.raises(ProtocolError, match="PullHand declares that it was chosen from"):
        ledger.cost(say.PullHand(7, chosen_from=chosen_from))


@pytest.mark.parametrize(("kinds", "bits"), [(2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4)])
def test_a_choice_is_one_word_of_as_many_bits_as_tell_the_kinds_apart(kinds, bits):
    chosen_from = ("HandOver", *(f"Kind{number}" for number in range(kinds - 1)))
    assert ledger.cost(say.HandOver(live=True, chosen_from=chosen_from)) == (1 + 1, 1 + bits)


def test_a_field_that_is_declared_free_has_to_exist():
    with pytest.raises(ProtocolError, match=r"Held declares \['colour'\] as free, but has no such field"):
        ledger.cost(say.Held(3, free=("colour",)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        wire.encode(say.Held(3))[:-1],
        wire.encode(say.Held(3)) + b"!",
        msgspec.msgpack.encode({"kind": "Nonsense"}),
        msgspec.msgpack.encode({"kind": "Held", "free": []}),
        msgspec.msgpack.encode({"kind": "Held", "size": "three", "free": []}),
        msgspec.msgpack.encode({"kind": "Held", "size": 3.5, "free": []}),
        msgspec.msgpack.encode({"kind": "Values", "values": [0.5], "free": []}),
        msgspec.msgpack.encode({"kind": "Values", "values": msgspec.msgpack.Ext(1, b"\0\0\0\0"), "free": []}),
        msgspec.msgpack.encode({"kind": "Values", "values": msgspec.msgpack.Ext(2, b"\0\0\0"), "free": []}),
        msgspec.msgpack.encode({"kind": "Values", "values": msgspec.msgpack.Ext(9, b"")}),
        msgspec.msgpack.encode([1, 2, 3]),
    ],
)
def test_bytes_that_are_not_a_message_are_rejected(data):
    with pytest.raises(ProtocolError, match="not a message"):
        wire.decode(data)


@given(data=st.binary(max_size=60))
def test_whatever_bytes_come_there_is_a_message_or_a_protocol_error(data):
    with suppress(ProtocolError):
        assert isinstance(wire.decode(data), say.Message)


@given(message=MESSAGES, position=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_message_with_a_damaged_byte_is_a_message_or_a_protocol_error(message, position, byte):
    data = bytearray(wire.encode(message))
    data[position % len(data)] = byte
    with suppress(ProtocolError):
        assert isinstance(wire.decode(bytes(data)), say.Message)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_an_integer_of_more_than_32_bits_cannot_cross(value):
    with pytest.raises(ProtocolError, match="more than 32 bits"):
        wire.encode(say.Deal(np.array([value])))


def test_anything_but_numbers_cannot_cross():
    with pytest.raises(ProtocolError, match="cannot contain a value of type"):
        wire.encode(say.Values(np.array(["text"])))
    with pytest.raises(ProtocolError, match="a message cannot contain a value of type object"):
        wire.encode(say.Values(untyped(object())))


def test_messages_cannot_be_changed():
    with pytest.raises(AttributeError):
        say.Held(3).size = 4  # type: ignore[misc]


def test_the_words_of_a_run_are_those_of_its_messages_one_by_one():
    from collabtop.testing import WireTeam

    team = WireTeam()
    result = ct.identify(ct.BernoulliArms([0.2, 0.5, 0.9, 0.4]), 1, agents=2, horizon=100, seed=1, team=team)
    assert result.words == sum(ledger.cost(message)[0] for _, _, message in team.crossed)
    assert result.bits == sum(ledger.cost(message)[1] for _, _, message in team.crossed)
    assert sum(entry.messages for entry in result.ledger.entries) == len(team.crossed)


def encoded(kind, **fields):
    return msgspec.msgpack.encode({"kind": kind, "free": [], **fields})


@pytest.mark.parametrize(
    "data",
    [
        encoded("Held", size=2**31),
        encoded("Held", size=-(2**31) - 1),
        encoded("Border", upper=float("nan"), lower=0.5, top=1),
        encoded("Values", values=msgspec.msgpack.Ext(2, np.array([0.5, np.nan]).tobytes())),
        encoded("Held", size=3, colour=4),
        encoded("PullOpen", survived=msgspec.msgpack.Ext(3, b"\xff\xff\xff\x7f\x01"), times=1, coarseness=0.0),
        encoded("PullOpen", survived=msgspec.msgpack.Ext(3, b"\x01"), times=1, coarseness=0.0),
        encoded("CoarseMeans", steps=1, arcsine=False, packed={"count": 2**40, "width": 1, "data": b"\1"}, exact=None),
        encoded("CoarseMeans", steps=1, arcsine=False, packed={"count": 8, "width": 0, "data": b""}, exact=None),
        encoded("CoarseMeans", steps=1, arcsine=False, packed={"count": -8, "width": 1, "data": b""}, exact=None),
        encoded("CoarseMeans", steps=1, arcsine=False, packed={"count": 1, "width": 64, "data": bytes(8)}, exact=None),
    ],
)
def test_invalid_numbers_and_wrong_sizes_are_rejected_before_anything_is_unpacked(data):
    with pytest.raises(ProtocolError, match="not a message"):
        wire.decode(data)


def test_a_single_integer_of_more_than_32_bits_cannot_cross():
    with pytest.raises(ProtocolError, match="more than 32 bits"):
        wire.encode(say.Held(2**31))
