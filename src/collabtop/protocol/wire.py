"""Encodes messages as MessagePack, and decodes them strictly. Integers have 32 bits, reals 64, flags 1."""

import math
from collections.abc import Sequence
from functools import cache, lru_cache, reduce
from itertools import accumulate, pairwise
from operator import attrgetter, or_
from typing import Any, get_args, get_origin

import msgspec
import numpy as np

from collabtop.errors import ProtocolError
from collabtop.protocol import messages
from collabtop.protocol.extension import AgentExtension, extension_messages, registered_extensions
from collabtop.protocol.ledger import form_of
from collabtop.protocol.messages import Message, Reals, kind_of

_BUILT_IN = [kind for kind in Message.__subclasses__() if kind.__module__ == messages.__name__]
_INTS, _REALS, _FLAGS = 1, 2, 3
_MIN_INT, _MAX_INT = -(2**31), 2**31 - 1
_FEW = 32


def kinds() -> dict[str, type[Message]]:
    """All message classes by kind: those of the package, and those of registered extensions."""
    return {kind_of(kind): kind for kind in (*_BUILT_IN, *extension_messages())}


def encode(message: Message) -> bytes:
    """Encode a message.

    >>> from collabtop.protocol.messages import Held
    >>> decode(encode(Held(58)))
    Held(size=58)
    """
    for value in msgspec.structs.astuple(message):
        if type(value) is int and not _MIN_INT <= value <= _MAX_INT:
            raise ProtocolError("an integer in a message has more than 32 bits")
    return _encoder.encode(message)


def decode(data: bytes) -> Message:
    """Decode a message; anything but a message of a known kind with the right types is rejected.

    Integers of more than 32 bits and NaN are rejected as well.
    """
    try:
        message: Message = _decoder().decode(data)
        for value in msgspec.structs.astuple(message):
            _check_number(value)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"not a message: {error}") from None
    return message


class _Columns(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Messages of one kind, field by field: a list of scalars, or the lengths of arrays and these in one."""

    kind: str
    count: int
    fields: list[msgspec.Raw]


class _Together(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Several messages: in columns, or each by itself."""

    columns: _Columns | None
    single: list[bytes]


def encode_all(messages: Sequence[Message]) -> bytes:
    """Encode several messages together: column by column if all have the same kind, which takes a fraction of the time.

    >>> from collabtop.protocol.messages import Held
    >>> decode_all(encode_all([Held(58), Held(61)]))
    [Held(size=58), Held(size=61)]
    """
    columns = _columns_of(messages)
    return _encoder.encode(_Together(columns, [] if columns else [encode(message) for message in messages]))


def decode_all(data: bytes) -> list[Message]:
    """Decode what `encode_all` has encoded, as strictly as `decode`."""
    try:
        together = _together.decode(data)
        if together.columns is None:
            return [decode(message) for message in together.single]
        return _messages_in(together.columns)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"not messages: {error}") from None


def _columns_of(messages: Sequence[Message]) -> _Columns | None:
    """The columns of messages of one kind; None if they have several kinds, or fields that do not fit into columns."""
    forms = set(map(form_of, messages))
    if len(forms) != 1:
        return None
    ((kind, *more),) = forms
    columns = []
    for name, type_ in _fields(kind):
        values: list[Any] = list(map(attrgetter(name), messages))
        if type_ is int and not (min(values) >= _MIN_INT and max(values) <= _MAX_INT):
            return None  # `encode` names the problem
        if type_ not in _SCALARS:
            if get_origin(type_) is not np.ndarray:
                return None
            values = [list(map(len, values)), np.concatenate(values)]
        columns.append(msgspec.Raw(_encoder.encode(values)))
    return None if any(more) or not columns else _Columns(kind_of(kind), len(messages), columns)


def _messages_in(columns: _Columns) -> list[Message]:
    kind = kinds().get(columns.kind)
    if kind is None or not columns.fields or len(columns.fields) != len(_fields(kind)):
        raise ValueError("unknown kind or fields")
    decoded: list[list[Any]] = []
    for (_, type_), field in zip(_fields(kind), columns.fields, strict=True):
        if type_ in _SCALARS:
            values = _SCALARS[type_].decode(field)
            for value in values:
                _check_number(value)
        elif get_origin(type_) is np.ndarray:
            values = _arrays_in(field, type_)
        else:
            raise ValueError("a field does not fit into columns")
        if len(values) != columns.count:
            raise ValueError("the columns have different lengths")
        decoded.append(values)
    return [kind(*values) for values in zip(*decoded, strict=True)]


