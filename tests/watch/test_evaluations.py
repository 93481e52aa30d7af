"""The page of an evaluation: 200 prompts of 120 characters, and 10,000 candidates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

import collabtop as ct
from collabtop.runs.warnings import border
from collabtop.stats import Z_95
from collabtop.watch.serve import runs_in
from tests.support.axe import violations
from tests.support.contrast import ratio
from tests.support.evaluations import evaluate_prompts, long_label, many_candidates
from tests.support.page_actions import milliseconds_of
from tests.support.page_requests import get_json
from tests.support.page_server import page_in_thread

pytestmark = pytest.mark.slow

WIDTHS = (360, 768, 1280, 1920)
TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter(element => {
  if (!element.checkVisibility() || element.closest(".visually-hidden, .skip")) return false;
  if (element.parentElement.closest(".scroll, .window")) return false;  // these may be scrolled on their own
  const box = element.getBoundingClientRect();
  return box.width > innerWidth + 0.5 || box.right > innerWidth + 0.5 || box.left < -0.5;
}).map(element => element.outerHTML.slice(0, 120))"""
SPLIT_WORDS = """() => {
  const split = [];
  for (const element of document.querySelectorAll(".clamped, h1, h2, th, td, dt, dd, a, .pill")) {
    if (!element.checkVisibility()) continue;
    const room = element.getBoundingClientRect().width;
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const word of node.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
        const range = document.createRange();
        range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
        const lines = [...range.getClientRects()].filter(box => box.width > 0);
        const tops = new Set(lines.map(box => Math.round(box.top)));
        if (tops.size > 1 && lines.reduce((sum, box) => sum + box.width, 0) < room) split.push(word[0]);
      }
    }
  }
  return split;
}"""


class Served(NamedTuple):
    url: str
    prompts: ct.Result
    many: ct.Result


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One page with both evaluations and a run of another algorithm."""
    folder = tmp_path_factory.mktemp("evaluations")
    name = "evaluation-of-two-hundred-prompts-with-a-long-file-name-2026-11-17.ctlog"
    prompts = evaluate_prompts(folder / name)
    many = many_candidates(folder / "many.ctlog")
    (folder / "prompts.ctlog").symlink_to(name)
    with page_in_thread(runs_in([folder])) as page:
        yield Served(page.url, prompts, many)


@pytest.fixture(scope="module")
def desktop(browser, served):
    """A tab of a desktop that the tests of this module share."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


def show(tab: Tab, served: Served, name: str = "prompts", view: str = "") -> Tab:
    tab.goto("about:blank")
    tab.goto(f"{served.url}runs/{name}.ctlog{view}")
    if not view:
        expect(tab.locator("#candidate-table .label-button").first).to_be_visible(timeout=20_000)
        expect(tab.locator("#answer-title")).to_have_text("Answer")
    return tab


def rows_of(tab: Tab, table: str) -> list[list[str]]:
    lines = tab.locator(f"#{table} tbody tr:not(.spacer)").all_inner_texts()
    return [[cell.strip() for cell in line.split("\t")] for line in lines]


# -- layout


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overflows_or_splits_a_word_that_need_not(browser, served, width):
    context = browser.new_context(viewport={"width": width, "height": 800})
    tab = context.new_page()
    for address in (
        "runs/prompts.ctlog",
        "runs/prompts.ctlog#communication",
        "runs/many.ctlog",
        "#outcome",
        "#communication",
    ):
        tab.goto("about:blank")
        tab.goto(served.url + address)
        expect(tab.locator("main h1:visible")).to_be_visible()
        tab.wait_for_timeout(1_200)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, address
        assert tab.evaluate(TOO_WIDE) == [], address
        assert tab.evaluate(SPLIT_WORDS) == [], address
    context.close()


