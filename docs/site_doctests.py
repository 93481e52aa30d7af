"""Shows the doctests of docstrings as code: the site's Markdown would take `>>>` for a quotation in a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

# From a prompt to the next blank line: what was typed, and what came out.
_DOCTEST = re.compile(r"(?:^[ ]*>>> .*\n(?:^[ ]*\S.*(?:\n|\Z))*)+", re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts a fence around each."""

    def on_object(self, *, obj: griffe.Object, **more: Any) -> None:
        """Look at a docstring before it is read."""
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring with its doctests in fences."""
    return _DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text + "\n").rstrip()
