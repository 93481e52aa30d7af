"""Serves the page: in the foreground for a command, in a thread for tests and programs."""

import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

import uvicorn

from collabtop.errors import FileError, InputError, reason
from collabtop.watch.auth import is_loopback
from collabtop.watch.server import PageServer
from collabtop.watch.watched_runs import Runs


class Page:
    """A page with the port that it is served on."""

    def __init__(self, runs: Runs, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> None:
        if token is None and not is_loopback(host):
            token = secrets.token_urlsafe(16)
        if token is not None and len(token) < 8:
            raise InputError(f"token has {len(token)} characters, but at least 8 are needed", argument="token")
        self.runs, self.token = runs, token
        self._socket = _listen(host, port)
        self.server = PageServer(runs, token)
        config = uvicorn.Config(
            self.server.app,
            log_level="critical",
            access_log=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=1,
            server_header=False,
        )
        self._uvicorn = uvicorn.Server(config)
        public_host = socket.gethostname() if host in ("0.0.0.0", "::") else host
        public_host = f"[{public_host}]" if ":" in public_host else public_host
        self.port: int = self._socket.getsockname()[1]
        self.address = f"http://{public_host}:{self.port}/"
        self.url = self.address if token is None else f"{self.address}?token={token}"
        """The address, with the token if one is required."""

    def serve(self, is_needed: Callable[[], bool] = lambda: True) -> None:
        """Serve until Ctrl-C, or until `is_needed`, which is checked twice per second, returns False."""
        threading.Thread(target=self._stop_when_unneeded, args=(is_needed,), daemon=True).start()
        try:
            self._uvicorn.run([self._socket])
        except KeyboardInterrupt:  # uvicorn shuts down in order and then raises it again
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Release the port."""
        self._socket.close()

    def stop(self) -> None:
        """Stop serving."""
        self._uvicorn.should_exit = True

    def _stop_when_unneeded(self, is_needed: Callable[[], bool]) -> None:
        while not self._uvicorn.should_exit and is_needed():
            time.sleep(0.5)
        self.stop()


def runs_in(sources: Sequence[str | PathLike[str]]) -> Runs:
    """The runs in files and folders, which must exist."""
    for source in sources:
        if not Path(source).exists():
            raise FileError(f"{str(source)!r} does not exist: give a checkpoint, or a folder of checkpoints")
    return Runs(sources)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(128)  # connections that arrive before the server is up wait instead of being rejected
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        cause = reason(error) if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot serve at host {host!r}, port {port}: {cause}; try a different --port") from None
    return listener
