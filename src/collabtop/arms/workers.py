"""Pulls in worker processes: for functions that compute, and for time limits, since Python cannot kill a thread."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from collabtop.arms.calls import AttemptOutcome, CallOutcome, DirectCaller, PullAttempt, PullFunction
from collabtop.arms.policy import PullPolicy
from collabtop.arms.pool import CallOptions
from collabtop.errors import InputError, PullError

_READY = "ready"
_START_LIMIT = 60.0
_REPLACEMENTS = 3
"""How often a worker that died is replaced for one pull."""


class WorkerCaller:
    """Makes attempts in a pool of processes, one per concurrent pull, and kills those that take too long.

    With `options.processes`, a worker that dies is replaced and makes its pull again.
    """

    def __init__(
        self,
        function: PullFunction,
        policy: PullPolicy,
        dumps: Callable[[Any], bytes],
        options: CallOptions | None = None,
    ) -> None:
        options = options or CallOptions()
        self._limit, self._retry_on = policy.time_limit, policy.retry_on
        self._replacements = _REPLACEMENTS if options.processes else 0
        self._one_thread_each = options.processes
        try:
            self._pickled = dumps((function, policy.retry_on, options.set_up))
        except Exception as error:
            reason = "team='processes'" if options.processes else "a time limit"
            raise InputError(
                f"pull cannot be sent to a separate process ({error}), as {reason} requires: leave out what cannot be "
                "pickled, such as locks, open files and connections, or make it async",
                argument="pull",
            ) from None
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._closed = False

    def call(self, attempt: PullAttempt) -> CallOutcome:
        """Make one attempt in a process, which is killed if the attempt takes too long."""
        deaths = 0
        while True:
            worker = self._take()
            try:
                outcome = self._run(worker, attempt)
            except EOFError:
                code = worker.exit_code()
                self._drop(worker)
                deaths += 1
                if deaths > self._replacements or self._closed:
                    times = f", {deaths} times" if deaths > 1 else ""
                    error = f"ended its process (exit code {code}{times})"
                    return AttemptOutcome(None, error, issubclass(RuntimeError, self._retry_on))
                continue
            except BaseException:
                self._drop(worker)
                raise
            return outcome

    def _run(self, worker: "_Worker", attempt: PullAttempt) -> CallOutcome:
        limit = None if self._limit is None else self._limit * attempt.times
        outcome = worker.run(attempt, limit)
        if outcome is None:
            self._drop(worker)
            return AttemptOutcome(None, f"took longer than {limit:g} s", issubclass(TimeoutError, self._retry_on))
        with self._lock:
            self._idle.append(worker)
        return outcome

    def close(self) -> None:
        """Kill all processes."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            self._drop(worker)

    def _take(self) -> "_Worker":
        with self._lock:
            self._check_open()
            if self._idle:
                return self._idle.pop()
        worker = _Worker(self._pickled, one_thread=self._one_thread_each)
        try:
            with self._lock:
                self._check_open()  # the run may have ended in the meantime
                self._all.add(worker)
            worker.wait_until_ready()
        except BaseException:
            self._drop(worker)
            raise
        return worker

    def _check_open(self) -> None:
        if self._closed:
            raise PullError("a pull was requested after the run had ended", "")

    def _drop(self, worker: "_Worker") -> None:
        worker.kill()
        with self._lock:
            self._all.discard(worker)


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, pickled: bytes, *, one_thread: bool = False) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, remote_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(remote_end, pickled), daemon=True, name="collabtop pull")
        with _one_thread_each() if one_thread else contextlib.nullcontext():
            self._process.start()
        remote_end.close()
        self.is_idle = True
        self._kill_lock = threading.Lock()

    def wait_until_ready(self) -> None:
        try:
            status = self._pipe.recv() if self._pipe.poll(_START_LIMIT) else f"no response within {_START_LIMIT:g} s"
        except (EOFError, OSError):
            status = (
                "it ended immediately; a script that uses worker processes or a time limit has to keep its main code "
                'under if __name__ == "__main__":'
            )
        if status != _READY:
            raise PullError(f"a worker process did not start: {status}", "")

    def run(self, attempt: PullAttempt, limit: float | None) -> CallOutcome | None:
        """Return the outcome of an attempt, or None if it took too long."""
        self.is_idle = False
        try:
            self._pipe.send(attempt)
            if not self._pipe.poll(limit):
                return None
            outcome: CallOutcome = self._pipe.recv()
        except OSError:
            raise EOFError from None
        except (TypeError, ValueError):
            if self._pipe.closed:  # closed meanwhile, since the run has ended
                raise EOFError from None
            raise
        self.is_idle = True
        return outcome

    def exit_code(self) -> int | None:
        with self._kill_lock:  # if two threads wait for a process, only one gets its exit code
            self._process.join(1)
            return self._process.exitcode

    def kill(self) -> None:
        """Kill the process, once: at Ctrl-C the run kills all of them, and so does the agent that waits for one."""
        self.is_idle = False
        with self._kill_lock:
            if not self._pipe.closed:
                _kill_group(self._process.pid)
                self._process.kill()
                self._process.join()
                self._pipe.close()


_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_environment_lock = threading.Lock()


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that start meanwhile use one thread for linear algebra, unless the environment says otherwise.

    The libraries read the environment when they are loaded, which is before a worker runs any code of ours.
    """
    with _environment_lock:
        added = [name for name in _THREAD_LIMITS if name not in os.environ]
        os.environ.update(dict.fromkeys(added, "1"))
        try:
            yield
        finally:
            for name in added:
                del os.environ[name]


def exit_if_importing_main() -> None:
    """End a worker process that runs the main code of a script instead of only importing it, without a traceback."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)


def dumps(value: Any) -> bytes:
    """Pickle a function with all that it refers to: lambdas, closures, and what a script or notebook defines."""
    import cloudpickle  # here, since most runs do not need it

    pickled: bytes = cloudpickle.dumps(value)
    return pickled


def _kill_group(pid: int | None) -> None:
    """Kill a worker and all processes that the user's function started in it."""
    if pid is not None and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)


def _serve(pipe: Connection, pickled: bytes) -> None:
    """Make attempts until the pipe is closed; runs in the worker process."""
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C goes to the parent only, and child processes are killed with this one
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        function, retry_on, set_up = pickle.loads(pickled)
        if set_up is not None:
            set_up()
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
        return
    caller = DirectCaller(function, retry_on)
    pipe.send(_READY)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            attempt: PullAttempt = pipe.recv()
            outcome = caller.call(attempt)
            pipe.send(outcome if isinstance(outcome, float) else outcome._replace(cause=None))


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        _kill_group(os.getpid())
        os._exit(1)
