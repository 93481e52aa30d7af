"""Ways to call the user's function: straight away, on an event loop, or in a process that can be ended."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, Protocol

from collabtop.arms.calls import Outcome, Try, attempt, failed, judged
from collabtop.arms.event_loop import EventLoopThread
from collabtop.arms.policy import PullPolicy
from collabtop.arms.workers import WorkerCaller


class Trial(Protocol):
    """What is called for one attempt."""

    batch: bool
    is_async: bool

    def __call__(self, one: Try) -> Any:
        """Call the user's function."""


class Caller(Protocol):
    """Makes attempts, from any thread."""

    def call(self, one: Try) -> Outcome:
        """Make one attempt, and wait for it."""

    def close(self) -> None:
        """Let go of threads and processes; attempts under way are given up."""


def make_caller(trial: Trial, policy: PullPolicy, pack: Callable[[Any], bytes]) -> Caller:
    """The way to call that fits the function and the policy; `pack` makes bytes of it for another process."""
    if trial.is_async:
        return LoopCaller(trial, policy)
    if policy.time_limit is not None:
        return WorkerCaller(trial, policy, pack)
    return DirectCaller(trial, policy)


class DirectCaller:
    """Calls in the thread that asks."""

    def __init__(self, trial: Trial, policy: PullPolicy) -> None:
        self._trial, self._policy = trial, policy

    def call(self, one: Try) -> Outcome:
        """Call, and judge."""
        return attempt(self._trial, one, self._policy.retry_on)

    def close(self) -> None:
        """Nothing to let go of."""


class LoopCaller:
    """Runs coroutines on one event loop in a thread of its own; those who ask wait for theirs."""

    def __init__(self, trial: Trial, policy: PullPolicy) -> None:
        self._trial, self._policy = trial, policy
        self._loop = EventLoopThread("event loop")

    def call(self, one: Try) -> Outcome:
        """Run one attempt on the loop."""
        try:
            return self._loop.run(self._attempt(one))
        except CancelledError:
            return Outcome(None, "was given up")

    async def _attempt(self, one: Try) -> Outcome:
        limit = None if self._policy.time_limit is None else self._policy.time_limit * one.times
        retry_on = self._policy.retry_on
        try:
            value = await asyncio.wait_for(_awaited(self._trial, one), limit)
        except TimeoutError as error:
            if limit is None or str(error):
                return failed(error, retry_on)
            return Outcome(None, f"took longer than {limit:g} s", issubclass(TimeoutError, retry_on))
        except Exception as error:
            return failed(error, retry_on)
        return judged(value, one.times, self._trial.batch, retry_on)

    def close(self) -> None:
        """Cancel what is under way and end the loop."""
        self._loop.close(timeout=2)  # a coroutine that blocks the loop is not waited for


async def _awaited(trial: Callable[[Try], Any], one: Try) -> Any:
    value: Coroutine[Any, Any, Any] | Any = trial(one)
    return await value if inspect.isawaitable(value) else value
