"""A result as a table, a figure, a notebook cell and a data frame."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

import collabtop as ct

LABELS = ["[red]a", "b<b>", "c$1", "d"]


def run(algorithm="kzz", m=2, **more):
    arms = ct.BernoulliArms([0.2, 0.9, 0.5, 0.4], labels=LABELS)
    return ct.identify(arms, m, agents=3, horizon=600, algorithm=algorithm, seed=7, **more)


def test_the_table_has_every_candidate_the_answer_first():
    result = run()
    rows = result.table().rows
    assert [row.label for row in rows[:2]] == result.top
    assert [row.place for row in rows] == [*(standing.place for standing in result.standings), None, None]
    assert sorted(row.arm for row in rows) == [0, 1, 2, 3]
    for row in rows:
        known = result.estimates[row.arm]
        assert (row.verdict, row.round, row.mean, row.pulls) == (known.verdict, known.round, known.mean, known.pulls)
        assert row.low < row.mean < row.high


def test_what_the_coordinator_does_not_know_is_not_in_it():
    arms = ct.BernoulliArms(np.random.default_rng(1).uniform(0.1, 0.9, 200))
    result = ct.identify(arms, 1, agents=2, horizon=5_000, algorithm="collab-top-iid", seed=1)
    hidden = [row for row in result.table().rows if row.round is None and row.verdict == "rejected"]
    assert hidden
    assert {(row.mean, row.low, row.high, row.pulls) for row in hidden} == {(None, None, None, None)}
    assert "inside an agent" in str(result.table()) + result.table()._repr_html_() or len(result.table()) > 30


def test_print_and_notebook_show_labels_as_they_are():
    text = str(run().table())
    for label in LABELS:
        assert label in text
    assert "95% interval" in text
    cell = run()._repr_html_()
    assert "b&lt;b&gt;" in cell
    assert "<table>" in cell
    assert "b<b>" not in cell


def test_a_long_table_is_cut_short_in_print_and_whole_in_rows():
    result = ct.identify(ct.BernoulliArms(np.linspace(0, 1, 50)), 1, agents=1, horizon=100, algorithm="uniform", seed=1)
    assert len(result.table()) == 50
    assert "20 more rows" in str(result.table())
    assert "20 more candidates" in result._repr_html_()


def test_failed_pulls_have_a_column_and_widen_the_interval():
    def flaky(mean, rng):
        return None if rng.random() < 0.5 else 0.5

    policy = ct.PullPolicy(failures="skip")
    asked: dict[str, Any] = {"agents": 2, "horizon": 200, "algorithm": "uniform", "seed": 1}
    flawed = ct.identify([0.5, 0.6], 1, pull=flaky, policy=policy, **asked).table()
    well = ct.identify([0.5, 0.6], 1, pull=lambda mean, rng: 0.5, **asked).table()
    assert "failed" in str(flawed)
    assert "failed" not in str(well)
    assert flawed.rows[0].high - flawed.rows[0].low > 1.3 * (well.rows[0].high - well.rows[0].low)


def test_the_figure_of_a_run_is_a_picture_in_notebooks():
    assert run().plot()._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_has_one_row_per_candidate(library):
    frame = run().to_dataframe(library)
    assert type(frame).__module__.split(".")[0] == library
    assert list(frame["label"]) == [row.label for row in run().table().rows]
    assert {"verdict", "mean", "low", "high", "pulls", "round", "place", "last_place", "thin"} <= set(frame.columns)


def test_without_pandas_polars_is_used_and_without_both_an_error_names_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    assert type(run().to_dataframe()).__module__.startswith("polars")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ct.InputError, match="needs pandas or polars, which is not installed"):
        run().to_dataframe()
    monkeypatch.undo()
    with pytest.raises(ct.InputError, match="library is 'excel'"):
        run().to_dataframe("excel")


@pytest.mark.parametrize("algorithm", ["kzz", "uniform", "collab-top-iid", "collab-top-noniid"])
def test_the_figure_has_three_panels_and_can_be_saved(algorithm):
    figure = run(algorithm).plot()
    outcomes, estimates, words = figure.axes
    assert outcomes.get_ylabel() == "candidates open at the start of the round"
    assert "95% interval" in estimates.get_xlabel()
    assert f"{run(algorithm).words:,} in total" in words.get_title()
    figure.savefig(io.BytesIO())


def test_a_run_without_rounds_can_be_drawn_too():
    ct.identify(ct.BernoulliArms([0.5, 0.6]), 2, agents=1, horizon=1).plot().savefig(io.BytesIO())


def test_no_window_is_opened_for_a_figure():
    sys.modules.pop("matplotlib.pyplot", None)
    run().plot()
    assert "matplotlib.pyplot" not in sys.modules
