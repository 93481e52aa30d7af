"""Pulls in separate processes, which can be killed after a time limit; Python cannot kill a thread."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

from collabtop.arms.calls import AttemptOutcome, PullAttempt, PullFunction, make_attempt
from collabtop.arms.policy import PullPolicy
from collabtop.errors import InputError, PullError

_READY = "ready"
_START_LIMIT = 60.0


class WorkerCaller:
    """Makes attempts in a pool of processes, one per concurrent pull, and kills those that take too long."""

    def __init__(self, function: PullFunction, policy: PullPolicy, dumps: Callable[[Any], bytes]) -> None:
        assert policy.time_limit is not None
        self._limit, self._retry_on = policy.time_limit, policy.retry_on
        try:
            self._pickled = dumps((function, policy.retry_on))
        except Exception as error:
            raise InputError(
                f"pull cannot be sent to a separate process ({error}), as a time limit requires: define it at the top "
                "level of a module, make it async, or omit time_limit",
                argument="pull",
            ) from None
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._closed = False

    def call(self, attempt: PullAttempt) -> AttemptOutcome:
        """Make one attempt in a process, which is killed if the attempt takes too long."""
        worker = self._take()
        limit = self._limit * attempt.times
        try:
            outcome = worker.run(attempt, limit)
        except EOFError:
            outcome = AttemptOutcome(
                None, f"ended its process (exit code {worker.exit_code()})", issubclass(RuntimeError, self._retry_on)
            )
        except BaseException:
            self._drop(worker)
            raise
        if outcome is None:
            outcome = AttemptOutcome(None, f"took longer than {limit:g} s", issubclass(TimeoutError, self._retry_on))
        if worker.is_idle:
            with self._lock:
                self._idle.append(worker)
        else:
            self._drop(worker)
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
        worker = _Worker(self._pickled)
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

    def __init__(self, pickled: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, remote_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(remote_end, pickled), daemon=True, name="collabtop pull")
        self._process.start()
        remote_end.close()
        self.is_idle = True
        self._kill_lock = threading.Lock()

    def wait_until_ready(self) -> None:
        try:
            status = self._pipe.recv() if self._pipe.poll(_START_LIMIT) else f"no response within {_START_LIMIT:g} s"
        except (EOFError, OSError):
            status = (
                "it ended immediately; a script that uses a time limit has to keep its main code under "
                'if __name__ == "__main__":'
            )
        if status != _READY:
            raise PullError(f"the process for pulls with a time limit did not start: {status}", "")

    def run(self, attempt: PullAttempt, limit: float) -> AttemptOutcome | None:
        """Return the outcome of an attempt, or None if it took too long."""
        self.is_idle = False
        try:
            self._pipe.send(attempt)
            if not self._pipe.poll(limit):
                return None
            outcome: AttemptOutcome = self._pipe.recv()
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
        function, retry_on = pickle.loads(pickled)
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
        return
    pipe.send(_READY)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            attempt: PullAttempt = pipe.recv()
            pipe.send(make_attempt(function, attempt, retry_on)._replace(cause=None))


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        _kill_group(os.getpid())
        os._exit(1)
