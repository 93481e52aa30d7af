"""`collabtop watch`: a page in the browser that shows runs."""

from pathlib import Path
from typing import Annotated

import typer

from collabtop.cli.output import examples
from collabtop.runs.page_launcher import need_watch_extra, open_browser

watch_examples = examples(
    "collabtop watch run.ctlog",
    "collabtop watch results --port 8800",
    "collabtop watch results --host 0.0.0.0 --token long-and-secret",
)


def watch(
    source: Annotated[
        Path, typer.Argument(metavar="[FILE | FOLDER]", help="A checkpoint, or a folder of checkpoints (*.ctlog).")
    ] = Path(),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes any free one.")] = 8765,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but this machine's own requires a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(help="The token that visitors need; drawn and printed if one is required.")
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the browser.")] = False,
) -> None:
    """Show runs in the browser, live and after they ended. Ctrl-C stops the page, not the runs."""
    need_watch_extra()
    from collabtop.watch.serve import Page, runs_in

    page = Page(runs_in([source]), host=host, port=port, token=token)
    typer.echo(f"showing {source} at {page.url} (stop with Ctrl-C)", err=True)
    if not no_open:
        open_browser(page.url)
    page.serve()
