"""How commands print and save: tables for people, JSON for programs."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from collabtop.errors import FileError, reason

if TYPE_CHECKING:
    from rich.console import RenderableType

_PIPE_WIDTH = 100


def print_tables(*tables: "RenderableType") -> None:
    """Print tables; into a pipe, with a fixed width."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPE_WIDTH)
    for table in tables:
        console.print(table)


def print_json(value: Any) -> None:
    """Print JSON in UTF-8, whatever the encoding of the terminal."""
    typer.echo(msgspec.json.encode(value))


def path_to_save(name: str, path: Path) -> Path:
    """Check before the work begins that a result can be written to this path.

    >>> path_to_save("--save", Path("nowhere/top.json"))
    Traceback (most recent call last):
    collabtop.errors.FileError: --save 'nowhere/top.json': no such file or directory
    """
    target = path.resolve()  # the target of a link is written, not the link
    if target.exists() and not target.is_file():
        raise FileError(f"{name} {str(path)!r} exists and is not a file: choose a different name")
    try:
        tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise FileError(f"{name} {str(path)!r}: {reason(error)}") from None
    return target


def save_json(value: Any, name: str, path: Path) -> None:
    """Write JSON to a file, completely or not at all."""
    from collabtop.studies.table import write_whole

    try:
        write_whole(path, msgspec.json.encode(value))
    except OSError as error:
        raise FileError(f"{name} {str(path)!r}: {reason(error)}") from None


def examples(*lines: str) -> str:
    """Examples for the end of a command's help, one per line."""
    return "\n\n".join(["[bold]Examples[/bold]", *(f"  {line}" for line in lines)])
