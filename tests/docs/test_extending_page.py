"""The examples on the page about extensions are the files that are tested."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGE = Path("docs/extending.md")


@pytest.mark.parametrize("file", ["pickling_team.py", "voting.py"])
def test_the_page_shows_the_file_that_is_tested(file):
    path = Path("tests/support") / file
    page = PAGE.read_text(encoding="utf-8")
    assert path.read_text(encoding="utf-8") in page
    assert f"(../{path})" in page
