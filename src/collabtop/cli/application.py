"""The application with all commands, and its entry point."""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from collabtop._version import __version__
from collabtop.cli.algorithms_command import algorithms, algorithms_examples
from collabtop.cli.ask_command import ask, ask_examples
from collabtop.cli.certs_command import certs
from collabtop.cli.coordinate_command import coordinate, coordinate_examples
from collabtop.cli.demo_command import demo, demo_examples
from collabtop.cli.errors import Command, OneLineErrors
from collabtop.cli.extend_command import extend, extend_examples
from collabtop.cli.identify_command import identify, identify_examples
from collabtop.cli.join_command import join, join_examples
from collabtop.cli.plan_command import plan, plan_examples
from collabtop.cli.repair_command import repair, repair_examples
from collabtop.cli.reproduce_command import reproduce, reproduce_examples
from collabtop.cli.resume_command import resume, resume_examples
from collabtop.cli.show_command import show, show_examples
from collabtop.cli.study_command import study, study_examples
from collabtop.cli.tell_command import tell, tell_examples
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
app.command(cls=Command, epilog=identify_examples)(identify)
app.command(cls=Command, epilog=resume_examples)(resume)
app.command(cls=Command, epilog=extend_examples)(extend)
app.command(cls=Command, epilog=show_examples)(show)
app.command(cls=Command, epilog=ask_examples)(ask)
app.command(cls=Command, epilog=tell_examples)(tell)
app.command(cls=Command, epilog=repair_examples)(repair)
app.command(cls=Command, epilog=watch_examples)(watch)
app.command(cls=Command, epilog=plan_examples)(plan)
app.command(cls=Command, epilog=algorithms_examples)(algorithms)
app.command(cls=Command, epilog=demo_examples)(demo)
app.command(cls=Command, epilog=study_examples)(study)
app.command(cls=Command, epilog=reproduce_examples)(reproduce)
app.command(cls=Command, epilog=coordinate_examples)(coordinate)
app.command(cls=Command, epilog=join_examples)(join)
app.add_typer(certs, name="certs")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"collabtop {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the best m of n noisy options with a team of agents that communicate little."""


def main() -> None:
    """Run the command line."""
    # A label that the terminal's encoding lacks is shown as "?" instead of raising an error.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
