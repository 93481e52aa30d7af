"""Rounded means: unbiased, no coarser than their noise, exact if there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from collabtop.problem import Problem
from collabtop.protocol import ledger, wire
from collabtop.protocol.agent import Agent
from collabtop.protocol.messages import CoarseMeans, PullOpen, Request, arcsine_levels
from collabtop.protocol.packing import Packed
from collabtop.protocol.rounding import NoiseGauge, all_coarse_means, coarse_counts, coarse_means, coarse_steps
from collabtop.protocol.setup import Setup
from collabtop.testing import ConstantArms, words_on_wire

flags = npst.arrays(np.bool_, st.integers(0, 40))
reals = npst.arrays(np.float64, st.integers(0, 20), elements=st.floats(0, 1))
packs = st.lists(st.integers(0, 1000), max_size=20).map(lambda numbers: Packed.of(np.array(numbers, np.int64), 1000))
OPEN = st.builds(
    PullOpen, survived=st.one_of(st.none(), flags), times=st.integers(1, 2**31 - 1), coarseness=st.just(0.05)
)
MEANS = st.one_of(
    st.builds(CoarseMeans, steps=st.just(1000), arcsine=st.booleans(), packed=packs, exact=st.none()),
    st.builds(CoarseMeans, steps=st.just(0), arcsine=st.just(False), packed=st.none(), exact=reals),
)


@given(message=OPEN)
def test_a_bitmap_comes_back_from_bytes_as_it_was(message):
    back = wire.decode(wire.encode(message))
    assert isinstance(back, PullOpen)
    assert (back.times, back.coarseness, back.free) == (message.times, message.coarseness, message.free)
    assert (back.survived is None) == (message.survived is None)
    if back.survived is not None:
        assert back.survived.dtype == np.bool_
        assert back.survived.tolist() == message.survived.tolist()


@given(message=MEANS)
def test_coarse_means_come_back_from_bytes_as_they_were(message):
    back = wire.decode(wire.encode(message))
    assert isinstance(back, CoarseMeans)
    assert back.means().tolist() == message.means().tolist()


@given(message=st.one_of(OPEN, MEANS))
def test_two_independent_counts_of_their_words_agree(message):
    assert ledger.cost(message)[0] == words_on_wire(wire.encode(message))


def test_a_bitmap_is_a_bit_a_flag_and_a_coarse_mean_as_many_bits_as_its_steps_need():
    question = PullOpen(np.array([True, False, True]), 5, 0.05, free=("times", "coarseness"))
    assert ledger.cost(question) == (3, 3)
    answer = CoarseMeans(1000, True, Packed.of(np.array([1, 2]), 1000), None)
    assert ledger.cost(answer) == (1 + 1 + 2, 32 + 1 + 2 * 10)


@given(
    mean=st.floats(0, 1),
    times=st.integers(1, 10**6),
    noise=st.floats(1e-6, 1),
    coarseness=st.floats(0.001, 0.5),
)
def test_rounding_adds_at_most_the_stated_share_to_the_sampling_variance_of_every_mean(mean, times, noise, coarseness):
    sums = np.array([mean * times])
    rounded = coarse_means(sums, times, noise, coarseness, np.random.default_rng(1))
    if not rounded.arcsine:  # whole numbers of successes, without rounding
        assert rounded.means()[0] == pytest.approx(mean, abs=1e-12)
        return
    # The two levels around the mean, and the variance of a choice between them that is right on average.
    levels = arcsine_levels(np.arange(rounded.steps + 1), rounded.steps)
    above = min(max(1, int(levels.searchsorted(mean))), rounded.steps)
    low, high = levels[above - 1], levels[above]
    assert rounded.means()[0] in (low, high) or rounded.means()[0] == pytest.approx(mean, abs=1e-9)
    assert (mean - low) * (high - mean) <= coarseness * noise * mean * (1 - mean) / times * (1 + 1e-9) + 1e-15
    assert (high - low) ** 2 <= coarseness / times * (1 + 1e-9)  # what the proof of the error bound uses


@pytest.mark.parametrize("mean", [0.0, 0.0004, 0.1234, 0.5, 0.98765, 1.0])
def test_rounding_is_right_on_average(mean):
    rng = np.random.default_rng(2)
    many = 100_000
    rounded = coarse_means(np.full(many, mean * 997.0) + 1e-7 * (mean == 0), 997, 1.0, 0.5, rng)
    assert rounded.arcsine or mean == 1
    spread = rounded.means().std() / math.sqrt(many)
    assert rounded.means().mean() == pytest.approx(mean, abs=5 * spread + 1e-9)  # one false alarm in a million


@given(successes=st.lists(st.integers(0, 30), min_size=1, max_size=20))
def test_counts_of_few_pulls_are_sent_exactly(successes):
    rounded = coarse_means(np.array(successes, float), 30, 1.0, 0.05, np.random.default_rng(1))
    assert rounded.steps == 30
    assert np.rint(rounded.means() * 30).tolist() == successes


@pytest.mark.parametrize("noise", [1.0, 0.2])
def test_the_gauge_finds_the_noise_of_rewards_whatever_their_means(noise):
    # Beta rewards with concentration c have a share of 1 / (1 + c) of the variance of 0/1 rewards.
    rng, gauge = np.random.default_rng(3), NoiseGauge(4_000)
    means = rng.uniform(0.01, 0.99, 4_000)
    assert np.isnan(gauge.noise).all()
    for times in (10, 31):
        first, second = times // 2, times - times // 2
        sums = []
        for half in (first, second):
            if noise == 1:
                sums.append(rng.binomial(half, means).astype(float))
            else:
                sums.append(rng.beta(4 * means, 4 * (1 - means), (half, 4_000)).sum(axis=0))
        gauge.add(sums[0], first, sums[1], second)
    # With few pulls, mean (1 - mean) of the sample is a few percent smaller than that of the arm.
    assert gauge.noise == pytest.approx([noise], rel=0.1)


def test_arms_that_are_no_longer_open_do_not_count_for_the_gauge():
    gauge = NoiseGauge(2)
    gauge.add(np.array([4.0, 2.0]), 4, np.array([0.0, 2.0]), 4)  # the first is noisy, the second is not
    assert gauge.noise.tolist() == [1]
    gauge.keep(np.array([False, True]))
    assert gauge.noise.tolist() == [0]


@given(levels=st.lists(st.integers(0, 1024), min_size=1, max_size=12), times=st.integers(2, 50))
def test_means_of_constant_arms_are_exact(levels, times):
    arms = ConstantArms(np.array(levels) / 1024)
    agent = Agent(0, arms, Setup(Problem(n=len(levels), m=1, agents=1, horizon=10**6), seed=1))
    rounded = agent.answer(Request(0, 1, (PullOpen(None, times, 0.05),))).answer
    assert isinstance(rounded, CoarseMeans)
    assert rounded.means().tolist() == pytest.approx(arms.means.tolist(), abs=1e-12)


@pytest.mark.parametrize("noise", [1e-17, 1e-13, 1e-9])
def test_means_with_next_to_no_noise_are_exact_and_fit_into_a_message(noise):
    """Constant rewards that are not binary fractions have such noise, from rounding alone."""
    sums = np.array([7.1, 12.3])
    rounded = coarse_means(sums, 20, noise**2, 0.05, np.random.default_rng(0))
    back = wire.decode(wire.encode(rounded))
    assert isinstance(back, CoarseMeans)
    assert back.means().tolist() == (sums / 20).tolist()


@given(noise=st.floats(0, 1), coarseness=st.floats(0, 1, exclude_max=True), times=st.integers(1, 2**31 - 1))
def test_any_noise_and_coarseness_give_a_valid_message(noise, coarseness, times):
    rounded = coarse_means(np.array([0.3, 0.7]) * times, times, noise, coarseness, np.random.default_rng(0))
    back = wire.decode(wire.encode(rounded))
    assert isinstance(back, CoarseMeans)
    error = abs(back.means() - [0.3, 0.7]).max()
    assert error <= (math.pi / 2 / rounded.steps if rounded.arcsine else 0) + 1e-9


@given(
    times=st.integers(1, 10**7),
    noise=st.lists(st.one_of(st.just(np.nan), st.just(0.0), st.floats(1e-15, 1.0)), min_size=1, max_size=4),
    coarseness=st.sampled_from([0.0, 0.01, 0.05, 0.5]),
    whole=st.booleans(),
)
def test_the_answers_of_many_agents_at_once_are_those_of_each(times, noise, coarseness, whole):
    sums = np.linspace(0, times, 3 * len(noise)).reshape(len(noise), 3)
    sums = np.floor(sums) if whole else sums
    rngs = [[np.random.default_rng(agent) for agent in range(len(noise))] for _ in range(2)]
    together = all_coarse_means(sums, times, np.array(noise), coarseness, rngs[0])
    each = zip(sums, noise, rngs[1], strict=True)
    alone = [coarse_means(row, times, share, coarseness, rng) for row, share, rng in each]
    assert [wire.encode(answer) for answer in together] == [wire.encode(answer) for answer in alone]
    assert [means.tolist() for means in CoarseMeans.all_means(together)] == [one.means().tolist() for one in alone]


@given(times=st.integers(1, 10**7), noise=st.floats(1e-15, 1.0), coarseness=st.sampled_from([0.01, 0.05, 0.5]))
def test_steps_take_as_many_bits_as_their_angle_needs(times, noise, coarseness):
    angle = math.sqrt(coarseness * noise / times)
    [steps] = coarse_steps(times, np.array([noise]), coarseness)
    assert steps == ((1 << math.ceil(math.pi / 2 / angle).bit_length()) - 1 if angle >= 2 / (2**31 - 1) else 0)


@pytest.mark.parametrize(("noise", "coarseness"), [(np.nan, 0.05), (0.0, 0.05), (1.0, 0.0)])
def test_without_noise_or_coarseness_there_are_no_steps(noise, coarseness):
    assert coarse_steps(100, np.array([noise]), coarseness).tolist() == [0]


@given(st.integers(0, 5_000), st.integers(0, 2**31), st.sampled_from([np.nan, 0.0, 0.3, 1.0]))
def test_counts_of_many_agents_are_rounded_like_those_of_each(successes, seed, noise):
    sums = np.array([float(successes), 713.0])
    one = coarse_means(sums, 5_000, None if np.isnan(noise) else noise, 0.05, np.random.default_rng(seed))
    many = coarse_counts(sums[np.newaxis], 5_000, np.array([noise]), 0.05, np.random.default_rng(seed))
    assert many[0] == pytest.approx(one.means() * 5_000)
