"""`collabtop certs`: a private authority, and a certificate for the coordinator and for each site."""

from pathlib import Path
from typing import Annotated

import typer

import collabtop as ct
from collabtop.cli.output import examples

certs_examples = examples(
    "collabtop certs certs north south",
    "collabtop certs certs north south --host coordinator.example.org --days 90",
)


def certs(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder for the files; existing files are kept.")
    ],
    sites: Annotated[list[str], typer.Argument(metavar="SITE...", help="The names of the sites.")],
    host: Annotated[
        list[str] | None,
        typer.Option(help="A name or address at which sites reach the coordinator; repeatable."),
    ] = None,
    days: Annotated[float, typer.Option(help="How many days the certificates are valid.")] = 365,
) -> None:
    """Make certificates. Give each site its own two files and authority.pem; keep authority.key to yourself."""
    paths = ct.make_certificates(folder, sites, hosts=host or ("localhost", "127.0.0.1"), days=days)
    typer.echo(f"made {', '.join(path.name for path in paths) or 'nothing (all exist already)'} in {folder}")
