"""What to do about a pull that fails: try again, give up after a while, and what counts in the end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from collabtop.errors import InputError
from collabtop.validation import whole_number

Failures = Literal["raise", "zero", "skip"]


@dataclass(frozen=True)
class PullPolicy:
    """How a flaky function is handled: retries, a time limit, and what becomes of a pull that still fails.

    A pull fails if the function raises, takes too long (`TimeoutError`), or returns something that is no
    reward in [0, 1] (`ValueError`). However often it is tried, a pull takes one time step.

    Args:
        retries: how often a failed pull is tried again, each time with an `rng` of its own.
        wait: seconds before the first retry; each later one waits twice as long.
        longest_wait: the most seconds between two tries.
        retry_on: which exceptions are worth another try.
        time_limit: seconds one pull may take (a batch of pulls: so many times that). A function that is not
            `async` then runs in a process of its own, which can be ended, and has to be importable.
        failures: what becomes of a pull that failed for good. `"raise"`: the run stops, and what was paid for
            is in the checkpoint. `"zero"`: its reward is 0. `"skip"`: it is left out, so that a candidate's
            mean is over the pulls that gave a reward. Both are counted (`Result.failures`).

    >>> import collabtop as ct
    >>> def flaky(prompt, rng):
    ...     if rng.random() < 0.2:
    ...         raise ConnectionError("no answer")
    ...     return len(prompt) / 20
    >>> policy = ct.PullPolicy(retries=5, wait=0)
    >>> ct.identify(["short", "step by step"], 1, pull=flaky, agents=2, horizon=10, seed=1, policy=policy).top
    ['step by step']
    """

    retries: int = 0
    wait: float = 0.5
    longest_wait: float = 30.0
    retry_on: tuple[type[Exception], ...] = (Exception,)
    time_limit: float | None = None
    failures: Failures = "raise"

    def __post_init__(self) -> None:
        whole_number("retries", self.retries, least=0)
        for name in ("wait", "longest_wait"):
            if not _seconds(getattr(self, name), least=0):
                raise InputError(f"{name} is {getattr(self, name)!r}, but a number of seconds is needed", argument=name)
        if self.time_limit is not None and not (_seconds(self.time_limit, least=0) and self.time_limit > 0):
            raise InputError(
                f"time_limit is {self.time_limit!r}, but a positive number of seconds (or None) is needed",
                argument="time_limit",
            )
        if isinstance(self.retry_on, type):
            object.__setattr__(self, "retry_on", (self.retry_on,))
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in self.retry_on):
            raise InputError(
                f"retry_on is {self.retry_on!r:.80}, but exception classes are needed", argument="retry_on"
            )
        if self.failures not in get_args(Failures):
            raise InputError(
                f"failures is {self.failures!r}, but 'raise', 'zero' or 'skip' is needed", argument="failures"
            )

    def delay(self, attempt: int) -> float:
        """Seconds to wait after that attempt failed, the first being 0.

        >>> [PullPolicy(wait=1, longest_wait=5).delay(attempt) for attempt in range(4)]
        [1.0, 2.0, 4.0, 5]
        """
        return min(self.longest_wait, self.wait * float(1 << min(attempt, 60)))


def _seconds(value: Any, least: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value < math.inf
