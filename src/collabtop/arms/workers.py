"""Processes that make pulls and can be ended: Python cannot end a thread."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

from collabtop.arms.calls import Outcome, Try, attempt
from collabtop.arms.policy import PullPolicy
from collabtop.errors import InputError, PullError

_READY = "ready"
_START_LIMIT = 60.0


class WorkerCaller:
    """Hands attempts to processes, as many as there are agents pulling at once, and ends those that take too long."""

    def __init__(self, trial: Callable[[Try], Any], policy: PullPolicy, pack: Callable[[Any], bytes]) -> None:
        assert policy.time_limit is not None
        self._limit, self._retry_on = policy.time_limit, policy.retry_on
        try:
            self._cargo = pack((trial, policy.retry_on))
        except Exception as error:
            raise InputError(
                f"pull cannot be sent to a process ({error}), which a time limit needs: define it at the top of "
                "a module, make it async, or leave time_limit out",
                argument="pull",
            ) from None
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._closed = False

    def call(self, one: Try) -> Outcome:
        """Make one attempt in a process; it is ended if the attempt takes too long."""
        worker = self._take()
        limit = self._limit * one.times
        try:
            outcome = worker.ask(one, limit)
        except EOFError:
            outcome = Outcome(
                None, f"ended its process (exit code {worker.exit_code()})", issubclass(RuntimeError, self._retry_on)
            )
        except BaseException:
            self._drop(worker)
            raise
        if outcome is None:
            outcome = Outcome(None, f"took longer than {limit:g} s", issubclass(TimeoutError, self._retry_on))
        if worker.is_well:
            with self._lock:
                self._idle.append(worker)
        else:
            self._drop(worker)
        return outcome

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            self._drop(worker)

    def _take(self) -> _Worker:
        with self._lock:
            self._check_open()
            if self._idle:
                return self._idle.pop()
        worker = _Worker(self._cargo)
        try:
            with self._lock:
                self._check_open()  # the run may have ended meanwhile
                self._all.add(worker)
            worker.wait_until_ready()
        except BaseException:
            self._drop(worker)
            raise
        return worker

    def _check_open(self) -> None:
        if self._closed:
            raise PullError("a pull was asked for after the run had ended", "")

    def _drop(self, worker: _Worker) -> None:
        worker.end()
        with self._lock:
            self._all.discard(worker)


class _Worker:
    """One process, and the pipe to it."""

    def __init__(self, cargo: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, cargo), daemon=True, name="collabtop pull")
        self._process.start()
        theirs.close()
        self.is_well = True
        self._ending = threading.Lock()

    def wait_until_ready(self) -> None:
        try:
            said = self._ours.recv() if self._ours.poll(_START_LIMIT) else "no sign of life"
        except (EOFError, OSError):
            said = (
                "it ended at once; a script that uses a time limit has to keep its work under "
                'if __name__ == "__main__":'
            )
        if said != _READY:
            raise PullError(f"the process that a time limit needs did not start: {said}", "")

    def ask(self, one: Try, limit: float) -> Outcome | None:
        """The outcome, or None when it took too long."""
        self.is_well = False
        try:
            self._ours.send(one)
            if not self._ours.poll(limit):
                return None
            outcome: Outcome = self._ours.recv()
        except OSError:
            raise EOFError from None
        except (TypeError, ValueError):
            if self._ours.closed:  # by the run, which has ended, in the middle of this
                raise EOFError from None
            raise
        self.is_well = True
        return outcome

    def exit_code(self) -> int | None:
        with self._ending:  # of two threads that wait for a process only one learns its code
            self._process.join(1)
            return self._process.exitcode

    def end(self) -> None:
        """End it, once: at Ctrl-C the run ends all, and an agent that waited for one finds it gone."""
        self.is_well = False
        with self._ending:
            if not self._ours.closed:
                _end_group(self._process.pid)
                self._process.kill()
                self._process.join()
                self._ours.close()


def _end_group(pid: int | None) -> None:
    """End a worker with whatever the user's function started in it."""
    if pid is not None and hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)


def _serve(pipe: Connection, cargo: bytes) -> None:
    """The process: make attempts until nobody asks any more."""
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C is for the process that asks, and what is started here ends with us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        trial, retry_on = pickle.loads(cargo)
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
        return
    pipe.send(_READY)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            one: Try = pipe.recv()
            pipe.send(attempt(trial, one, retry_on)._replace(cause=None))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        _end_group(os.getpid())
        os._exit(1)
