"""Messages that nobody honest would send, for Hypothesis to choose from.

Made up: a message of a known kind, field by field, each of the right type or now and then of another one, encoded
without any of the checks of the package. Mutated: bytes of a message, changed here and there.
"""

from __future__ import annotations

from functools import cache
from typing import get_args

import msgspec
import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from msgspec.msgpack import Ext

from collabtop.protocol import wire
from collabtop.protocol.messages import Flags, Ints, Message, Reals
from collabtop.protocol.packing import Packed
from tests.support.honest_runs import N

_INTS, _REALS, _FLAGS = 1, 2, 3
"""Extensions of MessagePack that arrays cross as."""

few = st.integers(0, 5)
"""Numbers that make sense in most places: of pulls, of arms, of an agent."""
numbers = few | st.integers(0, N + 1) | st.sampled_from([-(2**63), -(2**31), -2, -1, 2**31 - 1, 2**31, 2**64 - 1])
reals = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0, -0.5, 1.5, 5e-324, 1e308, np.inf, -np.inf, np.nan])
junk = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=4),
    st.binary(max_size=9),
    numbers,
    reals,
    st.sampled_from([{}, [], [[[]]]]),
    st.builds(Ext, st.integers(-3, 9), st.binary(max_size=9)),
)


def _ints(some):
    return Ext(_INTS, np.array(some, "<i4").tobytes())


def _reals(some):
    return Ext(_REALS, np.array(some, "<f8").tobytes())


def _flags(count, packed):
    return Ext(_FLAGS, count.to_bytes(4, "little") + packed)


ints = st.one_of(
    st.lists(st.integers(-1, N) | st.sampled_from([-(2**31), 2**31 - 1]), max_size=8).map(_ints),
    st.lists(few, max_size=4).map(sorted).map(_ints),
    st.integers(0, N).map(lambda count: _ints(range(count))),
)
_FLAG_BYTES = -(-N // 8)
_BY_TYPE = {
    int: numbers,
    float: reals,
    bool: st.booleans(),
    type(None): st.none(),
    tuple[str, ...]: st.lists(st.text(max_size=4), max_size=2),
    Ints: ints,
    Reals: st.lists(reals, max_size=14).map(_reals) | st.integers(0, N).map(lambda count: _reals([0.5] * count)),
    Flags: st.one_of(
        st.binary(min_size=_FLAG_BYTES, max_size=_FLAG_BYTES).map(lambda packed: _flags(N, packed)),
        st.builds(_flags, st.sampled_from([0, 1, 8, N, 2**32 - 1]), st.binary(max_size=9)),
    ),
    Packed: st.fixed_dictionaries({"count": numbers, "width": numbers, "data": st.binary(max_size=40)}),
}


def _of_type(annotation):
    if annotation in _BY_TYPE:
        return _BY_TYPE[annotation]
    return st.one_of(*(_of_type(part) for part in get_args(annotation)))


def _as_a_rule(right):
    return st.integers(0, 15).flatmap(lambda chance: right if chance else junk)


@cache
def _fields(kind):
    """Values for each field of a kind of message: of its type as a rule, and now and then anything."""
    return {field.name: _as_a_rule(_of_type(field.type)) for field in msgspec.structs.fields(kind)}


@cache
def messages(*names: str):
    """Bytes of messages of these kinds, made up."""
    every = wire.kinds()
    chosen = []
    for name in names:
        fields = {field: values for field, values in _fields(every[name]).items() if field != "free"}
        chosen.append(st.fixed_dictionaries({"kind": st.just(name), **fields}))
    return st.one_of(*chosen).map(msgspec.msgpack.encode)


def with_one_field_made_up(draw, message: Message) -> bytes:
    """Bytes of an honest message, but for one field."""
    plain = msgspec.msgpack.decode(wire.encode(message), ext_hook=Ext)
    name, values = draw(st.sampled_from(sorted(_fields(type(message)).items())))
    plain[name] = draw(values)
    return msgspec.msgpack.encode(plain)


_changes = st.binary(min_size=4, max_size=24)


def mutated(draw, data: bytes) -> bytes:
    """Bytes changed, cut out, put in or doubled, or with the end of them missing: what and where, other bytes say."""
    result, left = bytearray(data), draw(_changes)
    while left:
        way, place = left[0] % 5, int.from_bytes(left[1:3], "little") % (len(result) + 1)
        some, left = left[3:6], left[6:]
        if way == 0:
            result[place : place + 1] = some[:1]
        elif way == 1:
            del result[place : place + 1 + sum(some) % 9]
        elif way == 2:
            result[place:place] = some
        elif way == 3:
            result[place:place] = result[place : place + 1 + sum(some) % 40]
        else:
            del result[place:]
    return bytes(result)


ANY = settings(
    deadline=None, database=None, derandomize=False, suppress_health_check=list(HealthCheck), report_multiple_bugs=False
)
"""Of any size, and as many as are asked for."""


def gathered(strategy, count: int, part: int) -> list:
    """So many examples, for what is better done outside of Hypothesis; others in each part."""
    found = []

    @seed(part)
    @settings(ANY, max_examples=count, phases=[Phase.generate])
    @given(strategy)
    def gather(example):
        found.append(example)

    gather()
    return found
