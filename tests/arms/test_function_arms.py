"""A user's function as arms: one call per pull, a new generator for each, and errors that name the candidate."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.arms import Draws
from collabtop.arms.calls import first_reward_fault
from collabtop.arms.draws import pull_rng
from collabtop.arms.function import as_arms
from collabtop.arms.pull_batch import sums_of_rows
from collabtop.arms.unit import Unit
from tests.support.untyped import untyped


def first_numbers(arms, times, draws):
    """The candidate of each pull, and the first number from its generator."""
    calls = []

    def pull(candidate, rng):
        calls.append((candidate, rng.random()))
        return 0.5

    ct.FunctionArms(["a", "b"], pull).pull(np.array(arms), np.array(times), draws)
    return calls


def test_the_function_is_called_once_for_each_pull_in_the_order_of_the_arms():
    calls = first_numbers([1, 0], [2, 1], Draws(seed=1, agent=0))
    assert [candidate for candidate, _ in calls] == ["b", "b", "a"]


def test_a_pulls_generator_depends_on_seed_agent_number_and_attempt_alone():
    numbers = [number for _, number in first_numbers([0, 1], [2, 2], Draws(seed=7, agent=3))]
    draws = Draws(seed=7, agent=3)
    draws.bulk.random(100)  # the agent's other draws do not matter
    assert numbers == [draws.for_pull(pull, attempt=0).random() for pull in range(4)]
    keys = [(7, 3, 0, 0), (8, 3, 0, 0), (7, 4, 0, 0), (7, 3, 1, 0), (7, 3, 0, 1)]
    firsts = {Draws(seed, agent).for_pull(number, attempt).random() for seed, agent, number, attempt in keys}
    assert len(firsts) == 5


def test_pulls_are_numbered_on_from_request_to_request():
    draws = Draws(seed=7, agent=3)
    draws.pulls_made = 2
    later = [number for _, number in first_numbers([0], [2], draws)]
    assert later == [draws.for_pull(2).random(), draws.for_pull(3).random()]


def test_a_run_numbers_the_pulls_of_each_agent_from_zero():
    numbers = []

    def pull(candidate, rng):
        numbers.append(rng.random())
        return candidate

    ct.identify(ct.FunctionArms([0.25, 0.5], pull), 1, agents=2, horizon=6, algorithm="uniform", seed=9)
    expected = [Draws(9, agent).for_pull(number).random() for agent in (0, 1) for number in range(6)]
    assert numbers == expected


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (float("nan"), r"pull of candidate 'b' returned nan, but a reward lies in \[0, 1\]"),
        (1.7, r"pull of candidate 'b' returned 1.7, but a reward lies in \[0, 1\]"),
        (-1, r"pull of candidate 'b' returned -1, but"),
        (float("inf"), "pull of candidate 'b' returned inf, but"),
        (10**400, "pull of candidate 'b' returned 1000"),  # too large for a float
        ("x", "pull of candidate 'b' returned 'x', which is not a number"),
        (None, "pull of candidate 'b' returned None, which is not a number"),
        (1j, "pull of candidate 'b' returned 1j, which is not a number"),
        ([0.5], r"pull of candidate 'b' returned \[0.5\], which is not a number"),
    ],
)
def test_an_invalid_reward_names_the_candidate_and_the_value(reward, message):
    arms = ct.FunctionArms(["a", "b"], lambda candidate, rng: reward if candidate == "b" else 0.5)
    with pytest.raises(ct.PullError, match=message) as caught:
        ct.identify(arms, 1, agents=2, horizon=10, algorithm="uniform")
    assert caught.value.candidate == "b"
    assert isinstance(caught.value, RuntimeError)


def test_a_function_that_raises_is_named_by_its_candidate_and_keeps_its_cause():
    def pull(candidate, rng):
        raise KeyError("no such film")

    with pytest.raises(ct.PullError, match="pull of candidate 'Heat' raised KeyError: 'no such film'") as caught:
        ct.identify(ct.FunctionArms(["Heat", "Gigli"], pull), 1, agents=2, horizon=10, algorithm="uniform")
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_interrupt_is_not_a_failed_pull():
    def pull(candidate, rng):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ct.identify(ct.FunctionArms(["a", "b"], pull), 1, agents=2, horizon=10, algorithm="uniform")


@pytest.mark.parametrize("reward", [True, np.bool_(True), 1, np.float32(1), np.int8(1), Fraction(1, 1)])
def test_any_real_number_is_a_reward(reward):
    arms = ct.FunctionArms(["a"], lambda candidate, rng: reward)
    assert arms.pull(np.array([0]), np.array([2]), Draws(1, 0)).tolist() == [2.0]


def test_candidates_are_their_own_labels_unless_others_are_given():
    assert ct.FunctionArms([1, "two", (3,)], lambda candidate, rng: 1).labels == ("1", "two", "(3,)")
    assert ct.FunctionArms([1, 2], lambda candidate, rng: 1, labels=["one", "two"]).label(1) == "two"


@pytest.mark.parametrize(
    ("make", "argument", "message"),
    [
        (lambda: ct.FunctionArms(["a"], untyped("not a function")), "pull", "pull is 'not a function', but a function"),
        (lambda: ct.FunctionArms([], print), "n", "n is 0, but at least 1 arm is needed"),
        (lambda: ct.FunctionArms(["a"], print, labels=[]), "labels", "labels has 0 entries, but there are 1 arms"),
        (lambda: ct.FunctionArms("abc", print), "candidates", "candidates is one string, 'abc', but a list"),
        (
            lambda: ct.FunctionArms(untyped(3), print),
            "candidates",
            "candidates is 3, but a list of candidates is needed",
        ),
        (lambda: ct.FunctionArms(["a"], print, policy=untyped(3)), "policy", "policy is 3, but a PullPolicy is needed"),
        (lambda: as_arms(ct.BernoulliArms([0.5]), print), "pull", "pull only applies to a list of candidates"),
        (lambda: as_arms(ct.BernoulliArms([0.5]), None, ct.PullPolicy()), "policy", "policy only applies with pull"),
        (lambda: as_arms(["a"]), "arms", "arms is a list, but arms are needed: .* with pull=, the function"),
    ],
)
def test_bad_input_is_an_error_that_names_the_argument(make, argument, message):
    with pytest.raises(ct.InputError, match=message) as caught:
        make()
    assert caught.value.argument == argument


@pytest.mark.parametrize("algorithm", ["collab-top-iid", "kzz", "collab-top-noniid"])
def test_the_same_seed_gives_the_same_run(algorithm):
    arms = ct.FunctionArms(np.linspace(0.1, 0.9, 9).tolist(), lambda mean, rng: rng.random() < mean)
    first, again, other = (
        ct.identify(arms, 2, agents=3, horizon=150, algorithm=algorithm, seed=seed) for seed in (4, 4, 5)
    )
    assert first == again
    assert first.to_json() != other.to_json()


def test_generators_that_a_function_spawns_depend_on_the_pull_alone():
    def first_child(seed, agent, number):
        return pull_rng(seed, agent, number).spawn(2)[0].random()

    assert first_child(7, 0, 3) == first_child(7, 0, 3)
    assert len({first_child(7, 0, 3), first_child(7, 0, 4), first_child(7, 1, 3), first_child(8, 0, 3)}) == 4


@given(counts=st.lists(st.sampled_from([1, 2, 3, 9, 130]), min_size=1, max_size=12), seed=st.integers(0, 2**32 - 1))
def test_rewards_of_many_arms_add_up_bit_for_bit_as_those_of_each(counts, seed):
    rewards = np.random.default_rng(seed).random(sum(counts))
    rows = np.split(rewards, np.cumsum(counts)[:-1])
    sums, squares = sums_of_rows(rewards, np.array(counts))
    assert sums.tolist() == [float(row.sum()) for row in rows]
    assert squares.tolist() == [float(row @ row) for row in rows]


@pytest.mark.parametrize("rewards", [[0.5, 1, True], [np.float64(0.5), np.bool_(1)], [Fraction(1, 2)], []])
def test_real_numbers_of_any_type_are_valid_rewards_of_a_list(rewards):
    assert first_reward_fault(rewards, Unit()) is None


@pytest.mark.parametrize(
    ("rewards", "index", "message"),
    [
        ([0.5, 2, -1], 1, "2, but a reward lies in"),
        ([0.5, float("nan")], 1, "nan, but a reward lies in"),
        ([10**400], 0, "1000"),
        ([Fraction(1, 2), Fraction(3, 2)], 1, "3/2"),
        ([0.5, None, 7], 1, "None, which is not a number"),
    ],
)
def test_the_first_invalid_reward_of_a_list_is_named_as_it_was_passed(rewards, index, message):
    fault = first_reward_fault(rewards, Unit())
    assert fault is not None
    assert fault[0] == index
    assert fault[1].startswith(message)
