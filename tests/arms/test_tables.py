"""Data frames, dictionaries, dataclasses and generators as candidates, examples and logs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pandas  # type: ignore[import-untyped]
import polars
import pytest

import collabtop as ct
from tests.support.untyped import untyped

CONFIGS = {"model": ["tiny", "small", "large", "huge"], "mean": [0.1, 0.1, 0.5, 0.9]}
LIBRARIES = pytest.mark.parametrize("library", [pandas, polars])
ASKED: dict[str, Any] = {"horizon": 60, "seed": 1}


def by_mean(row, rng):
    return rng.random() < row["mean"]


@LIBRARIES
def test_the_rows_of_a_data_frame_are_candidates(library, tmp_path):
    path = tmp_path / "run.ctlog"
    result = ct.identify(ct.rows(library.DataFrame(CONFIGS)), 2, pull=by_mean, checkpoint=path, **ASKED)
    assert result.best == {"model": "huge", "mean": 0.9}
    assert result.best_candidates == [{"model": "huge", "mean": 0.9}, {"model": "large", "mean": 0.5}]
    assert result.top == ["3", "2"]
    # Rows are plain data, so that the log has them.
    assert ct.peek(path).best == result.best
    assert ct.resume(path, pull=by_mean).best_candidates == result.best_candidates


@LIBRARIES
def test_a_column_names_the_rows(library):
    rows = ct.rows(library.DataFrame(CONFIGS), label="model")
    assert ct.identify(rows, 1, pull=by_mean, **ASKED).top == ["huge"]
    with pytest.raises(ct.InputError, match="label is 'name', but the columns are 'model, mean'") as caught:
        ct.rows(library.DataFrame(CONFIGS), label="name")
    assert caught.value.argument == "label"


def test_the_index_of_a_pandas_frame_names_the_rows():
    frame = pandas.DataFrame(CONFIGS).set_index("model")
    result = ct.identify(ct.rows(frame), 1, pull=by_mean, **ASKED)
    assert (result.top, result.best) == (["huge"], {"mean": 0.9})


@LIBRARIES
def test_a_frame_whose_axis_is_not_named_is_asked_back(library, tmp_path):
    frame = library.DataFrame(CONFIGS)
    message = r"data frame of 4 rows and 2 columns, .*: pass ct.rows\(frame\), or list\(frame.columns\)"
    calls = [
        lambda: ct.identify(frame, 1, pull=by_mean, **ASKED),
        lambda: ct.start(frame, 1, pull=by_mean, **ASKED),
        lambda: ct.DatasetArms(frame, [1, 2], lambda row, example: 1),
        lambda: ct.dry_run(frame, 1, horizon=60),
        lambda: ct.ask_tell(frame, 1, horizon=60, log=tmp_path / "run.ctlog"),
    ]
    for call in calls:
        with pytest.raises(ct.InputError, match=message) as caught:
            call()
        assert caught.value.argument == "candidates"
    with pytest.raises(ct.InputError, match="arms is a DataFrame, but arms are needed"):
        ct.identify(frame, 1, **ASKED)


@pytest.mark.parametrize("frame", [{"mean": [1]}, polars.LazyFrame(CONFIGS)])
def test_rows_are_those_of_a_data_frame(frame):
    with pytest.raises(ct.InputError, match="but a data frame of pandas or polars is needed"):
        ct.rows(frame)


def test_columns_of_the_same_name_are_rejected():
    with pytest.raises(ct.InputError, match=r"several columns of the same name: \['a', 'a'\]"):
        ct.rows(pandas.DataFrame([[1, 2]], columns=["a", "a"]))


@LIBRARIES
def test_the_rows_of_a_data_frame_are_examples(library):
    questions = library.DataFrame({"question": ["2 + 2", "3 * 3", "7 - 1"], "answer": [4, 9, 6]})
    # A pandas frame that was filtered or sorted has an index that does not count from 0.
    questions = questions[1:] if library is polars else questions.sort_values("answer").iloc[1:]
    seen = []

    def score(solve, row):
        seen.append(row["question"])
        return solve(row["question"]) == row["answer"]

    result = ct.identify(ct.DatasetArms([len, eval], questions, score), 1, horizon=4, seed=1)
    assert result.best is eval
    assert result.exact == ["len", "eval"]
    assert len(set(seen)) == 2
    assert isinstance(result.to_dataframe(), library.DataFrame)


def test_a_series_and_a_generator_are_examples_in_their_order():
    series = pandas.Series([3, 1, 2], index=[7, 8, 9])
    for examples in (series, series.to_list(), (value for value in series)):
        arms = ct.DatasetArms([1, 3], examples, lambda candidate, example: candidate / (3 * example))
        assert ct.identify(arms, 1, horizon=6, seed=1).observed.means.tolist() == pytest.approx([11 / 54, 11 / 18])


@LIBRARIES
def test_examples_by_agent_are_one_frame_each(library):
    frames = [library.DataFrame({"gain": [0.1, 0.2]}), library.DataFrame({"gain": [0.3, 0.4]})]
    arms = ct.DatasetArms([1, 2], frames, lambda factor, row: factor * row["gain"], by_agent=True)
    result = ct.identify(arms, 1, horizon=4, seed=1)
    assert result.observed.means.tolist() == pytest.approx([0.25, 0.5])
    with pytest.raises(ct.InputError, match="examples is one DataFrame, but with by_agent=True a list"):
        ct.DatasetArms([1, 2], frames[0], lambda factor, row: 1, by_agent=True)


@LIBRARIES
def test_a_session_takes_rows_and_frames_of_examples(library, tmp_path):
    log, questions = tmp_path / "run.ctlog", library.DataFrame({"question": ["a", "b"]})
    rows = ct.rows(library.DataFrame(CONFIGS), label="model")
    session = ct.ask_tell(rows, 1, horizon=8, examples=questions, seed=1, log=log)
    while pulls := session.ask():
        session.tell(pulls, [pull.candidate["mean"] for pull in pulls])
    assert session.result().best == {"model": "huge", "mean": 0.9}
    assert ct.Session(log).result().top == ["huge"]


@dataclass
class Config:
    mean: float


def test_candidates_may_be_dataclasses_from_a_generator():
    made = [Config(0.1), Config(0.9)]
    result = ct.identify((config for config in made), 1, pull=lambda config, rng: config.mean, **ASKED)
    assert result.best is made[1]
    assert result.top == ["Config(mean=0.9)"]


def test_the_keys_of_a_dictionary_are_the_labels_of_its_values():
    made = {"low": Config(0.1), "high": Config(0.9)}
    result = ct.identify(made, 1, pull=lambda config, rng: config.mean, **ASKED)
    assert (result.top, result.best_candidates) == (["high"], [made["high"]])
    forecast = ct.dry_run(made, 1, horizon=60, cost=lambda config: config.mean)
    assert (forecast.labels, forecast.costs) == (("low", "high"), (0.1, 0.9))


def test_candidates_without_an_order_are_rejected():
    with pytest.raises(ct.InputError, match="candidates is a set, which has no order, so that a seed would not repeat"):
        ct.identify({"a", "b"}, 1, pull=lambda candidate, rng: 1, **ASKED)


def test_arms_without_candidates_have_labels_instead():
    assert ct.identify(ct.BernoulliArms([0.1, 0.9], labels=["a", "b"]), 1, agents=1, **ASKED).best == "b"
    assert ct.identify(ct.BernoulliArms([0.1, 0.9]), 1, agents=1, **ASKED).best_candidates == [1]


def test_a_log_without_the_objects_has_their_labels(tmp_path):
    path = tmp_path / "run.ctlog"
    ct.identify({"low": Config(0.1), "high": Config(0.9)}, 1, pull=lambda c, rng: c.mean, checkpoint=path, **ASKED)
    assert ct.peek(path).best == "high"


@LIBRARIES
def test_a_data_frame_of_a_result_is_of_the_library_that_was_passed(library):
    result = ct.identify(ct.rows(library.DataFrame(CONFIGS)), 1, pull=by_mean, **ASKED)
    assert isinstance(result.to_dataframe(), library.DataFrame)
    other = polars if library is pandas else pandas
    assert isinstance(result.to_dataframe(untyped(other.__name__)), other.DataFrame)


def test_neither_pandas_nor_polars_is_imported_unless_the_program_does():
    script = """
