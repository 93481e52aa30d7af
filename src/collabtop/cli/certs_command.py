"""`collabtop certs`: a private authority, and certificates for the coordinator and each site."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import collabtop as ct
from collabtop.cli.errors import Command
from collabtop.cli.output import examples
from collabtop.teams.sites.certificates import DAYS

_MAKE = "make"


class CertsGroup(TyperGroup):
    """The commands for certificates; without the name of one, certificates are made."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the first argument for a folder, unless it is the name of a command."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [_MAKE, *args]
        return super().parse_args(ctx, args)


certs = typer.Typer(
    cls=CertsGroup,
    no_args_is_help=True,
    help="Make, renew and revoke certificates: collabtop certs FOLDER SITE..., collabtop certs renew, collabtop certs "
    "revoke SITE.",
)

FolderOption = Annotated[Path, typer.Option(metavar="FOLDER", help="The folder with authority.pem and authority.key.")]
DaysOption = Annotated[float, typer.Option(help="How many days the certificates are valid.")]


@certs.command(
    _MAKE,
    cls=Command,
    epilog=examples(
        "collabtop certs certs north south",
        "collabtop certs certs north south --host coordinator.example.org --days 90",
    ),
)
def make(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder for the files; existing files are kept.")
    ],
    sites: Annotated[list[str], typer.Argument(metavar="SITE...", help="The names of the sites.")],
    host: Annotated[
        list[str] | None,
        typer.Option(help="A name or address at which sites reach the coordinator; repeatable."),
    ] = None,
    days: DaysOption = DAYS,
) -> None:
    """Make certificates. Give each site its own two files and authority.pem; keep authority.key to yourself."""
    paths = ct.make_certificates(folder, sites, hosts=host or ("localhost", "127.0.0.1"), days=days)
    typer.echo(f"made {', '.join(path.name for path in paths) or 'nothing (all exist already)'} in {folder}")


@certs.command(cls=Command, epilog=examples("collabtop certs renew", "collabtop certs renew north --folder certs"))
def renew(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Names of sites, or coordinator; default: all that were made."),
    ] = None,
    folder: FolderOption = Path("certs"),
    days: DaysOption = DAYS,
) -> None:
    """Replace certificates and keys by new ones, which running sites and coordinators use without a restart."""
    paths = ct.renew_certificates(folder, names or (), days=days)
    typer.echo(f"renewed {', '.join(path.name for path in paths) or 'nothing (none were made here)'} in {folder}")


@certs.command(cls=Command, epilog=examples("collabtop certs revoke north"))
def revoke(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The names of the sites.")],
    folder: FolderOption = Path("certs"),
) -> None:
    """Revoke all certificates of these names; a coordinator that reads the list disconnects them."""
    path = ct.revoke_certificates(folder, names)
    typer.echo(f"revoked {', '.join(names)} in {path}: copy it beside the coordinator's authority.pem")
