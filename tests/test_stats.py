"""Confidence intervals: they contain the mean, shrink with pulls, and miss as rarely as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabtop.stats import bounds, divergence, edge

shares = st.floats(0, 1)
evidences = st.floats(0.01, 60)
counts = st.integers(1, 10**7)


@given(mean=shares, pulls=counts, evidence=evidences)
def test_an_interval_contains_the_mean_and_stays_within_0_and_1(mean, pulls, evidence):
    (low,), (high,) = bounds(np.array([mean]), np.array([float(pulls)]), evidence)
    assert 0 <= low <= mean <= high <= 1


@given(mean=shares, pulls=counts, evidence=evidences)
def test_its_ends_are_just_outside_where_the_divergence_reaches_the_evidence(mean, pulls, evidence):
    for end in (0.0, 1.0):
        at = edge(np.array([mean]), np.array([float(pulls)]), evidence, end)
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
