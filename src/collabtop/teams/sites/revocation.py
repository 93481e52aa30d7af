"""The list of revoked certificates: signed by the authority, and read again by the coordinator whenever it changes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from collabtop.errors import FileError, InputError, reason
from collabtop.runlog.regular import regular_only
from collabtop.teams.sites.certificates import AUTHORITY, Issuer, issued_serials, listed_names, replace_file
from collabtop.text_files import read_limited
from collabtop.validation import require

if TYPE_CHECKING:
    from cryptography import x509

log = logging.getLogger("collabtop.sites")

REVOKED = "revoked.pem"
"""The name of the list, in the folder of the authority."""
LARGEST_LIST = 1 << 24
"""The most bytes of the list, and of that of the certificates that were made."""
_LIST_DAYS = 36_500


def revoke_certificates(folder: str | PathLike[str], names: Sequence[str]) -> Path:
    """Revoke all certificates that were made for these names; return the list, `revoked.pem`.

    A coordinator reads the list beside its authority, again whenever it changes, and rejects or disconnects peers with
    a revoked certificate. A certificate that is made later for the same name is valid.

    >>> import tempfile, collabtop as ct
    >>> folder = tempfile.mkdtemp()
    >>> _ = ct.make_certificates(folder, ["north"])
    >>> ct.revoke_certificates(folder, ["north"]).name
    'revoked.pem'
    """
    require("sites", "cryptography", what="revoking certificates")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding

    folder, names, now = Path(folder), listed_names("names", names), datetime.now(UTC)
    try:
        issuer = Issuer(folder)
        issued = issued_serials(folder)
        unknown = [name for name in names if name not in issued]
        if unknown:
            raise InputError(f"names has {unknown[0]!r:.80}, but no certificate was made for it here", argument="names")
        serials = {serial for name in names for serial in issued[name]}
        path = folder / REVOKED
        if path.exists():
            serials |= RevocationList(path, folder / f"{AUTHORITY}.pem").serials
        builder = x509.CertificateRevocationListBuilder(issuer.certificate.subject, now, now + timedelta(_LIST_DAYS))
        for serial in sorted(serials):
            builder = builder.add_revoked_certificate(
                x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
            )
        replace_file(path, builder.sign(issuer.key, hashes.SHA256()).public_bytes(Encoding.PEM), mode=0o644)
    except OSError as error:
        raise FileError(f"certificates in {str(folder)!r}: {reason(error)}", argument="folder") from None
    return path


class RevocationList:
    """The serial numbers of revoked certificates, from a file that need not exist.

    A file that cannot be used is an error at first; later the list that was read before stays in force, also if the
    file is gone.
    """

    def __init__(self, path: Path, authority: Path) -> None:
        self._path, self._authority = path, authority
        self._version = self._file_version()
        self.serials = self._read()

    def refresh(self) -> bool:
        """Read the file again if it has changed; return whether the list did."""
        version = self._file_version()
        if version == self._version:
            return False
        self._version, before = version, self.serials
        try:
            if version is None:
                raise FileError(f"{str(self._path)!r} is gone")
            self.serials = self._read()
        except FileError as error:
            log.error("the list of revoked certificates is not used: %s", error)
        return self.serials != before

    def has(self, certificate: bytes) -> bool:
        """Whether a certificate in PEM format is revoked."""
        from cryptography import x509

        self.refresh()
        return bool(self.serials) and x509.load_pem_x509_certificate(certificate).serial_number in self.serials

    def _file_version(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> frozenset[int]:
        if self._version is None:
            return frozenset()
        from cryptography import x509

        try:
            revoked = x509.load_pem_x509_crl(read_limited(self._path, LARGEST_LIST, regular_only))
            authority = x509.load_pem_x509_certificate(self._authority.read_bytes())
            genuine = revoked.is_signature_valid(authority.public_key())  # type: ignore[arg-type]
        except OSError as error:
            raise FileError(f"{str(self._path)!r}: {reason(error)}") from None
        except (ValueError, TypeError):
            raise FileError(f"{str(self._path)!r} is not a list of revoked certificates") from None
        if not genuine:
            raise FileError(f"{str(self._path)!r} is not signed by the authority {str(self._authority)!r}")
        return frozenset(entry.serial_number for entry in _entries(revoked))


def _entries(revoked: x509.CertificateRevocationList) -> list[x509.RevokedCertificate]:
    return list(revoked)
