"""Where commands print: tables for people, JSON for programs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.console import Console, RenderableType

from collabtop.errors import FileError, reason
from collabtop.studies.table import write_whole

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


def path_to_save(name: str, path: Path) -> Path:
    """Check where a result is to go before the work that leads to it is done: a file can be made there.

    >>> path_to_save("--save", Path("nowhere/top.json"))
    Traceback (most recent call last):
    collabtop.errors.FileError: --save 'nowhere/top.json': no such file or directory
    """
    place = path.resolve()  # what a link points to is written, not the link
    if place.exists() and not place.is_file():
        raise FileError(f"{name} {str(path)!r} is there already and is no file: choose another name")
    try:
        tempfile.TemporaryFile(dir=place.parent).close()
    except OSError as error:
        raise FileError(f"{name} {str(path)!r}: {reason(error)}") from None
    return place


def save_json(value: Any, name: str, path: Path) -> None:
    """Write JSON to a file, whole or not at all."""
    try:
        write_whole(path, msgspec.json.encode(value))
    except OSError as error:
        raise FileError(f"{name} {str(path)!r}: {reason(error)}") from None


def examples(*lines: str) -> str:
    """Examples for the end of a command's help, one a line."""
    return "\n\n".join(["[bold]Examples[/bold]", *(f"  {line}" for line in lines)])
