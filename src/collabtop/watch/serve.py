"""Starts the page's server: in the foreground for a command, in a thread for tests and programs."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

import uvicorn

from collabtop.errors import FileError, InputError, reason
from collabtop.watch.auth import is_loopback
from collabtop.watch.runs import Runs
from collabtop.watch.server import PageServer

DEFAULT_PORT = 8765
_SECONDS_TO_START = 10.0


class Page:
    """A page that is, or is about to be, served."""

    def __init__(self, runs: Runs, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> None:
        if token is None and not is_loopback(host):
            token = secrets.token_urlsafe(16)
        if token is not None and len(token) < 8:
            raise InputError(
                "token is shorter than 8 characters: it keeps others out, so make it longer", argument="token"
            )
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
        shown = host if is_loopback(host) else socket.gethostname() if host in ("0.0.0.0", "::") else host
        shown = f"[{shown}]" if ":" in shown else shown
        self.port: int = self._socket.getsockname()[1]
        self.address = f"http://{shown}:{self.port}/"
        self.url = self.address if token is None else f"{self.address}?token={token}"
        """Where it is; with the token, where one is needed."""

    def serve(self, while_: Callable[[], bool] = lambda: True) -> None:
        """Serve until Ctrl-C, or until `while_` (asked now and then) says no."""
        threading.Thread(target=self._stop_when, args=(while_,), daemon=True).start()
        try:
            self._uvicorn.run([self._socket])
        except KeyboardInterrupt:  # uvicorn ends in good order and then passes it on
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Give back the port."""
        self._socket.close()

    def stop(self) -> None:
        """End it."""
        self._uvicorn.should_exit = True

    def _stop_when(self, while_: Callable[[], bool]) -> None:
        while not self._uvicorn.should_exit and while_():
            time.sleep(0.5)
        self.stop()


@contextmanager
def page_in_thread(runs: Runs, *, host: str = "127.0.0.1", token: str | None = None) -> Iterator[Page]:
    """A page served by a thread of this process; only for logs of other processes, or of runs that are over.

    Reading a log that this process is writing would give back its lock (see `protocol.locking`).
    """
    page = Page(runs, host=host, token=token)
    thread = threading.Thread(target=page.serve, daemon=True)
    thread.start()
    ends = time.monotonic() + _SECONDS_TO_START
    while not page._uvicorn.started and time.monotonic() < ends:
        time.sleep(0.01)
    try:
        yield page
    finally:
        page.stop()
        thread.join()


def runs_in(sources: Sequence[str | PathLike[str]]) -> Runs:
    """The runs of some files and folders, which have to be there."""
    for source in sources:
        if not Path(source).exists():
            raise FileError(f"{str(source)!r} is not there: give a checkpoint, or a folder of them")
    return Runs(sources)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((host, port))
            made.listen(128)  # who comes before the server is up waits, and is not turned away
        except BaseException:
            made.close()
            raise
    except (OSError, OverflowError) as error:
        said = reason(error) if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot serve at host {host!r}, port {port}: {said}; try another --port") from None
    return made
