"""One call of the user's function: what is called, with what, and what its answer is worth."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from collabtop.arms.base import Reals
from collabtop.arms.draws import order_rng, pull_rng
from collabtop.errors import InputError

Function = TypeVar("Function", bound=Callable[..., Any])


def batch(function: Function) -> Function:
    """Mark a function that makes many pulls of a candidate at once: `function(candidate, times, rng)`.

    It returns one reward a pull.

    >>> import collabtop as ct
    >>> @ct.batch
    ... def score(mean, times, rng):
    ...     return rng.random(times) < mean
    >>> ct.identify([0.2, 0.8], 1, pull=score, agents=2, horizon=100, seed=1).top
    ['0.8']
    """
    function.collabtop_batch = True  # type: ignore[attr-defined]
    return function


class Try(NamedTuple):
    """One attempt at one pull of one arm (in batch form: at `times` pulls)."""

    arm: int
    times: int
    seed: int
    agent: int
    number: int
    """Number of the (first) pull, counted by agent."""
    nth: int
    """How often this agent has pulled this arm before."""
    attempt: int = 0

    @property
    def rng(self) -> np.random.Generator:
        """The chance that belongs to this attempt, and to no other."""
        return pull_rng(self.seed, self.agent, self.number, self.attempt)


class FunctionTrial:
    """`pull(candidate, rng)`, or marked with `batch` `pull(candidate, times, rng)`."""

    def __init__(self, candidates: Sequence[Any], function: Callable[..., Any]) -> None:
        self.batch = bool(getattr(function, "collabtop_batch", False))
        self.is_async = _is_async(function)
        wanted = ("candidate", "times", "rng") if self.batch else ("candidate", "rng")
        _check_function("pull", function, wanted)
        self._candidates, self._function = candidates, function

    def __call__(self, one: Try) -> Any:
        """Call the function."""
        candidate = self._candidates[one.arm]
        if self.batch:
            return self._function(candidate, one.times, one.rng)
        return self._function(candidate, one.rng)


class DatasetTrial:
    """`score(candidate, example)` or `score(candidate, example, rng)`, on an example chosen here."""

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
        self._with_rng = _takes(function, 3)
        _check_function(
            "score", function, ("candidate", "example", "rng") if self._with_rng else ("candidate", "example")
        )
        self._candidates, self._examples, self._function = candidates, examples, function
        self._replace = replace

    def __call__(self, one: Try) -> Any:
        """Choose an example and call the function."""
        candidate, example = self._candidates[one.arm], None
        examples = self._examples[one.agent if len(self._examples) > 1 else 0]
        rng = one.rng
        if self._replace:
            example = examples[int(rng.integers(len(examples)))]
        else:  # each example once before any comes again
            lap, place = divmod(one.nth, len(examples))
            example = examples[int(order_rng(one.seed, one.agent, one.arm, lap).permutation(len(examples))[place])]
        return self._function(candidate, example, rng) if self._with_rng else self._function(candidate, example)


class Outcome(NamedTuple):
    """What an attempt gave: rewards, or what went wrong and whether that is worth another try."""

    rewards: Reals | None
    said: str = ""
    retry: bool = False
    cause: BaseException | None = None


def attempt(trial: Callable[[Try], Any], one: Try, retry_on: tuple[type[Exception], ...]) -> Outcome:
    """Call a function that is not async once, and judge what it gave."""
    try:
        value = trial(one)
    except Exception as error:
        return failed(error, retry_on)
    return judged(value, one.times, getattr(trial, "batch", False), retry_on)


def failed(error: BaseException, retry_on: tuple[type[Exception], ...]) -> Outcome:
    """The outcome of a call that raised."""
    return Outcome(None, f"raised {type(error).__name__}: {error}", isinstance(error, retry_on), error)


def judged(value: Any, times: int, in_batch: bool, retry_on: tuple[type[Exception], ...]) -> Outcome:
    """Take what was returned for rewards, if it is."""
    said = _batch_fault(value, times) if in_batch else _fault(value)
    if said:
        return Outcome(None, f"returned {said}", issubclass(ValueError, retry_on))
    return Outcome(np.array(value if in_batch else [value], np.float64))


_USUAL = (float, bool, int)


def _fault(reward: Any) -> str:
    if type(reward) not in _USUAL and not isinstance(reward, numbers.Real | np.bool_):
        return f"{reward!r:.80}, which is not a number"
    if not 0 <= reward <= 1:  # so says NaN too
        return f"{reward!s:.80}, but a reward lies in [0, 1]"
    return ""


def _batch_fault(rewards: Any, times: int) -> str:
    try:
        values = np.asarray(rewards)
    except ValueError:  # lists of different lengths
        return f"{rewards!r:.80}, which is no list of rewards"
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        return f"{rewards!r:.80}, which is no list of rewards"
    if len(values) != times:
        return f"{len(values)} rewards, but {times} were asked for"
    bad = ~((values >= 0) & (values <= 1))
    return f"{values[bad][0]}, but a reward lies in [0, 1]" if bad.any() else ""


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(vars(type(function)).get("__call__"))


def _takes(function: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # some functions written in C do not say
        return True
    return True


def _check_function(name: str, function: Any, wanted: tuple[str, ...]) -> None:
    call = f"{name}({', '.join(wanted)})"
    if not callable(function):
        raise InputError(f"{name} is {function!r:.80}, but a function {call} is needed", argument=name)
    if not _takes(function, len(wanted)):
        has = f"{getattr(function, '__name__', 'it')}{inspect.signature(function)}"
        raise InputError(f"{name} is {has:.80}, but it has to be callable as {call}", argument=name)
