"""Several pulls at once: threads that share the pulls of all agents of a run."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Generic, TypeVar

import msgspec

from collabtop.arms.base import Charge
from collabtop.arms.rate import Rate

Job = TypeVar("Job")

_GRACE = 1.0
"""Seconds that pulls under way get to finish when the user stops the run."""


_SECONDS_AT_ONCE = 0.02
"""How long the jobs that a thread takes at once should last together."""


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
        batch = _Batch(jobs, work, count, len(self._threads))
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
    """The jobs of one agent.

    A thread takes as many quick jobs at once as it does in a fiftieth of a second, since taking one costs time. When no
    more are left to take, it does what others have taken and not begun.
    """

    def __init__(self, jobs: Iterator[Job], work: Callable[[Job], None], count: int, workers: int) -> None:
        self.done = threading.Event()
        self.errors: dict[int, BaseException] = {}
        self._jobs, self._work = enumerate(jobs), work
        self._lock = threading.Lock()
        self._taken, self._count, self._workers = 0, count, workers
        self._waiting: list[deque[tuple[int, Job]]] = []
        """The jobs that each thread has taken and not begun."""
        self._taking_part = 0
        self._stopped = self._exhausted = False

    def stop(self) -> None:
        """Begin no further job."""
        with self._lock:
            self._stopped = True
            self._finish_if_idle()

    def take_part(self) -> None:
        """Do jobs until there are no more."""
        own: deque[tuple[int, Job]] = deque()
        with self._lock:
            self._waiting.append(own)
            self._taking_part += 1
        size = 1
        while self._take(own, size):
            began, jobs = perf_counter(), len(own)
            self._do(own)
            size = int(jobs * _SECONDS_AT_ONCE / max(perf_counter() - began, 1e-6))
        for other in self._waiting:
            self._do(other)
        with self._lock:
            self._taking_part -= 1
            self._finish_if_idle()

    def _take(self, own: "deque[tuple[int, Job]]", size: int) -> bool:
        """Take some of the jobs that are left, and say whether there were any."""
        with self._lock:
            if self._stopped or self._exhausted:
                return False
            size = max(1, min(size, (self._count - self._taken) // (2 * self._workers)))
            try:
                own.extend(islice(self._jobs, size))
                self._exhausted = len(own) < size
            except BaseException as error:
                self.errors[self._taken + len(own)] = error
                self._stopped = True
            self._taken += len(own)
            return bool(own) and not self._stopped

    def _do(self, jobs: "deque[tuple[int, Job]]") -> None:
        while not self._stopped:
            try:
                number, job = jobs.popleft()
            except IndexError:
                return
            try:
                self._work(job)
            except BaseException as error:
                self.errors[number] = error
                self._stopped = True

    def _finish_if_idle(self) -> None:
        if not self._taking_part and (self._stopped or self._exhausted):
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
