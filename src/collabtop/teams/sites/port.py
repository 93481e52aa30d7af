"""The coordinator's port. It is bound first and opened later, so that its number is known before sites can connect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from collabtop.teams.sites import tls
from collabtop.validation import wrong_value

SERVICE, METHOD = "collabtop.Sites", "Join"
_CLOSE_SECONDS = 2.0


class Port:
    """A port of this machine, secured with mutual TLS. It lives on one event loop."""

    def __init__(self, listen: str, files: tls.Files, keepalive: float, sites: int) -> None:
        self._opened = False
        most_calls = 16 + 4 * sites
        self._server = grpc.aio.server(options=tls.server_options(keepalive), maximum_concurrent_rpcs=most_calls)
        credentials = grpc.ssl_server_credentials(
            [(files.key, files.certificate)], root_certificates=files.authority, require_client_auth=True
        )
        try:
            self.number: int = self._server.add_secure_port(listen, credentials)
        except RuntimeError:
            raise wrong_value("listen", listen, "that address cannot be used: is the port in use?") from None

    @classmethod
    async def bind(cls, listen: str, files: tls.Files, keepalive: float, sites: int) -> Port:
        """Bind the port on the running event loop; sites that connect wait until it is opened."""
        return cls(listen, files, keepalive, sites)

    async def open(self, serve: Callable[[Any, Any], Awaitable[None]]) -> None:
        """Accept peers: call `serve` for each one with a valid certificate."""
        handler = grpc.stream_stream_rpc_method_handler(serve)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
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
