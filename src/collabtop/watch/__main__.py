"""The page of a run that is going on, in a process of its own: started by `collabtop.runs.watch_page`.

It prints its address, then reads paths of logs to show, one a line. When its starter is gone (no more lines) and nobody
looks at the page any more, it ends. Its folder goes with it; what a page that was killed left behind, the next one
takes away.
"""

from __future__ import annotations

import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from collabtop.runlog.file import is_in_use, lock_file
from collabtop.watch.runs import Runs
from collabtop.watch.serve import Page

_SECONDS_ALONE = 20.0
_MARK = "page"
"""A file in the folder of a page that its process keeps locked, and has done so since there is something in it."""


def main(folder: str, seconds_alone: float = _SECONDS_ALONE) -> None:
    """Serve the runs of a folder, which is taken away in the end, and the paths that come."""
    page = Page(Runs([folder]))
    # Told to end, it stops in good order, also before the server is up. The server has handlers of its own, and raises
    # the signal again when it is done, which must not end us before the folder is away.
    for told in (signal.SIGINT, signal.SIGTERM):
        signal.signal(told, lambda *_: page.stop())
    starter_is_gone = threading.Event()

    def read_paths() -> None:
        for line in sys.stdin:
            page.runs.add(line.rstrip("\n"))
        starter_is_gone.set()

    last_seen = time.monotonic()

    def is_needed() -> bool:
        nonlocal last_seen
        if page.server.viewers or not starter_is_gone.is_set():
            last_seen = time.monotonic()
        return time.monotonic() - last_seen < seconds_alone

    try:
        with (Path(folder) / _MARK).open("w") as mark:
            lock_file(mark)
            print("locked", file=mark, flush=True)  # only now: another page may look at any moment
            print(page.url, flush=True)
            threading.Thread(target=read_paths, daemon=True).start()
            take_away_what_others_left(Path(folder))
            page.serve(is_needed)
    finally:
        shutil.rmtree(Path(folder), ignore_errors=True)


def take_away_what_others_left(folder: Path) -> None:
    """Remove the folders of pages that were killed; one whose run still goes on is left alone."""
    for other in folder.parent.glob("collabtop-watch-*"):
        with suppress(OSError):  # somebody else's, or one without a mark yet
            if other == folder or other.is_symlink() or not (other / _MARK).stat().st_size:
                continue
            if all(is_in_use(file) is False for file in (other / _MARK, *other.glob("*.ctlog"))):
                shutil.rmtree(other, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
