"""A site's part in a run: `join` connects to a coordinator, answers its requests, and reconnects after faults."""

import secrets
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from collabtop.arms import Arms, PullPolicy
from collabtop.arms.event_loop import EventLoopThread
from collabtop.arms.function import Pull, as_arms
from collabtop.arms.unit import Bounds, Direction
from collabtop.errors import FileError, InputError, reason
from collabtop.privacy import Privacy
from collabtop.teams.sites.audit import Audit
from collabtop.teams.sites.frames import check_run_id
from collabtop.teams.sites.journal import make_folder
from collabtop.teams.sites.site_budget import SiteBudget
from collabtop.teams.sites.site_policy import SitePolicy
from collabtop.teams.sites.team import host_and_port
from collabtop.teams.sites.tls import Files, certificate_dates, file_paths
from collabtop.text_files import LARGEST_SETTINGS, read_limited
from collabtop.validation import positive_number, require, whole_number, wrong_value


class SiteSummary(msgspec.Struct, frozen=True):
    """A summary of what a site did in a run."""

    site: str
    run: str
    """The id of the run."""
    agents: tuple[int, ...]
    """Numbers of the site's agents."""
    answers: int
    """Requests answered, including those before a restart."""
    pulls: int
    """Pulls made, including those before a restart."""


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
    direction: Direction = "maximize",
    bounds: Bounds = (0.0, 1.0),
    journal: str | PathLike[str] | None = None,
    audit: str | PathLike[str] | None = None,
    min_batch: int = 2,
    secret: bytes | None = None,
    site_policy: SitePolicy | None = None,
    run: str = "",
    give_up: float = 3600.0,
    keepalive: float = 10.0,
    on_status: Callable[[str], None] | None = None,
) -> SiteSummary:
    """Take part in a run as a site, until the coordinator reports that the run is over.

    Args:
        address: HOST:PORT of the coordinator.
        arms: what this site can pull: arms, or your own candidates together with `pull`.
        cert: the site's certificate, in PEM format; its name decides which agents the site has.
        site: the site's name; a certificate for a different name is rejected.
        key: its key; default: the file beside it with the extension `.key`.
        authority: the authority that must have issued the coordinator's certificate; default: `authority.pem` beside
            `cert`.
        pull: a function that tries a candidate once, as in `identify`.
        policy: what happens to pulls that fail.
        direction: with `pull`: `"maximize"`, or `"minimize"` if small rewards are better; the same as in the run.
        bounds: with `pull`: the smallest and the largest possible reward, or None; the same as in the run.
        journal: a folder for rewards and answers, from which a site that was killed continues.
        audit: a file to which every message is written in readable form before it is sent.
        min_batch: send nothing that depends on a batch of fewer pulls; 2 means that a single reward is never sent, 1
            allows it.
        secret: what this site mixes into its random draws, so that the coordinator, which chooses the seed of the run,
            cannot know which example a pull used. Default: a random one, which the journal keeps. With the same
            secrets and seed a run can be reproduced: use each secret for one run only. `b""` means none: the site then
            draws what the local team would.
        site_policy: what this site's owner allows; see `SitePolicy`. A budget over all runs needs `journal`, whose
            folder then also holds the file `budget.db`.
        run: the id of the run to take part in; default: any.
        give_up: seconds without a coordinator after which the site gives up.
        keepalive: seconds between heartbeats.
        on_status: called with a line of text when the site connects or disconnects.

    Raises:
        SiteError: the site was rejected, or there was no coordinator for too long.
        PullError: the site's own function failed; the coordinator only learns for which candidate.

    The example of `SitesTeam` shows both sides.
    """
    require("sites", "grpc", "cryptography", what="a run over sites")
    from collabtop.teams.sites.client import EMPTY_SECRET, SiteClient

    host, _ = host_and_port("address", address)
    run = check_run_id(run)
    min_batch = whole_number("min_batch", min_batch, least=1)
    give_up = positive_number("give_up", give_up, of="seconds")
    keepalive = positive_number("keepalive", keepalive, of="seconds")
    if secret is not None and not isinstance(secret, bytes):
        raise InputError(f"secret is a {type(secret).__name__}, but bytes are needed", argument="secret")
    privacy = None if site_policy is None else site_policy.privacy
    if site_policy is not None:
        site_policy.check_coordinator(host)
        min_batch = max(min_batch, site_policy.min_batch)
    if privacy is not None and secret == b"":
        raise InputError(EMPTY_SECRET, argument="secret")
    source = _checked_arms(as_arms(arms, pull, policy, direction=direction, bounds=bounds), min_batch, privacy)
    paths = file_paths(cert, key, authority)
    name = certified_name(paths.read(), site, cert)
    budget = _open_budget(site_policy, journal)
    audit_file = None if audit is None else Audit(audit)
    if audit_file is not None and site_policy is not None:
        _note_policy(audit_file, site_policy, budget)
    source.open()
    loop = EventLoopThread(f"site {name}")
    client = SiteClient(
        *(address, paths, source, journal, audit_file, min_batch, secret, site_policy, budget),
        *(run, give_up, keepalive, on_status),
    )
    try:
        loop.run(client.run(secrets.randbits(62)))
        return SiteSummary(name, client.run_id, *client.totals())
    finally:
        client.close()
        loop.close()
        source.close()
        if audit_file is not None:
            audit_file.close()
        if budget is not None:
            budget.close()


