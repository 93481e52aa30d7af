"""Encodes messages as MessagePack, and decodes them strictly. Integers have 32 bits, reals 64, flags 1."""

import math
from functools import reduce
from operator import or_
from typing import Any, get_args

import msgspec
import numpy as np

from collabtop.errors import ProtocolError
from collabtop.protocol import messages
from collabtop.protocol.extension import extension_messages
from collabtop.protocol.messages import Message, kind_of

_BUILT_IN = [kind for kind in Message.__subclasses__() if kind.__module__ == messages.__name__]
_INTS, _REALS, _FLAGS = 1, 2, 3
_MIN_INT, _MAX_INT = -(2**31), 2**31 - 1


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


def _check_number(value: Any) -> None:
    if type(value) is int and not _MIN_INT <= value <= _MAX_INT:
        raise ValueError("an integer has more than 32 bits")
    if isinstance(value, float) and math.isnan(value):
        raise ValueError("a real number is NaN")
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and np.isnan(value).any():
        raise ValueError("a real number is NaN")


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
    dtype = get_args(get_args(type_)[1])[0]
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return value
    raise ValueError(f"expected an array of {dtype.__name__}")


def _decoder() -> msgspec.msgpack.Decoder[Any]:
    classes = tuple(kinds().values())
    if classes not in _decoders:
        union = reduce(or_, classes)
        _decoders[classes] = msgspec.msgpack.Decoder(union, dec_hook=_check_array, ext_hook=_decode_array)
    return _decoders[classes]


_decoders: dict[tuple[type[Message], ...], msgspec.msgpack.Decoder[Any]] = {}
_encoder = msgspec.msgpack.Encoder(enc_hook=_encode_array)
