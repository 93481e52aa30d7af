"""`collabtop join`: take part in a run as a site."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

import collabtop as ct
from collabtop.cli import run_options as shared
from collabtop.cli.coordinate_command import AuthorityOption, CertOption, KeyOption
from collabtop.cli.errors import resumable
from collabtop.cli.output import examples
from collabtop.cli.values import load, read_bounds

join_examples = examples(
    "collabtop join coordinator.example.org:7443 --site north --arms mymodule:arms --cert north.pem",
    "collabtop join coordinator.example.org:7443 --site north --arms mymodule:candidates --pull mymodule:score "
    "--cert north.pem --audit sent.jsonl --policy policy.toml",
)


def join(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="The address of the coordinator.")],
    site: Annotated[str, typer.Option(help="The name of your site, as in its certificate.")],
    cert: CertOption,
    arms: shared.ArmsOption = None,
    pull: shared.PullOption = None,
    means: Annotated[Path | None, shared.file_option("Simulate: a file of means.")] = None,
    direction: shared.DirectionOption = "maximize",
    bounds: shared.BoundsOption = "0,1",
    key: KeyOption = None,
    authority: AuthorityOption = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Record rewards and answers here, and continue from them; default: SITE-journal."
        ),
    ] = None,
    audit: Annotated[
        Path | None, shared.file_option("Write every message that leaves this site here, in readable form.")
    ] = None,
    min_batch: Annotated[int, typer.Option(help="Send nothing that depends on a batch of fewer pulls than this.")] = 2,
    secret: Annotated[
        Path | None,
        shared.file_option("Mix the content of this file into the draws; default: random. An empty file: nothing."),
    ] = None,
    policy: Annotated[
        Path | None, shared.file_option("Enforce this TOML file: what the owner of this site allows.")
    ] = None,
    run: Annotated[str, typer.Option(metavar="ID", help="Take part in this run only.")] = "",
    give_up: Annotated[float, typer.Option(help="Give up after this many seconds without a coordinator.")] = 3600.0,
    keepalive: Annotated[float, typer.Option(help="Seconds between heartbeats.")] = 10.0,
    retries: shared.Retries = 0,
    wait: shared.Wait = 0.5,
    time_limit: shared.TimeLimit = None,
    failures: shared.FailuresOption = shared.FailureName.stop,
) -> None:
    """Take part in a run until the answer is known; rewards stay at your site."""
    from collabtop.teams.sites.site import read_secret

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # we report what matters ourselves
    given: dict[str, Any] = {}
    if (arms is None) == (means is None):
        raise ct.InputError("give exactly one of --arms and --means (collabtop join --help)")
    source = ct.read_arms(means) if means is not None else load("--arms", str(arms))
    if pull is not None:
        given = {"pull": load("--pull", pull), "policy": shared.make_policy(retries, wait, time_limit, failures)}
    with resumable():
        summary = ct.join(
            address,
            source,
            site=site,
            cert=cert,
            key=key,
            authority=authority,
            journal=journal if journal is not None else Path(f"{site}-journal"),
            audit=audit,
            min_batch=min_batch,
            site_policy=None if policy is None else ct.read_site_policy(policy),
            secret=None if secret is None else read_secret(secret),
            direction=direction,  # type: ignore[arg-type]  # checked with the arms
            bounds=read_bounds(bounds),
            run=run,
            give_up=give_up,
            keepalive=keepalive,
            on_status=lambda line: typer.echo(line, err=True),
            **given,
        )
    typer.echo(f"{summary.site}: {summary.answers} answers from {summary.pulls:,} pulls in run {summary.run}")
