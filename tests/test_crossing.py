"""Crossings are found on data whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.crossing import Crossing, NotReached, fit_crossing, ratio_interval


def located(horizons, wrong, runs):
    fit = fit_crossing(horizons, wrong, runs)
    assert isinstance(fit, Crossing), fit
    return fit


def not_reached(horizons, wrong, runs):
    fit = fit_crossing(horizons, wrong, runs)
    assert isinstance(fit, NotReached), fit
    return fit


HORIZONS = (15_000, 17_000, 20_000, 23_000, 26_000)
SHAPES = {
    "T": lambda t: 0.01 ** (t / 20_000),
    "sqrt T": lambda t: 0.01 ** math.sqrt(t / 20_000),
    "log T": lambda t: 0.01 * (20_000 / t) ** 4,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_with_very_many_runs_the_crossing_and_the_form_are_found(shape):
    horizons = [5_000, 10_000, 20_000, 40_000] if shape != "log T" else [8_000, 15_000, 30_000, 60_000]
    runs = [10**9] * len(horizons)
    wrong = [round(10**9 * SHAPES[shape](t)) for t in horizons]
    found = located(horizons, wrong, runs)
    assert found.form == shape
    assert found.horizon == pytest.approx(20_000, rel=1e-3)
    assert found.low < 20_000 < found.high or found.high / found.low < 1.001
    assert found.runs == sum(runs)


# Over 300 fits, a true coverage of .95 gives less than .915 or more than .98 with probability below 1%.
@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_about_95_of_100_intervals_hold_the_truth(shape):
    rng = np.random.default_rng(1)
    chance = [SHAPES[shape](t) for t in HORIZONS]
    fits = [located(HORIZONS, rng.binomial(2_000, chance).tolist(), [2_000] * 5) for _ in range(300)]
    inside = sum(fit.low <= 20_000 <= fit.high for fit in fits)
    assert 0.915 <= inside / 300 <= 0.99
    assert np.median([fit.high / fit.low for fit in fits]) < 1.4


@given(data=st.data(), points=st.integers(1, 8), target=st.sampled_from([0.001, 0.01, 0.05, 0.5]))
def test_every_list_of_counts_has_a_crossing_with_an_interval_or_a_reason_why_not(data, points, target):
    horizons = sorted(data.draw(st.lists(st.integers(1, 10**9), min_size=points, max_size=points, unique=True)))
    runs = data.draw(st.lists(st.integers(1, 10**7), min_size=points, max_size=points))
    wrong = [data.draw(st.integers(0, count)) for count in runs]
    fit = fit_crossing(horizons, wrong, runs, target)
    if isinstance(fit, Crossing):
        assert 0 < fit.low <= fit.horizon <= fit.high < math.inf
        assert fit.high / fit.low < 16
        for z in (0.1, 1.96, 4):
            low, high = fit.interval(z)
            assert 0 < low <= fit.horizon <= high < math.inf
    else:
        assert fit.reason
        assert 0 <= fit.low <= fit.high


def test_two_points_of_which_one_has_no_wrong_answer_locate_the_crossing_between_and_beyond_them():
    fit = located([1000, 1400], [7, 0], [60, 60])
    assert 1000 < fit.low < fit.horizon < 1600
    assert 1400 < fit.high < 8_000


def test_more_runs_make_the_interval_narrower():
    few, many = (located(HORIZONS, [r * 3 // 100 for _ in range(2)] + [r // 100, r // 200, r // 400], [r] * 5)
                 for r in (400, 40_000))  # fmt: skip
    assert many.high / many.low < few.high / few.low


def test_points_without_a_wrong_answer_count():
    alone = located([10_000, 20_000], [60, 9], [1_000] * 2)
    with_more = located([10_000, 20_000, 40_000], [60, 9, 0], [1_000] * 3)
    assert with_more.horizon < alone.horizon * 1.05


@pytest.mark.parametrize(("wrong", "runs"), [([0, 0, 0], 100), ([1, 5, 20], 100), ([50, 50, 50], 100), ([1, 0, 1], 20)])
def test_an_error_that_does_not_fall_or_cannot_be_located_has_no_crossing(wrong, runs):
    not_reached([100, 200, 300], wrong, [runs] * 3)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ([0, 0, 0], "the error is below 0.01 at the shortest horizon already, 100"),
        ([900, 800, 600], "the error is still above 0.01 at the longest horizon, 300"),
        ([500, 500, 500], "the error hardly falls as the horizon grows"),
    ],
)
def test_the_reason_says_on_which_side_the_crossing_is(wrong, reason):
    fit = not_reached([100, 200, 300], wrong, [1_000] * 3)
    assert fit.reason == reason
    assert not_reached([100, 200, 300], [1, 0, 0], [20] * 3).reason == (
        "60 runs are too few to show where the error is 0.01"
    )


def test_a_crossing_beyond_the_sweep_has_a_lower_limit_only():
    fit = not_reached([100, 200, 400], [900, 800, 600], [1_000] * 3)
    assert (fit.low > 400, fit.high) == (True, math.inf)


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(ct.InputError, match="3 horizons, 2 counts"):
        fit_crossing([1, 2, 3], [1, 0], [10, 10])


@pytest.mark.parametrize(
    ("horizons", "wrong", "runs", "target", "said"),
    [
        ([0, 2], [1, 0], [10, 10], 0.01, "horizons"),
        ([1, 2], [11, 0], [10, 10], 0.01, "wrong"),
        ([1, 2], [0, 0], [0, 10], 0.01, "runs"),
        ([1, 2], [1, 0], [10, 10], 0.0, "target"),
    ],
)
def test_impossible_counts_are_refused(horizons, wrong, runs, target, said):
    with pytest.raises(ct.InputError, match=said):
        fit_crossing(horizons, wrong, runs, target)


def test_the_interval_of_a_ratio_grows_with_both_intervals():
    sharp = Crossing(20_000, 19_900, 20_100, 0.01, "T", 10_000)
    blunt = Crossing(26_000, 23_000, 29_400, 0.01, "T", 10_000)
    ratio, low, high = ratio_interval(blunt, sharp)
    assert ratio == pytest.approx(1.3)
    assert low < 23_000 / 20_000 * 1.001
    assert high > 29_400 / 20_000 * 0.999


def test_a_crossing_of_similar_arms_makes_few_runs_say_more():
    counts = [700, 1_000], [4, 1], [12, 12]
    alone = fit_crossing(*counts, target=0.01)
    similar = fit_crossing(*counts, target=0.01, similar=Crossing(1_500, 1_400, 1_600, 0.01, "T", 5_000, fall=7.0))
    assert isinstance(similar, Crossing)
    assert 900 < similar.low < 1_300 < similar.high < 4 * similar.low
    assert isinstance(alone, NotReached) or similar.high / similar.low < alone.high / alone.low
