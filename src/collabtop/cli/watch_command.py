"""`collabtop watch`: a page in the browser that shows runs."""

from pathlib import Path
from typing import Annotated

import typer

from collabtop.cli.output import examples

watch_examples = examples(
    "collabtop watch run.ctlog",
    "collabtop watch results --port 8800",
    "collabtop watch results --host 0.0.0.0 --token-file token.txt",
)


def watch(
    source: Annotated[
        Path, typer.Argument(metavar="[FILE | FOLDER]", help="A checkpoint, or a folder of checkpoints (*.ctlog).")
    ] = Path(),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes any free one.")] = 8765,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but this machine's own requires a token.")
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file with the token that visitors need, readable by you only. Without it, the token is that of the "
            "environment variable COLLABTOP_TOKEN; if there is none and one is required, it is drawn and printed.",
        ),
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the browser.")] = False,
) -> None:
    """Show runs in the browser, live and after they ended. Ctrl-C stops the page, not the runs."""
    from collabtop.runs.page_launcher import need_watch_extra, open_browser

    need_watch_extra()
    from collabtop.watch.serve import Page, read_token, runs_in, token_of_environment

    token = token_of_environment() if token_file is None else read_token(token_file)
    page = Page(runs_in([source]), host=host, port=port, token=token)
    typer.echo(f"showing {source} at {page.url} (stop with Ctrl-C)", err=True)
    if not no_open:
        open_browser(page.address)  # without the token: the list of processes shows the browser's arguments
    page.serve()
