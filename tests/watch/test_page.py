"""The page in a real browser shows the state of the run: live, after a reload, and after the run was killed."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import collabtop as ct
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import AgentStatus
from tests.support.partial_log import half


def number(tab, element):
    return int(tab.locator(f"#{element}").inner_text().replace(",", ""))


def rows(tab, table):
    tab.locator(f"#{table}").evaluate("table => table.closest('details')?.setAttribute('open', '')")
    return [[cell.strip() for cell in row.split("\t")] for row in tab.locator(f"#{table} tbody tr").all_inner_texts()]


@pytest.fixture
def finished(tmp_path):
    """A finished run of 60 candidates with labels."""
    arms = ct.BernoulliArms(np.linspace(0.2, 0.9, 60), labels=[f"film {number}" for number in range(60)])
    path = tmp_path / "films.ctlog"
    return path, ct.identify(arms, 3, agents=5, horizon=3_000, seed=4, algorithm="kzz", checkpoint=path)


@pytest.mark.slow
def test_the_numbers_of_a_live_run_are_those_of_its_result(tab, serve, live_run):
    run = live_run()
    tab.goto(serve(run.log) + "runs/live.ctlog")
    expect(tab.locator("#status")).to_have_text("running")
    expect(tab.locator("#pulls")).to_have_text("200")
    live = number(tab, "live")
    assert 3 < live < 30
    expect(tab.locator("#answer-title")).to_have_text("Answer so far")
    tab.get_by_role("link", name="Communication").click()
    expect(tab.locator("#rounds-table tbody tr")).not_to_have_count(0)
    assert rows(tab, "rounds-table")[1][2] == str(live)

    result = json.loads(run.finish())
    expect(tab.locator("#status")).to_have_text("finished")
    expect(tab.locator("#words")).to_have_text(f"{result['words']:,}")
    for element, name in [
        ("words", "words"),
        ("bits", "bits"),
        ("trips", "round_trips"),
        ("time", "time"),
    ]:
        assert number(tab, element) == result[name]
    live = [int(row[2].replace(",", "")) for row in rows(tab, "rounds-table")]
    assert live == [summary["live"] for summary in result["rounds"]]
    words = dict.fromkeys({(entry["kind"], entry["direction"]) for entry in result["ledger"]}, 0)
    for entry in result["ledger"]:
        words[entry["kind"], entry["direction"]] += entry["words"]
    shown_words = {
        (row[0], "up" if row[1] == "to the coordinator" else "down"): int(row[3].replace(",", ""))
        for row in rows(tab, "kinds")
    }
    assert shown_words == words
    tab.get_by_role("link", name="Results").click()
    expect(tab.locator("#answer-title")).to_have_text("Answer")
    assert (number(tab, "pulls"), number(tab, "live")) == (result["pulls"], 0)
    assert tab.locator("#settled").inner_text() == "3 accepted, 27 rejected"
    shown = [(row[1], row[2], row[4]) for row in rows(tab, "answer-table")]
    estimates = {estimate["arm"]: estimate for estimate in result["estimates"]}
    best = [estimates[arm] for arm in result["top_indices"]]
    assert shown == [(arm["label"], f"{arm['mean']:.4f}", f"{arm['pulls']:,}") for arm in best]
    pulls = [int(row[2].replace(",", "")) for row in rows(tab, "agents")]
    assert sum(pulls) == result["pulls"]


@pytest.mark.slow
def test_a_page_reloaded_in_the_middle_catches_up(tab, serve, live_run):
    run = live_run()
    tab.goto(serve(run.log) + "runs/live.ctlog")
    expect(tab.locator("#pulls")).to_have_text("200")
    before = tab.locator("#candidate-table tbody").inner_text()
    assert "working" in tab.locator("#agents-text").inner_text()
    tab.reload()
    expect(tab.locator("#pulls")).to_have_text("200")
    expect(tab.locator("#candidate-table tbody")).to_have_text(re.compile(re.escape("candidate 29") + "|29"))
    assert tab.locator("#candidate-table tbody").inner_text() == before
    result = json.loads(run.finish())
    expect(tab.locator("#status")).to_have_text("finished")
    assert number(tab, "pulls") == result["pulls"]


@pytest.mark.slow
def test_a_killed_run_is_shown_as_stopped_with_its_last_state(tab, serve, live_run):
    run = live_run("frugal-top")
    url = serve(run.log)
    tab.goto(url + "runs/live.ctlog")
    expect(tab.locator("#status")).to_have_text("running")
    expect(tab.locator("#pulls")).to_have_text("200")
    run.kill()
    expect(tab.locator("#status")).to_have_text("stopped")
    assert "collabtop resume continues from it" in tab.locator("#notice").inner_text()
    assert number(tab, "pulls") == 200
    assert "lost" in tab.locator("#agents-text").inner_text()
    tab.reload()
    expect(tab.locator("#status")).to_have_text("stopped")
    assert number(tab, "pulls") == 200


@pytest.mark.slow
def test_the_page_names_a_site_that_is_away_and_then_lost(tab, serve, half):
    path = half(AgentStatus([2, 3], "away", 1.9e9))
    tab.goto(serve(path) + "runs/half.ctlog")
    expect(tab.locator("#agents-text")).to_have_text("Agents: 2 away, 2 working (agent 2, south away; 3, south away)")
    assert rows(tab, "agents")[0][:2] == ["2, south", "away"]
    with path.open("ab") as file:  # as the run itself does, in a different process
        file.write(as_frame(AgentStatus([2, 3], "lost", 1.9e9 + 9), path))
    expect(tab.locator("#agents-text")).to_have_text("Agents: 2 lost, 2 working (agent 2, south lost; 3, south lost)")
    expect(tab.locator("#announce")).to_have_text("Agents: 2 lost.")


def as_frame(record, path):
    """A record as bytes of a log."""
    scratch = path.with_suffix(".scratch")
    log = RunLog(scratch)
    start = scratch.stat().st_size
    log.append(record)
    log.close()
    return scratch.read_bytes()[start:]


@pytest.mark.slow
def test_candidates_can_be_explored_with_the_keyboard_alone(tab, serve, finished):
    path, result = finished
    tab.goto(serve(path) + "runs/films.ctlog")
    expect(tab.locator("#candidate-table .label-button").first).to_be_visible()
    for _ in range(20):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.id") == "candidates":
            break
    assert tab.evaluate("document.activeElement.id") == "candidates"
    tab.keyboard.press("ArrowRight")
    best = result.estimates[result.top_indices[0]]
    low, high = (ends[best.arm] for ends in result.intervals)
    details = f"place 1, mean {best.mean:.4f}, 95% interval {low:.4f} to {high:.4f}, {best.pulls:,} pulls, accepted."
    expect(tab.locator("#readout")).to_have_text(f"{result.top[0]}: {details}")
    tab.keyboard.press("End")
    expect(tab.locator("#readout")).to_contain_text("place 60")
    tab.keyboard.press("ArrowLeft")
    expect(tab.locator("#readout")).to_contain_text("place 59")
    tab.keyboard.press("Enter")
    expect(tab.locator("#candidate")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.locator("#candidate")).to_be_hidden()
    assert tab.evaluate("document.activeElement.id") == "candidates"


@pytest.mark.parametrize("where", ["", "runs/films.ctlog"])
@pytest.mark.slow
def test_the_page_fits_a_phone(browser, serve, finished, where):
    path, _ = finished
    phone = browser.new_context(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    tab = phone.new_page()
    tab.goto(serve(path.parent) + "runs/films.ctlog" if where else serve(path.parent))
    expect(tab.locator("#tiles, #runs tbody tr").first).to_be_visible()
    tab.wait_for_timeout(300)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    phone.close()


@pytest.mark.slow
def test_it_is_readable_in_light_and_dark(tab, serve, finished):
    tab.goto(serve(finished[0]) + "runs/films.ctlog")
    expect(tab.locator("#answer")).to_be_visible()
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        for element in ("#answer-text", "#order-hint", ".sort", ".pill", ".verdict-rejected", "a#csv"):
            assert contrast(tab, element) >= 4.5, f"{element} in {scheme}"


@pytest.mark.slow
def test_animations_respect_the_setting_for_reduced_motion(tab, serve, half):
    tab.goto(serve(half()) + "runs/half.ctlog")
    expect(tab.locator("#status")).to_have_text("running")
    for setting, animations in (("no-preference", ["beat"]), ("reduce", [])):
        tab.emulate_media(reduced_motion=setting)
        assert tab.evaluate("document.getAnimations().map(animation => animation.animationName)") == animations


@pytest.mark.slow
def test_changing_numbers_are_not_announced(tab, serve, live_run):
    run = live_run()
    tab.goto(serve(run.log) + "runs/live.ctlog")
    expect(tab.locator("#pulls")).to_have_text("200")
    tab.locator("#candidates").press("Home")
    tab.evaluate(
        """() => {
          window.announced = [];
          const live = "[aria-live], [role=status], [role=alert], #candidates";
          const region = document.getElementById("announce");
          const note = (changes) => changes.forEach(() => window.announced.push(region.textContent));
          for (const element of document.querySelectorAll(live))
            new MutationObserver(note).observe(element, {childList: true, characterData: true, subtree: true,
              attributeFilter: ["aria-valuetext"]});
        }"""
    )
    run.finish()
    expect(tab.locator("#status")).to_have_text("finished")
    announced = tab.evaluate("window.announced")
    assert announced[-1] == "Run status: finished."
    assert all(re.fullmatch(r"Round \d: \d+ candidates open\.", message) for message in announced[:-1])
    assert len(announced) <= 3


@pytest.mark.slow
def test_a_table_that_is_too_wide_can_be_scrolled_with_the_keyboard(tab, serve, finished):
    shutil.copy(finished[0], finished[0].with_name("again.ctlog"))  # two runs are shown as a list
    tab.set_viewport_size({"width": 660, "height": 740})
    tab.goto(serve(finished[0].parent))
    expect(tab.locator("#runs-card .scroll")).to_have_attribute("tabindex", "0")
    expect(tab.get_by_role("group", name="Runs with their answers and costs")).to_be_visible()
    tab.set_viewport_size({"width": 1600, "height": 900})
    expect(tab.locator("#runs-card .scroll")).not_to_have_attribute("tabindex", "0")


def contrast(tab, element):
    """The contrast ratio of WCAG between a text and its background."""
    ink, paper = tab.locator(element).first.evaluate(
        """element => {
          let behind = element;
          while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
          return [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
        }"""
    )
    light = sorted(luminance(colour) for colour in (ink, paper))
    return (light[1] + 0.05) / (light[0] + 0.05)


def luminance(colour):
    channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.slow
def test_everything_has_a_name_for_screen_readers(tab, serve, finished):
    path, _ = finished
    tab.goto(serve(path) + "runs/films.ctlog")
    expect(tab.locator("#answer")).to_be_visible()
    for canvas in tab.locator("canvas:visible").all():
        assert canvas.get_attribute("role") == ("slider" if canvas.get_attribute("id") == "candidates" else "img")
        assert canvas.get_attribute("aria-label")
    for role in ("banner", "main", "contentinfo"):
        assert tab.get_by_role(role).count() == 1
    for table in ("answer-table", "agents"):
        assert tab.locator(f"#{table} tbody tr").count() == tab.locator(f"#{table} tbody th[scope=row]").count()
        assert all(head.strip() for head in tab.locator(f"#{table} thead th").all_text_contents())
    assert all(caption.strip() for caption in tab.locator("table caption").all_text_contents())
    assert tab.locator("table").count() == tab.locator("table caption").count()
    assert tab.locator("h1:visible").count() == 1
    assert tab.get_by_role("heading", name="Candidates").is_visible()
    assert tab.locator("[aria-live=polite]").count() == 1


@pytest.mark.slow
def test_downloads_are_those_of_the_result(tab, serve, finished):
    path, result = finished
    tab.goto(serve(path) + "runs/films.ctlog")
    expect(tab.locator("#answer")).to_be_visible()
    with tab.expect_download() as download:
        tab.locator("#json").click()
    assert json.loads(download.value.path().read_text()) == json.loads(result.to_json())
    assert download.value.suggested_filename == "films.json"
    with tab.expect_download() as download:
        tab.locator("#csv").click()
    assert len(download.value.path().read_text().splitlines()) == 61


@pytest.mark.slow
def test_the_runs_of_a_folder_are_listed_and_compared(tab, serve, finished):
    path, result = finished
    arms = ct.BernoulliArms(np.linspace(0.2, 0.9, 60), labels=[f"film {number}" for number in range(60)])
    arguments: dict[str, Any] = {"agents": 5, "horizon": 3_000, "seed": 4}
    other = ct.identify(arms, 3, **arguments, algorithm="frugal-top", checkpoint=path.parent / "frugal.ctlog")
    tab.goto(serve(path.parent))
    expect(tab.locator("#runs tbody tr")).to_have_count(2)
    table = {row[0]: row for row in rows(tab, "runs")}
    assert table["films.ctlog"][5] == f"{result.pulls:,}"
    assert ("same as all others" in table["films.ctlog"][2]) is (set(result.top) == set(other.top))
    tab.get_by_role("link", name="Communication").click()
    words = {row[0]: row[2] for row in rows(tab, "compared")}
    assert words == {"films.ctlog": f"{result.words:,}", "frugal.ctlog": f"{other.words:,}"}
    tab.get_by_label("show frugal.ctlog").uncheck()
    expect(tab.get_by_label("show films.ctlog")).to_be_checked()
    tab.get_by_role("link", name="Outcome").click()
    tab.get_by_role("link", name="films.ctlog").click()
    expect(tab.locator("h1:visible")).to_have_text("films.ctlog")


@pytest.mark.slow
def test_a_missing_run_and_an_empty_folder_are_explained(tab, serve, tmp_path):
    url = serve(tmp_path)
    tab.goto(url + "runs/none.ctlog")
    expect(tab.locator("h1:visible")).to_have_text("No such run")
    assert tab.locator("#connection").inner_text() == ""
    tab.goto(url)
    expect(tab.get_by_text("There are no runs yet")).to_be_visible()
    expect(tab.locator("#runs-card")).to_be_hidden()


@pytest.mark.slow
def test_the_page_asks_for_the_token(tab, serve, finished):
    url = serve(finished[0], token="long-and-secret").partition("?")[0]
    tab.goto(url)
    tab.get_by_label("Token").fill("long-and-secret")
    tab.get_by_role("button", name="Open").click()
    expect(tab.locator("h1:visible")).to_have_text("films.ctlog")
    assert "secret" not in tab.url


@pytest.mark.slow
def test_places_intervals_and_flags_on_the_page_are_those_of_the_table(tab, serve, finished):
    path, result = finished
    tab.goto(serve(path) + "runs/films.ctlog")
    rows = tab.locator("#answer-table tbody tr")
    expect(rows).to_have_count(min(8, result.m))
    for index, standing in enumerate(result.standings[:8]):
        cells = rows.nth(index).locator("th, td")
        expect(cells.nth(0)).to_have_text(standing.places)
        expect(cells.nth(3)).to_have_text(f"{standing.low:.4f} to {standing.high:.4f}")
        expect(cells.nth(5)).to_have_text("thin" if standing.thin else "")
