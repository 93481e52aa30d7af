"""Direction and bounds of rewards: conversion, errors, and arms that have them."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.arms.unit import Unit
from collabtop.testing import check_arms

UNITS = [
    Unit(),
    Unit("minimize"),
    Unit("maximize", (-3, 5)),
    Unit("minimize", (0, 500)),
    Unit("maximize", None),
    Unit("minimize", None),
]


@given(share=st.floats(0, 1), unit=st.sampled_from(UNITS))
def test_a_reward_survives_the_way_there_and_back(share, unit):
    low, high = unit.bounds or (-1e6, 1e6)
    reward = min(high, max(low, low + share * (high - low)))
    internal = unit.internal(reward)
    assert unit.shown(internal) == pytest.approx(reward, abs=1e-12 * (high - low))
    assert not unit.bounded or 0 <= internal <= 1
    assert unit.shown(np.array([internal])) == pytest.approx([reward], abs=1e-12 * (high - low))


@pytest.mark.parametrize("unit", UNITS)
def test_better_rewards_have_larger_internal_values(unit):
    better, worse = (0.25, 0.75) if unit.direction == "minimize" else (0.75, 0.25)
    assert unit.internal(better) > unit.internal(worse)
    low, high = unit.shown_interval(unit.internal(worse), unit.internal(better))
    assert (low, high) == pytest.approx((0.25, 0.75))
    assert unit.shown_difference(unit.internal(better) - unit.internal(worse)) == pytest.approx(0.5)


def test_the_default_unit_leaves_rewards_alone():
    rewards = np.array([0.1, 0.7])
    assert Unit().internal(rewards) is rewards
    assert Unit().shown(rewards) is rewards
    assert pickle.loads(pickle.dumps(Unit("minimize", (0, 3)))) == Unit("minimize", (0, 3))


@pytest.mark.parametrize(
    ("unit", "reward", "text"),
    [
        (Unit(), 0.12345, "0.1235"),
        (Unit("minimize", (0, 500)), 12.3456, "12.35"),
        (Unit("minimize", (0, 5e7)), 1234567.8, "1234568"),
        (Unit("maximize", (0, 1e-9)), 1.5e-10, "1.5e-10"),
        (Unit("maximize", None), -1234.5678, "-1234.57"),
    ],
)
def test_rewards_are_printed_to_a_ten_thousandth_of_their_range(unit, reward, text):
    assert unit.text(reward) == text


@pytest.mark.parametrize(
    ("arguments", "message", "argument"),
    [
        ({"direction": "min"}, "direction is 'min', but 'maximize' or 'minimize' is needed", "direction"),
        ({"direction": None}, "direction is None, but", "direction"),
        ({"bounds": (1, 0)}, r"bounds is \(1, 0\), but the first has to be below the second", "bounds"),
        ({"bounds": (2, 2)}, r"bounds is \(2, 2\), but the first has to be below", "bounds"),
        ({"bounds": (0, math.nan)}, "bounds is nan, but a number is needed", "bounds"),
        ({"bounds": (math.nan, 1)}, "bounds is nan, but a number is needed", "bounds"),
        ({"bounds": (0, math.inf)}, r"bounds is \(0, inf\), but two finite numbers are needed", "bounds"),
        ({"bounds": (0, 1, 2)}, "two numbers", "bounds"),
        ({"bounds": 5}, "two numbers", "bounds"),
        ({"bounds": "01"}, "two numbers", "bounds"),
        ({"bounds": ("0", "1")}, "bounds is '0', but a number is needed", "bounds"),
    ],
)
def test_a_wrong_direction_or_wrong_bounds_are_refused_before_a_pull(arguments, message, argument):
    calls = []

    def pull(candidate, rng):
        calls.append(candidate)
        return 0.5

    for make in (
        lambda: ct.identify(["a", "b"], 1, pull=pull, agents=1, horizon=10, **arguments),
        lambda: ct.FunctionArms(["a", "b"], pull, **arguments),
        lambda: ct.DatasetArms(["a", "b"], [1, 2], lambda candidate, example: 0.5, **arguments),
        lambda: ct.LoggedArms([[0, 1], [1, 1]], **arguments),
        lambda: ct.RemoteArms(2, **arguments),
        lambda: ct.identify(ct.BernoulliArms([0.1, 0.9]), 1, agents=1, horizon=10, **arguments),
    ):
        with pytest.raises(ct.InputError, match=message) as caught:
            make()
        assert caught.value.argument == argument
    assert not calls


@pytest.mark.parametrize("arguments", [{"direction": "minimize"}, {"bounds": None}])
def test_arms_have_a_unit_of_their_own(arguments):
    (name,) = arguments
    with pytest.raises(ct.InputError, match=f"{name} only applies with pull") as caught:
        ct.identify(ct.BernoulliArms([0.1, 0.9]), 1, agents=1, horizon=10, **arguments)
    assert caught.value.argument == name


def test_a_reward_out_of_range_names_candidate_example_and_value():
    def score(candidate, example):
        return 12.5 if (candidate, example) == ("b", "third") else 0.5

    arms = ct.DatasetArms(["a", "b"], ["first", "second", "third"], score)
    message = (
        r"pull of candidate 'b' on examples\[2\] returned 12.5, but a reward lies in \[0, 1\]: "
        r"pass bounds=\(low, high\), or bounds=None if rewards have none; "
        r"and direction='minimize' if small rewards are better"
    )
    with pytest.raises(ct.PullError, match=message) as caught:
        ct.identify(arms, 1, agents=1, horizon=6, algorithm="uniform")
    assert caught.value.candidate == "b"


def test_the_example_of_a_faulty_reward_is_named_by_agent():
    arms = ct.DatasetArms(
        ["a", "b"], [[1, 2], [3, 4]], lambda c, example: math.nan if example == 4 else 1, by_agent=True, bounds=None
    )
    with pytest.raises(ct.PullError, match=r"on examples\[1\]\[1\] returned nan, but a reward is a finite number"):
        ct.identify(arms, 1, horizon=4, algorithm="uniform")


def test_the_replicate_of_a_faulty_reward_is_named():
    @ct.replicates
    def pull(candidate, fold):
        return 7 if fold == 3 else 4

    with pytest.raises(ct.PullError, match=r"candidate 'a', replicate 3, returned 7, but a reward lies in \[1, 5\]"):
        ct.identify(["a", "b"], 1, pull=pull, agents=1, horizon=10, bounds=(1, 5), algorithm="uniform")


def test_a_batch_with_a_reward_out_of_range_names_it():
    @ct.batch
    def pull(candidate, times, rng):
        return np.linspace(0, 11, times)

    with pytest.raises(ct.PullError, match=r"returned 11.0, but a reward lies in \[0, 10\]"):
        ct.identify(["a", "b"], 1, pull=pull, agents=1, horizon=10, bounds=(0, 10))


def test_a_number_too_large_to_add_up_is_no_reward():
    for reward in (1e101, -math.inf, 10**400):
        with pytest.raises(ct.PullError, match="but a reward is a finite number of at most 1e\\+100"):
            ct.identify(["a", "b"], 1, pull=lambda c, rng: reward, agents=1, horizon=10, bounds=None)  # noqa: B023


def test_logged_rewards_have_units():
    rewards = [[120.0, 80.0] * 20, [300.0, 310.0] * 20, [95.0, 90.0] * 20]
    arms = ct.LoggedArms(rewards, labels=["x", "y", "z"], direction="minimize", bounds=(0, 1_000))
    result = ct.identify(arms, 1, agents=2, horizon=60, seed=1, algorithm="uniform")
    assert result.top == ["z"]
    assert 90 <= result.estimates[2].mean <= 95
    check_arms(arms)
    check_arms(ct.LoggedArms(rewards, bounds=None))


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ([[0.5, 1.5], [1.0]], r"rewards\[0\]\[1\] is 1.5, but a reward lies in \[0, 1\]: pass bounds=\(low, high\)"),
        ([[0.5], [math.nan]], r"rewards\[1\]\[0\] is nan, but a reward lies in \[0, 1\]"),
        ([[[0.5], [0.5]], [[0.5], [2.0]]], r"rewards\[1\]\[1\]\[0\] is 2.0, but a reward lies in"),
        ([["x"], [1]], r"rewards\[0\] is \['x'\], but numbers are needed"),
    ],
)
def test_a_logged_reward_out_of_range_is_named(rewards, message):
    with pytest.raises(ct.InputError, match=message):
        ct.LoggedArms(rewards)


def test_a_file_of_rewards_has_a_unit(tmp_path):
    path = tmp_path / "latency.csv"
    path.write_text("candidate,reward\n" + "old,250\nnew,120\nold,260\nnew,110\n" * 10)
    arms = ct.read_rewards(path, direction="minimize", bounds=None)
    assert ct.identify(arms, 1, agents=1, horizon=20, seed=1).top == ["new"]
    with pytest.raises(ct.FileError, match=r"line 2: found 250.0, but a reward lies in \[0, 1\]: pass bounds"):
        ct.read_rewards(path)
    with pytest.raises(ct.FileError, match=r"line 2: found 250.0, but a reward lies in \[0, 200\]"):
        ct.read_rewards(path, bounds=(0, 200))


def test_a_failed_pull_counts_as_the_worst_reward():
    def pull(candidate, rng):
        if candidate == "fails":
            raise ConnectionError
        return 300.0

    policy = ct.PullPolicy(failures="zero")
    result = ct.identify(
        ["fails", "slow"], 1, pull=pull, agents=1, horizon=20, policy=policy, direction="minimize", bounds=(0, 500)
    )
    assert result.top == ["slow"]
    assert result.estimates[0].mean == 500


def test_without_bounds_there_is_no_worst_reward():
    with pytest.raises(ct.InputError, match="failures is 'zero', which gives a failed pull the worst reward") as caught:
        ct.FunctionArms(["a"], lambda c, rng: 1, bounds=None, policy=ct.PullPolicy(failures="zero"))
    assert caught.value.argument == "policy"
    result = ct.identify(
        ["a", "b"],
        1,
        pull=lambda candidate, rng: 1 / (rng.random() > 0.2) * (40 if candidate == "a" else 90),
        agents=1,
        horizon=60,
        seed=2,
        bounds=None,
        policy=ct.PullPolicy(failures="skip"),
    )
    assert result.top == ["b"]
    assert [estimate.mean for estimate in result.estimates] == pytest.approx([40, 90])
    assert sum(result.failures.values()) > 0


@pytest.mark.parametrize("algorithm", ["auto", "confident-top", "confident-top-noniid", "kl-lucb"])
def test_a_confidence_needs_bounds(algorithm):
    with pytest.raises(ct.SettingError, match=r"bounds is None, but .* computes intervals from bounds") as caught:
        ct.identify(["a", "b"], 1, pull=lambda c, rng: 1, agents=1, confidence=0.9, bounds=None, algorithm=algorithm)
    assert caught.value.argument == "bounds"


def test_a_unit_makes_different_arms():
    def arms(**unit):
        return ct.LoggedArms([[0, 1], [1, 1]], **unit)

    prints = [
        arms(**unit).fingerprint() for unit in ({}, {"direction": "minimize"}, {"bounds": (0, 2)}, {"bounds": None})
    ]
    assert len(set(prints)) == 4
    assert arms(bounds=(0, 1)).fingerprint() == prints[0]
