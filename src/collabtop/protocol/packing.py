"""Packs whole numbers with as many bits each as the largest possible value needs."""

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
        """Bits of the numbers, without the padding of the last byte."""
        return self.count * self.width
