"""Intervals that hold at all times at once: their laws, their coverage, and how few pulls they need."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabtop.intervals import Evidence, FiniteEvidence, drift_bounds, mean_bounds, normal_bounds

REWARDS = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def moments(rewards):
    """The number, the sum and the sum of squares of rewards."""
    values = np.array(rewards)
    return np.array([float(len(values))]), np.array([values.sum()]), np.array([values @ values])


@given(REWARDS)
def test_an_interval_holds_the_observed_mean_and_mirrors_with_the_rewards(rewards):
    pulls, sums, squares = moments(rewards)
    low, high = mean_bounds(pulls, sums, squares, error=0.05)
    assert 0 <= low[0] <= np.mean(rewards) + 1e-9
    assert np.mean(rewards) - 1e-9 <= high[0] <= 1
    pulls, sums, squares = moments([1 - reward for reward in rewards])
    mirrored_low, mirrored_high = mean_bounds(pulls, sums, squares, error=0.05)
    assert (mirrored_low[0], mirrored_high[0]) == pytest.approx((1 - high[0], 1 - low[0]), abs=1e-6)


@given(REWARDS)
def test_the_squares_of_0_1_rewards_give_the_longest_interval(rewards):
    pulls, sums, squares = moments(rewards)
    low, high = mean_bounds(pulls, sums, squares, error=0.05)
    widest_low, widest_high = mean_bounds(pulls, sums, sums, error=0.05)
    assert widest_low[0] <= low[0] + 1e-9
    assert high[0] <= widest_high[0] + 1e-9


@given(REWARDS, st.floats(0.01, 0.99))
def test_a_bet_on_the_rewards_wins_at_least_what_their_moments_promise(rewards, mean):
    """Lemma 1 of docs/intervals.md: outside the interval, some bet has won more than 2 / error times its share."""
    pulls, sums, squares = moments(rewards)
    _, high = mean_bounds(pulls, sums, squares, error=0.05)
    if mean > high[0] + 1e-9:
        stakes = 0.9 * 0.5 ** np.arange(16)
        shares = 1 / np.arange(1, 17)
        logs = [np.log1p(stake * (mean - np.array(rewards)) / (1 - mean)).sum() for stake in stakes]
        won = [log + math.log(share) for log, share in zip(logs, shares / shares.sum(), strict=True)]
        assert max(won) >= math.log(2 / 0.05) - 1e-6


def ever_missed(draw, mean, runs, batches=(2, 2, 4, 8, 16, 32, 64, 128, 256)):
    """The share of runs in which some interval, after any of the batches, misses the mean."""
    pulls, sums, squares, missed = np.zeros(runs), np.zeros(runs), np.zeros(runs), np.zeros(runs, bool)
    for batch in batches:
        rewards = draw((runs, batch))
        pulls, sums, squares = pulls + batch, sums + rewards.sum(axis=1), squares + (rewards**2).sum(axis=1)
        low, high = mean_bounds(pulls, sums, squares, error=0.05)
        missed |= (mean < low - 1e-12) | (mean > high + 1e-12)
    return missed.mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["Bernoulli .5", "Bernoulli .02", "Bernoulli .98", "Beta", "two points", "tiny variance"]
)
def test_coverage_holds_at_all_times_together(name):
    """With a true rate of 5%, more than 5.9% of 5,000 runs is seen once in 500 times; rates are below 2%."""
    rng = np.random.default_rng(1)
    draw, mean = {
        "Bernoulli .5": (lambda size: (rng.random(size) < 0.5) * 1.0, 0.5),
        "Bernoulli .02": (lambda size: (rng.random(size) < 0.02) * 1.0, 0.02),
        "Bernoulli .98": (lambda size: (rng.random(size) < 0.98) * 1.0, 0.98),
        "Beta": (lambda size: rng.beta(2, 5, size), 2 / 7),
        "two points": (lambda size: np.where(rng.random(size) < 0.05, 1.0, 0.3), 0.335),
        "tiny variance": (lambda size: rng.beta(374.4, 249.6, size), 0.6),
    }[name]
    assert ever_missed(draw, mean, runs=5_000) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("population", [50, 500])
def test_coverage_holds_for_examples_that_are_used_once(population):
    rng, runs, used = np.random.default_rng(2), 5_000, 0
    rewards = (rng.random((runs, population)) < 0.3) * 1.0
    means, missed = rewards.mean(axis=1), np.zeros(runs, bool)
    evidence = FiniteEvidence(runs, population)
    for batch in (5, 5, 10, 10, 15, *[50] * 8):
        part = rewards[:, used : used + batch]
        used += batch
        if used >= population:
            break
        evidence.add(np.arange(runs), batch, part.sum(axis=1), (part**2).sum(axis=1))
        low, high = drift_bounds(evidence.evidence, error=0.05)
        missed |= (means < low - 1e-12) | (means > high + 1e-12)
    assert missed.mean() <= 0.05


def test_the_fewer_examples_are_left_the_shorter_the_interval():
    def width(population):
        evidence = FiniteEvidence(1, population)
        for _ in range(9):
            evidence.add(np.array([0]), 10, np.array([3.0]), np.array([3.0]))
        low, high = drift_bounds(evidence.evidence, error=0.05)
        return float(high[0] - low[0])

    assert width(100) < 0.5 * width(None)
    assert width(1_000_000) == pytest.approx(width(None), rel=0.01)


def test_mirrored_evidence_has_mirrored_intervals():
    evidence = FiniteEvidence(1, 200)
    for sums in (3.0, 7.0):
        evidence.add(np.array([0]), 50, np.array([sums]), np.array([sums]))
    low, high = drift_bounds(evidence.evidence, error=0.05)
    mirrored_low, mirrored_high = drift_bounds(evidence.evidence.mirrored, error=0.05)
    assert (mirrored_low[0], mirrored_high[0]) == pytest.approx((1 - high[0], 1 - low[0]))


def test_rewards_that_hardly_vary_need_at_most_a_fifth_of_the_pulls():
    """At standard deviation .02, compared with the intervals of 0/1 rewards, for gaps from .02 to .2."""

    def needed(gap, variance):
        means = np.array([0.5 + gap / 2, 0.5 - gap / 2])
        for pulls in (2 ** (np.arange(40, 160) / 8)).astype(int):
            squares = means if variance is None else means**2 + variance
            low, high = mean_bounds(np.full(2, float(pulls)), means * pulls, squares * pulls, error=0.005)
            if low[0] > high[1]:
                return int(pulls)
        raise AssertionError

    for gap in (0.02, 0.05, 0.1, 0.2):
        assert needed(gap, 0.02**2) <= needed(gap, None) / 5


def test_without_bounds_a_single_pull_has_no_interval():
    low, high = normal_bounds(np.array([1.0, 2.0]), np.array([5.0, 5.0]), np.array([25.0, 52.0]))
    assert math.isnan(low[0])
    assert low[1] < 5 < high[1]


def test_without_drift_the_two_kinds_of_interval_agree_in_order():
    column = np.array([50.0]), np.array([100.0])
    wide = drift_bounds(Evidence(column[0], column[1], column[0], column[0], column[1]), error=0.05)
    narrow = mean_bounds(column[1], column[0], column[0], error=0.05)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_bounds_of_many_equal_arms_are_those_of_each_alone():
    rng = np.random.default_rng(1)
    sums = rng.integers(31, size=3_000).astype(float)
    squares = np.where(rng.random(3_000) < 0.5, sums, sums**2 / 30)
    pulls = np.full(3_000, 30.0)
    together = mean_bounds(pulls, sums, squares, 0.05)
    alone = [
        np.concatenate(ends)
        for ends in zip(
            *(
                mean_bounds(pulls[i : i + 500], sums[i : i + 500], squares[i : i + 500], 0.05)
                for i in range(0, 3_000, 500)
            ),
            strict=True,
        )
    ]
    assert np.array_equal(together, alone)


def test_bounds_of_many_arms_are_those_of_each_arm_alone():
    rng = np.random.default_rng(1)
    successes = rng.binomial(50, rng.random(3_000)).astype(float)
    pulls = np.full(3_000, 50.0)
    for squares in (successes, np.round(successes * 0.75, 1)):  # 0/1 rewards, and others
        together = mean_bounds(pulls, successes, squares, 0.05)
        alone = [mean_bounds(pulls[i : i + 1], successes[i : i + 1], squares[i : i + 1], 0.05) for i in range(3_000)]
        assert np.allclose(together, np.array(alone)[:, :, 0].T, rtol=0, atol=1e-12)
