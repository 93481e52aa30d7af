"""The horizon at which an error falls to .01, on data whose answer is known."""

import math

import numpy as np
import pytest

import collabtop as ct
from collabtop.stats import Crossing, fit_crossing, ratio_interval

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
    found = fit_crossing(horizons, wrong, runs)
    assert found.form == shape
    assert found.horizon == pytest.approx(20_000, rel=1e-3)
    assert found.low < 20_000 < found.high or found.high / found.low < 1.001
    assert found.runs == sum(runs)


@pytest.mark.parametrize("shape", SHAPES)
def test_about_95_of_100_intervals_hold_the_truth(shape):
    rng = np.random.default_rng(1)
    chance = [SHAPES[shape](t) for t in HORIZONS]
    fits = [fit_crossing(HORIZONS, rng.binomial(2_000, chance), [2_000] * 5) for _ in range(300)]
    inside = sum(fit is not None and fit.low <= 20_000 <= fit.high for fit in fits)
    assert 0.90 <= inside / 300 <= 1.0
    assert np.median([fit.high / fit.low for fit in fits]) < 1.35


def test_more_runs_make_the_interval_narrower():
    few, many = (fit_crossing(HORIZONS, [r * 3 // 100 for _ in range(2)] + [r // 100, r // 200, r // 400], [r] * 5)
                 for r in (400, 40_000))  # fmt: skip
    assert many.high / many.low < few.high / few.low


def test_points_without_a_wrong_answer_count():
    alone = fit_crossing([10_000, 20_000], [60, 9], [1_000] * 2)
    with_more = fit_crossing([10_000, 20_000, 40_000], [60, 9, 0], [1_000] * 3)
    assert with_more.horizon < alone.horizon * 1.05


@pytest.mark.parametrize(("wrong", "runs"), [([0, 0, 0], 100), ([1, 5, 20], 100), ([50, 50, 50], 100), ([1, 0, 1], 20)])
def test_an_error_that_does_not_fall_or_cannot_be_told_has_no_crossing(wrong, runs):
    assert fit_crossing([100, 200, 300], wrong, [runs] * 3) is None


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(ct.InputError, match="3 horizons, 2 counts"):
        fit_crossing([1, 2, 3], [1, 0], [10, 10])


def test_the_interval_of_a_ratio_grows_with_both_intervals():
    sharp = Crossing(20_000, 19_900, 20_100, 0.01, "T", 10_000)
    blunt = Crossing(26_000, 23_000, 29_400, 0.01, "T", 10_000)
    ratio, low, high = ratio_interval(blunt, sharp)
    assert ratio == pytest.approx(1.3)
    assert low < 23_000 / 20_000 * 1.001
    assert high > 29_400 / 20_000 * 0.999
