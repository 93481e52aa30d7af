"""Messages as bytes: MessagePack, decoded strictly. Integers take 32 bits, reals 64, flags 1."""

from __future__ import annotations

import math
from typing import Any, get_args

import msgspec
import numpy as np

from collabtop.errors import ProtocolError
from collabtop.protocol.messages import Message, kind_of

_INTS, _REALS, _FLAGS = 1, 2, 3
_SMALLEST, _LARGEST = -(2**31), 2**31 - 1


def kinds() -> dict[str, type[Message]]:
    """All kinds of message, by name."""
    return {kind_of(kind): kind for kind in Message.__subclasses__()}


def encode(message: Message) -> bytes:
    """A message as bytes.

    >>> from collabtop.protocol.messages import Held
    >>> decode(encode(Held(58)))
    Held(size=58, free=())
    """
    for value in msgspec.structs.astuple(message):
        if type(value) is int and not _SMALLEST <= value <= _LARGEST:
            raise ProtocolError("an integer in a message is larger than 32 bits")
    return _encoder.encode(message)


def decode(data: bytes) -> Message:
    """Read a message back; anything but a message of a known kind with the right types is refused.

    So is an integer of more than 32 bits, and a real that is not a number.
    """
    try:
        message: Message = _decoder().decode(data)
        for value in msgspec.structs.astuple(message):
            _check_number(value)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"not a message: {error}") from None
    return message


def _check_number(value: Any) -> None:
    if type(value) is int and not _SMALLEST <= value <= _LARGEST:
        raise ValueError("an integer is larger than 32 bits")
    if isinstance(value, float) and math.isnan(value):
        raise ValueError("a real is not a number")
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and np.isnan(value).any():
        raise ValueError("a real is not a number")


def _pack(value: Any) -> msgspec.msgpack.Ext:
    if isinstance(value, np.ndarray):
        if value.dtype == np.int64:
            if len(value) and (value.min() < _SMALLEST or value.max() > _LARGEST):
                raise ProtocolError("an integer in a message is larger than 32 bits")
            return msgspec.msgpack.Ext(_INTS, value.astype("<i4").tobytes())
        if value.dtype == np.float64:
            return msgspec.msgpack.Ext(_REALS, value.astype("<f8").tobytes())
        if value.dtype == np.bool_:
            return msgspec.msgpack.Ext(_FLAGS, len(value).to_bytes(4, "little") + np.packbits(value).tobytes())
    raise ProtocolError(f"{type(value).__name__} cannot be part of a message")


def _unpack(code: int, data: memoryview) -> Any:
    if code == _INTS:
        return np.frombuffer(data, "<i4").astype(np.int64)
    if code == _REALS:
        return np.frombuffer(data, "<f8").astype(np.float64)
    if code == _FLAGS:
        count = int.from_bytes(data[:4], "little")
        if len(data) < 4 or -(-count // 8) != len(data) - 4:  # unpacking fills up with as many flags as it is told
            raise ValueError("flags of another number than they say")
        return np.unpackbits(np.frombuffer(data[4:], np.uint8), count=count).astype(bool)
    raise ValueError(f"unknown extension {code}")


def _fits(wanted: Any, value: Any) -> Any:
    dtype = get_args(get_args(wanted)[1])[0]
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return value
    raise ValueError(f"expected an array of {dtype.__name__}")


def _decoder() -> msgspec.msgpack.Decoder[Any]:
    every = tuple(kinds().values())
    if every not in _decoders:
        union: Any = every[0]
        for kind in every[1:]:
            union |= kind
        _decoders[every] = msgspec.msgpack.Decoder(union, dec_hook=_fits, ext_hook=_unpack)
    return _decoders[every]


_decoders: dict[tuple[type[Message], ...], msgspec.msgpack.Decoder[Any]] = {}
_encoder = msgspec.msgpack.Encoder(enc_hook=_pack)
