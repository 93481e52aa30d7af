"""The page of a run that is going on, in a process of its own: started by `collabtop.watching`.

It prints its address, then reads paths of logs to show, one a line. When its starter is gone (no more lines) and nobody
looks at the page any more, it ends.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from pathlib import Path

from collabtop.watch.runs import Runs
from collabtop.watch.serving import Page

_SECONDS_ALONE = 20.0


def main(folder: str) -> None:
    """Serve the runs of a folder, which is taken away in the end, and the paths that come."""
    page = Page(Runs([folder]))
    starter_is_gone = threading.Event()
    print(page.url, flush=True)

    def read_paths() -> None:
        for line in sys.stdin:
            page.runs.add(line.rstrip("\n"))
        starter_is_gone.set()

    threading.Thread(target=read_paths, daemon=True).start()
    last_seen = time.monotonic()

    def is_needed() -> bool:
        nonlocal last_seen
        if page.server.viewers or not starter_is_gone.is_set():
            last_seen = time.monotonic()
        return time.monotonic() - last_seen < _SECONDS_ALONE

    try:
        page.serve(is_needed)
    finally:
        shutil.rmtree(Path(folder), ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
