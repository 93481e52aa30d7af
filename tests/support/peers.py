"""Peers for tests, on either side, whose every frame the test chooses."""

from __future__ import annotations

import queue
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import grpc

from collabtop.teams.sites.frames import (
    METHOD,
    SERVICE,
    VERSION,
    Hello,
    Joiner,
    encode,
    pieces,
    read_from_coordinator,
    read_from_site,
)
from collabtop.teams.sites.tls import read_files


def wait_for_port(port, seconds=20):
    """Wait until the port is open, so that a failed connection means a rejection."""
    end = time.monotonic() + seconds
    while True:
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return
        assert time.monotonic() < end, "nothing listens"
        time.sleep(0.02)


class Peer:
    """Connects to the coordinator's port and sends what the test chooses."""

    def __init__(self, port, credentials, seconds=20):
        wait_for_port(port, seconds)
        address = f"localhost:{port}"
        options = [("grpc.use_local_subchannel_pool", 1)]
        if credentials is None:
            self.channel = grpc.insecure_channel(address, options)
        else:
            self.channel = grpc.secure_channel(address, credentials, options)
        self.outbox = queue.SimpleQueue()
        self.call = self.channel.stream_stream(f"/{SERVICE}/{METHOD}")(iter(self.outbox.get, None), timeout=20)
        self.joiner = Joiner(1 << 24)

    @classmethod
    def of(cls, port, certs, name, authority=None, seconds=20):
        key, certificate = (certs / f"{name}.key").read_bytes(), (certs / f"{name}.pem").read_bytes()
        trusted = ((authority or certs) / "authority.pem").read_bytes()
        return cls(port, grpc.ssl_channel_credentials(trusted, key, certificate), seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.outbox.put(None)
        self.call.cancel()
        self.channel.close()

    def send(self, frame):
        for piece in pieces(encode(frame)):
            self.outbox.put(piece)

    def send_bytes(self, data):
        self.outbox.put(data)

    def read(self):
        """The next frame, or None at the end of the stream."""
        for piece in self.call:
            whole = self.joiner.take(piece)
            if whole is not None:
                return read_from_coordinator(whole)
        return None

    def send_hello(self, arms=3):
        """Send a valid `Hello` and return the answer."""
        self.send(Hello(VERSION, "", id(self), arms, ""))
        return self.read()

    def is_rejected_by_tls(self):
        """Whether the connection fails before any frame is exchanged."""
        try:
            self.send_hello()
        except grpc.RpcError as error:
            return error.code() == grpc.StatusCode.UNAVAILABLE
        finally:
            self.close()
        return False


class MaliciousCoordinator:
    """Has the coordinator's certificate, and sends the frames that `talk` yields for the frames it receives."""

    def __init__(self, certs, talk):
        self.talk, files = talk, read_files(certs / "coordinator.pem")
        self.server = grpc.server(ThreadPoolExecutor(2))
        handler = grpc.stream_stream_rpc_method_handler(self._serve)
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
        pair, authority = [(files.key, files.certificate)], files.authority
        self.port = self.server.add_secure_port(
            "localhost:0", grpc.ssl_server_credentials(pair, authority, require_client_auth=True)
        )
        self.server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop(None).wait()

    def _serve(self, received, _):
        joiner = Joiner(1 << 24)
        frames = (read_from_site(whole) for piece in received if (whole := joiner.take(piece)) is not None)
        for frame in self.talk(frames):
            yield from pieces(encode(frame))
