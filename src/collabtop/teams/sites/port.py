"""The coordinator's port: mutual TLS with certificates that may be renewed while it is open, and limits on calls."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from collabtop.errors import FileError
from collabtop.teams.sites import frames, tls
from collabtop.validation import wrong_value

log = logging.getLogger("collabtop.sites")

_CLOSE_SECONDS = 2.0
MOST_CALLS = 4
"""Calls per site: one in use, and some on dead connections that nothing has noticed yet."""
_MOST_STRANGERS = 256
"""Calls that are just being rejected; each takes a moment."""


class Port:
    """A port of this machine, secured with mutual TLS. It lives on one event loop."""

    def __init__(self, listen: str, paths: tls.FilePaths, keepalive: float, sites: int) -> None:
        self._opened = False
        most_calls = _MOST_STRANGERS + MOST_CALLS * sites
        self._server = grpc.aio.server(options=tls.server_options(keepalive), maximum_concurrent_rpcs=most_calls)
        self._paths, self._version = paths, paths.version()
        credentials = grpc.dynamic_ssl_server_credentials(
            _configuration(paths.read()), self._renewed_files, require_client_authentication=True
        )
        try:
            self.number: int = self._server.add_secure_port(listen, credentials)
        except RuntimeError:
            raise wrong_value("listen", listen, "that address cannot be used: is the port in use?") from None

    @classmethod
    async def bind(cls, listen: str, paths: tls.FilePaths, keepalive: float, sites: int) -> "Port":
        """Bind the port on the running event loop; sites that connect wait until it is opened."""
        return cls(listen, paths, keepalive, sites)

    def _renewed_files(self) -> grpc.ServerCertificateConfiguration | None:
        """The files, if they were renewed since the last handshake and belong together; None to keep the old ones."""
        version = self._paths.version()
        if version == self._version:
            return None
        try:
            files = self._paths.read()
            tls.check_key(files)
        except FileError as error:
            log.warning("renewed certificates are not used yet: %s", error)
            return None
        self._version = version
        log.info("renewed certificates are in use")
        return _configuration(files)

    async def open(self, serve: Callable[[Any, Any], Awaitable[None]]) -> None:
        """Accept peers: call `serve` for each one with a valid certificate."""
        handler = grpc.stream_stream_rpc_method_handler(serve)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(frames.SERVICE, {frames.METHOD: handler}),)
        )
        await self._server.start()
        self._opened = True

    async def close(self) -> None:
        """Disconnect all peers and release the port."""
        if not self._opened:
            await self._server.start()  # a server that was never started cannot be stopped, and would keep the port
        await self._server.stop(grace=0.2)
        # gRPC's tasks for its calls outlive stop(), and it prints a traceback for each one that is cancelled when the
        # loop is closed. They cannot be listed, but the loop serves only this port, so wait for all of its tasks.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=_CLOSE_SECONDS)


def _configuration(files: tls.Files) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(files.key, files.certificate)], files.authority)
