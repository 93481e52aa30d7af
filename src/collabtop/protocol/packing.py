"""Packs whole numbers with as many bits each as the largest possible value needs."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

_MAX_WIDTH = 62
"""The widest numbers, in bits, that 64-bit arithmetic handles safely."""


class Packed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whole numbers from 0 to 2^width - 1, packed in `data`; both sides know `count` and `width`.

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
        # The sender may state a wrong size, so it is checked before anything is unpacked.
        if not 1 <= self.width <= _MAX_WIDTH or self.count < 0 or len(self.data) != -(-self.count * self.width // 8):
            raise ValueError("the size of packed numbers does not match their count and width")

    @classmethod
    def of(cls, numbers: NDArray[np.int64], largest: int) -> "Packed":
        """Pack numbers from 0 to `largest`."""
        return cls.rows(numbers[np.newaxis], largest)[0]

    @classmethod
    def rows(cls, numbers: NDArray[np.int64], largest: int) -> "list[Packed]":
        """Pack each row of numbers from 0 to `largest`."""
        rows, count = numbers.shape
        width = max(1, largest.bit_length())
        size = 2 if width <= 16 else 8
        raw = np.ascontiguousarray(numbers, f"<u{size}").view(np.uint8).reshape(rows, count, size)
        digits = np.unpackbits(raw, axis=2, count=width, bitorder="little").reshape(rows, count * width)
        return [cls(count, width, row.tobytes()) for row in np.packbits(digits, axis=1)]

    def unpack(self) -> NDArray[np.int64]:
        """The numbers."""
        numbers: NDArray[np.int64] = self.unpack_rows([self])[0]
        return numbers

    @staticmethod
    def unpack_rows(packed: "Sequence[Packed]") -> NDArray[np.int64]:
        """The numbers of each of these, which have the same count and width, as rows."""
        count, width = packed[0].count, packed[0].width
        data = np.frombuffer(b"".join([part.data for part in packed]), np.uint8).reshape(len(packed), -1)
        digits = np.unpackbits(data, axis=1, count=count * width).reshape(len(packed), count, width)
        numbers: NDArray[np.int64] = digits @ (1 << np.arange(width))
        return numbers

    @property
    def bits(self) -> int:
        """Bits of the numbers, without the padding of the last byte."""
        return self.count * self.width
