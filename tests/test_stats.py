"""Intervals cover what they promise, and tails are exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.stats import (
    bounds,
    divergence,
    fewer_wrong_p_value,
    holm,
    hypergeometric,
    hypergeometric_tail,
    interval_end,
    simultaneous_z,
    smaller_mean_p_value,
    wilson_interval,
)

shares = st.floats(0, 1)
evidences = st.floats(0.01, 60)
counts = st.integers(1, 10**7)


@pytest.mark.parametrize(
    ("wrong", "runs", "low", "high"),
    [  # Wilson 1927, as tabulated by Newcombe 1998 (Statistics in Medicine 17, table I)
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_intervals_match_the_literature(wrong, runs, low, high):
    assert wilson_interval(wrong / runs, runs) == pytest.approx((low, high), abs=5e-5)


def test_wilson_intervals_are_symmetric_and_stay_within_0_and_1():
    assert wilson_interval(0, 7)[0] == 0
    assert wilson_interval(1, 7)[1] == 1
    assert wilson_interval(2 / 9, 9) == pytest.approx([1 - end for end in reversed(wilson_interval(7 / 9, 9))])
    with pytest.raises(ct.InputError, match="count is 0, but an interval needs at least 1 observation"):
        wilson_interval(0, 0)


@pytest.mark.parametrize("mean", [0.0, 0.05, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("pulls", [1, 10, 100])
def test_wilson_intervals_contain_the_true_mean_about_as_often_as_they_should(mean, pulls):
    rng = np.random.default_rng(3)
    intervals = [wilson_interval(float(share), pulls) for share in rng.binomial(pulls, mean, 2_000) / pulls]
    assert np.mean([low <= mean <= high for low, high in intervals]) > (0.85 if pulls > 1 else 0.45)
    assert all(0 <= low <= high <= 1 for low, high in intervals)


@given(n=st.integers(1, 30), marked=st.integers(0, 30), drawn=st.integers(0, 30), above=st.integers(-1, 31))
def test_the_hypergeometric_tail_is_the_share_of_draws_with_more(n, marked, drawn, above):
    marked, drawn = min(marked, n), min(drawn, n)
    possible = range(above + 1, min(marked, drawn) + 1)
    ways = sum(math.comb(marked, x) * math.comb(n - marked, drawn - x) for x in possible)
    exact = float(Fraction(ways, math.comb(n, drawn)))
    assert hypergeometric_tail(n, marked, drawn, above) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(("marked", "drawn", "above"), [(900, 1_000, 20), (900, 1_000, 300), (5_000, 4_000, 1_700)])
def test_the_hypergeometric_tail_of_many_items_leaves_out_only_what_does_not_matter(marked, drawn, above):
    every = hypergeometric(10_000, marked, drawn, np.arange(above + 1, min(marked, drawn) + 1))
    assert hypergeometric_tail(10_000, marked, drawn, above) == pytest.approx(min(1.0, every.sum()), rel=1e-12)


@given(mean=shares, pulls=counts, evidence=evidences)
def test_an_interval_contains_the_mean_and_stays_within_0_and_1(mean, pulls, evidence):
    (low,), (high,) = bounds(np.array([mean]), np.array([float(pulls)]), evidence)
    assert 0 <= low <= mean <= high <= 1


@given(mean=shares, pulls=counts, evidence=evidences)
def test_its_ends_are_just_outside_where_the_divergence_reaches_the_evidence(mean, pulls, evidence):
    for end in (0.0, 1.0):
        at = interval_end(np.array([mean]), np.array([float(pulls)]), evidence, end)
        if at[0] != end:
            assert pulls * divergence(np.array([mean]), at)[0] > evidence
        inside = np.array([at[0] + (mean - at[0]) * 1e-6 + math.copysign(2**-23, mean - at[0])])
        if abs(mean - at[0]) > 2**-20:
            assert pulls * divergence(np.array([mean]), inside)[0] <= evidence * (1 + 1e-6) + 1e-6


@given(mean=shares, pulls=st.integers(1, 10**6), evidence=evidences)
def test_more_pulls_make_it_shorter_and_more_evidence_longer(mean, pulls, evidence):
    means = np.array([mean])
    low, high = bounds(means, np.array([float(pulls)]), evidence)
    shorter = bounds(means, np.array([pulls * 4.0]), evidence)
    longer = bounds(means, np.array([float(pulls)]), evidence * 2)
    assert longer[0] <= low <= shorter[0]
    assert shorter[1] <= high <= longer[1]


@given(p=shares, q=st.floats(0.001, 0.999))
def test_the_divergence_is_that_of_two_coins(p, q):
    expected = sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)
    assert divergence(np.array([p]), np.array([q]))[0] == pytest.approx(expected, abs=1e-9)
    assert expected >= 2 * (p - q) ** 2 - 1e-9  # Pinsker: never a wider interval than Hoeffding's


@pytest.mark.parametrize("mean", [0.02, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("pulls", [8, 50, 1_000])
def test_a_true_mean_is_missed_no_more_often_than_promised(mean, pulls):
    # The exact chance, by adding up the binomial distribution.
    evidence = 3.0
    successes = np.arange(pulls + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, pulls + 1)))])
    chances = np.exp(
        logs[pulls] - logs - logs[::-1] + successes * math.log(mean) + (pulls - successes) * math.log(1 - mean)
    )
    low, high = bounds(successes / pulls, np.full(pulls + 1, float(pulls)), evidence)
    assert chances[low > mean].sum() <= math.exp(-evidence)
    assert chances[high < mean].sum() <= math.exp(-evidence)


def test_it_holds_for_rewards_that_are_not_all_alike():
    rng = np.random.default_rng(1)
    local = np.array([0.95, 0.1, 0.6])  # three agents that see the arm differently
    sums = rng.binomial(40, local, (20_000, 3)).sum(axis=1)
    low, high = bounds(sums / 120, np.full(20_000, 120.0), evidence=2.0)
    missed = ((low > local.mean()) | (high < local.mean())).mean()
    assert missed <= 2 * math.exp(-2.0)


@given(ps=st.lists(st.floats(0, 1), max_size=20), level=st.floats(0.001, 0.2))
def test_holm_rejects_what_bonferroni_rejects_and_nothing_above_the_level(ps, level):
    rejected = holm(ps, level)
    assert all(done for p, done in zip(ps, rejected, strict=True) if p <= level / len(ps))
    assert not any(done for p, done in zip(ps, rejected, strict=True) if p > level)


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042)])
def test_the_tails_of_students_distribution_match_its_tables(freedom, t):
    # With one exact mean, the test has as many degrees of freedom as the other mean has runs, less one.
    runs = freedom + 1
    exact, deviation = (0.0, 0.0, 100), math.sqrt(runs) / t
    assert smaller_mean_p_value(*exact, 1.0, deviation, runs) == pytest.approx(0.025, rel=1e-3)
    assert smaller_mean_p_value(1.0, deviation, runs, *exact) == pytest.approx(0.975, rel=1e-3)


def test_welchs_test_keeps_its_level_for_few_runs_and_unequal_deviations():
    rng = np.random.default_rng(4)
    few, many = rng.normal(7, 5, (4_000, 5)), rng.normal(7, 1, (4_000, 20))
    ps = [
        smaller_mean_p_value(a.mean(), a.std(ddof=1), 5, b.mean(), b.std(ddof=1), 20)
        for a, b in zip(few, many, strict=True)
    ]
    assert abs(np.mean(np.array(ps) <= 0.01) - 0.01) < 4 * math.sqrt(0.01 / 4_000)  # false alarm 0.01%


def test_a_mean_of_one_run_shows_nothing_and_means_without_deviation_are_exact():
    assert smaller_mean_p_value(1.0, 0.0, 1, 2.0, 0.0, 50) == 1
    assert smaller_mean_p_value(math.nan, math.nan, 0, 2.0, 0.0, 50) == 1
    assert smaller_mean_p_value(1.0, 0.0, 5, 2.0, 0.0, 5) == 0
    assert smaller_mean_p_value(2.0, 0.0, 5, 2.0, 0.0, 5) == 1


def test_fisher_matches_a_table_of_the_literature():
    # Agresti, Categorical Data Analysis: 3 of 4 right guesses of milk first; one-sided p = 17/70.
    assert fewer_wrong_p_value(1, 4, 3, 4) == pytest.approx(17 / 70)
    assert fewer_wrong_p_value(3, 4, 1, 4) == pytest.approx(1 - 1 / 70)


def test_simultaneous_intervals_all_hold_as_often_as_promised():
    rng = np.random.default_rng(5)
    outside = np.abs(rng.standard_normal((4_000, 50))).max(axis=1) > simultaneous_z(50)
    assert 0.035 < outside.mean() < 0.065  # four standard errors around .049
