"""An event loop in its own thread, for code that is not asynchronous itself."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

Value = TypeVar("Value")


class EventLoopThread:
    """Runs coroutines for callers in other threads.

    >>> async def three():
    ...     return 3
    >>> loop = EventLoopThread("example")
    >>> loop.run(three())
    3
    >>> loop.close()
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        # A daemon: a coroutine that blocks the loop must not keep the process alive.
        self._thread = threading.Thread(target=self._run, name=f"collabtop {name}", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Run a coroutine and return its result; raise `CancelledError` if the loop is closed before it ends.

        If the caller is interrupted, the coroutine is cancelled.
        """
        try:
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        except RuntimeError:  # the loop is already closed
            work.close()
            raise CancelledError from None
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self, timeout: float = 5.0) -> None:
        """Cancel all coroutines and wait up to `timeout` seconds for the thread to end."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout)

    def _run(self) -> None:
        self.loop.run_forever()
        self.loop.run_until_complete(_cancel_all())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
