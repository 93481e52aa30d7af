"""The process that serves the page of a run with `watch=True`; `collabtop.runs.page_launcher` starts it.

It prints its address, then reads paths of logs to show from stdin, one per line. It ends when the process that started
it has ended (stdin is closed) and no page is open any more. It deletes its folder when it ends. If it is killed, the
next such process deletes the folder.
"""

import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from collabtop.runlog.locks import is_in_use, lock_file
from collabtop.watch.serve import Page
from collabtop.watch.watched_runs import Runs

_SECONDS_UNUSED = 20.0
_LOCK_NAME = "page"
"""A file in the folder of a page that its process keeps locked; it has content only after it was locked."""


def main(folder: str, seconds_unused: float = _SECONDS_UNUSED) -> None:
    """Serve the runs in a folder, and those whose paths arrive on stdin; delete the folder at the end."""
    page = Page(Runs([folder]))
    # These handlers stop the page in an orderly way, even before the server is up. The server installs handlers of its
    # own and raises the signal again when it has stopped, which must not end this process before the folder is deleted.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, lambda *_: page.stop())
    starter_ended = threading.Event()

    def read_paths() -> None:
        for line in sys.stdin:
            page.runs.add(line.rstrip("\n"))
        starter_ended.set()

    last_used = time.monotonic()

    def is_needed() -> bool:
        nonlocal last_used
        if page.server.viewers or not starter_ended.is_set():
            last_used = time.monotonic()
        return time.monotonic() - last_used < seconds_unused

    try:
        with (Path(folder) / _LOCK_NAME).open("w") as file:
            lock_file(file)
            print("locked", file=file, flush=True)  # only now: another process may check at any moment
            print(page.url, flush=True)
            threading.Thread(target=read_paths, daemon=True).start()
            delete_stale_folders(Path(folder))
            page.serve(is_needed)
    finally:
        shutil.rmtree(Path(folder), ignore_errors=True)


def delete_stale_folders(folder: Path) -> None:
    """Delete the folders of pages that were killed, except those whose run is still in progress."""
    for other in folder.parent.glob("collabtop-watch-*"):
        with suppress(OSError):  # belongs to a different user, or has no lock file yet
            if other == folder or other.is_symlink() or not (other / _LOCK_NAME).stat().st_size:
                continue
            if all(is_in_use(file) is False for file in (other / _LOCK_NAME, *other.glob("*.ctlog"))):
                shutil.rmtree(other, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
