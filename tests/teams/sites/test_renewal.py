"""Certificates are short-lived, renewed without a restart, and can be revoked while a run is in progress."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from typer.testing import CliRunner

import collabtop as ct
from collabtop.cli import app
from collabtop.teams.sites import certificates
from collabtop.teams.sites.revocation import LARGEST_LIST, RevocationList
from tests.support.peers import wait_for_port
from tests.support.proxy import Proxy

RUN: dict[str, Any] = {"m": 1, "agents": 1, "horizon": 300, "algorithm": "uniform", "seed": 1}
ARMS = ct.BernoulliArms([0.9, 0.5, 0.4])


@pytest.fixture
def folder(tmp_path):
    ct.make_certificates(tmp_path, ["north", "south"])
    return tmp_path


def serial(path):
    return x509.load_pem_x509_certificate(path.read_bytes()).serial_number


def days_left(path):
    return (x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc - datetime.now(UTC)).days


def connected(port, name):
    """The serial number of the certificate that the coordinator's port shows to a site."""
    context = ssl.create_default_context(cafile=name.with_name("authority.pem"))
    context.load_cert_chain(name, name.with_suffix(".key"))
    context.set_alpn_protocols(["h2"])
    wait_for_port(port)
    raw = socket.create_connection(("localhost", port), timeout=10)
    with context.wrap_socket(raw, server_hostname="localhost") as wrapped:
        return x509.load_der_x509_certificate(wrapped.getpeercert(binary_form=True)).serial_number


def start(folder, site="north", arms=ARMS, **settings):
    """A run with one site in a thread; returns the team, the run's thread and its outcome."""
    team = ct.SitesTeam([site], listen="localhost:0", cert=folder / "coordinator.pem", wait=60, **settings)
    outcome: list[Any] = []

    def run():
        try:
            outcome.append(ct.identify(ct.RemoteArms(3), **RUN, team=team))
        except ct.SiteError as error:
            outcome.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    return team, thread, outcome


# -- dates


def test_certificates_are_valid_for_a_month_and_the_authority_for_ten_years(folder):
    assert days_left(folder / "north.pem") == days_left(folder / "coordinator.pem") == 29
    assert days_left(folder / "authority.pem") > 3_600


@pytest.mark.parametrize(("shift", "message"), [(40, "expired on .* UTC, and the clock of"), (-40, ": set the clock")])
def test_a_wrong_clock_is_reported_as_a_wrong_clock(folder, monkeypatch, shift, message):
    class Shifted(datetime):
        @classmethod
        def now(cls, zone=None):
            return datetime.now(zone) + timedelta(days=shift)

    monkeypatch.setattr("collabtop.teams.sites.tls.datetime", Shifted)
    with pytest.raises(ct.InputError, match=message):
        ct.join("localhost:1", ARMS, cert=folder / "north.pem", give_up=0.1)
    with pytest.raises(ct.InputError, match=message):
        ct.SitesTeam(["north"], listen="localhost:0", cert=folder / "coordinator.pem")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shift", "message"),
    [(-1, "is not valid yet: the clock of this machine is slow"), (0, "has expired, or the clock")],
)
def test_a_site_reports_the_dates_of_the_coordinators_certificate(folder, tmp_path, monkeypatch, shift, message):
    lines: list[str] = []
    team, thread, _ = start(folder)
    connected(team.port, folder / "south.pem")  # the port is open
    with monkeypatch.context() as patch:  # the port uses renewed files at once
        patch.setattr(certificates, "_CLOCKS_DIFFER", timedelta(days=shift, seconds=2))
        ct.renew_certificates(folder, ["coordinator"], days=9 if shift else 1e-9)
    with pytest.raises(ct.SiteError, match="no coordinator"):
        ct.join(f"localhost:{team.port}", ARMS, cert=folder / "north.pem", give_up=8, on_status=lines.append)
    assert any(message in line for line in lines)
    ct.renew_certificates(folder, ["coordinator"])
    ct.join(f"localhost:{team.port}", ARMS, cert=folder / "north.pem", give_up=30)
    thread.join(20)


@pytest.mark.slow
def test_a_site_whose_certificate_expires_while_it_waits_reports_that(folder):
    lines: list[str] = []

    def expire(line):
        if not lines:
            ct.renew_certificates(folder, ["north"], days=1e-9)
        lines.append(line)

    with pytest.raises(ct.SiteError, match=r"no coordinator .* expired on .* UTC, and the clock of this machine shows"):
        ct.join("localhost:1", ARMS, cert=folder / "north.pem", give_up=3, on_status=expire)
    assert "expired on" not in lines[0]
    assert "expired on" in lines[1]


# -- keys


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_can_read_is_refused_with_the_command_that_fixes_it(folder, mode):
    key = folder / "north.key"
    key.chmod(mode)
    with pytest.raises(ct.FileError, match=f"by others \\(mode {mode:o}\\): chmod 600 ") as caught:
        ct.join("localhost:1", ARMS, cert=folder / "north.pem", give_up=0.1)
    os.system(str(caught.value).split(": ")[-1])  # the command as printed
    with pytest.raises(ct.SiteError, match="no coordinator"):
        ct.join("localhost:1", ARMS, cert=folder / "north.pem", give_up=0.1)
    (folder / "coordinator.key").chmod(mode)
    with pytest.raises(ct.FileError, match="chmod 600"):
        ct.SitesTeam(["north"], listen="localhost:0", cert=folder / "coordinator.pem")


