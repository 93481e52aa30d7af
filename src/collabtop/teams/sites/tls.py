"""Mutual TLS for gRPC: certificate files, the names of peers, and the options of connections."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from collabtop.errors import FileError, InputError, reason
from collabtop.runlog.regular import regular_only
from collabtop.teams.sites.certificates import AUTHORITY, check_mode
from collabtop.teams.sites.frames import PIECE
from collabtop.text_files import LARGEST_SETTINGS, read_limited

_MARGIN = 64
_LARGEST_HEADERS = 1 << 12
_HANDSHAKE_SECONDS = 10
_IDLE_SECONDS = 10
"""A connection without a call is closed after this; a site always has one."""


class Files(msgspec.Struct, frozen=True):
    """A certificate with its key, and the authority that must have issued the peer's certificate."""

    certificate: bytes
    key: bytes
    authority: bytes

    def __repr__(self) -> str:  # a key must not appear in a log
        return "Files(...)"


class FilePaths(msgspec.Struct, frozen=True):
    """Where a certificate, its key and the authority are; they may be renewed while they are in use."""

    certificate: Path
    key: Path
    authority: Path

    def read(self) -> Files:
        """Read the files; raise `FileError` if one is missing or wrong, or if others can read the key."""
        return Files(
            _read("cert", self.certificate, b"CERTIFICATE"),
            _read_key(self.key),
            _read("authority", self.authority, b"CERTIFICATE"),
        )

    def version(self) -> tuple[int, ...]:
        """Numbers that change when a file is replaced."""
        try:
            states = [path.stat() for path in (self.certificate, self.key, self.authority)]
        except OSError:  # it is just being replaced
            return ()
        return tuple(number for state in states for number in (state.st_mtime_ns, state.st_size, state.st_ino))


def file_paths(
    certificate: str | PathLike[str],
    key: str | PathLike[str] | None = None,
    authority: str | PathLike[str] | None = None,
) -> FilePaths:
    """Where the files are; by default NAME.key and authority.pem beside NAME.pem."""
    path = Path(certificate)
    return FilePaths(
        path,
        path.with_suffix(".key") if key is None else Path(key),
        path.with_name(f"{AUTHORITY}.pem") if authority is None else Path(authority),
    )


def read_files(
    certificate: str | PathLike[str],
    key: str | PathLike[str] | None = None,
    authority: str | PathLike[str] | None = None,
) -> Files:
    """Read a certificate, its key and the authority; by default NAME.key and authority.pem beside NAME.pem."""
    return file_paths(certificate, key, authority).read()


def _read_key(path: Path) -> bytes:
    data = _read("key", path, b"PRIVATE KEY")
    check_mode(path)
    return data


def certificate_dates(certificate: bytes, path: Path) -> None:
    """Raise `InputError` if a certificate has expired or is not valid yet: one of the two clocks may be wrong."""
    from cryptography import x509

    try:
        valid = x509.load_pem_x509_certificate(certificate)
    except ValueError as error:
        raise FileError(f"cert {str(path)!r} is not a certificate: {error}", argument="cert") from None
    now = datetime.now(UTC)
    if valid.not_valid_after_utc < now:
        raise InputError(
            f"cert {str(path)!r} expired on {valid.not_valid_after_utc:%Y-%m-%d %H:%M} UTC, and the clock of this "
            f"machine shows {now:%Y-%m-%d %H:%M}: collabtop certs renew makes a new one",
            argument="cert",
        )
    if now < valid.not_valid_before_utc:
        raise InputError(
            f"cert {str(path)!r} is valid from {valid.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on, but the clock of "
            f"this machine shows {now:%Y-%m-%d %H:%M}: set the clock",
            argument="cert",
        )


def _read(name: str, path: Path, kind: bytes) -> bytes:
    try:
        data = read_limited(path, LARGEST_SETTINGS, regular_only)  # a pipe would stop a coordinator that reads it again
    except OSError as error:
        raise FileError(
            f"{name} {str(path)!r}: {reason(error)} (collabtop certs makes the files)", argument=name
        ) from None
    if b"-----BEGIN " not in data or kind not in data:
        raise FileError(f"{name} {str(path)!r} is not a {kind.decode().lower()} in PEM format", argument=name)
    return data


def peer_names(auth_context: Mapping[str, Iterable[bytes]]) -> set[str]:
    """The names in a peer's certificate.

    >>> sorted(peer_names({"x509_common_name": [b"north"], "transport_security_type": [b"ssl"]}))
    ['north']
    """
    return {name.decode("utf-8", "replace") for name in auth_context.get("x509_common_name", ())}


def peer_certificate(auth_context: Mapping[str, Iterable[bytes]]) -> bytes:
    """A peer's certificate, in PEM format."""
    return next(iter(auth_context.get("x509_pem_cert", ())), b"")


def check_key(files: Files) -> None:
    """Raise `FileError` if the key does not belong to the certificate: only one of the files was replaced so far."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        certified = x509.load_pem_x509_certificate(files.certificate).public_key()
        matches = load_pem_private_key(files.key, None).public_key() == certified
    except (ValueError, TypeError):
        matches = False
    if not matches:
        raise FileError("the key does not belong to the certificate")


def channel_options(keepalive: float) -> list[tuple[str, Any]]:
    """Options for both sides: pings that detect a frozen peer, and limits on the size of messages.

    gRPC's own threads answer pings, so a site whose function blocks the interpreter does not count as frozen.
    """
    milliseconds = max(1, int(keepalive * 1000))
    return [
        ("grpc.keepalive_time_ms", milliseconds),
        ("grpc.keepalive_timeout_ms", milliseconds),
        ("grpc.http2.ping_timeout_ms", milliseconds),  # otherwise a frozen peer is noticed only after 70 s
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", milliseconds // 2),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", milliseconds // 4),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.max_receive_message_length", PIECE + _MARGIN),
        ("grpc.max_send_message_length", PIECE + _MARGIN),
        ("grpc.enable_http_proxy", 0),
    ]


def server_options(keepalive: float) -> list[tuple[str, Any]]:
    """Options for the coordinator: also limits on idle or hostile peers."""
    return [
        *channel_options(keepalive),
        ("grpc.max_concurrent_streams", 4),
        ("grpc.max_connection_idle_ms", int(1000 * _IDLE_SECONDS)),
        ("grpc.server_handshake_timeout_ms", int(1000 * _HANDSHAKE_SECONDS)),
        ("grpc.max_metadata_size", _LARGEST_HEADERS),
        ("grpc.absolute_max_metadata_size", _LARGEST_HEADERS),
        ("grpc.so_reuseport", 0),
    ]


def client_options(keepalive: float) -> list[tuple[str, Any]]:
    """Options for a site: also no retries by gRPC, since the site itself reconnects."""
    return [
        *channel_options(keepalive),
        ("grpc.enable_retries", 0),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1_000),
        ("grpc.use_local_subchannel_pool", 1),
    ]
