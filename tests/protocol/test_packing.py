"""Packed numbers: they survive, and take as many bits as their largest value needs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collabtop.protocol.packing import Packed


@given(largest=st.integers(0, 2**40), shares=st.lists(st.floats(0, 1), max_size=40))
def test_packed_numbers_come_back_as_they_were(largest, shares):
    numbers = np.array([int(share * largest) for share in shares], np.int64)
    packed = Packed.of(numbers, largest)
    assert packed.unpack().tolist() == numbers.tolist()
    assert packed.bits == len(numbers) * max(1, largest.bit_length())
    assert len(packed.data) == -(-packed.bits // 8)


def test_the_largest_number_fits_and_none_takes_no_room():
    assert Packed.of(np.array([255, 0]), largest=255).unpack().tolist() == [255, 0]
    assert Packed.of(np.array([255]), largest=255).bits == 8
    assert Packed.of(np.array([256]), largest=256).bits == 9
    nothing = Packed.of(np.empty(0, np.int64), largest=7)
    assert (nothing.bits, nothing.data, nothing.unpack().tolist()) == (0, b"", [])