def _open_budget(policy: SitePolicy | None, journal: str | PathLike[str] | None) -> SiteBudget | None:
    if policy is None or not policy.has_budget:
        return None
    if journal is None:
        raise InputError("journal is missing: a policy with a budget needs a folder to count in", argument="journal")
    return SiteBudget(
        make_folder(Path(journal)) / "budget.db",
        questions=policy.questions,
        pulls_per_candidate=policy.pulls_per_candidate,
        rho=policy.total_rho,
    )


def _note_policy(audit: Audit, policy: SitePolicy, budget: SiteBudget | None) -> None:
    questions, pulls = (0, {}) if budget is None else budget.spent()
    audit.note_event("policy", **msgspec.structs.asdict(policy), spent={"questions": questions, "pulls": pulls})


def read_secret(path: str | PathLike[str]) -> bytes:
    """Read a site's secret from a file: all of its bytes, so an empty file means none."""
    try:
        return read_limited(path, LARGEST_SETTINGS)
    except OSError as error:
        raise FileError(f"secret {str(path)!r}: {reason(error)}", argument="secret") from None


def _checked_arms(arms: Arms, min_batch: int, privacy: Privacy | None) -> Arms:
    if privacy is not None:
        arms.check_privacy(privacy)
    if min_batch > 1 and arms.failure_mode == "skip":
        raise InputError(
            "failures is 'skip', but then a mean may be over fewer pulls than requested: use 'zero', 'raise' or "
            "min_batch=1",
            argument="failures",
        )
    if min_batch > 1 and not arms.independent and privacy is None:
        raise InputError(
            "the arms use their examples in a common order, so means over all of them and over all but one reveal a "
            "single reward: draw independently (replace=True, paired=False, a function with rng) or use "
            "min_batch=1, or a policy with privacy",
            argument="arms",
        )
    return arms


def certified_name(files: Files, expected: str | None, path: str | PathLike[str]) -> str:
    """The name in a certificate; raise `InputError` if it is not the expected one, or for a wrong date."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        certificate = x509.load_pem_x509_certificate(files.certificate)
    except ValueError as error:
        raise FileError(f"cert {str(path)!r} is not a certificate: {error}", argument="cert") from None
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    name = str(names[0].value) if names else ""
    if expected is not None and expected != name:
        raise wrong_value("site", expected, f"cert {str(path)!r} is for {name!r}")
    certificate_dates(files.certificate, Path(path))
    return name
