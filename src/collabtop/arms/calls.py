"""One attempt at one pull: the call of the user's function, and whether its result is a valid reward."""

import inspect
import numbers
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from collabtop.arms.base import Drawn, Reals
from collabtop.arms.draws import ALL_AGENTS, example_order, pull_rng
from collabtop.arms.rate import RetryLater, retry_after
from collabtop.arms.reward import Reward
from collabtop.arms.unit import Unit
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


def replicates(function: Function) -> Function:
    """Mark a function that takes the number of the pull instead of a generator: `function(candidate, replicate)`.

    Pulls of a candidate are numbered 0, 1, 2, ... over all agents: the number of a fold, a bootstrap sample or the seed
    of an environment. All candidates see the same ones, so that they can be compared pair by pair.

    >>> import collabtop as ct
    >>> @ct.replicates
    ... def score(shift, fold):
    ...     return (fold % 10 + shift) / 20
    >>> ct.identify([0, 3, 1], 1, pull=score, agents=2, horizon=30, seed=1).top
    ['3']
    """
    function.collabtop_replicates = True  # type: ignore[attr-defined]
    return function


class PullAttempt(msgspec.Struct, frozen=True, gc=False):
    """One attempt at one pull of one arm (in batch form: at `times` pulls)."""

    arm: int
    times: int
    seed: int
    agent: int
    number: int
    """Number of the (first) pull, counted per agent."""
    replicate: int
    """Number of the (first) pull, counted per arm: over all agents if they share the arms' examples, else per agent."""
    retries: int = 0
    """Earlier attempts at this pull, which failed."""

    def after(self, done: int, times: int | None = None) -> "PullAttempt":
        """The pulls that are left when `done` of them are made, or the first `times` of those."""
        times = self.times - done if times is None else times
        return PullAttempt(self.arm, times, self.seed, self.agent, self.number + done, self.replicate + done)

    def rng(self) -> np.random.Generator:
        """The generator of this attempt, which no other attempt shares."""
        return pull_rng(self.seed, self.agent, self.number, self.retries)

    def paired_rng(self, owner: int) -> np.random.Generator:
        """The generator that this attempt shares with the same attempt at every other candidate.

        `owner` is the agent whose examples are used, or `ALL_AGENTS` if all agents share them.
        """
        return pull_rng(self.seed, owner, self.replicate, self.retries)


class PullFunction(Protocol):
    """Calls the user's function for one attempt."""

    batch: bool
    is_async: bool
    unit: Unit
    """The unit of the rewards that the function returns."""

    def call(self, attempt: PullAttempt) -> Any:
        """Call the user's function and return its result."""

    def describe(self, attempt: PullAttempt) -> str:
        """What the function was called with besides the candidate, for messages; "" if there is nothing to name."""


class CandidatePull:
    """Calls `pull(candidate, rng)` or, if marked, `pull(candidate, times, rng)` or `pull(candidate, replicate)`."""

    def __init__(
        self, candidates: Sequence[Any], function: Callable[..., Any], *, unit: Unit, paired: bool = False
    ) -> None:
        self.unit = unit
        self.batch = bool(getattr(function, "collabtop_batch", False))
        self.is_async = _is_async(function)
        self._by_replicate = bool(getattr(function, "collabtop_replicates", False))
        self.paired = paired or self._by_replicate
        if self.batch and self.paired:
            raise InputError(
                "pull is marked with batch, but paired pulls are made one by one: leave batch out, or pairing",
                argument="pull",
            )
        last = "replicate" if self._by_replicate else "rng"
        _check_function("pull", function, ("candidate", "times", last) if self.batch else ("candidate", last))
        self._candidates, self._function = candidates, function

    def call(self, attempt: PullAttempt) -> Any:
        """Call the function."""
        candidate = self._candidates[attempt.arm]
        if self.batch:
            return self._function(candidate, attempt.times, attempt.rng())
        if self._by_replicate:
            return self._function(candidate, attempt.replicate)
        if self.paired:
            return self._function(candidate, attempt.paired_rng(ALL_AGENTS))
        return self._function(candidate, pull_rng(attempt.seed, attempt.agent, attempt.number, attempt.retries))

    def describe(self, attempt: PullAttempt) -> str:
        """The number of the replicate, if the function takes it."""
        return f", replicate {attempt.replicate}," if self._by_replicate else ""


