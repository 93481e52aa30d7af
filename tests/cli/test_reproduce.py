"""`collabtop reproduce`: the report, whole, from few runs."""

import json
from html import unescape
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

import collabtop as ct
from collabtop.cli import app
from collabtop.reproduction.experiments import fixed_horizon
from collabtop.reproduction.figures import BARS
from collabtop.reproduction.html import slug
from collabtop.reproduction.prices import NOTE
from collabtop.reproduction.report import Settings, measure
from collabtop.reproduction.verdicts import RULE

pytestmark = pytest.mark.slow  # one reproduction for all of them

EACH_M = [f"C{number} (m = {m})" for number in (5, 6, 7) for m in (1, 8)]
NAMES = ["C1 (m = 1)", "C1 (m = 8)", "C2", "C3", "C4", *EACH_M, *(f"T{number}" for number in range(1, 6))]


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """A quick reproduction with two runs a point, on small files of means."""
    folder = tmp_path_factory.mktemp("means")
    iid, groups = folder / "iid.txt", folder / "groups.txt"
    iid.write_text("".join(f"{0.2 + 0.03 * place:.2f}\n" for place in range(20)))
    groups.write_text("".join(f"{0.2 + 0.03 * place:.2f} {0.21 + 0.03 * place:.2f}\n" for place in range(18)))
    return ("reproduce", "--quick", "--runs", "2", "--means", str(iid), "--group-means", str(groups))


@pytest.fixture(scope="module")
def made(tmp_path_factory, command):
    """Where its report is, and what it printed."""
    out = tmp_path_factory.mktemp("reproduction")
    result = CliRunner().invoke(app, [*command, "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    return out, json.loads(result.stdout)


def test_json_has_every_statement_and_every_point(made):
    _, found = made
    assert [one["name"] for one in found["statements"]] == NAMES
    assert {one["verdict"] for one in found["statements"]} <= {
        "supported",
        "not contradicted",
        "contradicted",
        "undecided",
    }
    assert all(point["runs"] == 2 for point in found["points"])
    assert found["settings"]["seed"] == 0


def test_every_algorithm_of_the_paper_is_there_with_both_schedules(made):
    _, found = made
    seen = {(point["algorithm"], point["options"]) for point in found["points"]}
    for name in ("collab-top-iid", "collab-top-noniid"):
        assert {(name, '{"schedule":"paper"}'), (name, '{"schedule":"full"}')} <= seen
    assert {"kzz", "kzz-balanced", "uniform"} <= {name for name, _ in seen}
    assert {point["algorithm"] for point in found["baselines"]} == {"batched-sar", "tzz", "hkk", "nsar"}
    recommended = {"frugal-top", "frugal-top-noniid"} & set(ct.available_algorithms())
    assert recommended <= {name for name, _ in seen}


def test_figures_are_there_as_vectors_and_pixels(made):
    out, _ = made
    names = {path.name for path in (out / "figures").iterdir()}
    figures = ["pareto", *(f"figure-{number}" for number in range(1, 5))]
    assert names == {f"{figure}.{ending}" for figure in figures for ending in ("svg", "pdf", "png")}


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.alts, self.open, self.tags = [], [], [], []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]
        if tag == "img":
            self.alts.append(given["alt"])
        if tag == "th":
            assert given.get("scope") in ("row", "col")
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_in_itself_and_well_formed(made):
    out, found = made
    text = (out / "report.html").read_text(encoding="utf-8")
    page = Reader()
    page.feed(text)
    assert page.open == []
    assert len(page.links) == 5
    assert all(link.startswith("data:image/svg+xml;base64,") for link in page.links)
    assert "url(" not in text.partition("</style>")[0]
    *figures, prices = page.alts
    assert all(alt.startswith("Figure ") and "Panel a" in alt for alt in figures)
    assert prices.startswith("Cost of error .01")
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    for one in found["statements"]:
        assert f'<tr id="{slug(one["name"])}">' in text


def test_the_plain_report_says_the_same(made):
    out, found = made
    text = (out / "report.md").read_text(encoding="utf-8")
    for one in found["statements"]:
        assert f"### {one['name']}: {one['verdict']}" in text
        assert all(f"- {line}" in text for line in [*(part["text"] for part in one["parts"]), *one["notes"]])
        assert one["headline"] in text


def test_both_reports_say_what_bars_and_marks_stand_for(made):
    out, _ = made
    for name in ("report.html", "report.md"):
        text = unescape((out / name).read_text(encoding="utf-8"))
        assert BARS in text
        assert NOTE in text
        assert RULE in text


def test_the_report_is_computed_from_the_rows_on_disk(made):
    out, found = made
    (folder,) = (out / "studies").glob("panels-*")
    points = ct.StudyTable.from_csv(folder / "rows.csv").points()
    assert [point.words_mean for point in points] == [point["words_mean"] for point in found["points"]]
    horizon = fixed_horizon(ct.BernoulliArms([0.2 + 0.03 * place for place in range(20)]), 1)
    assert set(found["words_by_kind"]) == {"collab-top-iid", "kzz"}
    for algorithm, ledgers in found["words_by_kind"].items():
        (point,) = (
            it
            for it in points
            if (it.arms, it.m, it.agents, it.horizon) == ("movies", 1, 10, horizon)
            and (it.algorithm, it.schedule) in ((algorithm, None), (algorithm, "paper"))
        )
        assert len(ledgers["runs"]) == 2
        assert sum(sum(run.values()) for run in ledgers["runs"]) / 2 == pytest.approx(point.words_mean)


def test_every_study_is_counted(made):
    out, found = made
    rows = sum(len(ct.StudyTable.from_csv(path)) for path in (out / "studies").glob("*/rows.csv"))
    assert sum(found["studies"].values()) == rows
    assert found["settings"]["runs in all"] == f"{rows:,} in 5 studies"


def test_the_same_command_again_makes_no_run_and_the_same_report(made, command, run, monkeypatch):
    out, _ = made
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}

    def never(*_):
        raise AssertionError("a run was made again")

    monkeypatch.setattr("collabtop.studies.runner.run_chunk", never)
    result = run(*command, "--out", out)
    assert result.exit_code == 0
    assert "contradicted" in result.stdout
    assert f"The report is in {out / 'report.html'}" in result.stdout.replace("\n", "")
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_files_of_means_take_the_place_of_the_embedded_arms(made):
    _, found = made
    assert found["settings"]["arms"] == "iid.txt (IID), groups.txt (non-IID)"
    assert {point["agents"] for point in found["points"] if point["arms"] == "groups"} == {2}


