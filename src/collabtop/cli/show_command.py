"""`collabtop show`: the contents of a checkpoint."""

from pathlib import Path
from typing import Annotated

import typer

from collabtop.cli.output import examples, print_json, print_tables
from collabtop.display.log_table import log_tables, summarize

show_examples = examples("collabtop show run.ctlog", "collabtop show run.ctlog --json")


def show(
    checkpoint: Annotated[Path, typer.Argument(metavar="FILE", help="A file written by `identify --checkpoint`.")],
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Show a checkpoint: the run, its progress, and the pulls of each candidate."""
    summary = summarize(checkpoint)
    print_json(summary.to_dict()) if json else print_tables(log_tables(summary))
