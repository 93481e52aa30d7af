"""Sums are put in order with equal ones in random order, by whichever way is fastest."""

from __future__ import annotations

import numpy as np
import pytest

from collabtop.protocol.ties import random_order


@pytest.mark.parametrize(
    "sums",
    [
        np.random.default_rng(1).integers(40, size=2_000).astype(float),
        np.random.default_rng(2).integers(2**17, size=2_000).astype(float),
        np.random.default_rng(3).random(2_000).round(2),
        -np.random.default_rng(4).integers(40, size=2_000).astype(float),
        np.array([3.0, 1.0, 3.0]),
        np.empty(0),
    ],
    ids=["counts", "large counts", "fractions", "negative", "few", "none"],
)
def test_the_order_is_that_of_a_sort_by_sum_and_then_by_chance(sums):
    chance = np.random.default_rng(9).random(len(sums))
    assert random_order(sums, np.random.default_rng(9)).tolist() == np.lexsort((chance, sums)).tolist()
