"""Studies and reproductions on the page: their points while runs arrive, and when they are finished."""

from __future__ import annotations

import urllib.error

import msgspec
import pytest
from playwright.sync_api import expect

import collabtop as ct
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import StudyHeader, StudyRows
from collabtop.studies.runner import study_mark
from collabtop.watch import watched_studies
from collabtop.watch.watched_studies import Studies, WatchedStudy
from tests.support.page_requests import get_json


def small_study():
    arms = ct.datasets.uniform_means(20, seed=1)
    return ct.Study(arms=arms, algorithms=["kzz", "uniform"], m=[1], agents=[3], horizon=[300, 600], runs=20, seed=3)


@pytest.fixture
def running(tmp_path):
    """A study that is running: its journal, open, and its rows in the order of their runs."""
    study = small_study()
    table = study.run(None, jobs=1)
    folder = tmp_path / "sweep"
    folder.mkdir()
    journal = RunLog(folder / "journal")
    journal.append(StudyHeader(study_mark(study)))
    yield folder, journal, table
    journal.close()


def append(journal, rows):
    journal.append(StudyRows("a point", msgspec.msgpack.encode(rows)), sync=True)


def test_points_follow_the_runs_in_the_journal(running):
    folder, journal, table = running
    watched = WatchedStudy(folder, "sweep")
    assert watched.view() == {"name": "sweep", "status": "running", "error": None, "runs": 0, "points": []}
    half = len(table) // 2
    append(journal, table.rows[:half])
    assert watched.view()["runs"] == half
    append(journal, table.rows[half:])
    assert watched.view()["points"] == table.points()
    journal.close()
    assert WatchedStudy(folder, "sweep").view()["status"] == "stopped"


def test_a_finished_study_is_shown_from_its_points(tmp_path):
    table = small_study().run(tmp_path / "sweep", jobs=1)
    view = WatchedStudy(tmp_path / "sweep", "sweep").view()
    assert (view["status"], view["runs"]) == ("finished", len(table))
    assert msgspec.json.encode(view["points"]) == msgspec.json.encode(table.points())


def test_a_different_study_in_the_same_folder_starts_again(running):
    folder, journal, table = running
    watched = WatchedStudy(folder, "sweep")
    append(journal, table.rows)
    assert watched.view()["runs"] == len(table)
    journal.close()
    (folder / "journal").unlink()
    other = RunLog(folder / "journal")
    other.append(StudyHeader("a different study"))
    append(other, table.rows[:2])
    assert watched.view()["runs"] == 2
    other.close()


def test_studies_are_found_in_a_folder_its_subfolders_and_a_reproduction(tmp_path):
    for name in ("sweep", "out/studies/pilot-1", "other/studies/too-deep"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "journal").touch()
    assert [study.name for study in Studies(lambda: [tmp_path]).all()] == ["sweep"]
    assert [study.name for study in Studies(lambda: [tmp_path / "out"]).all()] == ["pilot-1"]
    (tmp_path / "journal").touch()
    twice = Studies(lambda: [tmp_path, tmp_path / "sweep"])
    assert [study.name for study in twice.all()] == [tmp_path.name, "sweep"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"arms,runs\nx,y\n", "does not hold the points of a study"),
        (b"\xff\xfe", "does not hold the points of a study"),
        (b"x" * 5000, "has more than 4,096 bytes"),
    ],
)
def test_a_file_that_does_not_hold_points_is_explained(tmp_path, monkeypatch, content, message):
    monkeypatch.setattr(watched_studies, "LARGEST_POINTS_FILE", 4096)
    (tmp_path / "points.csv").write_bytes(content)
    view = WatchedStudy(tmp_path, "sweep").view()
    assert view["status"] == "unreadable"
    assert message in view["error"]


def test_a_journal_that_is_damaged_or_too_long_is_explained(running, monkeypatch):
    folder, journal, table = running
    monkeypatch.setattr(watched_studies, "MAX_STUDY_RUNS_SHOWN", 10)
    append(journal, table.rows[:11])
    assert "more than 10 runs" in WatchedStudy(folder, "sweep").view()["error"]
    monkeypatch.setattr(watched_studies, "MAX_STUDY_RUNS_SHOWN", 100)
    journal.append(StudyRows("a point", b"\xc1"))
    assert "is damaged" in WatchedStudy(folder, "sweep").view()["error"]
    (folder / "journal").unlink()
    (folder / "journal").mkdir()
    assert WatchedStudy(folder, "sweep").view()["status"] == "unreadable"


def test_of_too_many_studies_some_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(watched_studies, "MAX_STUDIES_SHOWN", 2)
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "journal").touch()
    assert len(Studies(lambda: [tmp_path]).all()) == 2


@pytest.mark.slow
def test_the_page_draws_a_study_as_its_runs_arrive(tab, serve, running):
    folder, journal, table = running
    append(journal, table.rows[:20])
    url = serve(folder.parent)
    tab.goto(url + "studies/sweep")
    expect(tab.locator("#study-what")).to_have_text("20 runs at 1 points")
    append(journal, table.rows[20:])
    expect(tab.locator("#study-what")).to_have_text(f"{len(table)} runs at 4 points")
    expect(tab.locator("#study-panels h2")).to_have_text(["arms: the best 1, 3 agents"])
    tab.locator("#study-panels details").evaluate("details => details.open = true")
    rows = [row.split("\t") for row in tab.locator("#study-panels tbody tr").all_inner_texts()]
    points = table.points()
    assert [row[4] for row in rows] == [f"{point.error:.4f}" for point in points]
    assert [row[6] for row in rows] == [f"{point.words_mean:,.0f}" for point in points]
    assert get_json(url + "api/studies/sweep")["runs"] == len(table)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get_json(url + "api/studies/none")
    tab.goto(url + "studies/none")
    expect(tab.locator("h1:visible")).to_have_text("No such run")


@pytest.mark.slow
def test_the_list_shows_studies_beside_runs(tab, serve, running):
    folder, journal, table = running
    append(journal, table.rows)
    for name in ("a", "b"):
        arms = ct.BernoulliArms([0.9, 0.1, 0.5])
        ct.identify(arms, 1, agents=2, horizon=90, checkpoint=folder.parent / f"{name}.ctlog")
    tab.goto(serve(folder.parent))
    expect(tab.locator("#runs tbody tr")).to_have_count(2)
    expect(tab.locator("#studies tbody tr")).to_have_count(1)
    errors = [point.error for point in table.points()]
    assert tab.locator("#studies tbody tr").inner_text().replace("\n", "").split("\t") == [
        "sweep",
        "running",
        " to ".join(f"{100 * error:.4g}%" for error in (min(errors), max(errors))),
        "4",
        "80",
    ]
    tab.get_by_role("link", name="sweep").click()
    expect(tab.locator("h1:visible")).to_have_text("sweep")