def test_without_files_the_embedded_arms_are_measured(tmp_path):
    settings = Settings(ct.datasets.movielens_like(), ct.datasets.movielens_like_groups(), "embedded", 2, quick=True)
    found = measure(settings, tmp_path, jobs=2)
    assert [one.name for one in found.statements] == NAMES
    (c4,) = (one for one in found.statements if one.name == "C4")
    assert c4.headline.startswith("every number counted: 7.")
    assert [part.verdict for part in c4.parts[:2]] == ["contradicted", "contradicted"]


def test_bad_arguments_get_one_line(refused, means, group_means, tmp_path):
    assert "give --quick or --deep, not both" in refused("reproduce", "--quick", "--deep")
    assert "--runs" in refused("reproduce", "--runs", 1)
    assert "absent.txt" in refused("reproduce", "--means", "absent.txt")
    assert "one mean per arm is needed" in refused("reproduce", "--means", group_means)
    assert "one column, but one per agent is needed" in refused("reproduce", "--group-means", means)
    assert "omit --means" in refused("reproduce", "--movielens", "ml-25m.zip", "--means", means)
    assert "ml-25m.zip" in refused("reproduce", "--movielens", tmp_path / "ml-25m.zip")
    few = tmp_path / "few.txt"
    few.write_text("0.5\n0.6\n0.7\n")
    assert "the number of IID arms is 3" in refused("reproduce", "--means", few, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    tied = tmp_path / "tied.txt"
    tied.write_text("0.9\n0.9\n" + "0.5\n" * 20)
    said = refused("reproduce", "--means", tied, "--out", tmp_path / "out")
    assert "IID arms of ranks 1 and 2 have the same mean" in said


def test_help_teaches_with_examples(run):
    text = run("reproduce", "--help").stdout
    assert "Examples" in text
    assert "collabtop reproduce --quick" in text


def test_a_place_that_cannot_be_written_is_a_clear_error(refused, tmp_path):
    (tmp_path / "file").write_text("")
    assert "file" in refused("reproduce", "--quick", "--runs", 2, "--json", "--out", tmp_path / "file" / "below")
