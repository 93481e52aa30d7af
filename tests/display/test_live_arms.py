import io
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

import collabtop as ct
from collabtop.display.comparison import comparison_row, comparison_table, correct_arms
from collabtop.display.live_arms_bars import LiveArmsBars
from collabtop.display.live_arms_figure import live_arms_figure
from collabtop.display.round_outcomes import round_outcomes
from tests.support.accepted import accepted_setting


@pytest.fixture(scope="module")
def arms():
    return ct.datasets.movielens_like()


@pytest.fixture(scope="module")
def results(arms):
    algorithms = (ct.CollabTopIID(schedule="full"), ct.KZZ())
    return [ct.identify(arms, m=8, agents=10, horizon=300_000, algorithm=algorithm, seed=7) for algorithm in algorithms]


def every_run():
    arms = ct.BernoulliArms([0.1, 0.9, 0.5, 0.4, 0.3, 0.6, 0.2])
    for name in ct.available_algorithms():
        for m, agents in sorted({accepted_setting(name, m, 2) for m in (1, 3, 5, 7)}):
            yield ct.identify(arms, m, agents=agents, horizon=2_000, algorithm=name, seed=m)


@pytest.mark.parametrize("result", list(every_run()), ids=lambda result: f"{result.algorithm}-{result.m}")
def test_every_arm_of_a_round_is_kept_or_settled_and_words_add_up(result):
    outcomes = round_outcomes(result)
    for outcome in outcomes:
        parts = (outcome.kept, outcome.accepted, outcome.rejected, outcome.inside)
        assert outcome.live == sum(parts)
        assert min(parts) >= 0
    assert sum(outcome.words for outcome in outcomes) == result.words
    if outcomes:
        assert outcomes[0].live == result.n
        assert outcomes[-1].kept == 0


def test_only_local_rounds_settle_arms_inside_agents(results):
    ours, theirs = (round_outcomes(result) for result in results)
    assert all((outcome.inside > 0) == (outcome.phase == "local") for outcome in ours)
    assert any(outcome.phase == "local" for outcome in ours)
    assert all(outcome.inside == 0 for outcome in theirs)
    assert sum(outcome.accepted for outcome in theirs) == 8


def test_the_figure_shows_live_arms_and_words_of_both_runs(results):
    figure = live_arms_figure(results)
    assert isinstance(figure, Figure)
    live, words = figure.axes
    for axes in (live, words):
        assert axes.get_xlabel() == "rounds finished"
        assert len(axes.lines) == 2
    names = [text.get_text() for text in live.get_legend().get_texts()]
    assert names == ["collab-top-iid (3 rounds inside agents)", "kzz"]
    assert live.get_yscale() == "symlog"
    assert np.asarray(live.lines[1].get_ydata()).tolist() == [588, 294, 147, 73, 36, 18, 9, 4, 2, 0]
    assert [np.asarray(line.get_ydata())[-1] for line in words.lines] == [result.words for result in results]


def test_lines_differ_in_more_than_colour(results):
    live, _ = live_arms_figure(results).axes
    assert len({line.get_marker() for line in live.lines}) == 2
    assert len({line.get_linestyle() for line in live.lines}) == 2


def test_the_figure_states_the_setting_if_it_is_the_same_for_all_runs(results, arms):
    other = ct.identify(arms, m=1, agents=10, horizon=30_000, seed=1)
    assert live_arms_figure(results).get_suptitle() == "best 8 of 588 arms, 10 agents, 300,000 time steps"
    assert live_arms_figure([*results, other]).get_suptitle() == ""


def test_no_text_of_the_figure_overlaps_another(results):
    figure = live_arms_figure(results)
    figure.canvas.draw()
    for axes in figure.axes:
        texts = [axes.title, *axes.texts, *(axes.get_legend().get_texts() if axes.get_legend() else [])]
        boxes = [text.get_window_extent() for text in texts]
        assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_drawing_leaves_matplotlibs_global_state_alone(results):
    before = dict(mpl.rcParams)
    live_arms_figure(results).savefig(io.BytesIO(), format="png")
    assert dict(mpl.rcParams) == before


def test_a_run_without_a_round_can_be_drawn():
    everything = ct.identify(ct.BernoulliArms([0.5, 0.6]), m=2, agents=2, horizon=10)
    assert round_outcomes(everything) == []
    live_arms_figure([everything]).savefig(io.BytesIO(), format="png")


def shown(renderable):
    file = io.StringIO()
    Console(width=80, file=file, color_system=None).print(renderable)
    return file.getvalue()


def test_the_bars_fit_80_columns_and_have_one_line_per_round(results):
    text = shown(LiveArmsBars(results[0]))
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert [line.split()[0] for line in text.splitlines()[3:-1]] == [str(r.round) for r in results[0].rounds]


def test_wrong_arms_of_an_answer_are_shown_in_brackets():
    arms = ct.BernoulliArms([0.0, 0.0, 1.0], labels=["a", "b", "c"])
    mistaken = ct.identify(ct.BernoulliArms([1.0, 0.0, 0.0], labels=["a", "b", "c"]), m=1, agents=1, horizon=30)
    assert comparison_row(mistaken, arms)["right"] == 0
    assert "(a)" in shown(comparison_table([mistaken], arms))


def test_arms_that_tie_at_the_border_count_only_as_often_as_they_have_a_place():
    means = [0.7, 0.6, 0.6, 0.5]
    answers = [[0, 2], [1, 2], [2, 3], [3, 0]]
    assert [correct_arms(means, answer) for answer in answers] == [2, 1, 1, 1]
