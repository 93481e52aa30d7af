"""`collabtop show`: the contents of a checkpoint."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from collabtop.cli.output import examples, print_json, print_tables

show_examples = examples(
    "collabtop show run.ctlog", "collabtop show run.ctlog --json", "collabtop show run.ctlog --notes polite"
)


def show(
    checkpoint: Annotated[Path, typer.Argument(metavar="FILE", help="A file written by `identify --checkpoint`.")],
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
    notes: Annotated[
        str | None,
        typer.Option("--notes", metavar="CANDIDATE", help="Show the notes about the pulls of this candidate instead."),
    ] = None,
) -> None:
    """Show a checkpoint: the run, its progress, and the answer so far; the run may still be writing it."""
    from collabtop.display.log_table import LogSummary, notes_table

    if notes is not None:
        table, rows = notes_table(checkpoint, notes)
        print_json(msgspec.to_builtins(rows)) if json else print_tables(table)
        return
    summary = LogSummary(checkpoint)
    print_json(summary.to_dict()) if json else print_tables(summary)
