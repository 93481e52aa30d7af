"""Many runs at once: every row of a batch ends a round as a run does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.algorithms.shared.batched_runs import BatchedRuns, nearest_to_border
from collabtop.algorithms.shared.elimination import settle


def batch_of(rows, m, perturbation=0.0):
    """A batch in which the sums are given."""
    rows = np.asarray(rows, np.float64)
    batch = BatchedRuns(ct.Problem(rows.shape[1], m, 2, 100), rows[0], len(rows), np.random.default_rng(0))
    batch.sums, batch.perturbation = rows, perturbation
    return batch


@st.composite
def rounds(draw):
    """Rows of different whole numbers, m, and how many arms stay."""
    n = draw(st.integers(2, 12))
    rows = draw(st.lists(st.lists(st.integers(0, 60), min_size=n, max_size=n, unique=True), min_size=1, max_size=5))
    return rows, draw(st.integers(1, n - 1)), draw(st.integers(0, n - 1))


@given(rounds())
def test_a_round_of_a_batch_settles_what_a_round_of_a_run_settles(case):
    rows, m, keep = case
    rows = np.asarray(rows) + 2.0 ** -np.arange(1, 1 + len(rows[0]))  # different powers of two: no two gaps are equal
    batch = batch_of(rows, m)
    batch.eliminate(keep)
    for run, sums in enumerate(rows):
        settled = settle(np.arange(len(sums)), sums / 100, m, keep, np.random.default_rng(0))
        left, accepted = set(settled.live.tolist()), set(settled.accepted.tolist())
        if m - len(accepted) in (0, len(left)):  # nothing is left to decide
            accepted |= left if m - len(accepted) else set()
            left = set()
        row = np.flatnonzero(batch.runs == run)
        assert set(np.flatnonzero(batch.answers[run]).tolist()) == accepted
        assert {arm for index in row for arm in batch.live[index].tolist()} == left


@given(rounds())
def test_the_arms_nearest_to_the_border_are_those_with_the_smallest_gaps(case):
    rows, m, keep = case
    ranked = np.sort(np.asarray(rows, np.float64), axis=1)
    n, keep = ranked.shape[1], max(1, keep)
    start = nearest_to_border(ranked, np.full((len(ranked), 1), n - m), keep)
    for values, first in zip(ranked, start[:, 0], strict=True):
        gaps = np.maximum(values - values[n - m - 1], values[n - m] - values)
        assert sorted(gaps[first : first + keep]) == sorted(gaps)[:keep]


def test_equal_sums_are_ordered_at_random():
    batch = batch_of(np.zeros((6_000, 3)), m=1, perturbation=0.25)
    batch.eliminate(keep=0)
    # Each share is 1/3 with a standard deviation of .006; six of them are exceeded once in 500 million seeds.
    assert np.abs(batch.answers.mean(axis=0) - 1 / 3).max() < 0.037


def test_perturbations_that_coincide_leave_the_right_number_of_arms():
    batch = batch_of(np.zeros((50, 8)), m=3)  # without perturbation everything ties
    batch.eliminate(keep=4)
    batch.eliminate(keep=0)
    assert batch.answers.sum(axis=1).tolist() == [3] * 50


def test_means_of_agents_that_differ_are_added_up():
    means = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    batch = BatchedRuns(ct.Problem(3, 1, 2, 100), means, 4, np.random.default_rng(0))
    batch.pull_by_all(7)
    assert batch.sums.tolist() == [[7, 0, 14]] * 4


@pytest.mark.parametrize("runs", [2, 20_000], ids=["agents together", "agents one by one"])
@pytest.mark.parametrize("means", [np.array([1.0, 0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])])
def test_each_agent_draws_from_its_own_means(means, runs):
    batch = BatchedRuns(ct.Problem(3, 1, 2, 100), means, runs, np.random.default_rng(0))
    drawn = np.concatenate([batch.successes_of(agents, 7) for agents in batch.agent_blocks()])
    assert drawn.shape == (2, runs, 3)
    expected = 7 * (np.broadcast_to(means, (2, 3)) if means.ndim == 1 else means.T)
    np.testing.assert_array_equal(drawn, np.broadcast_to(expected[:, np.newaxis], drawn.shape))


def test_the_answers_of_mirrored_problems_are_those_of_all_the_best():
    means = np.array([0.0, 1.0, 1.0, 1.0])
    answers = ct.KZZ().answers(ct.Problem(4, 3, 2, 100), means, 5, np.random.default_rng(0))
    assert answers.tolist() == [[False, True, True, True]] * 5
    assert ct.KZZ().answers(ct.Problem(4, 4, 2, 100), means, 1, np.random.default_rng(0)).all()


def test_an_algorithm_without_a_batched_simulation_says_so():
    assert not ct.ConfidentTop().batched
    assert ct.KZZ().batched
    with pytest.raises(ct.SettingError, match="confident-top has no batched simulation"):
        ct.ConfidentTop().simulate(ct.Problem(4, 1, 1, 100), np.ones(4), 5, np.random.default_rng(0))
