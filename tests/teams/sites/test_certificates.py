"""Wrong arguments for certificates are rejected by name, before anything is written."""

from __future__ import annotations

import pytest
from cryptography import x509

import collabtop as ct


@pytest.mark.parametrize("days", [0, -1, float("inf"), float("nan"), 1e9, 36_501, True, "365", None, 10**400])
def test_invalid_days_are_rejected_and_nothing_is_written(tmp_path, days):
    with pytest.raises(ct.InputError, match=r"^days is "):
        ct.make_certificates(tmp_path / "certs", ["north"], days=days)
    assert not (tmp_path / "certs").exists()


@pytest.mark.parametrize(
    "host", ["köln.de", "", " ", "a b", "localhost:7443", "[::1]", "a..b", ".a", "-a", "x" * 64, "\x1b[31m", "a.*.b"]
)
def test_invalid_hosts_are_rejected_and_nothing_is_written(tmp_path, host):
    with pytest.raises(ct.InputError, match=r"^hosts has .*, but an IP address"):
        ct.make_certificates(tmp_path / "certs", ["north"], hosts=["localhost", host])
    assert not (tmp_path / "certs").exists()


@pytest.mark.parametrize("name", ["sites", "hosts"])
@pytest.mark.parametrize("value", ["north", 7, [7], None])
def test_sites_and_hosts_are_lists_of_names(tmp_path, name, value):
    arguments = {"sites": ["north"], "hosts": ["localhost"], name: value}
    with pytest.raises(ct.InputError, match=rf"^{name} is .*, but a list of names is needed"):
        ct.make_certificates(tmp_path / "certs", **arguments)
    assert not (tmp_path / "certs").exists()


def test_a_certificate_has_the_given_hosts_and_days(tmp_path):
    hosts = ["xn--kln-sna.de", "*.example.org", "coordinator_1", "192.0.2.7", "2001:db8::1"]
    ct.make_certificates(tmp_path, ["north"], hosts=hosts, days=36_500)
    certificate = x509.load_pem_x509_certificate((tmp_path / "coordinator.pem").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    assert names.get_values_for_type(x509.DNSName) + addresses == hosts
    assert (certificate.not_valid_after_utc - certificate.not_valid_before_utc).days == 36_500
