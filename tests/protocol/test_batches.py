"""Batches of pulls are added up when there are many, and nothing is lost by it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from collabtop.protocol.batches import ArmTotals, Batches


def totals(batches, n):
    pulls, sums, squares = np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    for arms, times, batch_sums, batch_squares in batches:
        pulls[arms] += times
        sums[arms] += batch_sums
        squares[arms] += batch_squares
    return pulls.tolist(), sums.tolist(), squares.tolist()


def test_many_batches_become_one_with_the_same_totals():
    rng, n = np.random.default_rng(1), 1_000
    batches, expected = Batches(n), []
    for _ in range(200):
        arms = rng.permutation(n)[:900]
        sums, squares = rng.integers(9, size=(2, 900)).astype(float)
        expected.append((arms, rng.integers(1, 9, 900), sums, squares))
        batches.append(expected[-1])
    assert len(list(batches)) < 200
    assert totals(batches, n) == totals(expected, n)


def test_agents_in_different_threads_can_share_them():
    batches, arms = Batches(50), np.arange(50)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: batches.append((arms, np.array([2]), np.ones(50), np.ones(50))), range(4_000)))
    assert totals(batches, 50) == ([8_000] * 50, [4_000.0] * 50, [4_000.0] * 50)


def test_squares_are_unknown_where_one_batch_has_none():
    batches = [
        (np.array([0]), np.array([2]), np.ones(1), None),
        (np.array([1, 2]), np.array([2]), np.ones(2), np.full(2, 0.5)),
        (np.array([2]), np.array([2]), np.ones(1), None),
    ]
    assert np.array_equal(ArmTotals(3, batches).squares, [np.nan, 0.5, np.nan], equal_nan=True)
    assert ArmTotals(3, batches[:1]).squares is None
