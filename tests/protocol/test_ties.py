"""Sums are put in order with equal ones in random order, by whichever way is fastest."""

from __future__ import annotations

import numpy as np
import pytest

from collabtop.protocol.ties import AMPLITUDE, border_values, perturbed, random_order, smallest, smallest_in_rows, sort


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


@pytest.mark.parametrize("length", [30, 5_000], ids=["few", "many"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_smallest_are_the_first_of_a_stable_sort(length, share):
    rows, count = np.random.default_rng(5).integers(40, size=(3, length)).astype(float), int(share * length)
    chosen = smallest_in_rows(rows, count)
    for row, flags in zip(rows, chosen, strict=True):
        first = sorted(np.argsort(row, kind="stable")[:count].tolist())
        assert np.flatnonzero(flags).tolist() == first
        assert np.flatnonzero(smallest(row, count)).tolist() == first


@pytest.mark.parametrize("length", [0, 30, 5_000])
def test_few_and_many_values_are_sorted(length):
    values = np.random.default_rng(6).random(length)
    expected = sorted(values.tolist())
    sort(values)
    assert values.tolist() == expected


def test_an_order_whose_keys_rounding_makes_equal_is_still_by_chance():
    sums, chance = np.full(300, 2.0**40), np.random.default_rng(7).random(300)
    assert len(set((sums + chance).tolist())) < 300
    assert random_order(sums, np.random.default_rng(7)).tolist() == chance.argsort().tolist()


@pytest.mark.parametrize("count", [2, 9, 300, 5_000])
def test_the_values_at_the_border_are_those_of_a_sort(count):
    values = np.random.default_rng(1).integers(count, size=count).astype(float)
    before, ordered = values.copy(), np.sort(values)
    for below in {1, count // 2, *range(max(1, count - 6), count)}:
        assert border_values(values, below) == (ordered[below - 1], ordered[below])
    assert (values == before).all()


def test_long_arrays_are_perturbed_like_short_ones():
    means = np.random.default_rng(1).random(100_000)
    chance = np.random.default_rng(2).random(100_000)
    assert (perturbed(means, np.random.default_rng(2)) == (chance - means) * AMPLITUDE + means).all()
