"""Simulated arms: correct rewards, all randomness from the agent's draws, and errors that name the argument."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.arms import Draws
from collabtop.testing import ConstantArms, check_arms
from tests.support.untyped import untyped

# Statistical tests have fixed seeds; each draw is held within 4.06 standard errors, which a correct program
# would exceed with probability 5e-5 (so 1e-3 for the 20 comparisons here together) if the seed were new.
STANDARD_ERRORS = 4.06
MEANS = np.array([0.0, 0.05, 0.3, 0.5, 0.9, 0.999, 1.0, 0.5])


@pytest.mark.parametrize(
    "arms",
    [
        ct.BernoulliArms(MEANS),
        ct.BernoulliArms([0.5]),
        ct.BetaArms(MEANS, concentration=2.5),
        ct.BetaArms([0.25], concentration=100),
        ct.HeterogeneousArms(np.linspace(0, 1, 40).reshape(20, 2)),
        ct.HeterogeneousArms([[0.5, 0.25, 1.0]]),
        ConstantArms(np.arange(9) / 8),
        ConstantArms([[0.5, 0.25]]),
        ct.FunctionArms(["a", "b", "c"], lambda candidate, rng: rng.random()),
    ],
    ids=lambda arms: f"{type(arms).__name__}({arms.n})",
)
def test_all_arms_keep_the_contract(arms):
    check_arms(arms)


def sums(arms, times, draws, repeats):
    chosen = np.arange(arms.n)
    return np.array([arms.pull(chosen, np.array([times]), draws) for _ in range(repeats)])


@pytest.mark.parametrize("n", [4, 8], ids=["drawn one by one", "drawn in bulk"])
def test_bernoulli_sums_have_the_mean_and_variance_of_a_binomial(n):
    means, times, repeats = MEANS[-n:], 20, 4_000
    got = sums(ct.BernoulliArms(means), times, Draws(seed=3, agent=0), repeats)
    variance = times * means * (1 - means)
    assert (abs(got.mean(axis=0) - times * means) <= STANDARD_ERRORS * np.sqrt(variance / repeats)).all()
    # The variance of a sample variance is at most (kurtosis + 2) / repeats of its square.
    kurtosis = np.divide(1 - 6 * means * (1 - means), variance, out=np.zeros(n), where=variance > 0)
    assert (abs(got.var(axis=0) - variance) <= STANDARD_ERRORS * variance * np.sqrt((kurtosis + 2) / repeats)).all()
    assert (got == np.rint(got)).all()


def test_heterogeneous_arms_reward_each_agent_by_its_own_column():
    table = np.array([[0.1, 0.9], [0.5, 0.2], [0.0, 1.0]])
    for agent in (0, 1):
        got = sums(ct.HeterogeneousArms(table), 1_000, Draws(seed=4, agent=agent), 20).sum(axis=0) / 20_000
        error = np.sqrt(table[:, agent] * (1 - table[:, agent]) / 20_000)
        assert (abs(got - table[:, agent]) <= STANDARD_ERRORS * error).all()


@pytest.mark.slow
@pytest.mark.parametrize("concentration", [0.5, 4.0, 50.0])
def test_beta_rewards_have_the_stated_mean_and_spread(concentration):
    means, repeats = MEANS[1:5], 20_000
    got = sums(ct.BetaArms(means, concentration), 1, Draws(seed=5, agent=0), repeats)
    variance = means * (1 - means) / (concentration + 1)
    assert (abs(got.mean(axis=0) - means) <= STANDARD_ERRORS * np.sqrt(variance / repeats)).all()
    fourth = ((got - means) ** 4).mean(axis=0)
    assert (abs(got.var(axis=0) - variance) <= STANDARD_ERRORS * np.sqrt((fourth - variance**2) / repeats)).all()
    assert ((got > 0) & (got < 1)).mean() > 0.5


def test_beta_sums_are_those_of_single_rewards_also_across_chunks(monkeypatch):
    monkeypatch.setattr("collabtop.arms.simulated._CHUNK", 7)
    arms = ct.BetaArms([0.0, 0.5, 1.0])
    got = arms.pull(np.arange(3), np.array([5, 30, 5]), Draws(seed=1, agent=0))
    assert got[0] == 0
    assert got[2] == 5
    assert 0 < got[1] < 30


def test_constant_arms_return_exactly_their_mean():
    arms = ConstantArms([0.5, 1 / 1024])
    assert arms.pull(np.array([1, 0]), np.array([1024, 3]), Draws(1, 0)).tolist() == [1.0, 1.5]
    with pytest.raises(ct.InputError, match="multiples of 1/1024"):
        ConstantArms([0.1])


@pytest.mark.parametrize(
    ("make", "argument", "message"),
    [
        (lambda: ct.BernoulliArms([0.5, 1.5]), "means", r"means\[1\] is 1.5, but a mean lies in \[0, 1\]"),
        (lambda: ct.BernoulliArms([-0.1]), "means", r"means\[0\] is -0.1"),
        (lambda: ct.BernoulliArms([0.5, float("nan")]), "means", r"means\[1\] is nan"),
        (lambda: ct.BernoulliArms([]), "n", "n is 0, but at least 1 arm is needed"),
        (lambda: ct.BernoulliArms(0.5), "means", "BernoulliArms needs one mean per arm, but the array has 0 dim"),
        (lambda: ct.BernoulliArms(7), "means", r"means is 7.0, but a mean lies in \[0, 1\]"),
        (lambda: ct.BernoulliArms(["high"]), "means", r"means is \['high'\], but numbers are needed"),
        (
            lambda: ct.BernoulliArms([[0.5, 0.5]]),
            "means",
            "BernoulliArms needs one mean per arm, but the array has 2 dim",
        ),
        (lambda: ct.BernoulliArms([0.5], labels=["a", "b"]), "labels", "labels has 2 entries, but there are 1 arms"),
        (
            lambda: ct.BernoulliArms([0.5, 0.6], labels="ab"),
            "labels",
            "labels is one string, 'ab', but a list of 2 labels",
        ),
        (
            lambda: ct.HeterogeneousArms([0.5]),
            "local_means",
            "HeterogeneousArms needs one row per arm and one column per agent",
        ),
        (lambda: ct.HeterogeneousArms([[0.5, 2]]), "local_means", r"local_means\[0, 1\] is 2.0"),
        (lambda: ct.HeterogeneousArms([[], []]), "agents", "agents is 0, but"),
        (lambda: ct.HeterogeneousArms([[0.1], [0.1, 0.2]]), "local_means", "local_means is .* but numbers are needed"),
        (
            lambda: ct.BetaArms([0.5], concentration=0),
            "concentration",
            "concentration is 0, but a positive number is needed",
        ),
        (lambda: ct.BetaArms([0.5], concentration=float("inf")), "concentration", "concentration is inf"),
        (lambda: ct.BetaArms([0.5], concentration=float("nan")), "concentration", "concentration is nan"),
        (lambda: ct.BetaArms([0.5], concentration=untyped("much")), "concentration", "concentration is 'much'"),
    ],
)
def test_bad_input_is_an_error_that_names_the_argument_and_the_value(make, argument, message):
    with pytest.raises(ct.InputError, match=message) as caught:
        make()
    assert isinstance(caught.value, ValueError)
    assert caught.value.argument == argument


def test_labels_are_kept_as_text_and_arms_without_labels_are_named_by_number():
    arms = ct.BernoulliArms([0.5, 0.6], labels=untyped([7, "b"]))
    assert arms.labels == ("7", "b")
    assert arms.label(0) == "7"
    assert ct.BernoulliArms([0.5]).label(0) == "0"
    assert len(arms) == 2


def test_means_are_a_read_only_copy():
    means = np.array([0.5, 0.25])
    arms = ct.BernoulliArms(means)
    means[0] = 0.75
    assert arms.means.tolist() == [0.5, 0.25]
    with pytest.raises(ValueError, match="read-only"):
        arms.means[0] = 1


def test_numpy_accepts_arms_in_place_of_their_means():
    arms = ct.BernoulliArms([0.5, 0.9, 0.25])
    assert np.asarray(arms).tolist() == [0.5, 0.9, 0.25]
    assert ct.gaps(arms, 1).tolist() == pytest.approx([0.4, 0.4, 0.65])
    assert arms.shape == (3,)
    assert arms[1] == 0.9


def test_agents_draw_from_streams_of_their_own():
    arms = ct.BernoulliArms(np.full(50, 0.5))
    chosen, times = np.arange(50), np.array([100])
    first, same, other, elsewhere = (
        arms.pull(chosen, times, Draws(seed, agent)) for seed, agent in ((1, 0), (1, 0), (1, 1), (2, 0))
    )
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, elsewhere)
