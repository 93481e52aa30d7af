"""Several pulls at once: threads that share the pulls of all agents of a run."""

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import msgspec

from collabtop.arms.base import Charge
from collabtop.arms.rate import Rate

Job = TypeVar("Job")

_GRACE = 1.0
"""Seconds that pulls under way get to finish when the user stops the run."""


class CallOptions(msgspec.Struct, frozen=True):
    """How the user's function is called."""

    workers: int | None = None
    """How many calls run at once; None: one per agent."""
    rates: tuple[Rate, ...] = ()
    """How many calls may begin per unit of time."""
    processes: bool = False
    """Whether calls run in processes of their own."""
    set_up: Callable[[], Any] | None = None
    """Called once in each of these processes, before its first pull."""
    charge: Charge = "reported"
    """What a pull costs."""

    def shared_by(self, hosts: int) -> "CallOptions":
        """The options of one of several processes that share the calls.

        >>> CallOptions(workers=5, rates=(Rate(20),)).shared_by(2)
        CallOptions(workers=3, rates=(Rate(limit=10.0, per=1.0, amount=None),), ...)
        """
        rates = tuple(Rate(rate.limit / hosts, rate.per, rate.amount) for rate in self.rates)
        workers = None if self.workers is None else -(-self.workers // hosts)
        return msgspec.structs.replace(self, workers=workers, rates=rates)


class PullPool:
    """Threads that make pulls; the agents that need them wait.

    >>> pool, squares = PullPool(3), [0] * 5
    >>> def square(number):
    ...     squares[number] = number**2
    >>> pool.run(iter(range(5)), square, count=5)
    >>> squares
    [0, 1, 4, 9, 16]
    >>> pool.close()
    """

    def __init__(self, workers: int) -> None:
        self._queue: SimpleQueue[_Batch[Any] | None] = SimpleQueue()
        self._threads = [_Worker(self._queue, number) for number in range(workers)]

    def run(self, jobs: Iterator[Job], work: Callable[[Job], None], count: int) -> None:
        """Call `work` for every job (at most `count`), several at once, and wait; if one raises, no further one begins.

        The error of the earliest job is raised. The iterator is used by one thread at a time.
        """
        batch = _Batch(jobs, work)
        for _ in self._threads[:count]:
            self._queue.put(batch)
        try:
            batch.done.wait()
        except BaseException:  # Ctrl-C
            batch.stop()
            batch.done.wait(_GRACE)
            raise
        if batch.errors:
            raise batch.errors[min(batch.errors)]

    def close(self) -> None:
        """End the threads, except those whose function hangs: being daemons, they do not keep the process alive."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(timeout=0 if thread.is_busy else None)


class _Batch(Generic[Job]):
    """The jobs of one agent."""

    def __init__(self, jobs: Iterator[Job], work: Callable[[Job], None]) -> None:
        self.done = threading.Event()
        self.errors: dict[int, BaseException] = {}
        self._jobs, self._work = jobs, work
        self._lock = threading.Lock()
        self._number = self._running = 0
        self._stopped = False

    def stop(self) -> None:
        """Begin no further job."""
        with self._lock:
            self._stopped = True
            self._finish_if_idle()

    def take_part(self) -> None:
        """Do jobs until there are no more."""
        done: tuple[int, BaseException | None] | None = None
        while (taken := self._next(done)) is not None:
            number, job = taken
            try:
                self._work(job)
            except BaseException as error:
                done = number, error
            else:
                done = number, None

    def _next(self, done: tuple[int, BaseException | None] | None) -> tuple[int, Job] | None:
        """The next job, when the one before is done: both in one go, since the lock is held by one thread at a time."""
        with self._lock:
            if done is not None:
                self._end(*done)
            if self._stopped:
                return None
            number = self._number
            try:
                job = next(self._jobs)
            except BaseException as error:
                self._stopped = True
                if not isinstance(error, StopIteration):
                    self.errors[number] = error
                self._finish_if_idle()
                return None
            self._number += 1
            self._running += 1
            return number, job

    def _end(self, number: int, error: BaseException | None) -> None:
        self._running -= 1
        if error is not None:
            self.errors[number] = error
            self._stopped = True
        self._finish_if_idle()

    def _finish_if_idle(self) -> None:
        if self._stopped and not self._running:
            self.done.set()


class _Worker(threading.Thread):
    """Makes pulls, of one batch after the other. It is a daemon: a function that hangs does not block the exit."""

    def __init__(self, queue: "SimpleQueue[_Batch[Any] | None]", number: int) -> None:
        super().__init__(name=f"collabtop worker {number}", daemon=True)
        self._queue = queue
        self.is_busy = False
        self.start()

    def run(self) -> None:
        """Take part in batches until the pool is closed."""
        while (batch := self._queue.get()) is not None:
            self.is_busy = True
            batch.take_part()
            self.is_busy = False
