"""Starts the page for the runs of this process, as a process of its own (`python -m collabtop.watch`).

In its own process the page stays responsive while a run keeps this one busy, still shows a run whose process was
killed, and may read a log that is locked here (closing a file releases all locks that its process has on it).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import webbrowser
from contextlib import suppress
from html import escape
from os import PathLike
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec

from collabtop.errors import CollabtopError
from collabtop.validation import require, whole_number


def open_page(log: str | PathLike[str] | None = None, *, in_browser: bool = True) -> tuple[str, Path]:
    """Show a run on the page of this process; returns the address and the log to write (by default a temporary file).

    The first call starts the page and prints its address on stderr. The page lists all runs that were shown, and is
    served until this process has ended and no browser shows it any more. If it was stopped, a new one is started.
    """
    need_watch_extra()
    with _lock:
        page = _page(in_browser)
        path = page.new_log() if log is None else Path(log).absolute()
        if log is not None:
            page.show(path)
    return page.url, path


class InlinePage(msgspec.Struct, frozen=True):
    """The page of a run, shown inline where a notebook shows its value (`Run.view`).

    >>> InlinePage("http://127.0.0.1:8765/runs/run.ctlog")._repr_html_()
    '<iframe src="http://127.0.0.1:8765/runs/run.ctlog" title="run.ctlog" width="100%" height="800"></iframe>'
    """

    url: str
    height: int = 800

    def _repr_html_(self) -> str:
        title = unquote(self.url.rpartition("/")[2])
        return f'<iframe src="{escape(self.url)}" title="{escape(title)}" width="100%" height="{self.height}"></iframe>'


def inline_page(log: str | PathLike[str], height: int = 800) -> InlinePage:
    """Show a log on the page of this process, to be displayed in a notebook."""
    height = whole_number("height", height, least=100, most=10_000)
    url, path = open_page(log, in_browser=False)
    return InlinePage(f"{url}runs/{quote(path.name)}", height)


def need_watch_extra() -> None:
    """Check that the packages that serve the page are installed."""
    require("watch", "starlette", "uvicorn", what="the page")


def open_browser(url: str) -> None:
    """Open an address in the browser, if this machine has a screen."""
    on_screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform in ("darwin", "win32") or on_screen:
        with suppress(webbrowser.Error):
            webbrowser.open(url)


class _PageProcess:
    """The process that serves the page, and the folder of its temporary logs."""

    def __init__(self, in_browser: bool) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="collabtop-watch-"))
        self._runs = 0
        command = [sys.executable, "-m", "collabtop.watch", str(self._folder)]
        # In a session of its own, because Ctrl-C is meant for the run.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise CollabtopError("the page could not be started: use a checkpoint and collabtop watch instead")
        print(f"watch it at {self.url}", file=sys.stderr, flush=True)
        if in_browser:
            open_browser(self.url)

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended or is about to: deleting its folder is the last thing it does."""
        return self._process.poll() is not None or not self._folder.exists()

    def close(self) -> None:
        """End the process, which may still be running if only its folder was deleted."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()
        with suppress(OSError):  # the other end is closed
            self._process.stdin.close()

    def new_log(self) -> Path:
        """The path for the temporary log of the next run."""
        self._runs += 1
        return self._folder / f"run-{self._runs}.ctlog"

    def show(self, path: Path) -> None:
        """Show a log on the page."""
        with suppress(OSError):  # the page was stopped, which must not stop the run
            assert self._process.stdin is not None
            self._process.stdin.write(f"{path}\n")
            self._process.stdin.flush()


_lock = threading.Lock()
_pages: dict[bool, _PageProcess] = {}
"""The page of this process, by whether it opens in a browser."""


def _page(in_browser: bool) -> _PageProcess:
    page = _pages.get(in_browser)
    if page is not None and page.has_ended:
        page.close()
    elif page is not None:
        return page
    _pages[in_browser] = _PageProcess(in_browser)
    return _pages[in_browser]