def test_a_phone_shows_labels_in_a_page_of_reasonable_height(browser, served):
    context = browser.new_context(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    tab = show(context.new_page(), served)
    assert tab.evaluate("document.documentElement.scrollHeight") <= 3_000
    for name in ("prompts", "many"):
        show(tab, served, name)
        for cell in ("#candidate-table tbody th >> nth=0", "#answer-table tbody th >> nth=0"):
            assert tab.locator(cell).bounding_box()["width"] >= 0.4 * 360
    tab.goto(served.url)
    expect(tab.locator("#runs tbody th").first).to_be_visible()
    assert tab.locator("#runs tbody th").first.bounding_box()["width"] >= 0.4 * 360
    context.close()


def test_labels_are_clamped_to_two_lines_and_shown_as_a_whole_on_demand(desktop, served):
    tab = show(desktop, served)
    tab.set_viewport_size({"width": 700, "height": 900})
    first = tab.locator("#candidate-table .label-button").first
    line = first.evaluate("element => parseFloat(getComputedStyle(element.firstChild).lineHeight)")
    assert first.locator("bdi").bounding_box()["height"] <= 2 * line + 1
    first.click()
    expect(tab.locator("#candidate-name")).to_have_text(served.prompts.top[0])
    tab.keyboard.press("Escape")
    tab.set_viewport_size({"width": 1280, "height": 900})


# -- numbers


def test_all_candidates_have_the_numbers_of_the_result(desktop, served):
    tab = show(desktop, served)
    expected = {
        row.label: (
            f"{row.mean:.4f}",
            "exact" if row.low == row.high else f"{row.low:.4f} to {row.high:.4f}",
            row.pulls,
        )
        for row in served.prompts.table().rows
        if row.mean is not None
    }
    shown = {}
    box = tab.locator("#candidate-window")
    while len(shown) < 200:
        before = len(shown)
        for cells in rows_of(tab, "candidate-table"):
            shown[cells[2]] = (cells[3], cells[4], int(cells[5].replace(",", "")))
        box.evaluate("box => box.scrollBy(0, box.clientHeight)")
        tab.wait_for_timeout(50)
        assert len(shown) > before
    assert shown.keys() == set(served.prompts.labels)
    assert {label: shown[label] for label in expected} == expected
    assert [row[1] for row in rows_of(tab, "answer-table")] == served.prompts.top


def test_money_calls_and_openness_are_those_of_the_result(desktop, served):
    tab, result = show(desktop, served), served.prompts
    assert tab.locator("#spent").inner_text() == f"{result.totals.cost:,.2f}"
    assert tab.locator("#pulls").inner_text() == f"{result.pulls:,}"
    assert tab.locator("#live").inner_text() == "0"
    assert [line.strip() for line in tab.locator("#warnings li").all_inner_texts()] == list(result.warnings)


def test_chart_and_table_have_the_same_order(desktop, served):
    tab = show(desktop, served)
    for sort in ("place", "pulls", "candidate"):
        if sort != "place":
            tab.get_by_role("button", name=sort, exact=True).click()
        table = [row[2] for row in rows_of(tab, "candidate-table")][:5]
        tab.locator("#candidates").press("Home")
        for label in table:
            expect(tab.locator("#readout")).to_contain_text(f"{label}: place")
            tab.locator("#candidates").press("ArrowRight")
    assert "Sorted by candidate" in tab.locator("#order-hint").inner_text()


# -- search, sort, filter, columns


def test_candidates_can_be_searched_sorted_and_filtered(desktop, served):
    tab = show(desktop, served)
    tab.get_by_label("Search").fill("PROMPT 17:")
    expect(tab.locator("#shown-hint")).to_have_text("1 of 200 candidates")
    assert rows_of(tab, "candidate-table")[0][2] == long_label(17)
    tab.get_by_label("Search").fill("")
    tab.locator("#verdict").select_option("accepted")
    expect(tab.locator("#shown-hint")).to_have_text("5 of 200 candidates")
    assert {row[2] for row in rows_of(tab, "candidate-table")} == set(served.prompts.top)
    tab.locator("#verdict").select_option("")
    tab.get_by_role("button", name="pulls", exact=True).click()
    pulls = [int(row[5]) for row in rows_of(tab, "candidate-table")]
    assert pulls == sorted(pulls, reverse=True)
    assert tab.locator("#candidate-table th[aria-sort]").get_attribute("aria-sort") == "descending"
    tab.get_by_role("button", name="pulls", exact=True).click()
    pulls = [int(row[5]) for row in rows_of(tab, "candidate-table")]
    assert pulls == sorted(pulls)


def test_columns_are_chosen_and_remembered(desktop, served):
    tab = show(desktop, served)
    tab.locator("#columns summary").click()
    tab.get_by_label("verdict", exact=True).uncheck()
    tab.get_by_label("cost", exact=True).check()
    heads = ["place", "candidate", "mean", "95% interval", "pulls", "cost"]
    assert tab.locator("#candidate-table thead th").all_inner_texts()[1:] == heads
    show(tab, served)
    assert tab.locator("#candidate-table thead th").all_inner_texts()[1:] == heads
    tab.evaluate("localStorage.clear()")


@pytest.mark.long  # a figure that a busy machine spoils
def test_search_and_sort_answer_within_a_tenth_of_a_second(desktop, served):
    tab = show(desktop, served, "many")
    for kind in ("search", "sort"):
        times = milliseconds_of(tab, kind)
        assert all(spent < 100 for spent in times.values()), times
    assert tab.locator("#candidate-table tbody tr").count() < 60
    expect(tab.locator("#shown-hint")).to_have_text("10,000 candidates")


def test_the_last_of_ten_thousand_rows_can_be_reached(desktop, served):
    tab = show(desktop, served, "many")
    tab.locator("#candidate-window").evaluate("box => box.scrollTo(0, box.scrollHeight)")
    expect(tab.locator("#candidate-table tbody tr:not(.spacer)").last.locator("td").nth(1)).to_have_text("10,000")
    last = tab.locator("#candidate-table tbody tr:not(.spacer)").last
    assert last.get_attribute("aria-rowindex") == "10001"
    assert last.bounding_box()["y"] < 2_000


# -- one candidate, and two


def test_a_candidate_opens_into_its_pulls_with_notes(desktop, served):
    tab, result = show(desktop, served), served.prompts
    best = result.top_indices[0]
    tab.locator("#answer-table .label-button").first.click()
    expect(tab.locator("#candidate-pulls tbody tr")).to_have_count(20)
    names, values = (tab.locator(f"#candidate-facts {part}").all_inner_texts() for part in ("dt", "dd"))
    facts = dict(zip(names, values, strict=True))
    assert facts["pulls"] == f"{result.estimates[best].pulls:,}"
    assert facts["mean"] == f"{result.estimates[best].mean:.4f}"
    rows = rows_of(tab, "candidate-pulls")
    assert all(row[3] == f"the answer of {best} to question {row[0]}" for row in rows)
    tab.get_by_role("button", name="Older").click()
    expect(tab.locator("#page-text")).to_contain_text("page 2 of")
    expect(tab.locator("#candidate-pulls tbody tr").first).not_to_contain_text(rows[0][3])
    tab.get_by_role("button", name="Close").click()
    expect(tab.locator("#candidate")).to_be_hidden()


def test_two_candidates_are_compared_on_the_same_examples(desktop, served):
    tab, result = show(desktop, served), served.prompts
    for place in (4, 5):
        tab.locator("#candidate-table tbody input").nth(place).check()
    tab.get_by_role("button", name="Compare two").click()
    expect(tab.locator("#two-text")).to_contain_text("Paired difference")
    text = tab.locator("#two-text").inner_text()
    labels = [row[1] for row in rows_of(tab, "two-table")]
    assert labels[0] == result.top[4]
    arms = [result.labels.index(label) for label in labels]
    answer = get_json(f"{served.url}api/runs/prompts.ctlog/comparison/{arms[0]}/{arms[1]}")
    difference, low, high = answer["difference"]
    assert f"On {answer['common']:,} examples" in text
    assert f"A − B: {difference:+.4f}".replace("+0.0000", "0.0000") in text  # noqa: RUF001
    assert answer["exact"] or f"{low:+.4f} to {high:+.4f}" in text
    for example, ours, theirs, gap, *_ in rows_of(tab, "two-examples"):
        assert float(gap) == pytest.approx(float(ours) - float(theirs)), example
    tab.keyboard.press("Escape")


def test_candidates_of_independent_draws_are_compared_by_their_means(desktop, served):
    tab = show(desktop, served, "many")
    for place in (0, 1):
        tab.locator("#candidate-table tbody input").nth(place).check()
    tab.get_by_role("button", name="Compare two").click()
    expect(tab.locator("#two-text")).to_contain_text("They were not scored on the same examples.")
    means = [float(row[2]) for row in rows_of(tab, "two-table")]
    assert f"{means[0] - means[1]:.4f}" in tab.locator("#two-text").inner_text()
    tab.keyboard.press("Escape")


# -- accessibility and locale


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(desktop, served, scheme):
    tab = desktop
    tab.emulate_media(color_scheme=scheme)
    for address in ("runs/many.ctlog", "runs/prompts.ctlog#communication", "#outcome", "#communication"):
        tab.goto("about:blank")
        tab.goto(served.url + address)
        tab.wait_for_timeout(1_200)
        assert violations(tab) == [], address
    show(tab, served)
    tab.locator("#columns summary").click()
    assert violations(tab) == []
    for place in (0, 1):
        tab.locator("#candidate-table tbody input").nth(place).check()
    tab.get_by_role("button", name="Compare two").click()
    expect(tab.locator("#two-text")).to_contain_text("Paired difference")
    assert violations(tab) == []
    tab.keyboard.press("Escape")
    tab.locator("#answer-table .label-button").first.click()
    expect(tab.locator("#candidate-pulls tbody tr")).to_have_count(20)
    for details in tab.locator("#candidate details").all():
        details.evaluate("details => details.open = true")
    assert violations(tab) == []
    tab.keyboard.press("Escape")
    tab.emulate_media(color_scheme="light")


@pytest.mark.parametrize(("run", "candidates"), [("prompts", "200"), ("many", "10,000")])
def test_everything_works_with_the_keyboard_alone(desktop, served, run, candidates):
    tab = show(desktop, served, run)
    reached = set()
    for _ in range(60):
        tab.keyboard.press("Tab")
        reached.add(tab.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"candidates", "search", "verdict", "source", "candidate-window", "label-button", "sort", "csv"} <= reached
    tab.get_by_label("Search").focus()
    tab.keyboard.type("prompt 17:")
    expect(tab.locator("#shown-hint")).to_have_text(f"1 of {candidates} candidates")
    button = tab.locator("#candidate-table .label-button").first
    button.focus()
    tab.keyboard.press("Enter")
    expect(tab.locator("#candidate")).to_be_visible()
    assert tab.evaluate("document.getElementById('candidate').contains(document.activeElement)")
    tab.keyboard.press("Escape")
    expect(button).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rejected_points_stand_out_from_the_background(desktop, served, scheme):
    tab = show(desktop, served)
    tab.emulate_media(color_scheme=scheme)
    tab.locator("#verdict").select_option("rejected")
    tab.wait_for_timeout(300)
    marks, card = tab.evaluate(
        """() => {
          const canvas = document.getElementById("candidates"), counts = new Map(), probe = document.createElement("i");
          probe.style.color = "var(--line)"; document.body.append(probe);
          const line = getComputedStyle(probe).color.match(/\\d+/g).join(",");
          const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          for (let at = 0; at < data.length; at += 4) {
            if (data[at + 3] < 255) continue;
            const key = `${data[at]},${data[at + 1]},${data[at + 2]}`;
            if (key === line) continue;  // the grid is no mark
            counts.set(key, (counts.get(key) || 0) + 1);
          }
          const marks = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 2).map(([key]) => key.split(",").map(Number));
          return [marks, getComputedStyle(canvas.closest(".card")).backgroundColor.match(/\\d+/g).map(Number)];
        }"""
    )
    for mark in marks:
        assert ratio(*("#" + bytes(colour).hex() for colour in (mark, card))) >= 3
    tab.emulate_media(color_scheme="light")


def test_numbers_and_dates_are_those_of_the_readers_locale(browser, served):
    context = browser.new_context(locale="de-DE", timezone_id="Europe/Berlin")
    tab = show(context.new_page(), served)
    assert tab.locator("#pulls").inner_text() == f"{served.prompts.pulls:,}".replace(",", ".")
    best = served.prompts.estimates[served.prompts.top_indices[0]]
    assert rows_of(tab, "answer-table")[0][2] == f"{best.mean:.4f}".replace(".", ",")
    assert "started" in tab.locator("#what").inner_text()
    assert ".20" in tab.locator("#what").inner_text()  # as in 17.11.2026
    context.close()


def test_the_border_of_the_answer_is_stated_with_its_interval(desktop, served):
    tab = show(desktop, served)
    text = tab.locator("#answer-text").inner_text()
    assert "separated from the rest" in text
    result = served.prompts
    pair = border(result.estimates, result._problem, result._seen)
    assert f"place {result.top_indices.index(pair.accepted) + 1} is ahead of place" in text
    assert f"by {pair.gap:.4f} ± {Z_95 * pair.standard_error:.4f} (95%)" in text
