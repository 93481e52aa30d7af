"""The price of error .01: horizon and communication of every algorithm, and which ones are beaten on both."""

import math
from itertools import combinations

import msgspec
import numpy as np
import pytest

from collabtop.crossing import Crossing, NotReached
from collabtop.reproduction.evidence import FULL, KZZ, NSAR, PRINTED, Crossed
from collabtop.reproduction.pareto import pareto_figure
from collabtop.reproduction.prices import (
    NOTE,
    SETTINGS,
    Price,
    beaten_pairs,
    describe_prices,
    left_out,
    price_rows,
    prices,
)
from tests.support.made_up_evidence import made_up_baselines, made_up_evidence


def crossed(line, horizon):
    return Crossed(line, 1, 10, Crossing(horizon, 0.9 * horizon, 1.1 * horizon, 0.01, "T", 10_000))


@pytest.fixture
def evidence():
    """The printed schedule needs three times the horizon; it sends 1,000 words per run, and kzz 20,000."""
    return made_up_evidence(crossings=(crossed(PRINTED, 60_000), crossed(FULL, 25_000), crossed(KZZ, 20_000)))


def nothing_located(runs=12, wrong=10):
    return made_up_evidence(lambda *_: {"wrong": wrong}, runs=runs, baselines=made_up_baselines(runs, share=5.0))


def test_the_horizon_comes_from_runs_near_it_if_there_are_any_and_else_from_the_panels(evidence):
    by_setting = {(price.line, price.arms, price.m): price for price in prices(evidence)}
    near, panels = by_setting[KZZ, "movies", 1], by_setting[KZZ, "movies", 8]
    assert isinstance(near.at, Crossing)
    assert (near.at.horizon, near.studied) == (20_000, True)
    assert (isinstance(panels.at, Crossing), panels.studied) == (True, False)
    assert near.words == pytest.approx(20_000, abs=1)


def located(horizon, words, spread=1.1, words_sd=10.0, runs=100):
    at = Crossing(horizon, horizon / spread, horizon * spread, 0.01, "T", 1_000)
    return Price(KZZ, "movies", 1, at, (1_000, 9_000), False, runs, words, words_sd, 64 * words, words_sd)


def is_beaten(price, other):
    return (0, 1) in beaten_pairs([price, other])


def test_an_algorithm_is_beaten_only_if_it_is_worse_on_both_axes_beyond_chance():
    assert is_beaten(located(30_000, 2_000), located(20_000, 1_000))
    assert not is_beaten(located(20_000, 1_000), located(30_000, 2_000))
    assert not is_beaten(located(30_000, 2_000), located(28_000, 1_000))  # the horizons are too close
    assert not is_beaten(located(30_000, 2_000), located(20_000, 1_000, spread=2.0))
    assert not is_beaten(located(30_000, 2_000), located(20_000, 1_990, words_sd=100.0))
    assert not is_beaten(located(30_000, 1_000), located(20_000, 2_000))
    assert not is_beaten(located(30_000, 2_000), located(20_000, 1_000, runs=1))  # one run shows no deviation


def test_a_horizon_that_was_not_located_is_compared_by_its_limits():
    def limited(low, high, words):
        return msgspec.structs.replace(located(1, words), at=NotReached("too few runs", low, high))

    assert is_beaten(limited(30_000, math.inf, 2_000), located(20_000, 1_000))
    assert is_beaten(located(30_000, 2_000), limited(0.0, 20_000, 1_000))
    assert is_beaten(limited(30_000, math.inf, 2_000), limited(0.0, 20_000, 1_000))
    assert not is_beaten(limited(21_000, math.inf, 2_000), located(20_000, 1_000))
    assert not is_beaten(limited(20_000, math.inf, 2_000), limited(0.0, 30_000, 1_000))
    assert not is_beaten(limited(0.0, math.inf, 2_000), located(20_000, 1_000))
    assert not is_beaten(located(30_000, 2_000), limited(0.0, math.inf, 1_000))


def test_only_algorithms_of_the_same_setting_are_compared():
    rows = [located(30_000, 2_000), msgspec.structs.replace(located(20_000, 1_000), m=8)]
    assert beaten_pairs(rows) == set()


