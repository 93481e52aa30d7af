"""MkDocs hooks: generate the command-line reference, and handle links to files that are not on the site."""

from __future__ import annotations

import os
import re
from typing import Any

_SOURCES = re.compile(r"\]\(\.\./((?:examples|benchmarks|tests|src)/[^)]*)\)")


def on_page_markdown(markdown: str, page: Any, **more: Any) -> str:
    """Insert the command-line reference; replace links to source files by their names."""
    if page.file.src_uri == "cli.md":
        markdown = markdown.replace("<!-- commands -->", _commands())
    return _SOURCES.sub(r"](# 'in the repository: \1')", markdown)


def on_page_content(html: str, page: Any, **more: Any) -> str:
    """Expand the source code next to the pseudo-code; check that the API reference shows examples as code."""
    if page.file.src_uri == "algorithms.md":
        html = html.replace('<details class="mkdocstrings-source">', '<details class="mkdocstrings-source" open>')
    assert page.file.src_uri != "api.md" or "<blockquote>" not in html, "an example in a docstring is not shown as code"
    return html


def _commands() -> str:
    os.environ |= {"COLUMNS": "96", "TERM": "dumb", "NO_COLOR": "1"}
    import typer
    from typer.testing import CliRunner

    from collabtop.cli import app

    def help_of(*names: str) -> str:
        result = CliRunner().invoke(app, [*names, "--help"], prog_name="collabtop")
        assert result.exit_code == 0, result.output
        return "\n".join(line.rstrip() for line in result.output.strip().splitlines())

    def names_in(group: typer.Typer) -> list[str]:
        return [command.name or command.callback.__name__ for command in group.registered_commands if command.callback]

    names = [[name] for name in names_in(app)]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        names += [[str(group.name), name] for name in names_in(group.typer_instance)]
    parts = [f"```text\n{help_of()}\n```"]
    parts += [f"## collabtop {' '.join(name)}\n\n```text\n{help_of(*name)}\n```" for name in names]
    return "\n\n".join(parts)