import sys, collabtop as ct
pull = lambda mean, rng: rng.random() < mean
ct.identify({"low": 0.1, "high": 0.9}, 1, pull=pull, horizon=20).best
ct.identify(ct.DatasetArms([1, 2], [3, 4], lambda candidate, example: 0.5), 1, horizon=2)
ct.identify(ct.LoggedArms([{"candidate": "a", "reward": 1}, {"candidate": "b", "reward": 0}]), 1, agents=1, horizon=2)
print(*{"pandas", "polars"} & set(sys.modules))
"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"\n"


# -- logs


CLICKS = {
    "page": ["old", "new", "old", "new", "old", "new"],
    "clicked": [0, 1, 1, 1, 0, 0],
    "region": ["north", "north", "south", "south", "south", "south"],
}


@LIBRARIES
def test_the_columns_of_a_log_are_named(library):
    arms = ct.LoggedArms(library.DataFrame(CLICKS), candidate="page", reward="clicked")
    same = ct.LoggedArms([[0, 1, 0], [1, 1, 0]], labels=["old", "new"])
    assert arms.fingerprint() == same.fingerprint()
    result = ct.identify(arms, 1, agents=1, horizon=6, seed=1)
    assert result == ct.identify(same, 1, agents=1, horizon=6, seed=1)
    assert result.best == "new"
    assert isinstance(result.to_dataframe(), library.DataFrame)


