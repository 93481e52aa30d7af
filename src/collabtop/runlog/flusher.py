"""Work that is done a moment later, by a thread that ends when it has nothing to do."""

import threading
from collections.abc import Callable


class Flusher:
    """Calls `work` at most `seconds` after each request, once for all requests until then.

    Its thread ends when there was no request for so long, and a later request starts a new one.

    >>> done = threading.Event()
    >>> flusher = Flusher(done.set, seconds=0.01)
    >>> flusher.request()
    >>> done.wait(10)
    True
    >>> flusher.stop()
    """

    def __init__(self, work: Callable[[], None], seconds: float) -> None:
        self._work, self._seconds = work, seconds
        self._lock = threading.Lock()
        self._requested = self._running = False
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def request(self) -> None:
        """Have the work done soon."""
        # Without the lock, for speed: it becomes False before the work begins, so that the work covers this request.
        if self._requested:
            return
        with self._lock:
            self._requested = True
            if self._running or self._stopped.is_set():
                return
            self._running = True
            self._thread = threading.Thread(target=self._run, name="collabtop flusher", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread without doing the work that is still requested; later requests are ignored."""
        self._stopped.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            with self._lock:
                if not self._requested:
                    self._running = False
                    return
                self._requested = False
            self._work()
