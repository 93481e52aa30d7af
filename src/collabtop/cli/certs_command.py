"""`collabtop certs`: a private authority, and a certificate for the coordinator and each site."""

from __future__ import annotations

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
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where they go; what is there already is kept.")],
    sites: Annotated[list[str], typer.Argument(metavar="SITE...", help="Names of the sites.")],
    host: Annotated[
        list[str] | None,
        typer.Option(help="A name or address under which sites reach the coordinator; may be repeated."),
    ] = None,
    days: Annotated[float, typer.Option(help="How long the certificates are good for.")] = 365,
) -> None:
    """Make certificates: give each site its own two files and authority.pem; authority.key stays with you."""
    made = ct.make_certificates(folder, sites, hosts=host or ("localhost", "127.0.0.1"), days=days)
    typer.echo(f"made {', '.join(path.name for path in made) or 'nothing: all are there'} in {folder}")
