"""A private authority, and a certificate for the coordinator and for each site."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from collabtop.errors import FileError, InputError, reason
from collabtop.validation import positive_number, require, wrong_value

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

AUTHORITY, COORDINATOR = "authority", "coordinator"
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"(\*\.)?({_LABEL}\.)*{_LABEL}")
_LONGEST_HOST = 253
_MOST_DAYS = 36_500
_CLOCKS_DIFFER = timedelta(minutes=5)


def check_site_name(name: str) -> str:
    """Validate a site's name, which appears in its certificate and in file names.

    >>> check_site_name("hospital-7")
    'hospital-7'
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"site is {name!r:.80}, but a name of at most 63 letters, digits, dots, dashes and underscores is needed, "
            "starting and ending with a letter or digit",
            argument="sites",
        )
    if name in (AUTHORITY, COORDINATOR):
        raise InputError(f"site is {name!r}, which is reserved: choose a different name", argument="sites")
    return name


def make_certificates(
    folder: str | PathLike[str],
    sites: Sequence[str],
    *,
    hosts: Sequence[str] = ("localhost", "127.0.0.1"),
    days: float = 365,
) -> list[Path]:
    """Make a private authority and certificates for the coordinator and each site; return the new certificates.

    Existing files are kept.

    Args:
        folder: the folder for the files, NAME.pem and NAME.key. Give each site `authority.pem` and its own two files.
            Keep `authority.key` private: it can issue more certificates.
        sites: names of the sites.
        hosts: names and addresses at which sites reach the coordinator.
        days: how many days the certificates are valid.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> [path.name for path in make_certificates(folder, ["north"])]
    ['authority.pem', 'coordinator.pem', 'north.pem']
    >>> [path.name for path in make_certificates(folder, ["north", "south"])]
    ['south.pem']
    """
    names = [check_site_name(name) for name in _listed("sites", sites)]
    hosts = [_check_host(host) for host in _listed("hosts", hosts)]
    if not hosts:
        raise InputError(
            "hosts is empty, but at least one name or address of the coordinator is needed", argument="hosts"
        )
    days = positive_number("days", days)
    if days > _MOST_DAYS:
        raise InputError(f"days is {days:g}, but at most {_MOST_DAYS:,} (a hundred years) are allowed", argument="days")
    require("sites", "cryptography", what="making certificates")
    folder, paths = Path(folder), []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / f"{AUTHORITY}.pem").exists():
            paths.append(_make_authority(folder, days))
        issuer = _Issuer(folder)
        if not (folder / f"{COORDINATOR}.pem").exists():
            paths.append(issuer.make(COORDINATOR, hosts, days, for_server=True))
        new = [name for name in names if not (folder / f"{name}.pem").exists()]
        paths += [issuer.make(name, [name], days, for_server=False) for name in new]
    except OSError as error:
        raise FileError(f"certificates in {str(folder)!r}: {reason(error)}", argument="folder") from None
    return paths


def _listed(name: str, texts: Sequence[str]) -> Sequence[str]:
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise wrong_value(name, texts, "a list of names is needed")
    return texts


def _check_host(host: str) -> str:
    """Validate an IP address or a DNS name."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        if len(host) <= _LONGEST_HOST and _HOST.fullmatch(host):
            return host
    raise InputError(
        f"hosts has {host!r:.80}, but an IP address (without port or brackets) or a DNS name is needed "
        "(letters a to z, digits, dashes and dots; international names in their xn-- form)",
        argument="hosts",
    )


class _Issuer:
    """Issues certificates signed by the authority in a folder."""

    def __init__(self, folder: Path) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        self._folder = folder
        try:
            key = load_pem_private_key((folder / f"{AUTHORITY}.key").read_bytes(), None)
            self._certificate = x509.load_pem_x509_certificate((folder / f"{AUTHORITY}.pem").read_bytes())
        except (ValueError, TypeError):
            raise FileError(
                f"{str(folder / AUTHORITY)!r}.pem and .key are not an authority made by collabtop"
            ) from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise FileError(f"{str(folder / AUTHORITY)!r}.key is not a key made by collabtop")
        self._key = key

    def make(self, name: str, names: Sequence[str], days: float, *, for_server: bool) -> Path:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key()
        # A site's certificate cannot be used by a server, nor the coordinator's by a client.
        usage = ExtendedKeyUsageOID.SERVER_AUTH if for_server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            _builder(name, self._certificate.subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(list(map(_alternative, names))), critical=False)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        return _write(self._folder, name, builder.sign(self._key, hashes.SHA256()), key)


def _make_authority(folder: Path, days: float) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    key = _new_key()
    usage = x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=True,
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        _builder("collabtop private authority", None, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _write(folder, AUTHORITY, builder.sign(key, hashes.SHA256()), key)


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _builder(
    name: str, issuer: x509.Name | None, key: ec.EllipticCurvePublicKey, days: float
) -> x509.CertificateBuilder:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + timedelta(days=days))
    )


def _alternative(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Path:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    # The key is written first, so that a certificate that exists has its key, and is never readable by others.
    (folder / f"{name}.key").unlink(missing_ok=True)
    with os.fdopen(os.open(folder / f"{name}.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret)
    path = folder / f"{name}.pem"
    path.write_bytes(certificate.public_bytes(Encoding.PEM))
    return path
