"""The commands together, and the entry point."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

import collabtop
from collabtop.cli.algorithms_command import algorithms, algorithms_examples
from collabtop.cli.certs_command import certs, certs_examples
from collabtop.cli.coordinate_command import coordinate, coordinate_examples
from collabtop.cli.demo_command import demo, demo_examples
from collabtop.cli.errors import OneLineErrors
from collabtop.cli.identify_command import identify, identify_examples
from collabtop.cli.join_command import join, join_examples
from collabtop.cli.plan_command import plan, plan_examples
from collabtop.cli.reproduce_command import reproduce, reproduce_examples
from collabtop.cli.resume_command import resume, resume_examples
from collabtop.cli.show_command import show, show_examples
from collabtop.cli.study_command import study, study_examples
from collabtop.cli.watch_command import watch, watch_examples

app = typer.Typer(
    name="collabtop",
    cls=OneLineErrors,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="First steps: [bold]collabtop demo[/bold], then [bold]collabtop identify --help[/bold].",
)
app.command(epilog=identify_examples)(identify)
app.command(epilog=resume_examples)(resume)
app.command(epilog=show_examples)(show)
app.command(epilog=watch_examples)(watch)
app.command(epilog=plan_examples)(plan)
app.command(epilog=algorithms_examples)(algorithms)
app.command(epilog=demo_examples)(demo)
app.command(epilog=study_examples)(study)
app.command(epilog=reproduce_examples)(reproduce)
app.command(epilog=coordinate_examples)(coordinate)
app.command(epilog=join_examples)(join)
app.command(epilog=certs_examples)(certs)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"collabtop {collabtop.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the best m of n noisy options with a team of agents that may hardly talk to each other."""


def main() -> None:
    """Run the command line."""
    # A label that the terminal's encoding does not have is shown as "?", which beats a traceback.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
