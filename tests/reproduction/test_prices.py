"""The price of error .01: horizon and communication of each algorithm, and which ones are beaten on both."""

import msgspec
import pytest

from collabtop.reproduction.evidence import FULL, KZZ, PRINTED, Crossed
from collabtop.reproduction.pareto import pareto_figure
from collabtop.reproduction.prices import Price, describe_prices, price_rows, prices
from collabtop.stats import Crossing
from tests.support.made_up_evidence import made_up_evidence


def crossed(line, horizon):
    return Crossed(line, 1, 10, Crossing(horizon, 0.9 * horizon, 1.1 * horizon, 0.01, "T", 10_000))


@pytest.fixture
def evidence():
    """The printed schedule needs three times the horizon; it sends 1,000 words per run, and kzz 20,000."""

    def rare(line, arms, m, agents, horizon):
        return {"wrong": 2} if (arms, horizon) == ("movies", 2_000_000) else {}

    return made_up_evidence(rare, crossings=(crossed(PRINTED, 60_000), crossed(FULL, 25_000), crossed(KZZ, 20_000)))


def test_the_horizon_comes_from_the_deep_study_if_it_was_run_and_else_from_the_panels(evidence):
    by_setting = {(price.line, price.arms, price.m): price for price in prices(evidence)}
    deep, rough = by_setting[KZZ, "movies", 1], by_setting[KZZ, "movies", 8]
    assert (deep.at.horizon, deep.rough) == (20_000, False)
    assert (rough.at.runs < 10_000, rough.rough) == (True, True)
    assert deep.words == pytest.approx(20_000, abs=1)


def test_an_algorithm_is_beaten_only_by_one_that_needs_less_of_both(evidence):
    printed, full, kzz = (price for price in prices(evidence) if (price.arms, price.m) == ("movies", 1))
    assert not kzz.is_beaten_by(full)
    assert not full.is_beaten_by(kzz)
    assert not printed.is_beaten_by(full)  # as many words


def test_an_algorithm_whose_error_never_falls_has_no_price(evidence):
    assert not [price for price in prices(evidence) if price.line.algorithm == "uniform"]


def test_the_figure_the_table_and_the_text_alternative_agree(evidence):
    figure = pareto_figure(evidence)
    drawn = sum(len(axes.containers) for axes in figure.axes)
    header, *rows = price_rows(evidence)
    assert drawn == len(rows) == len(prices(evidence)) > 3
    assert all(len(row) == len(header) for row in rows)
    assert all(row[0] in describe_prices(evidence) and row[3] in describe_prices(evidence) for row in rows)
    assert figure.axes[0].get_xlabel() == "horizon for error .01 (thousand time steps)"
    assert [axes.get_ylabel() for axes in figure.axes][1:3] == ["communication (words)", "communication (bits)"]


def test_a_quick_study_without_any_price_still_gives_a_figure():
    figure = pareto_figure(made_up_evidence(lambda *_: {"wrong": 90}))
    assert "horizon for error .01 not determined" in [text.get_text() for axes in figure.axes for text in axes.texts]


def test_a_rough_horizon_is_drawn_pale_and_dotted_and_called_rough_in_the_table(evidence):
    axes = pareto_figure(evidence).axes
    for (arms, m), panel in zip((("movies", 1), ("movies", 8)), axes, strict=False):
        shown = [price for price in prices(evidence) if (price.arms, price.m) == (arms, m)]
        styles = [
            (marker.get_alpha() < 1, bar.get_linestyle()[0][1] is not None) for marker, _, (bar,) in panel.containers
        ]
        assert styles == [(price.rough, price.rough) for price in shown]
    assert {price.rough for price in prices(evidence)} == {True, False}
    (legend,) = pareto_figure(evidence).legends
    notes = [text.get_text() for text in legend.get_texts()][-2:]
    assert notes == ["95% interval, deep study", "rough: runs of the panels alone"]
    header, *rows = price_rows(evidence)
    assert [("rough" in row[header.index("runs")]) for row in rows] == [price.rough for price in prices(evidence)]


def test_the_table_states_which_costs_are_compared(evidence):
    assert price_rows(evidence)[0][-1] == "beaten on horizon and words (IID) or bits (non-IID) by"


def test_non_iid_algorithms_are_compared_in_bits():
    at = Crossing(20_000, 19_000, 21_000, 0.01, "T", 600)
    later = msgspec.structs.replace(at, horizon=30_000)
    few_words = Price(FULL, "groups", 1, later, True, words=1_000, bits=64_000)
    few_bits = Price(KZZ, "groups", 1, at, True, words=5_000, bits=5_000)
    assert few_words.is_beaten_by(few_bits)
    iid = [msgspec.structs.replace(price, arms="movies") for price in (few_words, few_bits)]
    assert not iid[0].is_beaten_by(iid[1])
