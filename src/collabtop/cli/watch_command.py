"""`collabtop watch`: the page that shows runs."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from collabtop.cli.output import examples
from collabtop.runs.watch_page import has_screen, need_watch_extra

watch_examples = examples(
    "collabtop watch run.ctlog",
    "collabtop watch results --port 8800",
    "collabtop watch results --host 0.0.0.0 --token long-and-secret",
)


def watch(
    source: Annotated[
        Path, typer.Argument(metavar="[FILE | FOLDER]", help="A checkpoint, or a folder of them (*.ctlog).")
    ] = Path(),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where it listens; 0 takes any free port.")] = 8765,
    host: Annotated[
        str, typer.Option(help="Which address it listens on; others than this machine's own ask for a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(help="What visitors have to know; drawn and printed, where it is needed.")
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the browser.")] = False,
) -> None:
    """Show runs in the browser, live and after they ended; Ctrl-C ends the page, never a run."""
    need_watch_extra()
    from collabtop.watch.serve import Page, runs_in

    page = Page(runs_in([source]), host=host, port=port, token=token)
    typer.echo(f"{source} is shown at {page.url} (Ctrl-C ends it)", err=True)
    if not no_open and has_screen():
        with suppress(webbrowser.Error):
            webbrowser.open(page.url)
    page.serve()