@LIBRARIES
def test_a_column_of_agents_gives_each_its_own_rows(library):
    arms = ct.LoggedArms(library.DataFrame(CLICKS), candidate="page", reward="clicked", agent="region")
    same = ct.LoggedArms([[[0], [1, 0]], [[1], [1, 0]]], labels=["old", "new"])
    assert (arms.agents, arms.fingerprint()) == (2, same.fingerprint())


def test_a_log_may_be_a_list_of_dictionaries_and_have_the_usual_names():
    arms = ct.LoggedArms([{"Arm": 7, "Score": 0.5}, {"Arm": 9, "Score": 1.0}])
    assert arms.labels == ("7", "9")
    assert ct.identify(arms, 1, agents=1, horizon=2, seed=1).best == 9


FRAME = pandas.DataFrame(CLICKS)


@pytest.mark.parametrize(
    ("log", "named", "argument", "message"),
    [
        (FRAME, {}, "candidate", "no column 'candidate': the columns are 'page, clicked, region'. Name it with candid"),
        (FRAME, {"candidate": "page"}, "reward", "no column 'reward': the columns are"),
        (FRAME, {"candidate": "site"}, "candidate", "candidate is 'site', but the columns are 'page, clicked, region'"),
        (FRAME, {"candidate": "page", "reward": "region"}, "rewards", "rewards, row 0: 'north', which is not a number"),
        (FRAME, {"candidate": "page", "reward": "clicked", "labels": ["a", "b"]}, "labels", "labels do not apply"),
        ([[1, 0], [1, 1]], {"reward": "clicked"}, "reward", "reward= names a column of a log, but rewards is a list"),
        ([{"arm": "a", "reward": 1}, {"arm": "b"}], {}, "rewards", "rewards has rows without 'reward'"),
        ([{"arm": "a", "reward": 1.5}], {}, "rewards", "rewards, row 0: 1.5, but a reward lies in"),
        (
            [{"arm": "a", "reward": 1}, {"arm": None, "reward": 1}],
            {},
            "rewards",
            "rewards, row 1: there is no candidate",
        ),
        (polars.DataFrame({"arm": [], "reward": []}), {}, "rewards", "rewards has no rows"),
    ],
)
def test_a_log_that_cannot_be_read_is_refused_with_its_reason(log, named, argument, message):
    with pytest.raises(ct.InputError, match=message) as caught:
        ct.LoggedArms(log, **named)
    assert caught.value.argument == argument


def test_an_agent_without_a_row_of_a_candidate_is_named():
    with pytest.raises(ct.InputError, match="candidate 'new' has no reward of agent 'north'"):
        ct.LoggedArms(FRAME.drop(index=1), candidate="page", reward="clicked", agent="region")
