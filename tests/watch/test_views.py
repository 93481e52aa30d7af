"""What the page is told: everything once, then what changed, and that is enough."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.runlog.file import RunLog, read_log
from collabtop.watch.downloads import as_csv, as_json
from collabtop.watch.runs import Runs, WatchedRun
from collabtop.watch.views import apply, changes, summary, view

values = st.none() | st.integers(-3, 3)


@st.composite
def views(draw):
    """Two views of a run, one after the other: rounds are added, candidates change."""
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


@given(views())
def test_what_changed_leads_from_one_view_to_the_next(pair):
    before, after = pair
    known = apply(None, changes(None, before))
    assert known == before
    assert apply(known, changes(before, after)) == after


def test_while_nothing_happens_nothing_is_said(tmp_path):
    ct.identify(ct.BernoulliArms([0.9, 0.1, 0.5]), 1, agents=2, horizon=90, seed=1, checkpoint=tmp_path / "a.ctlog")
    run = WatchedRun(tmp_path / "a.ctlog", "a")
    run.read_on(closer=True)
    while run.rival is None:
        pass
    assert changes(view(run), view(run)) == {}


def test_each_part_of_a_growing_log_is_told_once(tmp_path):
    whole, part = tmp_path / "whole.ctlog", tmp_path / "part.ctlog"
    result = ct.identify(ct.BernoulliArms([0.9, 0.1, 0.5, 0.4]), 1, agents=2, horizon=200, seed=1, checkpoint=whole)
    run, shown = WatchedRun(part, "part"), None
    log = RunLog(part)
    log.close()
    known = None
    for record in read_log(whole):
        log = RunLog(part)
        log.append(record)
        log.close()
        run._read_at = 0.0
        run.read_on(closer=True)
        now = view(run)
        known, shown = apply(known, msgspec.json.decode(msgspec.json.encode(changes(shown, now)))), now
    assert known["cost"]["words"] == result.words
    assert known["rounds"]["live"] == [one.live for one in result.rounds]
    assert known["arms"]["mean"] == [None if it.mean is None else round(it.mean, 9) for it in result.estimates]
    assert known["answer"]["top"] == result.top_indices


def test_downloads_hold_the_result(tmp_path):
    labels = ["=1+1", "b", "c, with a comma"]
    arms = ct.BernoulliArms([0.9, 0.1, 0.5], labels=labels)
    result = ct.identify(arms, 1, agents=2, horizon=90, seed=1, checkpoint=tmp_path / "a.ctlog")
    run = WatchedRun(tmp_path / "a.ctlog", "a")
    run.read_on(closer=True)
    assert json.loads(as_json(run)) == json.loads(result.to_json())
    lines = as_csv(run).splitlines()
    assert lines[0] == "rank,arm,label,verdict,round,phase,mean,low,high,pulls,failed"
    assert lines[1].startswith("1,0,'=1+1,accepted,")
    assert len(lines) == 4


def test_a_run_that_is_not_finished_gives_the_table_so_far(tmp_path):
    path = tmp_path / "a.ctlog"
    ct.identify(ct.BernoulliArms([0.9, 0.1, 0.5, 0.3]), 1, agents=2, horizon=400, algorithm="kzz", checkpoint=path)
    path.write_bytes(path.read_bytes()[:-400])
    run = WatchedRun(path, "a")
    run.read_on(closer=True)
    told = json.loads(as_json(run))
    assert told["finished"] is False
    assert {row["verdict"] for row in told["candidates"]} <= {"open", "rejected", "accepted"}


def test_runs_of_a_folder_come_and_go(tmp_path):
    runs = Runs([tmp_path])
    assert runs.all() == []
    for name in ("b", "a"):
        asked = {
            "agents": 2,
            "horizon": 90,
            "algorithm": "uniform",
            "seed": 1,
            "checkpoint": tmp_path / f"{name}.ctlog",
        }
        ct.identify(ct.BernoulliArms([0.9, 0.1, 0.5]), 1, **asked)
    (tmp_path / "note.txt").touch()
    (tmp_path / "bad.ctlog").write_text("a diary")
    for run in runs.all():
        run.read_on(closer=False)
    rows = [summary(run) for run in runs.all()]
    assert [(row["name"], row["status"]) for row in rows] == [
        ("a.ctlog", "finished"),
        ("b.ctlog", "finished"),
        ("bad.ctlog", "unreadable"),
    ]
    assert rows[0]["answer"] == rows[1]["answer"]
    (tmp_path / "a.ctlog").unlink()
    assert [run.name for run in runs.all()] == ["b.ctlog", "bad.ctlog"]


def test_logs_of_the_same_name_are_told_apart(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.ctlog").touch()
    names = [run.name for run in Runs([tmp_path / "x", tmp_path / "y"]).all()]
    assert names == ["run.ctlog", "y run.ctlog"]
