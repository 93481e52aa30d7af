"""hkk and tzz: agents find an arm on their own, and test it; and the extension that they share."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import collabtop as ct
from collabtop.algorithms.shared.local_best import Best, FindBest, LocalBest, Stages
from collabtop.testing import WireTeam

PROBLEM = ct.Problem(n=20, m=1, agents=4, horizon=400)
BOTH = pytest.mark.parametrize("algorithm", [ct.HKK(), ct.TZZ()], ids=["hkk", "tzz"])


def crossed(algorithm, **setting):
    team = WireTeam()
    result = ct.identify(
        ct.BernoulliArms([0.9] + [0.5] * 19), 1, agents=4, horizon=400, seed=1, algorithm=algorithm, team=team
    )
    return result, [message for _, _, message in team.crossed]


@BOTH
def test_the_half_of_the_time_that_finds_an_arm_does_not_count_in_its_mean(algorithm):
    # The best of many equal arms has a mean above .5 in the pulls that made it the best, but not in fresh ones.
    arms = ct.BernoulliArms([0.5] * 64)
    results = [ct.identify(arms, 1, agents=1, horizon=1_600, algorithm=algorithm, seed=seed) for seed in range(200)]
    means = [result.estimates[result.top_indices[0]].mean for result in results]
    assert abs(np.mean(means) - 0.5) < 5 * 0.5 / np.sqrt(200 * 800 / 3)


@BOTH
def test_an_agent_sends_one_arm_and_one_mean_and_no_more(algorithm):
    result, messages = crossed(algorithm)
    assert result.top_indices == [0]
    answers = [message for message in messages if isinstance(message, Best)]
    assert len(answers) == 4
    assert result.words <= algorithm.most_words(PROBLEM)
    assert result.ledger.words_by("kind")["local-best.Best"] == 8


@BOTH
def test_more_than_the_best_arm_and_paired_arms_are_refused(algorithm):
    with pytest.raises(ct.SettingError, match=rf"m is 2, but {algorithm.name} finds the best arm only"):
        ct.identify(ct.BernoulliArms([0.9, 0.5, 0.1]), 2, agents=2, horizon=100, algorithm=algorithm)
    arms = ct.DatasetArms(["a", "b"], range(10), lambda candidate, example: example % 2)
    with pytest.raises(ct.SettingError, match="these arms use each example") as caught:
        ct.identify(arms, 1, agents=2, horizon=100, algorithm=algorithm)
    assert caught.value.argument == "algorithm"


@BOTH
def test_logged_rewards_may_be_drawn_with_replacement_but_not_used_once(algorithm):
    rewards = [[0, 1, 1, 1], [0, 1, 0, 0]]
    asked = {"m": 1, "agents": 2, "horizon": 200, "algorithm": algorithm, "seed": 1}
    assert ct.identify(ct.LoggedArms(rewards, replace=True), **asked).top == [0]
    with pytest.raises(ct.SettingError, match="these arms use each example or logged reward once"):
        ct.identify(ct.LoggedArms([row * 100 for row in rewards]), **asked)


def test_hkk_takes_one_message_from_each_agent_and_tzz_one_round_trip_per_round_at_most():
    arms = ct.datasets.movielens_like()
    hkk = ct.identify(arms, 1, agents=10, horizon=20_000, algorithm="hkk", seed=1)
    assert (hkk.words, hkk.round_trips) == (20, 1)
    for rounds in (1, 2, 4):
        tzz = ct.identify(arms, 1, agents=10, horizon=20_000, algorithm=ct.TZZ(rounds), seed=1)
        assert (tzz.words, tzz.round_trips) == (30 + 20 * (rounds - 1), rounds)
        assert tzz.time <= 20_000


def test_with_many_agents_hkk_asks_each_for_a_part_of_the_arms():
    result = ct.identify(ct.BernoulliArms([0.9] + [0.1] * 39), 1, agents=144, horizon=800, algorithm="hkk", seed=1)
    assert result.top_indices == [0]
    stages = Stages.within(20, 400)
    held = [20, *stages.sizes]
    pulls = sum(size * new for size, new in zip(held, np.diff(stages.pulls, prepend=0), strict=False)) + 400
    assert result.pulls == 144 * pulls
    assert result.time == pulls


@pytest.mark.parametrize("rounds", [0, 2.5, 10_000])
def test_a_number_of_rounds_that_is_not_one_is_refused(rounds):
    with pytest.raises(ct.InputError, match=r"^rounds is "):
        ct.TZZ(rounds=rounds)


@pytest.mark.parametrize(
    "changed",
    [{"count": 21}, {"count": -1}, {"fresh": 0}, {"sizes": [2]}, {"sizes": [2, 0]}, {"pulls": [5, 4]}],
)
def test_a_site_refuses_a_search_that_cannot_be_right(changed):
    right = FindBest(5, 0, np.array([2, 1]), np.array([4, 9]), 10)
    LocalBest.check(right, PROBLEM)
    assert LocalBest.most_pulls(right, PROBLEM) == 5 * 4 + 2 * 5 + 10
    assert LocalBest.smallest_batch(right) == 4
    changed = {name: np.array(value, np.int64) if isinstance(value, list) else value for name, value in changed.items()}
    with pytest.raises(ct.ProtocolError, match="a search for the best arm"):
        LocalBest.check(msgspec.structs.replace(right, **changed), PROBLEM)


@pytest.mark.parametrize("answer", [Best(20, 0.5), Best(-1, 0.5), Best(3, 1.5), Best(3, float("nan"))])
def test_a_coordinator_refuses_an_answer_that_cannot_be_right(answer):
    LocalBest.check_answer(FindBest(5, 0, np.array([1]), np.array([4]), 10), Best(3, 0.5), PROBLEM)
    with pytest.raises(ct.ProtocolError, match="a best arm that does not exist"):
        LocalBest.check_answer(FindBest(5, 0, np.array([1]), np.array([4]), 10), answer, PROBLEM)
