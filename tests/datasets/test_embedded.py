import subprocess
import sys
import time

import numpy as np
import pytest

from collabtop.datasets import embedded, movielens_like, movielens_like_groups
from collabtop.datasets.instances import scrambled_order
from collabtop.problem import complexity

TOP = [
    0.882715, 0.864867, 0.856871, 0.852352, 0.850954, 0.849516,
    0.848603, 0.847590, 0.845662, 0.843732, 0.843161, 0.842453,
]  # fmt: skip


def best_first(means):
    return np.sort(means)[::-1]


def test_the_stand_in_has_the_published_means():
    means = best_first(movielens_like().means)
    assert len(means) == 588
    assert means[:12].tolist() == TOP
    assert means[-1] == 0.463934
    assert means.mean() == pytest.approx(0.728, abs=0.0005)


def test_the_stand_in_is_as_hard_as_published():
    arms = movielens_like()
    assert complexity(arms, 1) == pytest.approx(61_520, rel=0.02)
    assert complexity(arms, 8) == pytest.approx(1.18e6, rel=0.05)


def test_no_two_arms_of_the_stand_in_tie():
    assert len(set(movielens_like().means)) == 588
    assert len(set(movielens_like_groups().means.mean(axis=1))) == 547


def test_the_groups_have_the_published_shape_gaps_and_deviation():
    table = movielens_like_groups().means
    ranked = best_first(table.mean(axis=1))
    assert table.shape == (547, 10)
    assert ranked[0] - ranked[1] == pytest.approx(0.01785, abs=1e-6)
    assert ranked[7] - ranked[8] == pytest.approx(0.00190, abs=1e-6)
    assert np.median(table.std(axis=1)) == pytest.approx(0.004, rel=0.01)


def test_the_groups_are_as_hard_as_published():
    arms = movielens_like_groups()
    assert complexity(arms, 1) == pytest.approx(59_224, rel=0.02)
    assert complexity(arms, 8) == pytest.approx(1.192e6, rel=0.05)


def test_no_group_of_users_is_kinder_than_the_others():
    columns = movielens_like_groups().means.mean(axis=0)
    assert np.ptp(columns) < 0.001


@pytest.mark.parametrize(
    "means", [movielens_like().means, movielens_like_groups().means.mean(axis=1)], ids=["iid", "groups"]
)
def test_the_order_of_the_arms_does_not_reveal_the_ranking(means):
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.1
    best = np.argsort(-means)[:12]
    assert best.min() < len(means) / 4
    assert best.max() > 3 * len(means) / 4


def test_arms_are_named_by_number_and_not_by_real_titles():
    assert movielens_like().label(0) == "movie 001"
    assert movielens_like_groups().label(546) == "movie 547"


def test_two_calls_give_the_same_read_only_numbers():
    first, second = movielens_like(), movielens_like()
    assert np.array_equal(first.means, second.means)
    with pytest.raises(ValueError, match="read-only"):
        first.means[0] = 1.0


def test_a_different_process_gives_the_same_numbers():
    program = (
        "from collabtop.datasets import *;"
        "print(*(a.means.tobytes().hex()[:4000] for a in (movielens_like(), movielens_like_groups())))"
    )
    outside = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    here = [arms.means.tobytes().hex()[:4000] for arms in (movielens_like(), movielens_like_groups())]
    assert outside.split() == here


def test_the_stand_in_is_built_in_an_instant():
    embedded._means.cache_clear()
    embedded._group_means.cache_clear()
    start = time.process_time()
    movielens_like()
    movielens_like_groups()
    assert time.process_time() - start < 0.25  # measured: .02; the rest is for slow machines


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
def test_the_scrambled_order_is_a_permutation(n):
    assert sorted(scrambled_order(n)) == list(range(n))
