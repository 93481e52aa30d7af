"""Batched SAR: few round trips, few words, and what is proved about its error."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.algorithms.batched_sar import sizes_of


def test_the_words_and_round_trips_on_the_papers_instance_are_those_of_its_rounds():
    arms = ct.datasets.movielens_like()
    rounds = [(1, [588], 596), (2, [588, 24], 663), (3, [588, 70, 8], 771), (4, [588, 119, 24, 4], 943)]
    for count, sizes, words in rounds:
        assert sizes_of(588, count) == [*sizes, 0]
        result = ct.identify(arms, 1, agents=10, horizon=20_000, algorithm=ct.BatchedSAR(count), seed=1)
        assert result.words == words
        assert words <= 588 + 9 + sum(2 * (size + 9) for size in sizes[1:])
        assert result.round_trips == count
        assert 20_000 - 60 <= result.time <= 20_000


@pytest.mark.parametrize("rounds", [0, -1, 1.5, 1_001, "3"])
def test_a_number_of_rounds_that_is_not_one_is_refused(rounds):
    with pytest.raises(ct.InputError, match=r"^rounds is ") as caught:
        ct.BatchedSAR(rounds=rounds)
    assert caught.value.argument == "rounds"


def test_with_one_round_it_makes_the_errors_of_uniform():
    means, problem = np.linspace(0.3, 0.6, 12), ct.Problem(n=12, m=3, agents=2, horizon=600)
    rates = [
        (algorithm.answers(problem, means, 4_000, np.random.default_rng(1)) != (means > 0.51)).any(axis=1).mean()
        for algorithm in (ct.BatchedSAR(rounds=1), ct.Uniform())
    ]
    assert abs(rates[0] - rates[1]) < 5 * np.sqrt(0.5 / 4_000)  # both pull every arm 100 times


@pytest.mark.parametrize("algorithm", [ct.BatchedSAR(2), ct.BatchedSAR(4), ct.SAR(), ct.NSAR(1.3)], ids=str)
@pytest.mark.parametrize("m", [1, 3, 9])
def test_the_error_is_below_what_is_proved(algorithm, m):
    means = np.where(np.arange(10) < m, 0.7, 0.4)
    bounds = []
    for horizon in (300, 600, 2_400):
        problem = ct.Problem(n=10, m=m, agents=1, horizon=horizon)
        bounds.append(algorithm.error_bound(means, problem))
        if bounds[-1] < 1:
            runs = 150
            right = (
                ct.identify(ct.BernoulliArms(means), m, agents=1, horizon=horizon, algorithm=algorithm, seed=seed)
                for seed in range(runs)
            )
            errors = sum(set(result.top_indices) != set(range(m)) for result in right)
            assert errors / runs <= bounds[-1] + 3 * np.sqrt(bounds[-1] / runs)
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 0.1
    assert algorithm.error_bound(means, ct.Problem(n=10, m=m, agents=1, horizon=2)) == 1
