"""Numbers and the state of a generator as the bytes of a record, and checks of such bytes."""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


def pack_ints(numbers: Ints) -> bytes:
    """Whole numbers from -2^31 to 2^31 - 1, with 4 bytes each."""
    return numbers.astype("<i4").tobytes()


def unpack_ints(data: bytes) -> Ints:
    """The numbers that `pack_ints` packed."""
    return np.frombuffer(data, "<i4").astype(np.int64)


_FEW = 64
"""Up to this many numbers, NumPy's per-call overhead exceeds the cost of a loop."""
_UNSIGNED = [struct.Struct(f"<{count}I") for count in range(_FEW + 1)]
_REALS = [struct.Struct(f"<{count}d") for count in range(_FEW + 1)]


def largest_int(data: bytes) -> int:
    """The largest of packed whole numbers, -1 if there are none; a negative one counts as more than 2^31."""
    count, rest = divmod(len(data), 4)
    if rest:
        raise ValueError(f"there are {len(data)} bytes of numbers with 4 bytes each")
    return int(max(_UNSIGNED[count].unpack(data), default=-1) if count <= _FEW else np.frombuffer(data, "<u4").max())


def sum_of_ints(data: bytes) -> int:
    """The sum of packed whole numbers that are not negative."""
    count, rest = divmod(len(data), 4)
    if rest:
        raise ValueError(f"there are {len(data)} bytes of numbers with 4 bytes each")
    return int(sum(_UNSIGNED[count].unpack(data)) if count <= _FEW else np.frombuffer(data, "<u4").sum(dtype=np.int64))


def check_reals(data: bytes, least: float, most: float, *, nan: bool = False, name: str = "reward") -> None:
    """Check that packed real numbers are from `least` to `most`, or NaN if that is allowed."""
    count = len(data) // 8
    if count <= _FEW:
        few = _REALS[count].unpack(data)
        if not count or (min(few) >= least and max(few) <= most and sum(few) >= count * least):  # not with a NaN
            return
    numbers = np.frombuffer(data, "<f8")
    if not (((numbers >= least) & (numbers <= most)) | (np.isnan(numbers) & nan)).all():
        raise ValueError(f"a {name} is not a number from {least:g} to {most:g}")


STATE_BYTES = 37
"""Length of a packed state."""
MAX_INT = 2**31 - 1
"""The largest packed whole number."""


def pack_state(rng: np.random.Generator) -> bytes:
    """The state of a generator."""
    state = rng.bit_generator.state
    words = state["state"]["state"].to_bytes(16, "little") + state["state"]["inc"].to_bytes(16, "little")
    return bytes(words) + int(state["has_uint32"]).to_bytes(1, "little") + int(state["uinteger"]).to_bytes(4, "little")


def unpack_state(data: bytes) -> dict[str, Any]:
    """The state that `pack_state` packed, as `Generator.bit_generator.state` takes it."""
    return {
        "bit_generator": "PCG64",
        "state": {"state": int.from_bytes(data[:16], "little"), "inc": int.from_bytes(data[16:32], "little")},
        "has_uint32": data[32],
        "uinteger": int.from_bytes(data[33:37], "little"),
    }
