"""Ways to call the user's function: directly, on an event loop, or in a process that can be killed."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, Protocol

from collabtop.arms.calls import (
    AttemptOutcome,
    CallOutcome,
    DirectCaller,
    PullAttempt,
    PullFunction,
    outcome_of_error,
    outcome_of_value,
)
from collabtop.arms.event_loop import EventLoopThread
from collabtop.arms.policy import PullPolicy
from collabtop.arms.pool import CallOptions
from collabtop.arms.workers import WorkerCaller


class Caller(Protocol):
    """Makes attempts; may be used from any thread."""

    def call(self, attempt: PullAttempt) -> CallOutcome:
        """Make one attempt and wait for its outcome."""

    def close(self) -> None:
        """Release threads and processes; attempts in progress are abandoned."""


def make_caller(
    function: PullFunction, policy: PullPolicy, dumps: Callable[[Any], bytes], options: CallOptions
) -> Caller:
    """The caller that suits the function and the policy; `dumps` pickles the function for a separate process."""
    if function.is_async:
        return LoopCaller(function, policy)
    if options.processes or policy.time_limit is not None:
        return WorkerCaller(function, policy, dumps, options)
    return DirectCaller(function, policy.retry_on)


class LoopCaller:
    """Runs coroutines on one event loop in a thread of its own; those who ask wait for theirs."""

    def __init__(self, function: PullFunction, policy: PullPolicy) -> None:
        self._function, self._policy = function, policy
        self._loop = EventLoopThread("event loop")

    def call(self, attempt: PullAttempt) -> CallOutcome:
        """Run one attempt on the loop."""
        try:
            return self._loop.run(self._attempt(attempt))
        except CancelledError:
            return AttemptOutcome(None, "was abandoned")

    async def _attempt(self, attempt: PullAttempt) -> CallOutcome:
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
        return outcome_of_value(value, self._function, attempt.times, retry_on)

    def close(self) -> None:
        """Cancel what is under way and end the loop."""
        self._loop.close(timeout=2)  # a coroutine that blocks the loop is not waited for


async def _awaited(function: PullFunction, attempt: PullAttempt) -> Any:
    value: Coroutine[Any, Any, Any] | Any = function.call(attempt)
    return await value if inspect.isawaitable(value) else value
