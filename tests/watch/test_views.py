"""The updates that the page gets: everything once, then only changes, which are sufficient."""

from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.runlog.file import RunLog, read_log
from collabtop.watch.downloads import as_csv, as_json
from collabtop.watch.views import changes, merged, summary, view
from collabtop.watch.watched_runs import Runs, WatchedRun
from tests.support.page_state import apply

values = st.none() | st.integers(-3, 3)


@st.composite
def views(draw):
    """Two successive views of a run: rounds are added, candidates change."""
    arms = draw(st.integers(1, 6))
    rows = sorted(draw(st.tuples(st.integers(0, 4), st.integers(0, 4))))
    column = lambda size: st.lists(values, min_size=size, max_size=size)  # noqa: E731
    return [
        {
            "version": draw(st.integers(0, 1)),
            "cost": draw(values),
            "arms": {"mean": draw(column(arms)), "pulls": draw(column(arms))},
            "rounds": {"live": draw(column(count)), "words": draw(column(count))},
        }
        for count in rows
    ]


def watched(path):
    """A run as it is shown when nothing more is computed for it: its baseline is simulated in the background."""
    run = WatchedRun(path, "a")
    run.update(replay=True)
    deadline = time.monotonic() + 30
    while run.baseline is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return run


@given(views())
def test_changes_lead_from_one_view_to_the_next(pair):
    before, after = pair
    page = apply(None, changes(None, before))
    assert page == before
    assert apply(page, changes(before, after)) == after


def test_nothing_is_sent_while_nothing_changes(tmp_path):
    ct.identify(ct.BernoulliArms([0.9, 0.1, 0.5]), 1, agents=2, horizon=90, seed=1, checkpoint=tmp_path / "a.ctlog")
    run = watched(tmp_path / "a.ctlog")
    assert changes(view(run), view(run)) == {}


def test_a_growing_log_is_shown_by_its_changes_alone(tmp_path):
    whole, part = tmp_path / "whole.ctlog", tmp_path / "part.ctlog"
    result = ct.identify(ct.BernoulliArms([0.9, 0.1, 0.5, 0.4]), 1, agents=2, horizon=200, seed=1, checkpoint=whole)
    run = WatchedRun(part, "part")
    log = RunLog(part)
    log.close()
    page = before = None
    for record in read_log(whole):
        log = RunLog(part)
        log.append(record)
        log.close()
        run._last_read = 0.0
        run.update(replay=True)
        after = view(run)
        page = apply(page, msgspec.json.decode(msgspec.json.encode(changes(before, after))))
        before = after
    assert page["communication"]["words"] == result.words
    assert page["rounds"]["live"] == [summary.live for summary in result.rounds]
    means = [estimate.mean for estimate in result.estimates]
    assert page["arms"]["mean"] == [None if mean is None else round(mean, 9) for mean in means]
    assert page["answer"]["top"] == result.top_indices


def test_downloads_contain_the_result(tmp_path):
    labels = ["=1+1", "b", "c, with a comma"]
    arms = ct.BernoulliArms([0.9, 0.1, 0.5], labels=labels)
    result = ct.identify(arms, 1, agents=2, horizon=90, seed=1, checkpoint=tmp_path / "a.ctlog")
    run = WatchedRun(tmp_path / "a.ctlog", "a")
    run.update(replay=True)
    assert json.loads(as_json(run)) == json.loads(result.to_json())
    lines = as_csv(run).splitlines()
    assert lines[0] == "place,last_place,arm,label,verdict,round,phase,mean,low,high,pulls,thin,failed,settled"
    assert lines[1].startswith("1,1,0,'=1+1,accepted,")
    assert len(lines) == 4


def test_downloads_of_an_unfinished_run_contain_the_table_so_far(tmp_path):
    path = tmp_path / "a.ctlog"
    ct.identify(ct.BernoulliArms([0.9, 0.1, 0.5, 0.3]), 1, agents=2, horizon=400, algorithm="kzz", checkpoint=path)
    path.write_bytes(path.read_bytes()[:-400])
    run = WatchedRun(path, "a")
    run.update(replay=True)
    content = json.loads(as_json(run))
    assert content["complete"] is False
    assert content == json.loads(ct.peek(path).to_json())
    assert len(as_csv(run).splitlines()) == 5


def score(candidate, rng):
    return rng.random() < candidate / 12


def updated(run: WatchedRun) -> dict[str, Any]:
    run._last_read = 0.0
    run.update(replay=True)
    return view(run)


@pytest.mark.parametrize("algorithm", ["kzz", "frugal-top", "uniform"])
def test_an_extended_run_is_shown_with_its_last_leg(tmp_path, algorithm):
    path = tmp_path / "run.ctlog"
    short = ct.identify(
        list(range(10)), 2, pull=score, agents=2, horizon=200, seed=1, algorithm=algorithm, checkpoint=path
    )
    run = WatchedRun(path, "run")
    before = updated(run)
    page = apply(None, changes(None, before))
    assert page["answer"]["top"] == short.top_indices
    longer = ct.extend(path, pull=score, horizon=600)
    after = updated(run)
    page = apply(page, changes(before, after))
    assert page == after
    assert page["progress"]["error"] is None
    assert page["head"]["horizon"] == 600
    assert (page["status"]["status"], page["answer"]["top"]) == ("finished", longer.top_indices)
    assert page["progress"]["pulls"] == longer.observed.pulls.sum() <= page["progress"]["max_pulls"]
    assert page["rounds"]["words"] == [counted.words for counted in longer.rounds]
    assert page["arms"]["pulls"] == [estimate.pulls or 0 for estimate in longer.estimates]
    expected = json.loads(longer.to_json())
    assert json.loads(as_json(run)) == expected | {"reuse": None}  # the log does not tell what was used of it
    fresh = updated(WatchedRun(path, "run"))
    assert {name: fresh[name] for name in ("answer", "arms", "rounds")} == {
        name: page[name] for name in ("answer", "arms", "rounds")
    }


