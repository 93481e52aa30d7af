"""Candidates scored on examples: one candidate and one example per pull."""

from __future__ import annotations

import asyncio
from collections import Counter

import numpy as np
import pytest

import collabtop as ct
from collabtop.arms import Draws
from collabtop.testing import check_arms
from tests.support.untyped import untyped

EXAMPLES = list(range(10))


def score(candidate, example):
    return (candidate * example) % 7 / 7


def test_the_contract_of_arms_is_kept():
    check_arms(ct.DatasetArms([1, 2, 3], EXAMPLES, score))
    check_arms(ct.DatasetArms([1, 2, 3], EXAMPLES, score, replace=True))


def used(times, *, replace=False, agent=0, arm=0, batches=1):
    examples = []

    def score(candidate, example):
        examples.append(example)
        return 0.5

    arms = ct.DatasetArms(["a", "b"], EXAMPLES, score, replace=replace)
    draws = Draws(7, agent)
    for _ in range(batches):
        arms.pull(np.array([arm]), np.array([times]), draws)
        draws.pulls_made += times
    return examples


def test_each_example_comes_once_before_any_comes_again():
    for batches in (1, 2, 4):  # regardless of how the pulls are batched
        examples = used(20 // batches, batches=batches)
        assert sorted(examples[:10]) == EXAMPLES
        assert sorted(examples[10:]) == EXAMPLES
        assert examples[:10] != examples[10:]
        assert examples == used(20)


def test_all_agents_and_candidates_go_through_the_examples_in_the_same_order():
    orders = [used(10, agent=agent, arm=arm) for agent in (0, 1) for arm in (0, 1)]
    assert len({tuple(order) for order in orders}) == 1


def test_with_replacement_all_examples_come_about_equally_often():
    counts = Counter(used(2_000, replace=True))
    assert set(counts) == set(EXAMPLES)
    assert min(counts.values()) > 140


def test_each_agent_sees_its_own_examples_only():
    arms = ct.DatasetArms(["a", "b"], [[0.0], [1.0]], lambda c, e: e, by_agent=True)
    assert (arms.agents, arms.iid) == (2, False)
    assert arms.pull(np.array([0]), np.array([3]), Draws(1, 0)).tolist() == [0.0]
    assert arms.pull(np.array([0]), np.array([3]), Draws(1, 1)).tolist() == [3.0]
    assert ct.identify(arms, 1, horizon=20, seed=1).algorithm.endswith("noniid")


def test_a_run_scores_each_candidate_once_on_each_example_and_knows_that_its_mean_is_exact():
    arms = ct.DatasetArms([1, 2, 3], EXAMPLES, score)
    result = ct.identify(arms, 1, agents=2, horizon=1_000, seed=1)
    assert (result.algorithm, result.pulls) == ("paired-top", 30)
    exact = [sum(score(candidate, example) for example in EXAMPLES) / 10 for candidate in (1, 2, 3)]
    assert [estimate.mean for estimate in result.estimates] == pytest.approx(exact)


def test_an_agent_with_few_examples_of_its_own_scores_each_of_them_once():
    pairs = Counter()

    def score(candidate, example):
        pairs[candidate, example] += 1
        return candidate * example / 100

    examples = [[1, 2, 3], [4, 5, 6]]
    arms = ct.DatasetArms([3, 5, 7], examples, score, by_agent=True)
    result = ct.identify(arms, 1, horizon=1_000, algorithm="uniform", seed=1)
    assert max(pairs.values()) == 1
    assert len(pairs) == result.pulls == 18
    # A candidate's value is the average over the agents of the mean on their own examples.
    assert [estimate.mean for estimate in result.estimates] == pytest.approx([c * 3.5 / 100 for c in (3, 5, 7)])


def test_a_random_score_begins_a_second_lap_with_new_draws():
    draws = []

    def score(candidate, example, rng):
        draws.append((candidate, example, rng.random()))
        return 0.5

    ct.identify(ct.DatasetArms([0, 1], EXAMPLES[:3], score), 1, agents=1, horizon=12, algorithm="uniform", seed=1)
    of_first, of_second = ([draw[1:] for draw in draws if draw[0] == candidate] for candidate in (0, 1))
    assert of_first == of_second  # the same examples and random numbers for both
    assert sorted(example for example, _ in of_first) == [0, 0, 1, 1, 2, 2]
    assert len(set(of_first)) == 6


def test_a_score_may_be_random_or_async():
    def random(candidate, example, rng):
        return rng.random() < candidate

    async def later(candidate, example, rng):
        await asyncio.sleep(0)
        return rng.random() < candidate

    runs = [
        ct.identify(ct.DatasetArms([0.2, 0.8], EXAMPLES, function), 1, agents=3, horizon=40, seed=2, team=team)
        for function in (random, later)
        for team in ("local", "threads")
    ]
    assert all(run == runs[0] for run in runs)


def test_an_array_of_examples_is_fine():
    arms = ct.DatasetArms([0, 1], untyped(np.linspace(0, 1, 5)), lambda c, e: e * c)
    assert ct.identify(arms, 1, agents=2, horizon=20, seed=1).top == ["1"]


@pytest.mark.parametrize(
    ("examples", "more", "message"),
    [
        ([], {}, "examples is empty"),
        ({1, 2}, {}, "examples is a set, which has no order, so that a seed would not repeat a run: pass a list"),
        ("ab", {}, "examples is a str, but a list"),
        (3, {}, "examples is 3, but a list of examples is needed"),
        ({"a": [1]}, {"by_agent": True}, "examples is one dict, but with by_agent=True a list with the examples"),
        ([], {"by_agent": True}, "examples is empty, but with by_agent"),
        ([[1], []], {"by_agent": True}, r"examples\[1\] is empty"),
        ([1, 2], {"by_agent": True}, r"examples\[0\] is 1, but a list"),
        (
            [[1, 2], [3, 4, 5]],
            {"by_agent": True},
            "examples has 2 examples for agent 0 and 3 for agent 1, but all agents need the same number",
        ),
    ],
)
def test_bad_examples_are_named(examples, more, message):
    with pytest.raises(ct.InputError, match=message) as caught:
        ct.DatasetArms([1, 2], examples, score, **more)
    assert caught.value.argument == "examples"


def test_a_score_has_to_take_a_candidate_and_an_example():
    with pytest.raises(ct.InputError, match=r"score is <lambda>\(candidate\), but it has to be callable as score\("):
        ct.DatasetArms([1, 2], EXAMPLES, lambda candidate: 1)
    with pytest.raises(ct.InputError, match="score is 3, but a function"):
        ct.DatasetArms([1, 2], EXAMPLES, untyped(3))