def test_a_difference_that_one_comparison_would_show_is_chance_among_many():
    pair = [located(24_000, 2_000), located(20_000, 1_000)]  # 2.7 standard deviations
    others = [located(20_000, words, spread=2.0) for words in range(3_000, 3_010)]
    assert beaten_pairs(pair) == {(0, 1)}
    assert (0, 1) not in beaten_pairs([*pair, *others])


def equal_horizons(rng):
    """Twelve algorithms with the same true horizon; each of them takes fewer words than the one before."""
    horizons = 20_000 * np.exp(rng.normal(0, math.log(1.1) / 1.96, 12))
    return [located(horizon, 2_000 - 100 * rank, words_sd=0.0) for rank, horizon in enumerate(horizons)]


def equal_words(rng):
    """Twelve algorithms with the same true mean of words, from 5 runs each; each has a shorter horizon than before."""
    words = rng.normal(1_000, 50, (12, 5))
    return [
        located(90_000 / 2**rank, one.mean(), words_sd=one.std(ddof=1), runs=5, spread=1.01)
        for rank, one in enumerate(words)
    ]


@pytest.mark.parametrize("made_up", [equal_horizons, equal_words])
def test_a_table_of_algorithms_that_are_equal_on_one_axis_seldom_has_a_beaten_one(made_up):
    # One axis is decided, so that each of the 66 pairs is wrong as soon as the other axis looks decided by chance.
    rng = np.random.default_rng(17)
    wrong = sum(bool(beaten_pairs(made_up(rng))) for _ in range(600))
    assert wrong <= 51  # 30 are allowed on average; false alarm 0.01%. 95% intervals that lie apart: 67 and 226


MODES = [
    made_up_evidence(baselines=made_up_baselines()),
    made_up_evidence(runs=2, baselines=made_up_baselines(runs=2)),
    nothing_located(),
]


@pytest.mark.parametrize("measured", MODES)
def test_every_algorithm_is_in_every_panel_of_its_arms_in_every_mode(measured):
    figure = pareto_figure(measured)
    assert len(prices(measured)) == 12 + 6
    for axes, (arms, m) in zip(figure.axes, SETTINGS, strict=True):
        names = {container.get_label() for container in axes.containers}
        names |= {NSAR.name for line in axes.lines if line.get_label() == NSAR.name}
        assert names == {price.line.name for price in prices(measured) if (price.arms, price.m) == (arms, m)}
        for price in prices(measured):
            if (price.arms, price.m) == (arms, m) and isinstance(price.at, NotReached):
                notes = " ".join(text.get_text() for text in axes.texts).replace("\n", " ")
                assert price.at.reason in notes
                assert price.line.name.partition(",")[0] in notes


@pytest.mark.parametrize("measured", MODES)
def test_every_baseline_is_drawn_or_named_with_the_reason_why_it_does_not_apply(measured):
    baselines = {"BatchedSAR", "TZZ", "HKK", "NSAR"}
    for axes, (arms, m) in zip(pareto_figure(measured).axes, SETTINGS, strict=True):
        drawn = {price.line.name.partition(" ")[0] for price in prices(measured) if (price.arms, price.m) == (arms, m)}
        missing = {name for names in left_out(arms, m).values() for name in names}
        assert baselines & drawn == baselines - missing
        notes = " ".join(text.get_text() for text in axes.texts).replace("\n", " ")
        assert all(name in notes for name in missing)
    assert "top-8, IID: not TZZ, HKK (for m = 1 only)" in describe_prices(measured)


def test_nsar_is_one_agent_with_the_pulls_of_all():
    measured = made_up_evidence(baselines=made_up_baselines())
    free = [price for price in prices(measured) if price.is_free]
    assert [(price.arms, price.m, price.swept) for price in free] == [("movies", m, (10_000, 40_000)) for m in (1, 8)]
    same = next(price for price in prices(measured) if price.line.algorithm == "hkk")
    assert free[0].limits == same.limits  # the same errors at ten times the horizon of one agent
    rows = [row for row in price_rows(measured) if row[0] == NSAR.name]
    assert [row[6:8] for row in rows] == [("free", "free")] * 2
    free_rows = {index for index, price in enumerate(prices(measured)) if price.is_free}
    assert not any(free_rows & set(pair) for pair in beaten_pairs(prices(measured)))
    assert describe_prices(measured).count("free communication") == 2


