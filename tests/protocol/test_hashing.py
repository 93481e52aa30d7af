"""The hash that deals the arms: right against Python's integers, and fair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collabtop.protocol.hashing import PRIME, draw_coefficients, evaluate, hand

# Fixed seeds; with a seed chosen anew a correct program would fail a test with probability 1e-4. These are the
# values that a chi-square variable exceeds so rarely, by degrees of freedom.
CHI_SQUARE = {3: 21.11, 7: 29.88, 9: 33.72, 15: 44.26, 24: 58.61, 49: 94.60}


@given(coefficients=st.lists(st.integers(0, PRIME - 1), min_size=1, max_size=140), n=st.integers(1, 300))
@example(coefficients=[PRIME - 1] * 140, n=300)
@example(coefficients=[0, 0], n=1)
def test_the_polynomial_is_evaluated_as_python_would(coefficients, n):
    expected = []
    for x in range(1, n + 1):
        value = 0
        for coefficient in coefficients:
            value = (value * x + coefficient) % PRIME
        expected.append(value)
    assert evaluate(np.array(coefficients), n).tolist() == expected


@given(n=st.integers(1, 1_100), seed=st.integers(0, 2**32 - 1))
@example(n=1_024, seed=1)
@example(n=1_025, seed=1)
def test_a_polynomial_with_the_usual_number_of_coefficients_has_the_same_values(n, seed):
    coefficients = draw_coefficients(n, np.random.default_rng(seed))
    with_leading_zero = np.append(0, coefficients)  # one more than usual
    assert (evaluate(coefficients, n) == evaluate(with_leading_zero, n)).all()


def test_the_largest_coefficients_do_not_overflow():
    coefficients = np.full(len(draw_coefficients(1_024, np.random.default_rng(1))), PRIME - 1)
    values = evaluate(coefficients, 1_024)
    for x in (1, 2, 1_023, 1_024):
        assert int(values[x - 1]) == sum(-(x**power) for power in range(len(coefficients))) % PRIME


def test_large_points_do_not_overflow():
    n = 3_000_000
    coefficients = [PRIME - 1] * 6
    values = evaluate(np.array(coefficients), n)
    for x in (n, n - 1, 2**15, 2**15 + 1, 2**21 + 7):
        assert int(values[x - 1]) == sum(c * x**power for power, c in enumerate(coefficients)) % PRIME


@pytest.mark.parametrize(("n", "count"), [(1, 1), (2, 7), (588, 64), (10**6, 139)])
def test_there_are_10_ln_n_coefficients_rounded_up(n, count):
    coefficients = draw_coefficients(n, np.random.default_rng(1))
    assert len(coefficients) == count
    assert coefficients.min() >= 0
    assert coefficients.max() < PRIME


@given(n=st.integers(1, 500), agents=st.integers(1, 300), seed=st.integers(0, 100))
def test_every_arm_is_dealt_to_exactly_one_agent(n, agents, seed):
    coefficients = draw_coefficients(n, np.random.default_rng(seed))
    hands = [hand(coefficients, n, agents, agent) for agent in range(agents)]
    assert sorted(np.concatenate(hands).tolist()) == list(range(n))
    assert all((np.diff(one) > 0).all() for one in hands)


def owners(n, agents, runs, seed=2):
    """Whose each arm was, a row a run."""
    rng = np.random.default_rng(seed)
    return np.array([evaluate(draw_coefficients(n, rng), n) % agents for _ in range(runs)]).astype(int)


def chi_square(observed):
    expected = observed.sum() / observed.size
    return float(((observed - expected) ** 2).sum() / expected)


@pytest.mark.parametrize("agents", [4, 10, 50])
def test_a_single_arm_goes_to_every_agent_equally_often(agents):
    dealt = owners(20, agents, runs=4_000)
    for arm in (0, 1, 19):
        assert chi_square(np.bincount(dealt[:, arm], minlength=agents)) < CHI_SQUARE[agents - 1]


def test_two_arms_go_to_every_pair_of_agents_equally_often():
    dealt = owners(20, 5, runs=6_000)
    for one, other in ((0, 1), (3, 17), (18, 19)):
        assert chi_square(np.bincount(dealt[:, one] * 5 + dealt[:, other], minlength=25)) < CHI_SQUARE[24]


def test_four_arms_go_to_every_quadruple_of_agents_equally_often():
    dealt = owners(20, 2, runs=6_000)
    for arms in ((0, 1, 2, 3), (0, 1, 2, 19), (4, 9, 14, 19)):
        pattern = (dealt[:, arms] * [8, 4, 2, 1]).sum(axis=1)
        assert chi_square(np.bincount(pattern, minlength=16)) < CHI_SQUARE[15]


def test_hands_are_as_large_as_chance_alone_would_make_them():
    # The number of 588 arms at one of 10 agents: mean 58.8, variance 588 x .1 x .9. Over 500 hashes the mean
    # square deviation is within 3.89 standard errors (probability 1e-4 of a false alarm).
    sizes = np.array([np.bincount(row, minlength=10) for row in owners(588, 10, runs=500)])
    square = ((sizes - 58.8) ** 2).sum(axis=1)
    expected = 588 * 0.1 * 0.9 * 10
    assert abs(square.mean() - expected) < 3.89 * square.std() / np.sqrt(500)
