"""Where commands print: tables for people, JSON for programs."""

from __future__ import annotations

from typing import Any

import msgspec
import typer
from rich.console import Console, RenderableType

_PIPE_WIDTH = 100


def print_tables(*tables: RenderableType) -> None:
    """Print for a person; into a pipe, as wide as the tables like it."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPE_WIDTH)
    for table in tables:
        console.print(table)


def print_json(value: Any) -> None:
    """Print for a program: JSON in UTF-8, whatever the terminal's encoding, and nothing else."""
    typer.echo(msgspec.json.encode(value))


def examples(*lines: str) -> str:
    """Examples for the end of a command's help, one a line."""
    return "\n\n".join(["[bold]Examples[/bold]", *(f"  {line}" for line in lines)])
