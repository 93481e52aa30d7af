"""Serves the page: in the foreground for a command, in a thread for tests and programs."""

import asyncio
import os
import secrets
import shlex
import socket
import stat
import threading
import time
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from collabtop.errors import FileError, InputError, reason
from collabtop.runlog.regular import open_regular
from collabtop.watch.auth import is_loopback
from collabtop.watch.server import PageServer
from collabtop.watch.watched_runs import Runs

LARGEST_HEAD = 1 << 14
"""The most bytes of a request without its body."""
SECONDS_OF_HEAD = 10.0
"""How long the head of a request may take to arrive."""
MAX_CONNECTIONS = 128
"""The most connections at a time; requests on further ones are refused."""
LEAST_TOKEN, LARGEST_TOKEN = 8, 1_024
"""The fewest and the most characters of a token."""
TOKEN_VARIABLE = "COLLABTOP_TOKEN"


class Page:
    """A page with the port that it is served on."""

    def __init__(self, runs: Runs, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> None:
        drawn = None if token is not None or is_loopback(host) else secrets.token_urlsafe(16)
        token = drawn if token is None else token
        if token is not None:
            _check_token(token)
        self.runs, self.token = runs, token
        self._socket = _listen(host, port)
        self.server = PageServer(runs, token)
        config = uvicorn.Config(
            self.server.app,
            http=_Protocol,
            h11_max_incomplete_event_size=LARGEST_HEAD,
            limit_concurrency=MAX_CONNECTIONS,
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
        self.url = self.address if drawn is None else f"{self.address}?token={drawn}"
        """The address, with the token if one was drawn."""

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


class _Protocol(H11Protocol):
    """HTTP, with a deadline for the head of each request."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        else:
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(SECONDS_OF_HEAD, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def read_token(path: str | PathLike[str]) -> str:
    r"""The token in a file, which only its owner may read: the first line.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "token"
    >>> path.touch(mode=0o600)
    >>> path.write_text("long-and-secret\n")
    16
    >>> read_token(path)
    'long-and-secret'
    """
    try:
        with open_regular(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            line = file.read(4 * LARGEST_TOKEN + 2).partition(b"\n")[0]
    except OSError as error:
        raise FileError(f"token file {str(path)!r}: {reason(error)}", argument="token_file") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise FileError(
            f"token file {str(path)!r} has mode {stat.S_IMODE(mode):o}, but only its owner may have access: "
            f"chmod 600 {shlex.quote(str(path))}",
            argument="token_file",
        )
    try:
        token = line.decode().strip()
    except UnicodeDecodeError:
        raise FileError(f"token file {str(path)!r} is not UTF-8 text", argument="token_file") from None
    _check_token(token)
    return token


def token_of_environment() -> str | None:
    """The token in the environment, which processes started from now on do not see; None if there is none."""
    token = os.environ.pop(TOKEN_VARIABLE, None)
    if token is not None:
        if not token.isprintable():  # bytes that are not UTF-8 count as unprintable
            raise InputError(f"the token in {TOKEN_VARIABLE} has characters that cannot be typed")
        _check_token(token, f"the token in {TOKEN_VARIABLE}", argument=None)
    return token


def _check_token(token: str, name: str = "the token", *, argument: str | None = "token_file") -> None:
    if not LEAST_TOKEN <= len(token) <= LARGEST_TOKEN:
        needed = f"at least {LEAST_TOKEN}" if len(token) < LEAST_TOKEN else f"at most {LARGEST_TOKEN:,}"
        raise InputError(f"{name} has {len(token)} characters, but {needed} are needed", argument=argument)


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
