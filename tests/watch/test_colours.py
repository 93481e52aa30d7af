"""The colours of the page, light and dark, have the contrast that WCAG 2.2 level AA requires."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from tests.support.contrast import ratio

STYLE = (files("collabtop.watch") / "page" / "style.css").read_text("utf-8")
THEMES = {
    name: dict(re.findall(r"--([\w-]+): (#\w{6})", part))
    for name, part in zip(("light", "dark"), re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL), strict=True)
}
BACKGROUNDS = ("card", "paper", "tint")
VERDICTS = ("open", "accepted", "rejected", "inside")
MARKS = (*VERDICTS, *(f"{verdict}-range" for verdict in VERDICTS), "baseline", "order", "focus", "control")


@pytest.mark.parametrize("theme", THEMES)
def test_text_is_readable(theme):
    colours = THEMES[theme]
    for text in ("ink", "soft", "open", "accepted", "rejected", "late", "lost", "baseline", "order"):
        for background in BACKGROUNDS:
            assert ratio(colours[text], colours[background]) >= 4.5, (text, background)


@pytest.mark.parametrize("theme", THEMES)
def test_marks_in_charts_stand_out_from_the_background(theme):
    colours = THEMES[theme]
    for mark in MARKS:
        assert ratio(colours[mark], colours["card"]) >= 3, mark


def test_the_contrast_ratio_is_that_of_the_standard():
    assert ratio("#000000", "#ffffff") == 21
    assert ratio("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
