import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from collabtop.datasets import (
    arithmetic,
    equal_gaps,
    geometric,
    one_good_arm,
    says_disjoint,
    set_disjointness,
    uniform_means,
)
from collabtop.errors import InputError
from collabtop.problem import complexity, gaps
from tests.support.untyped import untyped

counts = st.integers(2, 300)
tables = st.tuples(st.integers(1, 40), st.integers(1, 12)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 1))
)


@given(counts, st.data(), st.floats(0.001, 1))
def test_every_arm_of_equal_gaps_has_that_gap(n, data, gap):
    m = data.draw(st.integers(1, n - 1))
    arms = equal_gaps(n, m, gap)
    assert gaps(arms, m) == pytest.approx(np.full(n, gap))
    assert (arms.means > 0.5).sum() == m
    assert complexity(arms, m) == pytest.approx(n / gap**2)


@given(counts, st.floats(0.001, 0.5))
def test_one_good_arm_is_better_than_coins(n, gap):
    arms = one_good_arm(n, gap)
    assert sorted(arms.means)[:-1] == [0.5] * (n - 1)
    assert complexity(arms, 1) == pytest.approx(n / gap**2)


@given(counts)
def test_arithmetic_means_descend_in_even_steps(n):
    steps = np.diff(np.sort(arithmetic(n, best=0.8, worst=0.2).means))
    assert steps == pytest.approx(np.full(n - 1, 0.6 / (n - 1)))


def test_arithmetic_has_its_known_complexity():
    steps = np.arange(1, 50) / 49 * 0.8
    assert complexity(arithmetic(50), 1) == pytest.approx(np.sum(steps**-2) + steps[0] ** -2)


@given(st.integers(3, 300), st.floats(1e-4, 0.1), st.floats(0.2, 0.9))
def test_geometric_gaps_grow_by_one_factor(n, smallest, largest):
    ranked = np.sort(geometric(n, smallest, largest, best=0.9).means)[::-1]
    to_best = ranked[0] - ranked[1:]
    assert to_best[[0, -1]] == pytest.approx([smallest, largest])
    factors = to_best[1:] / to_best[:-1]
    assert factors == pytest.approx(np.full(n - 2, (largest / smallest) ** (1 / (n - 2))), rel=1e-6)


def test_uniform_means_depend_on_the_seed_alone():
    assert np.array_equal(uniform_means(50, seed=3).means, uniform_means(50, seed=3).means)
    assert not np.array_equal(uniform_means(50, seed=3).means, uniform_means(50, seed=4).means)
    assert math.isfinite(complexity(uniform_means(50, seed=3), 8))


def test_the_best_arms_do_not_come_first():
    assert (equal_gaps(100, 10, 0.1).means[:10] > 0.5).sum() < 5
    assert np.argmax(arithmetic(100).means) != 0
    assert np.argmax(one_good_arm(100, 0.1).means) != 0
    assert np.argmax(geometric(100).means) != 0


@given(tables)
def test_the_best_arm_answers_set_disjointness(bits):
    arms = set_disjointness(bits)
    best = int(np.argmax(arms.means.mean(axis=1)))
    assert says_disjoint(arms, [best]) == (not bits.all(axis=1).any())


@given(tables)
def test_every_element_in_common_beats_the_special_arm_and_no_other_does(bits):
    arms = set_disjointness(bits)
    values = arms.means.mean(axis=1)
    assert arms.shape == (len(bits) + 1, bits.shape[1])
    assert ((values[:-1] > values[-1]) == bits.all(axis=1)).all()


@given(tables, st.floats(0.01, 0.99))
def test_any_delta_in_range_keeps_the_answer(bits, share):
    n, agents = bits.shape
    arms = set_disjointness(bits, delta=share / (6 * agents * n))
    best = int(np.argmax(arms.means.mean(axis=1)))
    assert says_disjoint(arms, [best]) == (not bits.all(axis=1).any())


def test_the_special_arm_is_named():
    arms = set_disjointness([[1, 0], [0, 1]])
    assert arms.labels == ("element 0", "element 1", "no element")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: equal_gaps(1, 1, 0.1), "n is 1, but a whole number of at least 2"),
        (lambda: equal_gaps(untyped(2.5), 1, 0.1), r"n is 2\.5, but a whole number"),
        (lambda: equal_gaps(5, 5, 0.1), "m is 5, but 1 <= m <= 4 is needed to divide 5 arms"),
        (lambda: equal_gaps(5, 0, 0.1), "m is 0"),
        (lambda: equal_gaps(5, 1, 0.0), r"gap is 0\.0, but a gap from 1e-09 to 1 "),
        (lambda: equal_gaps(5, 1, math.nan), "gap is nan"),
        (lambda: one_good_arm(5, 0.6), r"gap is 0\.6, but a gap from 1e-09 to 0\.5"),
        (lambda: one_good_arm(True, 0.1), "n is True"),
        (lambda: arithmetic(5, best=0.1, worst=0.9), r"best is 0\.1 and worst is 0\.9"),
        (lambda: geometric(5, best=1.5), r"best is 1\.5"),
        (lambda: geometric(5, largest=0.95), r"largest is 0\.95, but a gap from 1e-09 to 0\.9"),
        (lambda: geometric(5, smallest=0.9), r"smallest is 0\.9, but a gap from 1e-09 to 0\.8"),
        (lambda: uniform_means(0, seed=1), "n is 0, but a whole number of at least 1"),
        (lambda: uniform_means(5, seed=-1), "seed is -1"),
        (lambda: set_disjointness([[1, 2]]), r"X\[0, 1\] is 2, but 0 or 1 is needed"),
        (lambda: set_disjointness([1, 0]), r"X has shape \(2,\)"),
        (lambda: set_disjointness(np.zeros((0, 3))), r"X has shape \(0, 3\)"),
        (lambda: set_disjointness([[1], [0, 1]]), r"X is \[\[1\], \[0, 1\]\], but a table of 0 and 1 is needed"),
        (lambda: set_disjointness([["a"]]), "but a table of 0 and 1 is needed"),
        (lambda: set_disjointness([[1, 0]], delta=1 / 12), r"delta is 0\.08.* need 0 < delta < 0\.0833"),
        (lambda: set_disjointness([[1, 0]], delta=0), "delta is 0, but"),
        (lambda: says_disjoint(set_disjointness([[1]]), [0, 1]), r"top_indices is \[0, 1\]"),
        (lambda: says_disjoint(set_disjointness([[1]]), [7]), "an arm from 0 to 1 is needed"),
    ],
)
def test_a_wrong_argument_is_named_with_what_would_work(call, message):
    with pytest.raises(InputError, match=message):
        call()
