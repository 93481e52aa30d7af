"""Gaps, complexity, speed-up and the paper's bound: mathematics only."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.problem import is_best, misplaced

unit = st.floats(0, 1)


@pytest.mark.parametrize(("n", "rounds"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (588, 10), (1024, 10), (1025, 11)])
def test_there_are_ceil_log2_n_rounds(n, rounds):
    assert ct.Problem(n, 1, 1, 1).rounds == rounds


@given(means=st.lists(unit, min_size=2, max_size=20), data=st.data())
def test_a_gap_is_the_distance_to_the_border(means, data):
    m = data.draw(st.integers(1, len(means) - 1))
    ranked = sorted(means, reverse=True)
    expected = [max(mean - ranked[m], ranked[m - 1] - mean) for mean in means]
    assert ct.gaps(means, m).tolist() == expected
    assert (ct.gaps(means, m) >= 0).all()
    assert ct.gaps([1 - mean for mean in means], len(means) - m) == pytest.approx(expected)  # the worst, mirrored


def test_complexity_is_the_sum_of_one_over_gap_squared():
    assert ct.complexity([0.5, 0.9, 0.25], m=1) == pytest.approx(2 / 0.4**2 + 1 / 0.65**2)
    assert ct.complexity([0.5, 0.5], m=1) == math.inf


def test_local_means_are_averaged_first():
    table = [[0.9, 0.1], [0.6, 0.7], [0.2, 0.2]]
    assert ct.gaps(table, 1) == pytest.approx(ct.gaps([0.5, 0.65, 0.2], 1))
    assert ct.complexity(ct.HeterogeneousArms(table), 1) == pytest.approx(ct.complexity([0.5, 0.65, 0.2], 1))


def test_speedup_is_complexity_over_time():
    assert ct.speedup([0.5, 0.9, 0.25], m=1, time=7) == pytest.approx(ct.complexity([0.5, 0.9, 0.25], 1) / 7)


def test_the_bound_is_that_of_theorem_1_and_at_most_1():
    means, n, agents, horizon = [0.5, 0.9, 0.25], 3, 10, 10_000
    log = math.log2(2 * n)
    exponent = -horizon * agents / (128 * ct.complexity(means, 1) * log)
    assert ct.error_bound(means, 1, agents, horizon) == pytest.approx(2 * n * log * math.exp(exponent))
    assert ct.error_bound(means, 1, agents, 1) == 1.0
    assert ct.error_bound([0.5, 0.5], 1, 10, 10**9) == 1.0


def test_the_bound_says_nothing_on_the_embedded_instance_before_75_million_steps():
    # SPEC, T1: the horizon at which the bound first says anything is 7.5e7 (588 arms, m = 1, K = 10).
    means = ct.datasets.movielens_like()

    def first(m):
        log = math.log2(2 * 588)
        return 128 * ct.complexity(means, m) * log * math.log(2 * 588 * log) / 10

    assert first(m=1) == pytest.approx(7.5e7, rel=0.02)
    for m in (1, 8):
        assert ct.error_bound(means, m, 10, math.floor(first(m) * 0.999)) == 1.0
        assert ct.error_bound(means, m, 10, math.ceil(first(m) * 1.001)) < 1.0


@pytest.mark.parametrize(
    ("call", "argument", "message"),
    [
        (lambda: ct.gaps([0.5, 0.6], 0), "m", "m is 0, but gaps of 2 arms are defined for 1 <= m <= 1"),
        (lambda: ct.gaps([0.5, 0.6], 2), "m", "m is 2, but"),
        (lambda: ct.gaps([0.5, 1.6], 1), "means", r"means\[1\] is 1.6"),
        (lambda: ct.gaps(np.zeros((2, 2, 2)), 1), "means", "means has 3 dimensions, but 1 is needed"),
        (lambda: ct.complexity([0.5, float("nan")], 1), "means", r"means\[1\] is nan"),
        (lambda: ct.speedup([0.5, 0.6], 1, time=0), "time", "time is 0, but a run takes at least 1 time step"),
        (lambda: ct.error_bound([0.5, 0.6], 1, agents=0, horizon=5), "agents", "agents is 0"),
        (lambda: ct.error_bound([0.5, 0.6], 1, agents=5, horizon=0), "horizon", "horizon is 0"),
    ],
)
def test_bad_input_is_an_error_that_names_the_argument(call, argument, message):
    with pytest.raises(ct.InputError, match=message) as caught:
        call()
    assert caught.value.argument == argument


@given(n=st.integers(1, 30), data=st.data())
def test_an_algorithm_looks_for_at_most_half_of_the_arms(n, data):
    problem = ct.Problem(n, data.draw(st.integers(1, n)), agents=3, horizon=50)
    assert problem.inner.m == (n - problem.m if problem.mirrored else problem.m) <= n / 2
    assert problem.inner.at_horizon(7) == ct.Problem(n, problem.inner.m, 3, 7)


values = st.sampled_from([0.1, 0.3, 0.6, 0.6, 0.7, 1.0])


@given(means=st.lists(values, min_size=1, max_size=12), data=st.data())
def test_an_answer_is_best_exactly_if_its_sorted_means_are_those_of_the_best(means, data):
    m = data.draw(st.integers(1, len(means)))
    answer = data.draw(st.permutations(range(len(means))))[:m]
    best = sorted(means, reverse=True)[:m]
    assert is_best(means, answer) == (sorted((means[arm] for arm in answer), reverse=True) == best)


def test_an_answer_of_tied_arms_without_the_better_arm_is_wrong():
    means = [0.7] + [0.6] * 5
    assert is_best(means, [0, 4])
    assert not is_best(means, [1, 2])
    assert misplaced(means, [1, 2]).tolist() == [0]


def test_local_means_that_average_to_the_same_tie_whatever_their_order():
    table = np.array([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2], [0.2, 0.3, 0.1], [0.0, 0.0, 0.1]])
    assert [is_best(table, [arm]) for arm in range(4)] == [True, True, True, False]


def test_a_tolerance_allows_arms_near_the_border_on_both_sides():
    means = [0.9, 0.7, 0.65, 0.5]
    assert misplaced(means, [0, 2], tolerance=0.05).tolist() == []
    assert misplaced(means, [1, 2], tolerance=0.05).tolist() == [0]
    assert misplaced(means, [0, 3], tolerance=0.1).tolist() == [3]
