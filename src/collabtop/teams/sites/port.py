"""The coordinator's port: taken first, opened later, so that its number is known before anybody can be let in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from collabtop.errors import InputError
from collabtop.teams.sites import tls

SERVICE, METHOD = "collabtop.Sites", "Join"
_LAST_CALLS = 2.0


class Port:
    """A port of this machine with mutual TLS in front of it. Lives on one event loop."""

    def __init__(self, listen: str, files: tls.Files, keepalive: float, sites: int) -> None:
        self._opened = False
        rooms = 16 + 4 * sites
        self._server = grpc.aio.server(options=tls.server_options(keepalive), maximum_concurrent_rpcs=rooms)
        credentials = grpc.ssl_server_credentials(
            [(files.key, files.certificate)], root_certificates=files.authority, require_client_auth=True
        )
        try:
            self.number: int = self._server.add_secure_port(listen, credentials)
        except RuntimeError:
            raise InputError(
                f"listen is {listen!r}, but nothing can listen there: is the port in use?", argument="listen"
            ) from None

    @classmethod
    async def take(cls, listen: str, files: tls.Files, keepalive: float, sites: int) -> Port:
        """Bind to the port, on the loop that this runs on; who dials waits until it is opened."""
        return cls(listen, files, keepalive, sites)

    async def open(self, serve: Callable[[Any, Any], Awaitable[None]]) -> None:
        """Let peers in: each with a valid certificate is handed to `serve`."""
        handler = grpc.stream_stream_rpc_method_handler(serve)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
        await self._server.start()
        self._opened = True

    async def close(self) -> None:
        """Hang up on all, and give the port back."""
        if not self._opened:
            await self._server.start()  # one that was never started cannot be stopped, and would keep the port
        await self._server.stop(grace=0.2)
        # Calls that have been hung up on still have to end: gRPC prints a traceback for one that is cancelled instead.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=_LAST_CALLS)
