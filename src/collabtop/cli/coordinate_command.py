"""`collabtop coordinate`: wait for the sites of a run, and run it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from collabtop.cli.errors import resumable
from collabtop.cli.output import examples, path_to_save, print_json, print_tables, save_json
from collabtop.cli.run_options import Json, ProgressOption, WatchOption, wants_progress
from collabtop.events import Event, Listening, SiteChanged
from collabtop.runs.checkpoint import is_finished
from collabtop.runs.result import Result
from collabtop.runs.sites_run import coordinate as run_over_sites
from collabtop.runs.sites_run import read_run

coordinate_examples = examples(
    "collabtop coordinate run.toml --listen 0.0.0.0:7443 --cert certs/coordinator.pem",
    "collabtop coordinate run.toml --listen 0.0.0.0:7443 --cert certs/coordinator.pem --log run.ctlog --save top.json",
) + (
    "\n\n[bold]A run file[/bold]\n\n"
    '  m = 2\n\n  arms = 60\n\n  horizon = 3_000\n\n  sites = \\["north", "south", {name = "east", agents = 2}]\n\n'
    '  algorithm = "frugal-top"\n\n  seed = 7\n\n  grace = 60\n\n  on_lost = "fail"'
)

CertOption = Annotated[Path, typer.Option(metavar="FILE", help="Your certificate (NAME.pem).")]
KeyOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Its key; NAME.key beside it if left out.")]
AuthorityOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The authority; authority.pem beside the certificate if left out.")
]


def coordinate(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The run: m, arms, horizon, sites.")],
    cert: CertOption,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where sites dial in.")] = "0.0.0.0:7443",
    key: KeyOption = None,
    authority: AuthorityOption = None,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep every exchange here, and go on from it; FILE.ctlog if left out."),
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the result here, as JSON.")] = None,
    progress: ProgressOption = None,
    watch: WatchOption = False,
    json: Json = False,
) -> None:
    """Wait for all sites, find the best m with them, print the result; run again, it goes on where it was."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what matters, we say ourselves
    settings = read_run(file)
    place = None if save is None else path_to_save("--save", save)
    log = log if log is not None else file.with_suffix(".ctlog")
    if is_finished(log):
        typer.echo(f"{log} holds a finished run, and no site is asked: for a new one, give another --log", err=True)
    with resumable():
        result = run_over_sites(
            settings,
            listen=listen,
            cert=cert,
            key=key,
            authority=authority,
            log=log,
            on_site=_show,
            progress=wants_progress(progress),
            watch=watch,
        )
    told = {**result.to_dict(), "transport": msgspec.to_builtins(result.ledger.transport)}
    try:
        if place is not None:
            save_json(told, "--save", place)
    finally:  # a disk that has become full meanwhile keeps nobody from seeing the result
        print_json(told) if json else _print(result)


def _print(result: Result) -> None:
    """The result and what it took to get it, for the person in front of it."""
    print_tables(result)
    transport = result.ledger.transport
    waiting = f"{transport.seconds:.1f} s of waiting, {transport.absent:.1f} s of it for sites that were gone"
    typer.echo(f"{transport.bytes:,} bytes crossed, {transport.repeats} requests were repeated, {waiting}")


def _show(event: Event) -> None:
    """Who is there, on stderr: for the person in front of it, not for a log."""
    if isinstance(event, Listening):
        typer.echo(f"listening on {event.address}", err=True)
    if isinstance(event, SiteChanged):
        missing = f"; waiting for {', '.join(event.missing)}" if event.missing else "; all are here"
        typer.echo(f"{event.site} is {event.state}{missing}", err=True)
