"""One attempt at one pull: the call of the user's function, and whether its result is a valid reward."""

import inspect
import numbers
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from collabtop.arms.base import Reals
from collabtop.arms.draws import order_rng, pull_rng
from collabtop.errors import InputError
from collabtop.validation import wrong_value

Function = TypeVar("Function", bound=Callable[..., Any])


def batch(function: Function) -> Function:
    """Mark a function that makes many pulls of a candidate in one call: `function(candidate, times, rng)`.

    It returns one reward per pull.

    >>> import collabtop as ct
    >>> @ct.batch
    ... def score(mean, times, rng):
    ...     return rng.random(times) < mean
    >>> ct.identify([0.2, 0.8], 1, pull=score, agents=2, horizon=100, seed=1).top
    ['0.8']
    """
    function.collabtop_batch = True  # type: ignore[attr-defined]
    return function


class PullAttempt(NamedTuple):
    """One attempt at one pull of one arm (in batch form: at `times` pulls)."""

    arm: int
    times: int
    seed: int
    agent: int
    number: int
    """Number of the (first) pull, counted per agent."""
    earlier_pulls: int
    """Pulls of this arm that this agent made before."""
    retries: int = 0
    """Earlier attempts at this pull, which failed."""

    @property
    def rng(self) -> np.random.Generator:
        """The generator of this attempt, which no other attempt shares."""
        return pull_rng(self.seed, self.agent, self.number, self.retries)


class PullFunction(Protocol):
    """Calls the user's function for one attempt."""

    batch: bool
    is_async: bool

    def __call__(self, attempt: PullAttempt) -> Any:
        """Call the user's function and return its result."""


class CandidatePull:
    """Calls `pull(candidate, rng)` or, if marked with `batch`, `pull(candidate, times, rng)`."""

    def __init__(self, candidates: Sequence[Any], function: Callable[..., Any]) -> None:
        self.batch = bool(getattr(function, "collabtop_batch", False))
        self.is_async = _is_async(function)
        parameters = ("candidate", "times", "rng") if self.batch else ("candidate", "rng")
        _check_function("pull", function, parameters)
        self._candidates, self._function = candidates, function

    def __call__(self, attempt: PullAttempt) -> Any:
        """Call the function."""
        candidate = self._candidates[attempt.arm]
        if self.batch:
            return self._function(candidate, attempt.times, attempt.rng)
        return self._function(candidate, attempt.rng)


class ExamplePull:
    """Calls `score(candidate, example)` or `score(candidate, example, rng)` with an example that it chooses."""

    batch = False

    def __init__(
        self,
        candidates: Sequence[Any],
        examples: Sequence[Sequence[Any]],
        function: Callable[..., Any],
        *,
        replace: bool,
    ) -> None:
        self.is_async = _is_async(function)
        self._with_rng = _accepts(function, 3)
        _check_function(
            "score", function, ("candidate", "example", "rng") if self._with_rng else ("candidate", "example")
        )
        self._candidates, self._examples, self._function = candidates, examples, function
        self._replace = replace

    def __call__(self, attempt: PullAttempt) -> Any:
        """Choose an example and call the function."""
        candidate = self._candidates[attempt.arm]
        examples = self._examples[attempt.agent if len(self._examples) > 1 else 0]
        rng = attempt.rng
        if self._replace:
            index = rng.integers(len(examples))
        else:  # use each example once before any is used again
            cycle, position = divmod(attempt.earlier_pulls, len(examples))
            order = order_rng(attempt.seed, attempt.agent, attempt.arm, cycle).permutation(len(examples))
            index = order[position]
        example = examples[int(index)]
        return self._function(candidate, example, rng) if self._with_rng else self._function(candidate, example)


class AttemptOutcome(NamedTuple):
    """The result of an attempt: rewards, or what went wrong and whether a retry is allowed."""

    rewards: Reals | None
    error: str = ""
    retry: bool = False
    cause: BaseException | None = None


def make_attempt(
    function: Callable[[PullAttempt], Any], attempt: PullAttempt, retry_on: tuple[type[Exception], ...]
) -> AttemptOutcome:
    """Call a function that is not async once, and check its result."""
    try:
        value = function(attempt)
    except Exception as error:
        return outcome_of_error(error, retry_on)
    return outcome_of_value(value, attempt.times, getattr(function, "batch", False), retry_on)


def outcome_of_error(error: BaseException, retry_on: tuple[type[Exception], ...]) -> AttemptOutcome:
    """The outcome of a call that raised."""
    return AttemptOutcome(None, f"raised {type(error).__name__}: {error}", isinstance(error, retry_on), error)


def outcome_of_value(value: Any, times: int, is_batch: bool, retry_on: tuple[type[Exception], ...]) -> AttemptOutcome:
    """The outcome of a call that returned a value, which has to be a valid reward (or a batch of them)."""
    fault = _batch_fault(value, times) if is_batch else _reward_fault(value)
    if fault:
        return AttemptOutcome(None, f"returned {fault}", issubclass(ValueError, retry_on))
    return AttemptOutcome(np.array(value if is_batch else [value], np.float64))


_PLAIN_NUMBERS = (float, bool, int)


def _reward_fault(reward: Any) -> str:
    if type(reward) not in _PLAIN_NUMBERS and not isinstance(reward, numbers.Real | np.bool_):
        return f"{reward!r:.80}, which is not a number"
    if not 0 <= reward <= 1:  # also true for NaN
        return f"{reward!s:.80}, but a reward lies in [0, 1]"
    return ""


def _batch_fault(rewards: Any, times: int) -> str:
    try:
        values = np.asarray(rewards)
    except ValueError:  # lists of different lengths
        return f"{rewards!r:.80}, which is not a list of rewards"
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        return f"{rewards!r:.80}, which is not a list of rewards"
    if len(values) != times:
        return f"{len(values)} rewards, but {times} were requested"
    bad = ~((values >= 0) & (values <= 1))
    return f"{values[bad][0]}, but a reward lies in [0, 1]" if bad.any() else ""


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(vars(type(function)).get("__call__"))


def _accepts(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # some functions written in C have no signature
        return True
    return True


def _check_function(name: str, function: Any, parameters: tuple[str, ...]) -> None:
    call = f"{name}({', '.join(parameters)})"
    if not callable(function):
        raise wrong_value(name, function, f"a function {call} is needed")
    if not _accepts(function, len(parameters)):
        signature = f"{getattr(function, '__name__', 'it')}{inspect.signature(function)}"
        raise InputError(f"{name} is {signature:.80}, but it has to be callable as {call}", argument=name)
