"""Mutual TLS for gRPC: certificate files, the names of peers, and the options of connections."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from collabtop.errors import FileError, reason
from collabtop.teams.sites.certificates import AUTHORITY
from collabtop.teams.sites.frames import PIECE

_MARGIN = 64
_HANDSHAKE_MILLISECONDS = 10_000


class Files(msgspec.Struct, frozen=True):
    """A certificate with its key, and the authority that must have issued the peer's certificate."""

    certificate: bytes
    key: bytes
    authority: bytes

    def __repr__(self) -> str:  # a key must not appear in a log
        return "Files(...)"


def read_files(
    certificate: str | PathLike[str],
    key: str | PathLike[str] | None = None,
    authority: str | PathLike[str] | None = None,
) -> Files:
    """Read a certificate, its key and the authority; by default NAME.key and authority.pem beside NAME.pem."""
    path = Path(certificate)
    root = path.with_name(f"{AUTHORITY}.pem") if authority is None else Path(authority)
    return Files(
        _read("cert", path, b"CERTIFICATE"),
        _read("key", path.with_suffix(".key") if key is None else Path(key), b"PRIVATE KEY"),
        _read("authority", root, b"CERTIFICATE"),
    )


def _read(name: str, path: Path, kind: bytes) -> bytes:
    try:
        data = path.read_bytes()
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
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MILLISECONDS),
        ("grpc.max_metadata_size", 4096),
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