class ExamplePull:
    """Calls `score(candidate, example)` or `score(candidate, example, rng)` with an example that it chooses."""

    batch = False

    def __init__(
        self,
        candidates: Sequence[Any],
        examples: Sequence[Sequence[Any]],
        function: Callable[..., Any],
        *,
        unit: Unit,
        by_agent: bool,
        replace: bool,
    ) -> None:
        self.unit = unit
        self.is_async = _is_async(function)
        self.takes_rng = _accepts(function, 3)
        _check_function(
            "score", function, ("candidate", "example", "rng") if self.takes_rng else ("candidate", "example")
        )
        self._candidates, self._examples, self._function = candidates, examples, function
        self._by_agent, self._replace = by_agent, replace

    def call(self, attempt: PullAttempt) -> Any:
        """Choose an example and call the function."""
        index, rng = self._choose(attempt)
        arguments = (self._candidates[attempt.arm], self._examples_of(attempt)[index])
        return self._function(*arguments, rng) if self.takes_rng else self._function(*arguments)

    def describe(self, attempt: PullAttempt) -> str:
        """The example."""
        index, _ = self._choose(attempt)
        return f" on examples{f'[{attempt.agent}]' if self._by_agent else ''}[{index}]"

    def _choose(self, attempt: PullAttempt) -> tuple[int, np.random.Generator]:
        """The index of the example, and the generator for what else is random."""
        count = len(self._examples_of(attempt))
        if self._replace:
            rng = attempt.rng()
            return int(rng.integers(count)), rng
        owner = attempt.agent if self._by_agent else ALL_AGENTS
        lap, position = divmod(attempt.replicate, count)
        return int(example_order(attempt.seed, owner, lap, count)[position]), attempt.paired_rng(owner)

    def _examples_of(self, attempt: PullAttempt) -> Sequence[Any]:
        return self._examples[attempt.agent if self._by_agent else 0]


class AttemptOutcome(NamedTuple):
    """The result of an attempt: what it gave (internal values), or what went wrong and whether a retry is allowed."""

    drawn: Drawn | None
    error: str = ""
    retry: bool = False
    cause: BaseException | None = None
    cost: float | None = None
    """What an attempt that failed was charged, if it is known."""
    seconds: float = 0.0
    """How long the call took."""
    retry_after: float | None = None
    """How long the service asked to wait before the call is repeated; 0 if it gave no time, None if it did not ask."""
    waited: float = 0.0
    """How long it waited for its turn, because of a rate."""
    ends_run: bool = False
    """Whether the run ends whatever its policy: the function made a `Reward` whose cost or note is not one."""

    def after(self, seconds: float, waited: float) -> "AttemptOutcome":
        """The outcome of a call that waited and then took so long."""
        drawn = None if self.drawn is None else self.drawn._replace(seconds=seconds)
        return self._replace(drawn=drawn, seconds=seconds, waited=waited)


CallOutcome = float | AttemptOutcome
"""The outcome of a call: an internal value, if a reward without cost and note is all there is to say. That is the usual
case, and the fastest."""


def full_outcome(outcome: CallOutcome, seconds: float) -> AttemptOutcome:
    """The outcome of a call, with all fields; `seconds` is how long it took, if it is only a number."""
    if not isinstance(outcome, float):
        return outcome
    return AttemptOutcome(Drawn(np.array([outcome]), seconds=seconds), seconds=seconds)


TICK = 2.0**-20
"""The unit of the seconds that calls took: sums of its multiples are exact, so they do not depend on the order."""


class DirectCaller:
    """Calls a function that is not async in the caller's thread."""

    def __init__(self, function: PullFunction, retry_on: tuple[type[Exception], ...]) -> None:
        self._function, self._retry_on = function, retry_on

    def call(self, attempt: PullAttempt) -> CallOutcome:
        """Call the function once and check its result."""
        try:
            value = self._function.call(attempt)
        except Exception as error:
            return outcome_of_error(error, self._retry_on)
        return outcome_of_value(value, self._function, attempt.times, self._retry_on)

    def close(self) -> None:
        """Do nothing."""


