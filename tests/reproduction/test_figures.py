"""The four figures: what they show, and that they can be read."""

import io
from itertools import combinations

import matplotlib as mpl
import msgspec
import pytest

from collabtop.reproduction.evidence import KZZ, paper_name
from collabtop.reproduction.experiments import figure_plans
from collabtop.reproduction.figures import describe, panel_points, paper_figure
from collabtop.reproduction.render import rendered_figures
from tests.support.made_up_evidence import ARMS, made_up_evidence

PLANS = figure_plans(ARMS["movies"], 10)


@pytest.fixture
def evidence():
    return made_up_evidence


@pytest.fixture(params=PLANS, ids=lambda plan: f"figure {plan.number}")
def plan(request):
    return request.param


def test_there_are_twelve_panels_as_in_the_paper():
    panels = [
        (plan.number, panel.letter, panel.measure, panel.against, panel.m) for plan in PLANS for panel in plan.panels
    ]
    assert len(panels) == 12
    assert panels[:4] == [
        (1, "a", "error", "horizon", 1), (1, "b", "error", "agents", 1),
        (1, "c", "words", "horizon", 1), (1, "d", "words", "agents", 1),
    ]  # fmt: skip
    assert [panel[:4] for panel in panels[-2:]] == [(4, "a", "words", "horizon"), (4, "b", "error", "horizon")]


def test_every_panel_names_its_axes_with_units(plan, evidence):
    for axes in paper_figure(plan, evidence()).axes:
        assert axes.get_xlabel() in ("time horizon T (thousand time steps)", "number of agents K")
        assert axes.get_ylabel() in ("probability of a wrong answer", "communication (words)")
        assert axes.get_title(loc="left")


def test_the_legend_names_the_algorithms_as_the_paper_does(plan, evidence):
    (legend,) = paper_figure(plan, evidence()).legends
    names = [text.get_text() for text in legend.get_texts()]
    if plan.number <= 2:
        assert names == ["CollabTopIID, printed schedule", "CollabTopIID, full schedule", "KZZ"]
    else:
        assert names == ["CollabTopNIID, printed schedule", "CollabTopNIID, full schedule", "Uniform"]


def test_lines_differ_in_more_than_colour(plan, evidence):
    for axes in paper_figure(plan, evidence()).axes:
        styles = [(line.get_marker(), line.get_linestyle()) for line, *_ in axes.containers]
        assert len(set(styles)) == len(styles) == 3


def test_the_heights_are_the_points(evidence):
    measured = evidence()
    plan = PLANS[0]
    axes = paper_figure(plan, measured).axes[2]
    heights = {container.get_label(): list(container[0].get_ydata()) for container in axes.containers}
    assert heights["KZZ"] == [point.words_mean for point in panel_points(plan.panels[2], KZZ, measured)]


def test_no_text_overlaps_another(plan, evidence):
    figure = paper_figure(plan, evidence())
    figure.canvas.draw()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            texts = [label for label in axis.get_ticklabels() if label.get_text()]
            shown = [
                text.get_window_extent() for text in texts if axes.bbox.padded(30).overlaps(text.get_window_extent())
            ]
            assert not any(a.overlaps(b) for a, b in combinations(shown, 2))
    boxes = [axes.get_tightbbox() for axes in figure.axes] + [legend.get_window_extent() for legend in figure.legends]
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_axes_of_words_have_labels_below_the_lowest_and_above_the_highest_line(plan, evidence):
    figure = paper_figure(plan, evidence())
    figure.canvas.draw()
    for axes in figure.axes:
        if axes.get_ylabel() == "communication (words)":
            low, high = axes.get_ylim()
            shown = [tick for tick in axes.get_yticks() if low <= tick <= high]
            assert low < shown[0] <= axes.dataLim.ymin
            assert axes.dataLim.ymax <= shown[-1] < high


@pytest.mark.slow
def test_figures_are_the_same_bytes_with_any_number_of_processes(evidence):
    measured = evidence()
    alone, shared = (rendered_figures(PLANS[2:], measured, jobs=jobs) for jobs in (1, 2))
    assert [figure.files for figure in alone] == [figure.files for figure in shared]
    assert alone[0].files["svg"].startswith(b"<?xml")
    assert alone[0].files["pdf"].startswith(b"%PDF")
    assert alone[0].files["png"].startswith(b"\x89PNG")


def test_drawing_leaves_matplotlibs_global_state_alone(evidence):
    before = dict(mpl.rcParams)
    paper_figure(PLANS[0], evidence()).savefig(io.BytesIO(), format="png")
    assert dict(mpl.rcParams) == before


def test_the_text_alternative_gives_the_first_and_last_value_of_each_line(evidence):
    text = describe(PLANS[0], evidence())
    assert text.startswith("Figure 1. Performance of algorithms for top-1 arm identification, IID data.")
    assert "KZZ from 0.71 to 0.00" in text
    assert "KZZ from 20,000 words" in text.replace("20,001", "20,000").replace("20,000.5", "20,000")


def test_an_algorithm_that_is_not_in_the_paper_gets_a_name_too():
    assert paper_name("frugal-top") == "FrugalTop"
    assert paper_name("mine", "full") == "Mine, full schedule"


def test_a_panel_without_points_is_drawn_empty(evidence):
    empty = msgspec.structs.replace(evidence(), points=())
    paper_figure(PLANS[1], empty).savefig(io.BytesIO(), format="png")
