"""Runs in every state, and logs that are old, foreign or hostile, are shown safely."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import collabtop as ct
from collabtop.runlog.format import MAGIC
from tests.support import malformed_logs as malformed

HOSTILE = [
    "<img src=x onerror=\"document.title='owned'\">",
    "</script><script>document.title='owned'</script>",
    "safe \u202e gnp.exe",
    "bell \x07 escape \x1b[2J null \x00",
    "line\nbreak\ttab",
    "\u2066isolate " + "\u0627" * 40,
    "e\u0301" * 60,
    "👩‍👩‍👧‍👦" * 30,
    "x" * 120,
    "&lt;b&gt; {{7*7}} ${7*7}",
]


def score(candidate, rng):
    return rng.random() < candidate / 12


@pytest.fixture
def stopped(tmp_path):
    """The log of a run that was stopped half way."""
    path = tmp_path / "run.ctlog"
    result = ct.identify(
        list(range(10)), 2, pull=score, agents=2, horizon=200, seed=1, algorithm="kzz", checkpoint=path
    )
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return path, result


@pytest.mark.slow
def test_a_stopped_run_shows_the_answer_so_far_and_how_to_continue(tab, serve, stopped):
    path, _ = stopped
    tab.goto(serve(path) + "runs/run.ctlog")
    expect(tab.locator("#status")).to_have_text("stopped")
    expect(tab.locator("#notice")).to_contain_text("collabtop resume continues from it")
    expect(tab.locator("#answer-title")).to_have_text("Answer when the run stopped")
    shown = [row.split("\t")[1].strip() for row in tab.locator("#answer-table tbody tr").all_inner_texts()]
    assert shown == ct.peek(path).top


@pytest.mark.slow
def test_a_run_that_is_resumed_while_it_is_watched_is_shown_to_its_end(tab, serve, stopped):
    path, result = stopped
    tab.goto(serve(path) + "runs/run.ctlog")
    expect(tab.locator("#status")).to_have_text("stopped")
    ct.resume(path, pull=score)
    expect(tab.locator("#status")).to_have_text("finished")
    shown = [row.split("\t")[1].strip() for row in tab.locator("#answer-table tbody tr").all_inner_texts()]
    assert shown == result.top


@pytest.mark.slow
def test_a_run_that_is_extended_while_it_is_watched_is_shown_to_its_new_end(tab, serve, tmp_path):
    path = tmp_path / "run.ctlog"
    arguments: dict[str, Any] = {"agents": 2, "horizon": 200, "seed": 1, "algorithm": "kzz", "checkpoint": path}
    ct.identify(list(range(10)), 2, pull=score, name="<b>\u202e", **arguments)
    tab.goto(serve(path) + "runs/run.ctlog")
    expect(tab.locator("#status")).to_have_text("finished")
    expect(tab.locator("#what")).to_contain_text("horizon 200")
    result = ct.extend(path, pull=score, horizon=600)
    expect(tab.locator("#what")).to_contain_text("horizon 600")
    expect(tab.locator("#status")).to_have_text("finished")
    expect(tab.locator("#pulls")).to_have_text(f"{result.observed.pulls.sum():,}")
    expect(tab.locator("#notice")).to_be_hidden()
    expect(tab.locator("#name")).to_have_text("<b>\\u202e")
    rows = [row.split("\t") for row in tab.locator("#answer-table tbody tr").all_inner_texts()]
    best = [result.estimates[arm] for arm in result.top_indices]
    assert [row[1].strip() for row in rows] == result.top
    assert [row[2].strip() for row in rows] == [f"{estimate.mean:.4f}" for estimate in best]
    assert [row[4].strip() for row in rows] == [f"{estimate.pulls:,}" for estimate in best]
    tab.locator("#answer-table .label-button").first.click()
    expect(tab.locator("#candidate-pulls tbody tr").first).to_be_visible()
    tab.keyboard.press("Escape")
    tab.goto(tab.url + "#communication")
    expect(tab.locator("#words")).to_have_text(f"{result.words:,}")


@pytest.mark.slow
def test_a_run_that_failed_is_shown_as_stopped_with_its_failures(tab, serve, tmp_path):
    calls = iter(range(10_000))

    def fails(candidate, rng):
        if next(calls) >= 150:
            raise ConnectionError("the service is down")
        return 0.5

    path = tmp_path / "run.ctlog"
    with pytest.raises(ct.PullError):
        ct.identify(["a", "b", "c"], 1, pull=fails, agents=1, horizon=300, checkpoint=path)
    tab.goto(serve(path) + "runs/run.ctlog")
    expect(tab.locator("#status")).to_have_text("stopped")
    expect(tab.locator("#health-facts")).to_contain_text("ConnectionError")


@pytest.mark.slow
def test_labels_full_of_markup_bidi_and_control_characters_are_shown_safely(tab, serve, tmp_path):
    path = tmp_path / "run.ctlog"
    arms = ct.BernoulliArms(np.linspace(0.1, 0.9, len(HOSTILE)), labels=HOSTILE)
    ct.identify(arms, 3, agents=2, horizon=900, seed=1, name="<i>name</i> \u202e", checkpoint=path)
    tab.goto(serve(path) + "runs/run.ctlog")
    expect(tab.locator("#answer-title")).to_have_text("Answer")
    expect(tab.locator("#name")).to_have_text("<i>name</i> \\u202e")
    assert tab.locator("#run img, #run script, h1 i, #answer-table i, #candidate-table i").count() == 0
    assert "owned" not in tab.title()
    shown = " ".join(tab.locator("#candidate-table bdi").all_text_contents())
    assert HOSTILE[0] in shown
    assert "{{7*7}}" in shown
    assert "\\x1b[2J null \\x00" in shown
    assert "safe \\u202e gnp.exe" in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", tab.locator("body").inner_text())
    for place in range(len(HOSTILE)):
        tab.locator("#candidate-table .label-button").nth(place).click()
        expect(tab.locator("#candidate")).to_be_visible()
        tab.keyboard.press("Escape")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 1200
    assert "owned" not in tab.title()


@pytest.mark.slow
def test_notes_full_of_markup_are_shown_as_text(tab, serve, tmp_path):
    path = tmp_path / "run.ctlog"
    note = "<img src=x onerror=\"document.title='owned'\"> " + "y" * 200
    arguments: dict[str, Any] = {"agents": 1, "horizon": 20, "algorithm": "uniform", "checkpoint": path}
    ct.identify(["a", "b"], 1, pull=lambda candidate, rng: ct.Reward(0.5, note=note), **arguments)
    tab.goto(serve(path) + "runs/run.ctlog")
    tab.locator("#candidate-table .label-button").first.click()
    expect(tab.locator("#candidate-pulls summary").first).to_contain_text("<img src=x")
    tab.locator("#candidate-pulls summary").first.click()
    expect(tab.locator("#candidate-pulls .whole-label").first).to_have_text(note)
    assert tab.locator("dialog img").count() == 0
    assert "owned" not in tab.title()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (MAGIC.replace(b"2", b"1") + b"\0" * 40, "version"),
        (MAGIC.replace(b"2", b"9") + b"\0" * 40, "version"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "is not a collabtop log"),
    ],
    ids=["older version", "newer version", "foreign file"],
)
def test_a_log_of_another_version_and_a_foreign_file_are_explained(tab, serve, tmp_path, content, reason):
    (tmp_path / "odd.ctlog").write_bytes(content)
    malformed.real_log(tmp_path / "good.ctlog")
    url = serve(tmp_path)
    tab.goto(url + "runs/odd.ctlog")
    expect(tab.locator("#status")).to_have_text("unreadable")
    expect(tab.locator("#notice")).to_contain_text(reason)
    expect(tab.locator("#answer")).to_be_hidden()
    tab.goto(url)
    expect(tab.locator("#runs tbody tr")).to_have_count(2)
    expect(tab.locator("#runs tbody")).to_contain_text(reason)


@pytest.mark.slow
def test_the_header_of_an_older_log_without_the_new_fields_is_shown(tab, serve, tmp_path):
    path = malformed.real_log(tmp_path / "old.ctlog")
    records = malformed.plain_records(path)
    for field in ("direction", "bounds", "name", "budget", "costs", "paired", "pull_limit"):
        records[0].pop(field, None)
    malformed.write_plain(path, records)
    tab.goto(serve(path) + "runs/old.ctlog")
    expect(tab.locator("#answer-title")).to_have_text("Answer")
    expect(tab.locator("#name")).to_have_text("old.ctlog")
