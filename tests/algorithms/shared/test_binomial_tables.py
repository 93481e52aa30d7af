"""Binomial draws from tables: the tables hold the exact distribution, and draws come from it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabtop.algorithms.shared import binomial_tables
from collabtop.algorithms.shared.binomial_tables import BinomialDraws, BinomialTable, TableCache

MEANS = st.floats(0.0, 1.0) | st.sampled_from([0.0, 1.0, 0.5, 1 / 3, 1e-12])


def in_table(table, row):
    """The probability with which a row gives the value of each column."""
    return np.diff(table.entries[row] - row, prepend=0.0)


def exact(times, mean, value):
    if mean in (0.0, 1.0):
        return float(value == times * mean)
    ways = math.lgamma(times + 1) - math.lgamma(value + 1) - math.lgamma(times - value + 1)
    return math.exp(ways + value * math.log(mean) + (times - value) * math.log1p(-mean))


@given(st.integers(0, 400), st.lists(MEANS, min_size=1, max_size=4))
def test_a_table_holds_the_binomial_distribution(times, means):
    table = BinomialTable(times, np.array(means))
    for row, mean in enumerate(means):
        values = int(table.lowest[row]) + np.arange(table.width)
        expected = [exact(times, mean, value) for value in values.tolist()]
        assert sum(expected) == pytest.approx(1.0, abs=1e-11)  # what the table leaves out
        np.testing.assert_allclose(in_table(table, row), expected, atol=1e-11)


def test_tables_with_many_rows_are_as_exact():
    """Rows are placed one after the other in one array: the last ones have the largest numbers there."""
    means = np.linspace(0, 1, 600)
    table = BinomialTable(1_000, means)
    for row in (0, 1, 300, 598, 599):
        expected = [exact(1_000, means[row], int(table.lowest[row]) + column) for column in range(table.width)]
        np.testing.assert_allclose(in_table(table, row), expected, atol=1e-11)


def test_draws_follow_the_distribution():
    """Chi-squared over the values that are expected at least five times; 1 in 10,000 seeds would fail."""
    times, mean, count = 30, 0.3, 100_000
    rows = np.ones((10, count // 10), np.int64)
    drawn = BinomialTable(times, np.array([0.9, mean])).draw(rows, np.random.default_rng(1))
    expected = np.array([count * exact(times, mean, value) for value in range(times + 1)])
    seen = np.bincount(drawn.astype(int).ravel(), minlength=times + 1)
    often = expected >= 5
    chi_squared = ((seen - expected)[often] ** 2 / expected[often]).sum()
    degrees = int(often.sum()) - 1
    assert (chi_squared - degrees) / math.sqrt(2 * degrees) < 5.0


@pytest.mark.parametrize("times", [40, np.array([40, 40, 3, 40])], ids=["one number", "a number per row"])
def test_each_arm_has_its_own_mean(times):
    means = np.array([0.0, 1.0, 0.0, 1.0])
    arms = np.array([[0, 1, 2], [1, 2, 3], [3, 3, 0], [2, 2, 1]])
    drawn = BinomialDraws(means).successes(arms, times, np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, means[arms] * np.reshape(times, (-1, 1)))


def test_the_draws_of_a_batch_do_not_depend_on_the_batches_before(monkeypatch):
    """A table that is made for one batch is there for the next: this must not change what is drawn."""
    means, arms = np.linspace(0.1, 0.9, 20), np.broadcast_to(np.arange(20), (100, 20))
    draws = BinomialDraws(means)
    first = draws.successes(arms, 50, np.random.default_rng(1))
    again = draws.successes(arms, 50, np.random.default_rng(1))
    monkeypatch.setattr(binomial_tables, "_TABLES", TableCache(1_000_000))
    anew = draws.successes(arms, 50, np.random.default_rng(1))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, anew)


def test_few_draws_of_many_means_use_no_table():
    means = np.random.default_rng(0).random(1_000)
    arms = np.arange(1_000)[np.newaxis]
    drawn = BinomialDraws(means).successes(arms, 10_000, np.random.default_rng(1))
    np.testing.assert_array_equal(drawn[0], np.random.default_rng(1).binomial(10_000, means))


def test_rows_that_are_all_the_same_are_drawn_like_others():
    means, arms = np.linspace(0.1, 0.9, 20), np.broadcast_to(np.arange(20), (100, 20))
    same, others = (BinomialDraws(means).successes(a, 50, np.random.default_rng(1)) for a in (arms, arms.copy()))
    np.testing.assert_array_equal(same, others)


def test_a_table_has_rows_only_for_the_arms_that_were_live():
    means, cache = np.array([0.2, 0.5, 0.8]).tobytes(), TableCache(most_entries=1_000)
    table, places = cache.get(10, means, 1, np.array([2]))
    assert (table.entries.shape, places.tolist()) == ((1, 11), [-1, -1, 0])
    table, places = cache.get(10, means, 1, np.array([0, 2]))
    assert (table.entries.shape, places.tolist()) == ((2, 11), [1, -1, 0])
    np.testing.assert_array_equal(table.entries, BinomialTable(10, np.array([0.8, 0.2])).entries)
    np.testing.assert_array_equal(table.lowest, BinomialTable(10, np.array([0.8, 0.2])).lowest)


def test_the_cache_forgets_the_tables_that_were_not_used_for_longest():
    means, needed = np.array([0.2, 0.5]).tobytes(), np.arange(2)
    cache = TableCache(most_entries=2 * (11 + 21))
    (ten, _), (twenty, _) = cache.get(10, means, 1, needed), cache.get(20, means, 1, needed)
    assert cache.get(10, means, 1, needed)[0] is ten
    thirty, _ = cache.get(30, means, 1, needed)
    assert cache.get(30, means, 1, needed)[0] is thirty
    assert cache.get(20, means, 1, needed)[0] is not twenty
    assert cache.get(10, means, 1, needed)[0] is not ten  # there was no room for it


@given(st.integers(0, 300), st.lists(st.lists(MEANS, min_size=3, max_size=3), min_size=1, max_size=3))
def test_a_table_of_sums_holds_the_convolution_of_the_agents_distributions(times, means):
    table = BinomialTable(times, np.array(means))
    for row, of_agents in enumerate(means):
        expected = np.ones(1)
        for mean in of_agents:
            expected = np.convolve(expected, [exact(times, mean, value) for value in range(times + 1)])
        lowest = int(table.lowest[row])
        assert expected[lowest : lowest + table.width].sum() == pytest.approx(1.0, abs=1e-10)
        np.testing.assert_allclose(in_table(table, row), expected[lowest : lowest + table.width], atol=1e-11)


@pytest.mark.parametrize("runs", [1, 60], ids=["one by one", "from a table"])
def test_the_successes_of_all_agents_are_added_up(runs):
    means = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.2, 0.4, 0.9]])
    drawn = BinomialDraws(means).successes(np.broadcast_to(np.arange(3), (runs, 3)), 400, np.random.default_rng(1))
    assert (drawn[:, 0] == 800).all()
    assert (drawn[:, 1] == 400).all()
    deviation = math.sqrt(400 * (0.16 + 0.24 + 0.09))
    # Exceeded with a probability below 1e-6.
    assert abs(drawn[:, 2].mean() - 600) < 5 * deviation / math.sqrt(runs)


def test_tables_of_arms_and_of_sums_over_agents_with_the_same_means_are_kept_apart():
    means, rng = np.arange(1, 5) / 8, np.random.default_rng(1)
    for draws, times_mean in (
        (BinomialDraws(means.reshape(2, 2)), means.reshape(2, 2).sum(axis=1)),
        (BinomialDraws(means), means),
    ):
        arms = np.broadcast_to(np.arange(len(times_mean)), (20_000, len(times_mean)))
        np.testing.assert_allclose(
            draws.successes(arms, 16, rng).mean(axis=0), 16 * times_mean, atol=0.15
        )  # 7 deviations
