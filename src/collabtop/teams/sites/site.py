"""One site: dials out to a coordinator, lets its agents answer, and comes back after every fault."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from os import PathLike
from typing import Any

import msgspec

from collabtop.arms import Arms, PullPolicy
from collabtop.arms.event_loop import EventLoopThread
from collabtop.arms.function import Pull, as_arms
from collabtop.errors import FileError, InputError
from collabtop.teams.sites.audit import Audit
from collabtop.teams.sites.frames import check_run_id
from collabtop.teams.sites.team import host_and_port
from collabtop.teams.sites.tls import Files, read_files
from collabtop.validation import positive_number, require, whole_number


class SiteSummary(msgspec.Struct, frozen=True):
    """What a site did in a run."""

    site: str
    run: str
    """The id of the run."""
    agents: tuple[int, ...]
    """Numbers of the site's agents."""
    answers: int
    """Requests answered, in all lives of the site."""
    pulls: int
    """Pulls made, in all lives of the site."""


def join(
    address: str,
    arms: Any,
    *,
    cert: str | PathLike[str],
    site: str | None = None,
    key: str | PathLike[str] | None = None,
    authority: str | PathLike[str] | None = None,
    pull: Pull | None = None,
    policy: PullPolicy | None = None,
    journal: str | PathLike[str] | None = None,
    audit: str | PathLike[str] | None = None,
    min_batch: int = 2,
    run: str = "",
    give_up: float = 3600.0,
    keepalive: float = 10.0,
    on_status: Callable[[str], None] | None = None,
) -> SiteSummary:
    """Take part in a run as one site, until the coordinator says that the answer is known.

    Args:
        address: HOST:PORT of the coordinator.
        arms: what this site can pull: arms, or candidates of your own with `pull`.
        cert: the site's certificate, in PEM form; its name decides which agents the site has.
        site: the site's name, to be sure that the certificate is the one meant.
        key: its key; left out, the file beside it with the ending `.key`.
        authority: the authority that the coordinator's certificate must come from; left out, `authority.pem` beside it.
        pull: a function that tries a candidate once, as in `identify`.
        policy: what happens to pulls that fail.
        journal: a folder for what is drawn and answered: a site that was killed goes on from it.
        audit: a file to which everything that leaves the site is written, in readable form, before it leaves.
        min_batch: a mean over fewer pulls is not sent; 2 means that no single reward ever is, 1 allows it.
        run: the id of the run to take part in; left out, whichever the coordinator has.
        give_up: seconds without a coordinator after which the site gives up.
        keepalive: seconds between signs of life.
        on_status: called with a line of text when the connection comes or goes.

    Raises:
        SiteError: turned away, or no coordinator for too long.
        PullError: the site's own function failed; the coordinator learns which candidate, and no more.

    The example of `SitesTeam` shows both sides.
    """
    require("sites", "grpc", "cryptography", what="a run over sites")
    from collabtop.teams.sites.client import SiteClient

    host_and_port("address", address)
    run = check_run_id(run)
    min_batch = whole_number("min_batch", min_batch, least=1)
    give_up = positive_number("give_up", give_up, of="seconds")
    keepalive = positive_number("keepalive", keepalive, of="seconds")
    mine = _checked_arms(as_arms(arms, pull, policy), min_batch)
    files = read_files(cert, key, authority)
    name = certified_name(files, site, cert)
    record = None if audit is None else Audit(audit)
    mine.open()
    loop = EventLoopThread(f"site {name}")
    client = SiteClient(address, files, mine, journal, record, min_batch, run, give_up, keepalive, on_status)
    try:
        loop.run(client.stay(secrets.randbits(62)))
        return SiteSummary(name, client.run, *client.done())
    finally:
        client.close()
        loop.close()
        mine.close()
        if record is not None:
            record.close()


def _checked_arms(arms: Arms, min_batch: int) -> Arms:
    if min_batch > 1 and arms.failure_mode == "skip":
        raise InputError(
            "failures is 'skip', but then a mean may be over fewer pulls than were made: use 'zero' or 'raise', or "
            "min_batch=1",
            argument="failures",
        )
    return arms


def certified_name(files: Files, wanted: str | None, path: str | PathLike[str]) -> str:
    """The name that a certificate is for; refused if it is another one than wanted, or no longer good."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        certificate = x509.load_pem_x509_certificate(files.certificate)
    except ValueError as error:
        raise FileError(f"cert {str(path)!r} is no certificate: {error}", argument="cert") from None
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    name = str(names[0].value) if names else ""
    if wanted is not None and wanted != name:
        raise InputError(f"site is {wanted!r}, but cert {str(path)!r} is for {name!r}", argument="site")
    if certificate.not_valid_after_utc < datetime.now(UTC):
        raise InputError(
            f"cert {str(path)!r} was good until {certificate.not_valid_after_utc:%Y-%m-%d}: get a new one",
            argument="cert",
        )
    return name
