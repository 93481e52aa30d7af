"""Whole numbers packed into as many bits each as their largest value needs."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

_WIDEST = 62
"""Bits of the largest number that 64-bit arithmetic can hold with room to spare."""


class Packed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whole numbers from 0 to 2^width - 1, one after the other in `data`; `count` and `width` both sides know.

    >>> packed = Packed.of(np.array([3, 0, 7]), largest=7)
    >>> packed.width, len(packed.data), packed.bits
    (3, 2, 9)
    >>> packed.unpack()
    array([3, 0, 7])
    """

    count: int
    width: int
    data: bytes

    def __post_init__(self) -> None:
        # What comes over a wire may lie about its size: nothing is unpacked that was not sent.
        if not 1 <= self.width <= _WIDEST or self.count < 0 or len(self.data) != -(-self.count * self.width // 8):
            raise ValueError("packed numbers of another size than they say")

    @classmethod
    def of(cls, numbers: NDArray[np.int64], largest: int) -> Packed:
        """Pack numbers from 0 to `largest`."""
        width = max(1, largest.bit_length())
        size = 2 if width <= 16 else 8
        raw = numbers.astype(f"<u{size}").view(np.uint8).reshape(-1, size)
        digits = np.unpackbits(raw, axis=1, count=width, bitorder="little")
        return cls(len(numbers), width, np.packbits(digits).tobytes())

    def unpack(self) -> NDArray[np.int64]:
        """The numbers."""
        digits = np.unpackbits(np.frombuffer(self.data, np.uint8), count=self.count * self.width)
        numbers: NDArray[np.int64] = digits.reshape(self.count, self.width) @ (1 << np.arange(self.width))
        return numbers

    @property
    def bits(self) -> int:
        """What the numbers take; filling up the last byte is the transport's."""
        return self.count * self.width
