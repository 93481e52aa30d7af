"""The page's colours, light and dark: text and what it is on differ enough for weak eyes (WCAG 2.2, AA)."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

STYLE = (files("collabtop.watch") / "page" / "style.css").read_text("utf-8")
THEMES = {
    name: dict(re.findall(r"--(\w+): (#\w{6})", part))
    for name, part in zip(("light", "dark"), re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL), strict=True)
}
GROUNDS = ("card", "paper", "tint")


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (it / 12.92 if it <= 0.04045 else ((it + 0.055) / 1.055) ** 2.4 for it in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(one, other):
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read(theme):
    colours = THEMES[theme]
    for text in ("ink", "soft", "open", "accepted", "late", "lost", "rival", "order"):
        for ground in GROUNDS:
            assert ratio(colours[text], colours[ground]) >= 4.5, (text, ground)


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_drawn_can_be_told_from_the_ground(theme):
    colours = THEMES[theme]
    for mark in ("open", "accepted", "rejected", "inside", "rival", "order", "focus"):
        assert ratio(colours[mark], colours["card"]) >= 3, mark


def test_the_ratio_is_that_of_the_standard():
    assert ratio("#000000", "#ffffff") == 21
    assert ratio("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