def _arrays_in(field: msgspec.Raw, type_: Any) -> list[Any]:
    lengths, array = _arrays.decode(field)
    _check_number(_check_array(type_, array))
    if min(lengths, default=0) < 0 or sum(lengths) != len(array):
        raise ValueError("the lengths of arrays do not match their content")
    return [array[start:stop] for start, stop in pairwise(accumulate(lengths, initial=0))]


@cache
def _fields(kind: type[Message]) -> list[tuple[str, Any]]:
    """Names and types of the fields of a kind of message, without those that all kinds have."""
    shared = {field.name for field in msgspec.structs.fields(Message)}
    return [(field.name, field.type) for field in msgspec.structs.fields(kind) if field.name not in shared]


def _check_number(value: Any) -> None:
    if type(value) is int and not _MIN_INT <= value <= _MAX_INT:
        raise ValueError("an integer has more than 32 bits")
    if isinstance(value, float) and math.isnan(value):
        raise ValueError("a real number is NaN")
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and _has_nan(value):
        raise ValueError("a real number is NaN")


def _has_nan(reals: Reals) -> bool:
    # NumPy's overhead per call exceeds a look at a few numbers in Python. The least of many is NaN if one of them is.
    if len(reals) < _FEW:
        return any(map(math.isnan, reals.tolist()))
    return math.isnan(np.minimum.reduce(reals))


def _encode_array(value: Any) -> msgspec.msgpack.Ext:
    if isinstance(value, np.ndarray):
        if value.dtype == np.int64:
            if len(value) and (value.min() < _MIN_INT or value.max() > _MAX_INT):
                raise ProtocolError("an integer in a message has more than 32 bits")
            return msgspec.msgpack.Ext(_INTS, value.astype("<i4").tobytes())
        if value.dtype == np.float64:
            return msgspec.msgpack.Ext(_REALS, value.astype("<f8").tobytes())
        if value.dtype == np.bool_:
            return msgspec.msgpack.Ext(_FLAGS, len(value).to_bytes(4, "little") + np.packbits(value).tobytes())
    raise ProtocolError(f"a message cannot contain a value of type {type(value).__name__}")


def _decode_array(code: int, data: memoryview) -> Any:
    if code == _INTS:
        return np.frombuffer(data, "<i4").astype(np.int64)
    if code == _REALS:
        return np.frombuffer(data, "<f8").astype(np.float64)
    if code == _FLAGS:
        count = int.from_bytes(data[:4], "little")
        if len(data) < 4 or -(-count // 8) != len(data) - 4:  # unpackbits pads to any stated count
            raise ValueError("the number of flags does not match their count")
        return np.unpackbits(np.frombuffer(data[4:], np.uint8), count=count).astype(bool)
    raise ValueError(f"unknown extension {code}")


def _check_array(type_: Any, value: Any) -> Any:
    dtype = _dtype_of(type_)
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return value
    raise ValueError(f"expected an array of {dtype.__name__}")


@cache
def _dtype_of(type_: Any) -> Any:
    """The NumPy type of the elements of an array type."""
    return get_args(get_args(type_)[1])[0]


def _decoder() -> msgspec.msgpack.Decoder[Any]:
    return _decoder_with(tuple(registered_extensions().values()))


@lru_cache(maxsize=8)
def _decoder_with(extensions: tuple[type[AgentExtension], ...]) -> msgspec.msgpack.Decoder[Any]:
    """The decoder of all messages, if these extensions are registered."""
    union = reduce(or_, kinds().values())
    return msgspec.msgpack.Decoder(union, dec_hook=_check_array, ext_hook=_decode_array)


_encoder = msgspec.msgpack.Encoder(enc_hook=_encode_array)
_together = msgspec.msgpack.Decoder(_Together)
_arrays = msgspec.msgpack.Decoder(tuple[list[int], Any], ext_hook=_decode_array)
_SCALARS: dict[Any, msgspec.msgpack.Decoder[Any]] = {
    type_: msgspec.msgpack.Decoder(list[type_])  # type: ignore[valid-type]
    for type_ in (int, float, bool)
}
