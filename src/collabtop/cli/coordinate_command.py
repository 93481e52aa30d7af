"""`collabtop coordinate`: wait for the sites of a run, and run it."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

import collabtop as ct
from collabtop.cli.errors import resumable
from collabtop.cli.output import examples, path_to_save, print_json, print_tables, save_json
from collabtop.cli.run_options import Json, ProgressOption, WatchOption, file_option, wants_progress
from collabtop.events import Event, Listening, SiteChanged

coordinate_examples = examples(
    "collabtop coordinate run.toml --listen 0.0.0.0:7443 --cert certs/coordinator.pem",
    "collabtop coordinate run.toml --listen 0.0.0.0:7443 --cert certs/coordinator.pem --log run.ctlog --save top.json",
) + (
    "\n\n[bold]A run file[/bold]\n\n"
    '  m = 2\n\n  arms = 60\n\n  horizon = 3_000\n\n  sites = \\["north", "south", {name = "east", agents = 2}]\n\n'
    '  algorithm = "frugal-top"\n\n  seed = 7\n\n  grace = 60\n\n  on_lost = "fail"'
)

CertOption = Annotated[Path, file_option("Your certificate (NAME.pem).")]
KeyOption = Annotated[Path | None, file_option("The certificate's key; default: NAME.key beside it.")]
AuthorityOption = Annotated[
    Path | None, file_option("Certificate of the authority; default: authority.pem beside the certificate.")
]


def coordinate(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The run: m, arms, horizon, sites, ...")],
    cert: CertOption,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The address at which sites connect.")
    ] = "0.0.0.0:7443",
    key: KeyOption = None,
    authority: AuthorityOption = None,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Record every exchange here, and continue from it; default: FILE.ctlog."),
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the result here, as JSON.")] = None,
    progress: ProgressOption = None,
    watch: WatchOption = False,
    json: Json = False,
) -> None:
    """Wait for all sites, find the best m with them and print the result; the same command continues a stopped run."""
    from collabtop.runs.checkpoint import is_finished
    from collabtop.runs.sites_run import coordinate as run_over_sites
    from collabtop.runs.sites_run import read_run

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # we report what matters ourselves
    settings = read_run(file)
    target = None if save is None else path_to_save("--save", save)
    log = log if log is not None else file.with_suffix(".ctlog")
    if is_finished(log):
        typer.echo(
            f"{log} holds a finished run, so no site is contacted (use a different --log for a new run)", err=True
        )
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
    data = {**result.to_dict(), "transport": msgspec.to_builtins(result.ledger.transport)}
    try:
        if target is not None:
            save_json(data, "--save", target)
    finally:  # the result is shown even if the disk has become full meanwhile
        print_json(data) if json else _print(result)


def _print(result: "ct.Result") -> None:
    """Print the result and what crossed the network."""
    print_tables(result)
    transport = result.ledger.transport
    waiting = f"{transport.seconds:.1f} s of waiting, {transport.absent:.1f} s of it for absent sites"
    typer.echo(f"{transport.bytes:,} bytes sent and received, {transport.repeats} requests repeated, {waiting}")


def _show(event: Event) -> None:
    """Print on stderr which sites are connected."""
    if isinstance(event, Listening):
        typer.echo(f"listening on {event.address}", err=True)
    if isinstance(event, SiteChanged):
        missing = f"waiting for {', '.join(event.missing)}" if event.missing else "all sites are connected"
        typer.echo(f"site {event.site} {_CHANGES[event.state]}; {missing}", err=True)


_CHANGES = {"here": "connected", "gone": "disconnected", "back": "reconnected", "lost": "is lost"}
