"""When a call may begin: rates that all workers share, and fewer calls at once while a service asks for less."""

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic, time
from typing import Any

from collabtop.arms.draws import AgentHalted
from collabtop.arms.reward import check_cost, is_amount
from collabtop.errors import InputError
from collabtop.validation import positive_number, wrong_value

_MARGIN = 0.98
"""The share of a rate that is used. A service counts calls when they arrive, so those that travel faster than the ones
before them would exceed the rate."""
_THROTTLED = (429, 503)


@dataclass(frozen=True)
class Rate:
    """How many calls may begin per unit of time, over all workers of a run, or how much they may use.

    `identify(..., rate=20)` is short for `Rate(20)`: 20 calls per second. Several rates are given as a list.

    Args:
        limit: how many calls, or how much of `amount`.
        per: seconds: 1 for a limit per second, 60 for one per minute.
        amount: what one call uses, as a function of the candidate, such as its number of tokens; by default 1.

    >>> import collabtop as ct
    >>> tokens = ct.Rate(90_000, per=60, amount=len)
    >>> def score(prompt, rng):
    ...     return rng.random() < len(prompt) / 20
    >>> prompts = ["short", "step by step"]
    >>> ct.identify(prompts, 1, pull=score, horizon=40, seed=1, workers=4, rate=[ct.Rate(1_000), tokens]).top
    ['step by step']
    """

    limit: float
    per: float = 1.0
    amount: Callable[[Any], float] | None = None

    def __post_init__(self) -> None:
        positive_number("rate", self.limit, of="calls")
        positive_number("per", self.per, of="seconds")
        if self.amount is not None and not callable(self.amount):
            raise wrong_value("amount", self.amount, "a function of a candidate is needed")


RateLimit = float | Rate | Sequence[float | Rate]
"""What `rate=` takes: calls per second, a `Rate`, or several."""


class RetryLater(Exception):  # noqa: N818  (not an error: a request to wait)
    """Raised by `pull` or `score`: the service asks to call again after `seconds`.

    The call is repeated with the same `rng` and does not count as a retry of the policy. Exceptions of httpx, requests,
    aiohttp and openai for the status codes 429 and 503 have the same effect, with the time in their Retry-After header.

    Args:
        seconds: how long to wait at least.
        cost: what the attempt was charged, if it is known.

    >>> import collabtop as ct
    >>> raise ct.RetryLater(2.5)
    Traceback (most recent call last):
    collabtop.arms.rate.RetryLater: try again after 2.5 s
    """

    def __init__(self, seconds: float, *, cost: float | None = None) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
            raise wrong_value("seconds", seconds, "a number of at least 0 is needed")
        check_cost(cost)
        super().__init__(f"try again after {seconds:g} s")
        self.seconds, self.cost = float(seconds), cost

    def __reduce__(self) -> tuple[Any, ...]:
        return _retry_later, (self.seconds, self.cost)


def _retry_later(seconds: float, cost: float | None) -> RetryLater:
    return RetryLater(seconds, cost=cost)


def as_rates(rate: Any) -> tuple[Rate, ...]:
    """The rates that the argument `rate` gives: a number, a `Rate`, or several.

    >>> as_rates(20)
    (Rate(limit=20, per=1.0, amount=None),)
    >>> as_rates(0)
    Traceback (most recent call last):
    collabtop.errors.InputError: rate is 0, but a positive number of calls is needed
    """
    rates = list(rate) if isinstance(rate, list | tuple) else [] if rate is None else [rate]
    return tuple(entry if isinstance(entry, Rate) else Rate(entry) for entry in rates)


def retry_after(error: BaseException) -> float | None:
    """Seconds to wait before the next call, if an exception asks for that; 0 if it does not give a time."""
    if isinstance(error, RetryLater):
        return error.seconds
    response = getattr(error, "response", None)
    statuses = (getattr(owner, name, None) for owner in (response, error) for name in ("status_code", "status"))
    if next((status for status in statuses if isinstance(status, int)), None) not in _THROTTLED:
        return None
    headers = getattr(response, "headers", None) or getattr(error, "headers", None) or {}
    try:
        return _seconds(headers.get("retry-after") or headers.get("Retry-After") or "0")
    except (AttributeError, TypeError, ValueError):
        return 0.0