def test_every_mark_has_an_interval_on_both_axes(evidence):
    for axes in pareto_figure(evidence).axes:
        assert all(len(bars) == 2 for _, _, bars in axes.containers)


def test_the_figure_the_table_and_the_text_alternative_agree(evidence):
    header, *rows = price_rows(evidence)
    assert len(rows) == len(prices(evidence)) == 12
    assert all(len(row) == len(header) for row in rows)
    assert all(row[0] in describe_prices(evidence) and row[3] in describe_prices(evidence) for row in rows)
    axes = pareto_figure(evidence).axes
    assert axes[0].get_xlabel() == "horizon for error .01 (thousand time steps)"
    assert [each.get_ylabel() for each in axes][1:3] == ["communication (words)", "communication (bits)"]


def test_an_algorithm_whose_error_never_falls_is_listed_with_the_reason(evidence):
    (uniform,) = (price for price in prices(evidence) if (price.line.algorithm, price.m) == ("uniform", 1))
    assert isinstance(uniform.at, NotReached)
    assert uniform.at.reason == "the error is still above 0.01 at the longest horizon, 50,000"
    (row,) = (row for row in price_rows(evidence) if row[0] == "Uniform" and row[2] == "1")
    assert row[3] == f"not located: {uniform.at.reason}"


def test_an_algorithm_that_refused_every_horizon_is_listed_with_the_reason(evidence):
    points = tuple(p for p in evidence.points if not (p.algorithm == "kzz" and p.m == 8))
    (price,) = (p for p in prices(msgspec.structs.replace(evidence, points=points)) if (p.line, p.m) == (KZZ, 8))
    assert isinstance(price.at, NotReached)
    assert price.at.reason == "every horizon of the sweep is below its smallest one"
    assert math.isnan(price.words)
    pareto_figure(msgspec.structs.replace(evidence, points=points))


@pytest.mark.parametrize("measured", [made_up_evidence(), *MODES])
def test_no_text_overlaps_another(measured):
    figure = pareto_figure(measured)
    figure.canvas.draw()
    boxes = [axes.get_tightbbox() for axes in figure.axes] + [legend.get_window_extent() for legend in figure.legends]
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    for axes in figure.axes:
        assert all(text.get_window_extent().x1 <= figure.bbox.x1 for text in axes.texts)
        assert not any(text.get_window_extent().overlaps(axes.xaxis.label.get_window_extent()) for text in axes.texts)


def test_the_table_states_which_costs_are_compared(evidence):
    assert price_rows(evidence)[0][-1] == "beaten beyond chance on horizon and words (IID) or bits (non-IID) by"


def test_the_report_states_how_many_comparisons_are_corrected_for():
    assert "Holm's method corrects for the number of pairs compared" in NOTE


def test_the_table_has_the_pairs_that_remain_after_the_correction():
    measured = made_up_evidence(crossings=(crossed(PRINTED, 20_000), crossed(FULL, 25_000), crossed(KZZ, 60_000)))
    beaten = {(row[0], row[2]): row[-1] for row in price_rows(measured)[1:] if row[1] == "IID"}
    assert beaten.pop((KZZ.name, "1")) == f"{PRINTED.name}; {FULL.name}"
    assert set(beaten.values()) == {"none"}


def test_non_iid_algorithms_are_compared_in_bits():
    at = Crossing(20_000, 19_000, 21_000, 0.01, "T", 600)
    later = Crossing(30_000, 29_000, 31_000, 0.01, "T", 600)
    few_words = Price(FULL, "groups", 1, later, (1, 2), False, 100, 1_000, 1.0, 64_000, 1.0)
    few_bits = Price(KZZ, "groups", 1, at, (1, 2), False, 100, 5_000, 1.0, 5_000, 1.0)
    assert is_beaten(few_words, few_bits)
    iid = [msgspec.structs.replace(price, arms="movies") for price in (few_words, few_bits)]
    assert not is_beaten(*iid)
