"""A peer with a valid certificate that opens many calls and never lets the server send a byte of data on them."""

from __future__ import annotations

import socket
import ssl
import struct

from collabtop.teams.sites.frames import METHOD, SERVICE, Hello, encode, pieces

_DATA, _HEADERS, _SETTINGS = 0, 1, 4
_END_HEADERS = 4
_INITIAL_WINDOW_SIZE = 4


def _frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _literal(name, value):
    """A header field without compression."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def _headers():
    fields = {
        ":method": "POST",
        ":scheme": "https",
        ":path": f"/{SERVICE}/{METHOD}",
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    return b"".join(_literal(name, value) for name, value in fields.items())


class ZeroWindowPeer:
    """One connection with several calls, whose flow-control windows are zero."""

    def __init__(self, port, certs, name, calls=4, hello=True):
        context = ssl.create_default_context(cafile=certs / "authority.pem")
        context.load_cert_chain(certs / f"{name}.pem", certs / f"{name}.key")
        context.set_alpn_protocols(["h2"])
        raw = socket.create_connection(("localhost", port), timeout=10)
        self.socket = context.wrap_socket(raw, server_hostname="localhost")
        window = struct.pack(">HI", _INITIAL_WINDOW_SIZE, 0)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0, window))
        for call in range(calls):
            stream = 2 * call + 1
            self.socket.sendall(_frame(_HEADERS, _END_HEADERS, stream, _headers()))
            if hello:
                [piece] = pieces(encode(Hello(1, "", call + 1, 3, "")))
                message = b"\0" + struct.pack(">I", len(piece)) + piece
                self.socket.sendall(_frame(_DATA, 0, stream, message))

    def close(self):
        self.socket.close()
