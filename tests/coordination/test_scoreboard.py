"""The coordinator's memory: sums and pulls where it heard of them, and a verdict for every arm."""

from __future__ import annotations

import numpy as np
import pytest

from collabtop.coordination.scoreboard import Scoreboard


def test_means_are_over_all_pulls_heard_of():
    board = Scoreboard(3)
    board.add(np.array([0, 2]), np.array([3.0, 1.0]), pulls=10)
    board.add(np.array([2]), np.array([4.0]), pulls=10)
    assert board.means(np.array([2, 0])).tolist() == [0.25, 0.3]


@pytest.mark.parametrize("arms", [np.arange(3), np.array([2, 0, 1])], ids=["in order", "in another order"])
def test_all_arms_can_be_added_in_any_order(arms):
    board = Scoreboard(3)
    for _ in range(2):
        board.add(arms, np.array([1.0, 2.0, 3.0]), pulls=5)
    assert board.means(arms).tolist() == board.means(arms.copy()).tolist() == [0.2, 0.4, 0.6]
    assert board.pulls(arms).tolist() == [10, 10, 10]


def test_means_noted_after_the_last_pulls_take_their_place():
    board, arms = Scoreboard(2), np.arange(2)
    board.add(arms, np.array([1.0, 2.0]), pulls=5)
    board.note_means(np.array([1]), np.array([0.75]))
    assert board.means(arms).tolist() == [0.2, 0.75]


def test_a_verdict_does_not_change_with_the_scoreboard():
    board, arms = Scoreboard(3), np.arange(3)
    board.add(arms, np.array([1.0, 2.0, 3.0]), pulls=5, squares=np.array([1.0, 2.0, 3.0]))
    before = board.verdict()
    board.add(arms, np.array([4.0, 4.0, 4.0]), pulls=5, squares=np.array([1.0, 2.0, 3.0]))
    board.accept(np.array([2]), round=0, phase="shared")
    board.note_means(np.array([0]), np.array([0.5]))
    columns = before.columns
    assert columns.means.tolist() == [0.2, 0.4, 0.6]
    assert columns.squares.tolist() == [1.0, 2.0, 3.0]
    assert columns.pulls.tolist() == [5, 5, 5]
    assert before.top() == columns.verdicts.nonzero()[0].tolist() == []
    assert board.verdict().columns.means.tolist() == [0.5, 0.6, 0.7]


def test_arms_that_tie_are_not_told_apart_by_rounding():
    # 7 of 49 pulls at once, or 1 of 7 seven times over: multiplied back, means are off in the last bit.
    board = Scoreboard(2)
    board.add(np.array([0]), np.array([7 / 49 * 49]), pulls=49)
    for _ in range(7):
        board.add(np.array([1]), np.array([(1 / 7) * 7 + 2e-16]), pulls=7)
    one, other = board.means(np.array([0, 1]))
    assert one == other


def test_verdicts_rounds_and_phases_are_told_where_known():
    board = Scoreboard(4)
    board.add(np.array([0, 1]), np.array([9.0, 2.0]), pulls=10)
    board.accept(np.array([0]), round=2, phase="shared")
    board.reject(np.array([1]), round=1, phase="shared")
    board.accept_unseen(np.array([3]), np.array([0.75]), phase="local")
    board.reject_rest()
    told = [(one.verdict, one.round, one.phase, one.mean, one.pulls) for one in board.verdict()]
    assert told == [
        ("accepted", 2, "shared", 0.9, 10),
        ("rejected", 1, "shared", 0.2, 10),
        ("rejected", None, None, None, None),
        ("accepted", None, "local", 0.75, None),
    ]
    assert board.accepted == 2


def test_an_arm_accepted_twice_counts_once():
    board = Scoreboard(3)
    board.accept(np.array([1, 1]), round=0, phase="shared")
    board.accept(np.array([1]), round=0, phase="shared")
    assert board.accepted == 1


def test_an_accepted_arm_that_is_rejected_later_counts_no_more():
    board = Scoreboard(3)
    board.accept(np.array([0, 1]), round=0, phase="shared")
    board.reject(np.array([1, 2]), round=1, phase="shared")
    assert board.accepted == 1


def test_squares_that_no_agent_sent_are_at_most_the_rewards():
    board, arms = Scoreboard(3), np.array([0, 1])
    board.add(arms, np.array([3.0, 0.0]), pulls=10)
    assert board.columns().squares.tolist() == [3.0, 0.0, 0.0]
    board.add(np.array([1, 2]), np.array([4.0, 5.0]), pulls=10, squares=np.array([2.0, 2.5]))
    board.add(arms, np.array([1.0, 1.0]), pulls=10)
    assert board.columns().squares.tolist() == [4.0, 3.0, 2.5]


def test_squares_of_rewards_without_bounds_are_unknown_unless_agents_send_them():
    board = Scoreboard(3, bounded=False)
    board.add(np.array([0]), np.array([0.0]), pulls=10)
    assert np.array_equal(board.columns().squares, [np.nan, 0.0, 0.0], equal_nan=True)
    board.add(np.array([0, 1]), np.array([4.0, 5.0]), pulls=10, squares=np.array([20.0, 30.0]))
    assert np.array_equal(board.columns().squares, [np.nan, 30.0, 0.0], equal_nan=True)


def test_the_best_come_first_and_those_without_a_mean_before_all():
    board = Scoreboard(4)
    board.add(np.array([0, 1, 2]), np.array([1.0, 3.0, 2.0]), pulls=4)
    board.accept(np.arange(4), round=0, phase="shared")
    assert board.verdict().top() == [3, 1, 2, 0]


def test_a_search_for_the_worst_arms_is_turned_round_again():
    board = Scoreboard(3)
    board.add(np.array([0, 1]), np.array([3.0, 1.0]), pulls=4)  # of mirrored rewards
    board.accept(np.array([0]), round=0, phase="shared")
    board.reject_rest()
    found = board.verdict(mirrored=True)
    assert [one.verdict for one in found] == ["rejected", "accepted", "accepted"]
    assert [one.mean for one in found] == [0.25, 0.75, None]
    assert found.top() == [2, 1]


def test_estimates_are_a_sequence():
    board = Scoreboard(3)
    board.reject_rest()
    found = board.verdict()
    assert len(found) == len(list(found)) == 3
    assert found[-1].arm == 2
    with pytest.raises(IndexError):
        found[3]