def test_the_authority_issues_and_revokes_nothing_with_a_key_that_others_can_read(folder):
    (folder / "authority.key").chmod(0o644)
    before = (folder / "north.pem").read_bytes()
    for change in (ct.renew_certificates, ct.revoke_certificates):
        with pytest.raises(ct.FileError, match=r"authority.key' can be read .* \(mode 644\): chmod 600 "):
            change(folder, ["north"])
    assert (folder / "north.pem").read_bytes() == before
    assert not (folder / "revoked.pem").exists()


# -- renewal


def test_renewed_certificates_keep_their_names_and_hosts(tmp_path):
    ct.make_certificates(tmp_path, ["north"], hosts=["hub.example.org", "192.0.2.7"])
    before = serial(tmp_path / "coordinator.pem")
    names = [path.name for path in ct.renew_certificates(tmp_path, days=3)]
    assert names == ["coordinator.pem", "north.pem"]
    renewed = x509.load_pem_x509_certificate((tmp_path / "coordinator.pem").read_bytes())
    hosts = renewed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert hosts.get_values_for_type(x509.DNSName) == ["hub.example.org"]
    assert [str(address) for address in hosts.get_values_for_type(x509.IPAddress)] == ["192.0.2.7"]
    assert renewed.serial_number != before
    assert days_left(tmp_path / "north.pem") == 2
    assert (tmp_path / "north.key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(ct.InputError, match="names has 'east', but no certificate was made for it here"):
        ct.renew_certificates(tmp_path, ["east"])


def test_a_coordinator_uses_renewed_files_without_a_restart(folder, caplog):
    team, thread, outcome = start(folder)
    assert connected(team.port, folder / "south.pem") == serial(folder / "coordinator.pem")
    ct.renew_certificates(folder, ["coordinator"])
    assert connected(team.port, folder / "south.pem") == serial(folder / "coordinator.pem")
    with caplog.at_level(logging.WARNING, "collabtop.sites"):
        key = (folder / "coordinator.key").read_bytes()
        certificates.replace_file(folder / "coordinator.key", (folder / "south.key").read_bytes(), 0o600)
        assert connected(team.port, folder / "south.pem") == serial(folder / "coordinator.pem")  # the pair before
        certificates.replace_file(folder / "coordinator.key", key, 0o600)
    assert "the key does not belong to the certificate" in caplog.text
    ct.join(f"localhost:{team.port}", ARMS, cert=folder / "north.pem", secret=b"")
    thread.join(20)
    assert outcome == [ct.identify(ARMS, **RUN)]


class Slow(ct.BernoulliArms):
    """Arms whose first pull takes until the test is done with it."""

    def __init__(self):
        super().__init__(ARMS.means)
        self.begun, self.go = threading.Event(), threading.Event()

    def pull(self, arms, times, draws):
        self.begun.set()
        assert self.go.wait(20)
        return super().pull(arms, times, draws)


def wait_until(holds):
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def serial_in_use(team):
    session = team._server._slots[0].session
    return None if session is None else x509.load_pem_x509_certificate(session.certificate).serial_number


def test_a_site_reconnects_with_its_renewed_certificate(folder):
    team, thread, outcome = start(folder, keepalive=0.5)
    link, arms = Proxy(team.port), Slow()
    settings = {"cert": folder / "north.pem", "secret": b"", "give_up": 20, "keepalive": 0.5}
    site = threading.Thread(target=ct.join, args=[f"localhost:{link.port}", arms], kwargs=settings)
    site.start()
    assert arms.begun.wait(20)
    old = serial(folder / "north.pem")
    assert serial_in_use(team) == old
    ct.renew_certificates(folder, ["north"])
    link.cut()
    wait_until(lambda: serial_in_use(team) is None)
    link.heal()
    wait_until(lambda: serial_in_use(team) == serial(folder / "north.pem"))
    arms.go.set()
    for started in (thread, site):
        started.join(30)
    link.close()
    assert outcome == [ct.identify(ARMS, **RUN)]


# -- revocation


def test_a_revoked_certificate_is_rejected_at_once_and_others_are_not(folder):
    team, thread, outcome = start(folder)
    ct.revoke_certificates(folder, ["south"])
    ct.revoke_certificates(folder, ["north"])
    with pytest.raises(ct.SiteError, match="the certificate of this site was revoked"):
        ct.join(f"localhost:{team.port}", ARMS, cert=folder / "north.pem", give_up=10)
    ct.renew_certificates(folder, ["north"])
    ct.join(f"localhost:{team.port}", ARMS, cert=folder / "north.pem", give_up=10, secret=b"")
    thread.join(20)
    assert outcome == [ct.identify(ARMS, **RUN)]
    revoked = x509.load_pem_x509_crl((folder / "revoked.pem").read_bytes())
    assert len(list(revoked)) == 2


def test_a_connected_site_is_disconnected_when_its_certificate_is_revoked(folder):
    team, thread, outcome = start(folder, grace=1)
    arms, errors = Slow(), []

    def join():
        try:
            ct.join(f"localhost:{team.port}", arms, cert=folder / "north.pem", give_up=20)
        except ct.SiteError as error:
            errors.append(str(error))

    site = threading.Thread(target=join)
    site.start()
    assert arms.begun.wait(20)
    ct.revoke_certificates(folder, ["north"])
    thread.join(20)
    arms.go.set()
    site.join(20)
    assert "the certificate of this site was revoked" in errors[0]
    assert "site north has been disconnected for 1 s" in outcome[0]


@pytest.mark.parametrize("content", [b"nonsense", None], ids=["nonsense", "of a different authority"])
def test_a_list_that_the_authority_did_not_sign_is_not_used(folder, tmp_path_factory, content, caplog):
    ct.revoke_certificates(folder, ["north"])
    team, thread, _ = start(folder)
    other = tmp_path_factory.mktemp("other")
    ct.make_certificates(other, ["south"])
    foreign = ct.revoke_certificates(other, ["south"]).read_bytes()
    with caplog.at_level(logging.ERROR, "collabtop.sites"):
        certificates.replace_file(folder / "revoked.pem", content or foreign, 0o644)
        with pytest.raises(ct.SiteError, match="was revoked"):  # the last good list stays in force
            ct.join(f"localhost:{team.port}", ARMS, cert=folder / "north.pem", give_up=10)
    assert "the list of revoked certificates is not used" in caplog.text
    with pytest.raises(ct.FileError, match=r"not a list of revoked|not signed by the authority"):
        ct.SitesTeam(["north"], listen="localhost:0", cert=folder / "coordinator.pem")
    ct.renew_certificates(folder, ["north"])
    with suppress(ct.SiteError):
        ct.join(f"localhost:{team.port}", ARMS, cert=folder / "north.pem", give_up=10)
    thread.join(20)


def test_a_list_that_is_gone_a_pipe_or_too_large_does_not_lift_a_revocation(folder, caplog):
    ct.revoke_certificates(folder, ["north"])
    path, revoked = folder / "revoked.pem", (folder / "north.pem").read_bytes()
    data, current = path.read_bytes(), RevocationList(path, folder / "authority.pem")
    path.unlink()
    with caplog.at_level(logging.ERROR, "collabtop.sites"):
        assert current.has(revoked)
        os.mkfifo(path)
        assert current.has(revoked)
        path.unlink()
        path.write_bytes(data)
        assert current.has(revoked)
        os.truncate(path, LARGEST_LIST + 1)
        assert current.has(revoked)
    for problem in ("is gone", "not a regular file", f"more than {LARGEST_LIST:,} bytes"):
        assert problem in caplog.text


def test_a_name_without_a_certificate_cannot_be_revoked(folder):
    with pytest.raises(ct.InputError, match="names has 'east', but no certificate was made for it here"):
        ct.revoke_certificates(folder, ["east"])


def test_certificates_of_an_earlier_version_can_be_renewed_and_revoked(folder):
    (folder / "issued.txt").unlink()  # it had no such list
    revoked = ct.revoke_certificates(folder, ["north"])
    [entry] = x509.load_pem_x509_crl(revoked.read_bytes())
    assert entry.serial_number == serial(folder / "north.pem")
    assert [path.name for path in ct.renew_certificates(folder)] == ["coordinator.pem", "north.pem", "south.pem"]


# -- the commands


def certs_command(*arguments):
    return CliRunner().invoke(app, ["certs", *map(str, arguments)])


def test_the_commands_make_renew_and_revoke(tmp_path):
    folder = tmp_path / "certs"
    assert "made authority.pem, coordinator.pem, north.pem" in certs_command(folder, "north").stdout
    before = serial(folder / "north.pem")
    assert "renewed north.pem in" in certs_command("renew", "north", "--folder", folder, "--days", 3).stdout
    assert serial(folder / "north.pem") != before
    assert days_left(folder / "north.pem") == 2
    assert "renewed coordinator.pem, north.pem in" in certs_command("renew", "--folder", folder).stdout
    revoked = certs_command("revoke", "north", "--folder", folder)
    assert f"revoked north in {folder / 'revoked.pem'}" in revoked.stdout
    assert len(list(x509.load_pem_x509_crl((folder / "revoked.pem").read_bytes()))) == 3  # every one that was made


def test_the_commands_report_a_wrong_name_or_folder_in_one_line(tmp_path):
    certs_command(tmp_path / "certs", "north")
    wrong = certs_command("revoke", "east", "--folder", tmp_path / "certs")
    assert (wrong.exit_code, wrong.stderr) == (2, "error: names has 'east', but no certificate was made for it here\n")
    missing = certs_command("renew", "--folder", tmp_path / "nowhere")
    assert missing.exit_code == 2
    assert "no such file or directory" in missing.stderr
