"""A round keeps exactly as many arms as it should, accepts the right ones, and breaks ties at random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabtop.algorithms.shared.elimination import eliminate, guess_rest, settle, settle_rest
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.protocol.ties import perturbed, smallest

# Statistical tests have fixed seeds; with a seed chosen anew a correct program would fail each of them with
# probability 1e-4. These are the values that a chi-square variable exceeds so rarely, by degrees of freedom.
CHI_SQUARE = {9: 33.72, 11: 37.37}


@st.composite
def rounds(draw):
    """Successes in how many pulls, how many arms to accept, and how many to keep."""
    n = draw(st.integers(2, 40))
    pulls = draw(st.sampled_from([1, 2, 3, 7, 1000, 10**9]))
    successes = draw(st.lists(st.integers(0, pulls), min_size=n, max_size=n))
    to_accept = draw(st.integers(1, n - 1))
    return np.array(successes), pulls, to_accept, draw(st.integers(0, n - 1))


@given(round_=rounds(), seed=st.integers(0, 1000))
def test_exactly_keep_arms_stay_and_the_best_of_the_others_are_accepted(round_, seed):
    successes, pulls, to_accept, keep = round_
    live = np.arange(len(successes)) + 100
    settled = settle(live, successes / pulls, to_accept, keep, np.random.default_rng(seed))
    assert len(settled.live) == keep
    assert sorted([*settled.accepted, *settled.rejected, *settled.live]) == live.tolist()
    ranked = np.sort(successes)[::-1]
    border = ranked[to_accept - 1], ranked[to_accept]  # ranks m_r and m_r + 1
    assert len(settled.accepted) <= to_accept <= len(settled.accepted) + keep
    assert all(successes[arm - 100] >= border[0] for arm in settled.accepted)
    assert all(successes[arm - 100] <= border[1] for arm in settled.rejected)
    gaps = np.maximum(successes - border[1], border[0] - successes)  # whole numbers: without rounding
    if keep:
        settled_arms = np.concatenate([settled.accepted, settled.rejected]) - 100
        assert gaps[settled.live - 100].max() <= gaps[settled_arms].min()


@given(round_=rounds())
def test_the_last_round_settles_all_and_accepts_exactly_m_r(round_):
    successes, pulls, to_accept, _ = round_
    settled = settle(np.arange(len(successes)), successes / pulls, to_accept, 0, np.random.default_rng(1))
    assert len(settled.accepted) == to_accept
    assert len(settled.live) == 0


def test_an_example_that_can_be_done_by_hand():
    # Rank 2 is .6 and rank 3 is .5: gaps are .4, .1, .1, .4, so the two in the middle stay.
    rng = np.random.default_rng(0)
    settled = settle(np.array([4, 5, 6, 7]), np.array([0.9, 0.5, 0.6, 0.1]), to_accept=2, keep=2, rng=rng)
    assert (settled.accepted.tolist(), settled.rejected.tolist(), settled.live.tolist()) == ([4], [7], [5, 6])


def test_with_the_papers_strict_comparison_ties_would_keep_too_many_arms():
    means = np.random.default_rng(3).binomial(10, 0.5, 588) / 10
    settled = settle(np.arange(588), means, to_accept=8, keep=294, rng=np.random.default_rng(1))
    gaps = np.maximum(means - np.sort(means)[-9], np.sort(means)[-8] - means)
    assert np.count_nonzero(gaps <= np.sort(gaps)[293]) > 300
    assert len(settled.live) == 294


@given(values=st.lists(st.integers(0, 4), min_size=1, max_size=30), data=st.data())
def test_smallest_marks_exactly_as_many_as_asked_for(values, data):
    count = data.draw(st.integers(0, len(values)))
    chosen = smallest(np.array(values, float), count)
    assert chosen.sum() == count
    assert sorted(np.array(values)[chosen]) == sorted(values)[:count]


@pytest.mark.parametrize("count", [1, 4, 9])
def test_ties_for_the_smallest_values_favour_no_position(count):
    rng, runs = np.random.default_rng(11), 4_000
    chosen = sum(smallest(perturbed(np.zeros(10), rng), count).astype(int) for _ in range(runs))
    # Positions of one draw are dependent (exactly `count` are chosen): divide by (n - 1) / n times (1 - p).
    p = count / 10
    statistic = ((chosen - runs * p) ** 2 / (runs * p * (1 - p))).sum() * 9 / 10
    assert statistic < CHI_SQUARE[9]


@pytest.mark.parametrize("what", ["accepted", "rejected", "live"])
def test_when_all_arms_tie_no_position_is_accepted_rejected_or_kept_more_often(what):
    rng, runs, n = np.random.default_rng(5), 3_000, 12
    counts = np.zeros(n)
    for _ in range(runs):
        counts[getattr(settle(np.arange(n), np.full(n, 0.5), to_accept=3, keep=6, rng=rng), what)] += 1
    # Each position is there with some probability p, all alike; so the counts differ only at random. The
    # number of one kind varies from run to run, which only makes the positions more alike than binomial.
    p = counts.mean() / runs
    assert ((counts - runs * p) ** 2 / (runs * p * (1 - p))).sum() < CHI_SQUARE[n - 1]


@pytest.mark.parametrize("pulls", [3, 7, 10, 49, 1_000_003])
def test_equal_gaps_on_both_sides_of_the_border_are_kept_equally_often(pulls):
    # One success more than the border and one less: in floating point one of the two gaps is usually smaller. Both
    # means next to the border belong to one arm each, so the two sides are mirror images.
    rng, runs = np.random.default_rng(7), 1_000
    for middle in range(1, min(pulls - 1, 11)):
        means = np.array([middle + 2, middle + 1, middle, middle - 1]) / pulls
        above = sum(0 in settle(np.arange(4), means, 2, 3, rng).live for _ in range(runs))
        assert abs(above - runs / 2) < 5 * np.sqrt(runs / 4)  # 34 comparisons: one false alarm in 50,000


def test_an_arm_nearer_to_the_border_by_its_perturbed_mean_is_kept():
    # All means tie. The arms kept are then those next to the border in one random order: if two are kept, exactly one
    # of them is above the border. Independent ties in the two rankings would keep two of one side as well.
    rng = np.random.default_rng(3)
    for _ in range(200):
        settled = settle(np.arange(8), np.full(8, 0.5), to_accept=4, keep=2, rng=rng)
        assert (len(settled.accepted), len(settled.rejected)) == (3, 3)


def test_ties_depend_on_the_seed_alone():
    def kept(seed):
        return settle(np.arange(40), np.zeros(40), 3, 20, np.random.default_rng(seed)).live.tolist()

    assert kept(1) == kept(1)
    assert kept(1) != kept(2)


def test_the_rest_is_accepted_if_all_are_needed_rejected_if_none_is_and_else_stays_live():
    board = Scoreboard(4)
    assert settle_rest(board, np.arange(4), m=2, round=4, phase="shared").tolist() == [0, 1, 2, 3]
    assert len(settle_rest(board, np.array([0, 1]), m=2, round=5, phase="shared")) == 0
    assert len(settle_rest(board, np.array([2, 3]), m=2, round=5, phase="shared")) == 0
    estimates = board.verdict()
    assert [estimate.verdict for estimate in estimates] == ["accepted", "accepted", "rejected", "rejected"]
    assert {(estimate.round, estimate.phase) for estimate in estimates} == {(5, "shared")}


@given(round_=rounds(), seed=st.integers(0, 1000))
def test_elimination_until_no_arm_is_live_accepts_exactly_m_arms(round_, seed):
    successes, pulls, m, _ = round_
    means = successes / pulls
    board, rng, live, r = Scoreboard(len(means)), np.random.default_rng(seed), np.arange(len(means)), 0
    board.add(live, successes, pulls)
    while len(live):
        live, r = eliminate(board, live, m, len(live) // 2, r, "shared", rng), r + 1
    assert board.accepted == m
    accepted = board.verdict().top()
    assert sorted(means[accepted]) == sorted(means)[-m:]


def test_a_guess_completes_the_answer_and_is_marked_as_one():
    board = Scoreboard(4)
    board.add(np.arange(4), np.array([9.0, 5.0, 1.0, 7.0]), 10)
    board.accept(np.array([0]), 0, "shared")
    guess_rest(board, np.array([1, 2, 3]), m=2, round=1, rng=np.random.default_rng(0))
    assert board.verdict().top() == [0, 3]
    assert board.verdict().guesses == {1, 2, 3}