def _seconds(value: str) -> float:
    """The time in a Retry-After header: a number of seconds, or a date."""
    try:
        seconds = float(value)
    except ValueError:
        from email.utils import parsedate_to_datetime  # here, since worker processes would import it at every start

        seconds = parsedate_to_datetime(value).timestamp() - time()
    return seconds if 0 <= seconds < math.inf else 0.0


class Gate:
    """Lets calls begin, from any thread, in step with the rates and with the limit on calls at once.

    The limit adapts: it is halved when a service asks to call later, and grows by one for as many calls as run at once.

    Args:
        candidates: what `Rate.amount` is applied to.
        rates: all of them are kept.
    """

    def __init__(self, candidates: Sequence[Any], rates: Sequence[Rate] = ()) -> None:
        self._pacers = [_Pacer(rate, candidates) for rate in rates]
        self._condition = threading.Condition()
        self.is_limited = bool(rates)
        """Whether calls may have to wait. If not, adding an entry to `running` is all that a call needs to begin."""
        self.running: list[None] = []
        """One entry per call under way: lists grow and shrink without a lock."""
        self._limit = math.inf
        self._paused_until = 0.0

    def enter(self, arm: int, times: int, halted: threading.Event) -> float:
        """Wait until a call may begin, and return how many seconds; `leave` has to be called when it has ended.

        Raises `AgentHalted` if the agent should stop.
        """
        waited = 0.0
        if self.is_limited:
            waited = self._wait(arm, times, halted)
        else:  # as long as no service asks for less
            self.running.append(None)
        if halted.is_set():
            self.leave()
            raise AgentHalted
        return waited

    def _wait(self, arm: int, times: int, halted: threading.Event) -> float:
        amounts = [pacer.amount(arm, times) for pacer in self._pacers]
        with self._condition:
            began = now = monotonic()
            while len(self.running) >= self._limit and not halted.is_set():
                self._condition.wait(0.1)
                now = monotonic()
            starts = [pacer.earliest(amount, now) for pacer, amount in zip(self._pacers, amounts, strict=True)]
            start = max(now, self._paused_until, *starts)
            for pacer, amount in zip(self._pacers, amounts, strict=True):
                pacer.take(amount, start)
            self.running.append(None)
        delay = max(start, self._paused_until) - now
        if delay > 0:
            halted.wait(delay)
        return now - began + max(0.0, delay)

    def leave(self, asked_to_wait: float | None = None) -> None:
        """Note that a call has ended, and how long the service asked to wait, if it did."""
        if asked_to_wait is None and not self.is_limited:
            self.running.pop()
            return
        with self._condition:
            if asked_to_wait is not None:
                now = monotonic()
                if now >= self._paused_until:  # those that were under way meanwhile do not count again
                    self._limit, self.is_limited = max(1.0, len(self.running) // 2), True
                self._paused_until = max(self._paused_until, now + asked_to_wait)
            elif self._limit < math.inf:
                self._limit += 1 / self._limit
            self.running.pop()
            self._condition.notify()


class _Pacer:
    """Spaces calls evenly at one rate; calls that come late catch up, but no window of `per` seconds has too many."""

    def __init__(self, rate: Rate, candidates: Sequence[Any]) -> None:
        self._rate, self._candidates = rate, candidates
        self._window = rate.per / _MARGIN
        self._next = -math.inf
        self._recent: deque[tuple[float, float]] = deque()  # when calls began, and what they used
        self._used = 0.0

    def earliest(self, amount: float, now: float) -> float:
        """The earliest time for a call that uses this much."""
        start = max(now, self._next)
        while self._recent and self._used + amount > self._rate.limit:
            began, used = self._recent.popleft()
            self._used -= used
            start = max(start, began + self._window)
        return start

    def take(self, amount: float, start: float) -> None:
        """Note that a call begins at this time."""
        # A pause of up to a window is caught up with.
        due = max(self._next, start - self._window) if self._recent else start
        self._next = due + amount * self._window / self._rate.limit
        self._recent.append((start, amount))
        self._used += amount

    def amount(self, arm: int, times: int) -> float:
        """What a call uses."""
        if self._rate.amount is None:
            return 1.0
        amount = self._rate.amount(self._candidates[arm])
        if not is_amount(amount):
            needed = "a finite number of at least 0 is needed"
            raise InputError(f"amount of a rate returned {amount!r:.80}, but {needed}", argument="rate")
        return float(amount) * times
