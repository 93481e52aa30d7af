"""The page, served by a thread of the test's own process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from collabtop.watch.serve import Page
from collabtop.watch.watched_runs import Runs

_SECONDS_TO_START = 10.0


@contextmanager
def page_in_thread(runs: Runs, *, host: str = "127.0.0.1", token: str | None = None) -> Iterator[Page]:
    """A page served by a thread of this process."""
    page = Page(runs, host=host, token=token)
    thread = threading.Thread(target=page.serve, daemon=True)
    thread.start()
    deadline = time.monotonic() + _SECONDS_TO_START
    while not page._uvicorn.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield page
    finally:
        page.stop()
        thread.join()