def test_an_extension_that_was_stopped_is_shown_as_stopped(tmp_path):
    path = tmp_path / "run.ctlog"
    arguments: dict[str, Any] = {"pull": score, "agents": 2, "horizon": 200, "seed": 1, "algorithm": "kzz"}
    ct.identify(list(range(10)), 2, checkpoint=path, **arguments)
    before = path.stat().st_size
    ct.extend(path, pull=score, horizon=600)
    whole = path.read_bytes()
    path.write_bytes(whole[: (before + len(whole)) // 2])
    run = WatchedRun(path, "run")
    page = updated(run)
    assert page["status"] == {"status": "stopped", "error": None}
    assert page["progress"]["error"] is None
    assert page["answer"]["complete"] is False
    assert page["answer"]["top"] == ct.peek(path).top_indices


@given(data=st.data())
def test_intervals_are_those_of_the_result_however_often_they_were_shown(tmp_path_factory, data):
    path, part = (tmp_path_factory.mktemp("log") / name for name in ("whole.ctlog", "part.ctlog"))
    dataset = ct.DatasetArms(list(range(8)), list(range(30)), lambda arm, example: (arm * example % 7) / 6)
    arms = data.draw(st.sampled_from([dataset, ct.BernoulliArms(np.linspace(0.1, 0.9, 8))]))
    algorithm = data.draw(st.sampled_from(["kzz", "uniform", "frugal-top"]))
    result = ct.identify(arms, 2, agents=1, horizon=120, seed=1, algorithm=algorithm, checkpoint=path)
    records = read_log(path)
    cuts = sorted(data.draw(st.lists(st.integers(1, len(records)), max_size=4)))
    run, log = WatchedRun(part, "part"), RunLog(part)
    for start, stop in zip([0, *cuts], [*cuts, len(records)], strict=True):
        for record in records[start:stop]:
            log.append(record)
        shown = updated(run)
    log.close()
    for name, ends in zip(("low", "high"), result.intervals, strict=True):
        assert [np.nan if end is None else end for end in shown["arms"][name]] == pytest.approx(ends, nan_ok=True)
    assert shown["arms"] == updated(WatchedRun(path, "whole"))["arms"]


def test_a_brief_view_leaves_out_candidates_and_answer_until_a_long_log_is_read(tmp_path):
    path = tmp_path / "a.ctlog"
    ct.identify(ct.BernoulliArms([0.9, 0.1, 0.5]), 1, agents=2, horizon=90, seed=1, checkpoint=path)
    run = watched(path)
    brief, whole = view(run, brief=True), view(run)
    assert whole.keys() - brief.keys() == {"arms", "answer"}
    page = apply(None, changes(None, brief))
    assert apply(page, changes(brief, whole)) == whole
    assert merged(brief, whole) == whole
    assert merged(whole, brief) == whole


def test_downloads_of_a_log_without_a_run_are_empty(tmp_path):
    (tmp_path / "a.ctlog").touch()
    run = WatchedRun(tmp_path / "a.ctlog", "a")
    run.update(replay=True)
    assert as_json(run) == b"null"
    assert len(as_csv(run).splitlines()) == 1


def test_the_list_has_the_error_that_a_confidence_allows(tmp_path):
    arms = ct.BernoulliArms([0.9, 0.5, 0.1])
    options: dict[str, dict[str, Any]] = {
        "sure": {"confidence": 0.9},
        "limited": {"confidence": 0.9, "max_horizon": 20},
        "horizon": {"horizon": 300},
    }
    bounds = {}
    for name, more in options.items():
        result = ct.identify(arms, 1, agents=2, seed=1, checkpoint=tmp_path / f"{name}.ctlog", **more)
        run = WatchedRun(tmp_path / f"{name}.ctlog", name)
        run.update(replay=False)
        bounds[name] = result.sure, summary(run)["error_bound"]
    assert bounds == {"sure": (True, 0.1), "limited": (False, None), "horizon": (None, None)}


def test_runs_are_added_to_and_removed_from_a_folder(tmp_path):
    runs = Runs([tmp_path])
    assert runs.all() == []
    for name in ("b", "a"):
        arguments: dict[str, Any] = {
            "agents": 2,
            "horizon": 90,
            "algorithm": "uniform",
            "seed": 1,
            "checkpoint": tmp_path / f"{name}.ctlog",
        }
        ct.identify(ct.BernoulliArms([0.9, 0.1, 0.5]), 1, **arguments)
    (tmp_path / "note.txt").touch()
    (tmp_path / "bad.ctlog").write_text("a diary")
    for run in runs.all():
        run.update(replay=False)
    rows = [summary(run) for run in runs.all()]
    assert [(row["name"], row["status"]) for row in rows] == [
        ("a.ctlog", "finished"),
        ("b.ctlog", "finished"),
        ("bad.ctlog", "unreadable"),
    ]
    assert rows[0]["answer"] == rows[1]["answer"]
    (tmp_path / "a.ctlog").unlink()
    assert [run.name for run in runs.all()] == ["b.ctlog", "bad.ctlog"]


def test_logs_with_the_same_file_name_get_different_names(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.ctlog").touch()
    names = [run.name for run in Runs([tmp_path / "x", tmp_path / "y"]).all()]
    assert names == ["run.ctlog", "y run.ctlog"]
