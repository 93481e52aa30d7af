"""How failed pulls are handled: retries, a time limit, and the reward of a pull that still fails."""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from collabtop.validation import whole_number, wrong_value

_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
"""Multiples of it are spread evenly over [0, 1), wherever they begin and end."""

Failures = Literal["raise", "zero", "skip"]


@dataclass(frozen=True)
class PullPolicy:
    """How failed pulls are handled: retries, a time limit, and what happens to a pull that still fails.

    A pull fails if the function raises, takes too long (`TimeoutError`), or returns anything but a reward
    within the bounds (`ValueError`). A pull takes one time step, regardless of how often it is retried.

    Args:
        retries: how often a failed pull is retried, each time with a new `rng`.
        wait: seconds before the first retry; the wait doubles with each further retry. Up to half of it is left out,
            so that pulls that fail together are not retried together.
        longest_wait: the longest wait between two attempts, in seconds.
        retry_on: the exceptions that are retried.
        time_limit: seconds that one pull may take (a batch: this times the number of pulls). A function that
            is not `async` then runs in a separate process, which can be killed, and has to be importable.
        failures: what happens to a pull that still fails after all retries. `"raise"`: the run stops;
            completed pulls are in the checkpoint. `"zero"`: the reward is the worst possible one: 0, or the
            worse end of the `bounds`. `"skip"`: the pull is left out, so that a candidate's mean is over the
            pulls that returned a reward. `Result.failures` counts both.

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
                raise wrong_value(name, getattr(self, name), "a number of seconds is needed")
        if self.time_limit is not None and not (_seconds(self.time_limit, least=0) and self.time_limit > 0):
            raise wrong_value("time_limit", self.time_limit, "a positive number of seconds (or None) is needed")
        if isinstance(self.retry_on, type):
            object.__setattr__(self, "retry_on", (self.retry_on,))
        if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in self.retry_on):
            raise wrong_value("retry_on", self.retry_on, "exception classes are needed")
        if self.failures not in get_args(Failures):
            raise wrong_value("failures", self.failures, "'raise', 'zero' or 'skip' is needed")

    def delay(self, attempt: int) -> float:
        """Seconds to wait after an attempt failed; the first attempt is number 0.

        >>> [PullPolicy(wait=1, longest_wait=5).delay(attempt) for attempt in range(4)]
        [1.0, 2.0, 4.0, 5]
        """
        return min(self.longest_wait, self.wait * float(1 << min(attempt, 60)))

    def spread_delay(self, attempt: int, number: int) -> float:
        """The delay, shortened by up to a half that depends on the pull: pulls that fail together are spread in time.

        >>> [round(PullPolicy(wait=1).spread_delay(0, number), 2) for number in range(4)]
        [1.0, 0.69, 0.88, 0.57]
        """
        return self.delay(attempt) * (1 - 0.5 * (number * _GOLDEN_RATIO % 1))


def _seconds(value: Any, least: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value < math.inf
