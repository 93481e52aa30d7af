"""Render doctests in docstrings as code: Markdown would read `>>>` as nested quotations."""

from __future__ import annotations

import re
from typing import Any

import griffe

# From a prompt to the next blank line: input and output.
_DOCTEST = re.compile(r"(?:^[ ]*>>> .*\n(?:^[ ]*\S.*(?:\n|\Z))*)+", re.MULTILINE)


class Doctests(griffe.Extension):
    """Griffe extension that puts a code fence around each doctest."""

    def on_object(self, *, obj: griffe.Object, **more: Any) -> None:
        """Rewrite a docstring before it is parsed."""
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return a docstring with its doctests in code fences."""
    return _DOCTEST.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```\n", text + "\n").rstrip()
