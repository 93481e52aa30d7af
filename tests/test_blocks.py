"""Long arrays are computed with block by block, with the same result."""

from __future__ import annotations

import numpy as np
import pytest

from collabtop.blocks import in_blocks


@pytest.mark.parametrize("length", [0, 1, 1 << 15, (1 << 15) + 1, 100_000])
def test_every_element_is_computed_once(length):
    sums, values, lengths = np.zeros(length), np.arange(length), []

    def add(sums, values):
        lengths.append(len(values))
        sums += values

    in_blocks(add, sums, values)
    assert (sums == values).all()
    assert max(lengths) <= 1 << 15