def outcome_of_error(error: BaseException, retry_on: tuple[type[Exception], ...]) -> AttemptOutcome:
    """The outcome of a call that raised."""
    invalid = isinstance(error, InputError)  # a wrong `Reward` stays wrong, and what it cost is unknown
    retry = isinstance(error, retry_on) and not invalid
    cost = error.cost if isinstance(error, RetryLater) else None
    message = f"raised {type(error).__name__}: {error}"
    wait = retry_after(error) if retry else None
    return AttemptOutcome(None, message, retry, error, cost, retry_after=wait, ends_run=invalid)


def outcome_of_value(
    value: Any, function: PullFunction, times: int, retry_on: tuple[type[Exception], ...]
) -> CallOutcome:
    """The outcome of a call that returned a value, which has to be a valid reward (or a batch of them)."""
    unit = function.unit
    if type(value) in _PLAIN_NUMBERS and not function.batch:
        checked = unit.checked(value)
        if checked is not None:
            return checked
    values, costs, notes = _details(value, function.batch)
    fault = _batch_fault(values, times, unit) if function.batch else reward_fault(values, unit)
    if fault:
        cost = None if costs is None or np.isnan(costs).all() else float(np.nansum(costs))
        return AttemptOutcome(None, f"returned {fault}", issubclass(ValueError, retry_on), cost=cost)
    rewards = unit.internal(np.array(values if function.batch else [values], np.float64))
    return AttemptOutcome(Drawn(rewards, costs, notes))


def _details(value: Any, is_batch: bool) -> tuple[Any, Reals | None, tuple[str | None, ...]]:
    """The rewards without costs and notes, and these."""
    if is_batch:
        if not isinstance(value, list | tuple) or not any(isinstance(reward, Reward) for reward in value):
            return value, None, ()
        rewards = [reward if isinstance(reward, Reward) else Reward(reward) for reward in value]
    elif isinstance(value, Reward):
        rewards = [value]
    else:
        return value, None, ()
    values = [reward.value for reward in rewards]
    costs = [reward.cost for reward in rewards]
    notes = tuple(reward.note for reward in rewards)
    return (
        values if is_batch else values[0],
        None if costs.count(None) == len(costs) else np.array(costs, np.float64),  # None becomes NaN
        () if notes.count(None) == len(notes) else notes,
    )


_PLAIN_NUMBERS = (float, bool, int, np.float64, np.bool_)


def reward_fault(reward: Any, unit: Unit) -> str:
    """Why a value is not a reward in this unit; "" if it is one."""
    if type(reward) not in _PLAIN_NUMBERS and not isinstance(reward, numbers.Real | np.bool_):
        return f"{reward!r:.80}, which is not a number"
    return unit.fault(reward)


def first_reward_fault(rewards: Sequence[Any], unit: Unit) -> tuple[int, str] | None:
    """The index of the first value in a list that is not a reward in this unit, and why; None if all are.

    >>> first_reward_fault([0.5, True, "1"], Unit())
    (2, "'1', which is not a number")
    """
    if all(issubclass(kind, numbers.Real | np.bool_) for kind in set(map(type, rewards))):
        fault = unit.first_fault(np.array(rewards))  # one comparison for all of them
        return None if fault is None else (fault[0], reward_fault(rewards[fault[0]], unit))
    faults = ((index, reward_fault(reward, unit)) for index, reward in enumerate(rewards))
    return next(((index, fault) for index, fault in faults if fault), None)


def _batch_fault(rewards: Any, times: int, unit: Unit) -> str:
    try:
        values = np.asarray(rewards)
    except ValueError:  # lists of different lengths
        return f"{rewards!r:.80}, which is not a list of rewards"
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        return f"{rewards!r:.80}, which is not a list of rewards"
    if len(values) != times:
        return f"{len(values)} rewards, but {times} were requested"
    fault = unit.first_fault(values)
    return "" if fault is None else fault[1]


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
