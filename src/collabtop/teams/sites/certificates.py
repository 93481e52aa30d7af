"""A private authority, and a certificate for the coordinator and for each site."""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
import stat
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
DAYS = 30
"""How many days certificates are valid by default: they are easy to renew."""
_AUTHORITY_DAYS = 3_650
_ISSUED = "issued.txt"
"""One line per certificate: its serial number and its name, so that all certificates of a name can be revoked."""
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
    days: float = DAYS,
) -> list[Path]:
    """Make a private authority and certificates for the coordinator and each site; return the new certificates.

    Existing files are kept; `renew_certificates` replaces them.

    Args:
        folder: the folder for the files, NAME.pem and NAME.key. Give each site `authority.pem` and its own two files.
            Keep `authority.key` private: it can issue more certificates.
        sites: names of the sites.
        hosts: names and addresses at which sites reach the coordinator.
        days: how many days the certificates are valid; the authority itself is valid for ten years.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> [path.name for path in make_certificates(folder, ["north"])]
    ['authority.pem', 'coordinator.pem', 'north.pem']
    >>> [path.name for path in make_certificates(folder, ["north", "south"])]
    ['south.pem']
    """
    names = [check_site_name(name) for name in listed_names("sites", sites)]
    hosts = [_check_host(host) for host in listed_names("hosts", hosts)]
    if not hosts:
        raise InputError(
            "hosts is empty, but at least one name or address of the coordinator is needed", argument="hosts"
        )
    days = _check_days(days)
    require("sites", "cryptography", what="making certificates")
    folder, paths = Path(folder), []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / f"{AUTHORITY}.pem").exists():
            paths.append(_make_authority(folder, max(days, _AUTHORITY_DAYS)))
        issuer = Issuer(folder)
        if not (folder / f"{COORDINATOR}.pem").exists():
            paths.append(issuer.make(COORDINATOR, hosts, days, for_server=True))
        new = [name for name in names if not (folder / f"{name}.pem").exists()]
        paths += [issuer.make(name, [name], days, for_server=False) for name in new]
    except OSError as error:
        raise FileError(f"certificates in {str(folder)!r}: {reason(error)}", argument="folder") from None
    return paths


def renew_certificates(folder: str | PathLike[str], names: Sequence[str] = (), *, days: float = DAYS) -> list[Path]:
    """Replace certificates and keys by new ones; return the certificates.

    Copy a site's two files to the site. A coordinator and sites that are running use new files from their next
    connection on, without a restart. The old certificates stay valid until they expire or are revoked.

    Args:
        folder: the folder that `make_certificates` made.
        names: names of the sites, and `coordinator`; default: all that were made here.
        days: how many days the new certificates are valid.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = make_certificates(folder, ["north"])
    >>> [path.name for path in renew_certificates(folder)]
    ['coordinator.pem', 'north.pem']
    """
    days = _check_days(days)
    require("sites", "cryptography", what="making certificates")
    folder, names = Path(folder), listed_names("names", names)
    try:
        issuer = Issuer(folder)
        issued = sorted(issued_serials(folder))
        unknown = [name for name in names if name not in issued]
        if unknown:
            raise InputError(f"names has {unknown[0]!r:.80}, but no certificate was made for it here", argument="names")
        return [issuer.renew(name, days) for name in names or issued]
    except OSError as error:
        raise FileError(f"certificates in {str(folder)!r}: {reason(error)}", argument="folder") from None


def issued_serials(folder: Path) -> dict[str, list[int]]:
    """The serial numbers of all certificates that were made in a folder, by name."""
    from cryptography import x509

    serials: dict[str, list[int]] = {}
    path = folder / _ISSUED
    try:
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            serial, _, name = line.partition(" ")
            serials.setdefault(name, []).append(int(serial, 16))
        for path in folder.glob("*.pem"):  # those of earlier versions are not listed
            data = path.read_bytes()
            if path.stem not in (AUTHORITY, *serials) and b"-----BEGIN CERTIFICATE-----" in data:
                serials[path.stem] = [x509.load_pem_x509_certificate(data).serial_number]
    except ValueError:
        raise FileError(f"{str(path)!r} is damaged, so the certificates made here are not known") from None
    return serials


def check_mode(key: Path) -> None:
    """Raise `FileError` if others can read or change a key."""
    mode = stat.S_IMODE(key.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        raise FileError(
            f"key {str(key)!r} can be read or changed by others (mode {mode:o}): chmod 600 {shlex.quote(str(key))}",
            argument="key",
        )


def replace_file(path: Path, data: bytes, mode: int) -> None:
    """Replace a file at once, so that a reader sees either the old content or the new one."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _check_days(days: float) -> float:
    days = positive_number("days", days)
    if days > _MOST_DAYS:
        raise InputError(f"days is {days:g}, but at most {_MOST_DAYS:,} (a hundred years) are allowed", argument="days")
    return days


def listed_names(name: str, texts: Sequence[str]) -> Sequence[str]:
    """Validate a list of names."""
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


class Issuer:
    """Issues certificates signed by the authority in a folder."""

    def __init__(self, folder: Path) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        self._folder = folder
        check_mode(folder / f"{AUTHORITY}.key")
        try:
            key = load_pem_private_key((folder / f"{AUTHORITY}.key").read_bytes(), None)
            self.certificate = x509.load_pem_x509_certificate((folder / f"{AUTHORITY}.pem").read_bytes())
        except (ValueError, TypeError):
            raise FileError(
                f"{str(folder / AUTHORITY)!r}.pem and .key are not an authority made by collabtop"
            ) from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise FileError(f"{str(folder / AUTHORITY)!r}.key is not a key made by collabtop")
        self.key = key

    def make(self, name: str, names: Sequence[str], days: float, *, for_server: bool) -> Path:
        """Make a certificate and its key, in place of earlier ones."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key()
        # A site's certificate cannot be used by a server, nor the coordinator's by a client.
        usage = ExtendedKeyUsageOID.SERVER_AUTH if for_server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            _builder(name, self.certificate.subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(list(map(_alternative, names))), critical=False)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        certificate = builder.sign(self.key, hashes.SHA256())
        with (self._folder / _ISSUED).open("a", encoding="utf-8") as file:  # first: what is not listed is not revoked
            file.write(f"{certificate.serial_number:x} {name}\n")
        return _write(self._folder, name, certificate, key)

    def renew(self, name: str, days: float) -> Path:
        """Make a new certificate with the names of the present one."""
        from cryptography import x509

        present = x509.load_pem_x509_certificate((self._folder / f"{name}.pem").read_bytes())
        names = present.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
        hosts = [*names.get_values_for_type(x509.DNSName), *addresses]
        return self.make(name, hosts, days, for_server=name == COORDINATOR)


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
    replace_file(folder / f"{name}.key", secret, mode=0o600)
    path = folder / f"{name}.pem"
    replace_file(path, certificate.public_bytes(Encoding.PEM), mode=0o666)
    return path
