"""The page in the browser that shows the runs of this process: served by a process of its own.

So it stays quick while a run keeps this one busy, goes on showing a run whose process was killed, and may read a log
that is locked here (a process that opens a file which it has locked itself, and closes it, gives back the lock).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import webbrowser
from contextlib import suppress
from os import PathLike
from pathlib import Path

from collabtop.errors import CollabtopError
from collabtop.validation import require


def open_page(log: str | PathLike[str] | None = None, *, in_browser: bool = True) -> tuple[str, Path]:
    """Show a run in this process's page; its address, and the log to write (a temporary one, where none is given).

    The page is started at the first call, and said on stderr. It lists all runs that were shown, and stays as long
    as this process goes on or somebody looks at it. If somebody ended it, another one is started.
    """
    need_watch_extra()
    with _lock:
        page = _page(in_browser)
        path = page.new_log() if log is None else Path(log).absolute()
        if log is not None:
            page.show(path)
    return page.url, path


def need_watch_extra() -> None:
    """Check that what serves the page is installed."""
    require("watch", "starlette", "uvicorn", what="the page")


class _PageProcess:
    def __init__(self, in_browser: bool) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="collabtop-watch-"))
        self._runs = 0
        command = [sys.executable, "-m", "collabtop.watch", str(self._folder)]
        # In a session of its own: Ctrl-C is meant for the run.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise CollabtopError("the page could not be started; the run can be watched with collabtop watch instead")
        print(f"watch it at {self.url}", file=sys.stderr, flush=True)
        if in_browser and has_screen():
            with suppress(webbrowser.Error):
                webbrowser.open(self.url)

    @property
    def has_ended(self) -> bool:
        """Whether it is gone, or about to go: its folder is the last thing that it takes away."""
        return self._process.poll() is not None or not self._folder.exists()

    def close(self) -> None:
        """End what is left of it; somebody may have removed the folder of one that is still there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()
        with suppress(OSError):  # nobody reads it any more
            self._process.stdin.close()

    def new_log(self) -> Path:
        self._runs += 1
        return self._folder / f"run-{self._runs}.ctlog"

    def show(self, path: Path) -> None:
        with suppress(OSError):  # somebody ended the page: the run does not need it
            assert self._process.stdin is not None
            self._process.stdin.write(f"{path}\n")
            self._process.stdin.flush()


_lock = threading.Lock()
_pages: dict[bool, _PageProcess] = {}
"""The page of this process, by whether it was to open in a browser."""


def _page(in_browser: bool) -> _PageProcess:
    page = _pages.get(in_browser)
    if page is not None and page.has_ended:
        page.close()
    elif page is not None:
        return page
    _pages[in_browser] = _PageProcess(in_browser)
    return _pages[in_browser]


def has_screen() -> bool:
    """Whether there is a screen on which a browser could open."""
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
