"""Ways to call the user's function: directly, on an event loop, or in a process that can be killed."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, Protocol

from collabtop.arms.calls import (
    AttemptOutcome,
    PullAttempt,
    PullFunction,
    make_attempt,
    outcome_of_error,
    outcome_of_value,
)
from collabtop.arms.policy import PullPolicy
from collabtop.arms.workers import WorkerCaller


class Caller(Protocol):
    """Makes attempts; may be used from any thread."""

    def call(self, attempt: PullAttempt) -> AttemptOutcome:
        """Make one attempt and wait for its outcome."""

    def close(self) -> None:
        """Release threads and processes; attempts in progress are abandoned."""


def make_caller(function: PullFunction, policy: PullPolicy, dumps: Callable[[Any], bytes]) -> Caller:
    """The caller that suits the function and the policy; `dumps` pickles the function for a separate process."""
    if function.is_async:
        return LoopCaller(function, policy)
    if policy.time_limit is not None:
        return WorkerCaller(function, policy, dumps)
    return DirectCaller(function, policy)


class DirectCaller:
    """Calls the function in the caller's thread."""

    def __init__(self, function: PullFunction, policy: PullPolicy) -> None:
        self._function, self._policy = function, policy

    def call(self, attempt: PullAttempt) -> AttemptOutcome:
        """Call the function and check its result."""
        return make_attempt(self._function, attempt, self._policy.retry_on)

    def close(self) -> None:
        """Do nothing."""


class LoopCaller:
    """Runs coroutines on one event loop in a thread of its own; those who ask wait for theirs."""

    def __init__(self, function: PullFunction, policy: PullPolicy) -> None:
        self._function, self._policy = function, policy
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="collabtop event loop", daemon=True)
        self._thread.start()

    def call(self, attempt: PullAttempt) -> AttemptOutcome:
        """Run one attempt on the loop."""
        try:
            future = asyncio.run_coroutine_threadsafe(self._attempt(attempt), self._loop)
        except RuntimeError:  # the loop was closed under us
            return AttemptOutcome(None, "was abandoned")
        try:
            return future.result()
        except CancelledError:
            return AttemptOutcome(None, "was abandoned")
        except BaseException:
            future.cancel()
            raise

    async def _attempt(self, attempt: PullAttempt) -> AttemptOutcome:
        limit = None if self._policy.time_limit is None else self._policy.time_limit * attempt.times
        retry_on = self._policy.retry_on
        try:
            value = await asyncio.wait_for(_awaited(self._function, attempt), limit)
        except TimeoutError as error:
            if limit is None or str(error):
                return outcome_of_error(error, retry_on)
            return AttemptOutcome(None, f"took longer than {limit:g} s", issubclass(TimeoutError, retry_on))
        except Exception as error:
            return outcome_of_error(error, retry_on)
        return outcome_of_value(value, attempt.times, self._function.batch, retry_on)

    def close(self) -> None:
        """Cancel what is under way and end the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=2)  # a coroutine that blocks its loop is not waited for: the thread is a daemon

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(_cancel_others())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _awaited(function: PullFunction, attempt: PullAttempt) -> Any:
    value: Coroutine[Any, Any, Any] | Any = function(attempt)
    return await value if inspect.isawaitable(value) else value
