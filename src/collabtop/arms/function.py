"""The user's own function as arms: one call, one reward."""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, ClassVar

import msgspec
import numpy as np

from collabtop.arms.base import Arms, FailureMode, Ints, NoRecorder, Reals, Recorder
from collabtop.arms.callers import Caller, Trial, make_caller
from collabtop.arms.calls import FunctionTrial, Outcome, Try
from collabtop.arms.draws import Draws, Halted
from collabtop.arms.policy import PullPolicy
from collabtop.errors import InputError, PullError

Pull = Callable[..., Any]


class CalledArms(Arms):
    """Arms whose every pull calls a function; `FunctionArms` and `DatasetArms` say what is called."""

    def __init__(
        self,
        candidates: Sequence[Any],
        trial: Trial,
        *,
        labels: Sequence[str] | None,
        agents: int | None,
        policy: PullPolicy | None,
    ) -> None:
        if policy is not None and not isinstance(policy, PullPolicy):
            raise InputError(f"policy is {policy!r:.80}, but a PullPolicy is needed, such as PullPolicy(retries=3)")
        self.candidates: Sequence[Any] = list(candidates)
        if labels is None:
            labels = [candidate_label(candidate, place) for place, candidate in enumerate(candidates)]
        super().__init__(len(candidates), labels=labels, agents=agents)
        self.policy = policy or PullPolicy()
        """What happens to pulls that fail."""
        self.failure_mode: FailureMode = self.policy.failures
        self._dumps: Callable[[Any], bytes] = pickle.dumps
        self._trial = trial
        self._batch = trial.batch
        self._caller: Caller | None = None
        self._users = 0
        self._lock = threading.Lock()

    def identity(self) -> list[Any]:
        """The candidates belong to it, where they are plain data."""
        return [*super().identity(), plain_data(self.candidates)]

    def open(self) -> None:
        """Say that a run begins; several may go on at once."""
        with self._lock:
            self._users += 1

    def close(self) -> None:
        """Say that a run is over; after the last one, threads and processes are let go of."""
        with self._lock:
            self._users -= 1
            caller, self._caller = (None, self._caller) if self._users > 0 else (self._caller, None)
        if caller is not None:
            caller.close()

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Call the function once for each pull, in the order of `arms`."""
        return self.pull_recorded(arms, times, draws, NoRecorder())

    def use_pickler(self, dumps: Callable[[Any], bytes]) -> None:
        """Pickle the function with `dumps` where a separate process makes the pulls."""
        self._dumps = dumps

    def pull_recorded(self, arms: Ints, times: Ints, draws: Draws, recorder: Recorder) -> Reals:
        """Call the function for the pulls that are not recorded yet, and record each reward as it comes."""
        sums, number = np.zeros(len(arms)), draws.made
        try:
            for place, (arm, count) in enumerate(zip(arms.tolist(), np.broadcast_to(times, arms.shape), strict=True)):
                one = Try(arm, int(count), draws.seed, draws.agent, number, draws.made_of[arm])
                sums[place] = self._sum(arm, self._rewards(one, draws, recorder), draws)
                draws.made_of[arm] += int(count)
                number += int(count)
        finally:
            recorder.flush(draws.agent)
        return sums

    def _rewards(self, all_of_them: Try, draws: Draws, recorder: Recorder) -> Reals:
        first, count = all_of_them, all_of_them.times
        rewards = np.empty(count)
        known = recorder.recall(first, count)
        done = len(known)
        rewards[:done] = known
        while done < count:
            if draws.halted.is_set():
                raise Halted
            times = count - done if self._batch else 1
            one = Try(first.arm, times, first.seed, first.agent, first.number + done, first.nth + done)
            got = self._attempts(one, draws, recorder)
            rewards[done : done + one.times] = got
            recorder.keep(one, got)
            done += one.times
        return rewards

    def _attempts(self, one: Try, draws: Draws, recorder: Recorder) -> Reals:
        caller, label, attempt = self._ready_caller(), self.label(one.arm), 0
        while True:
            outcome = caller.call(one._replace(attempt=attempt) if attempt else one)
            if outcome.rewards is not None:
                return outcome.rewards
            if draws.halted.is_set():
                raise Halted
            again = outcome.retry and attempt < self.policy.retries
            recorder.note_failure(one._replace(attempt=attempt), label, outcome.said, again=again)
            if not again:
                return self._failed(outcome, label, one.times, attempt + 1)
            draws.halted.wait(self.policy.delay(attempt))
            attempt += 1

    def _failed(self, outcome: Outcome, label: str, times: int, attempts: int) -> Reals:
        if self.policy.failures == "raise":
            tried = f" (tried {attempts} times)" if attempts > 1 else ""
            raise PullError(f"pull of candidate {label!r} {outcome.said}{tried}", label) from outcome.cause
        return np.full(times, np.nan)

    def _sum(self, arm: int, rewards: Reals, draws: Draws) -> float:
        if self.policy.failures != "skip":
            total = float(rewards.sum())
            return float(np.nansum(rewards)) if math.isnan(total) else total
        # The mean over the pulls that gave a reward, so many times as pulls were made: a skipped pull moves
        # no mean, and nobody has to be told how many there were.
        got = rewards[~np.isnan(rewards)]
        total, given = draws.given.get(arm, (0.0, 0))
        draws.given[arm] = total + float(np.sum(got)), given + len(got)
        if len(got):
            return float(np.sum(got)) / len(got) * len(rewards)
        if given:  # none of these pulls gave one, but earlier ones of this agent did
            return total / given * len(rewards)
        label = self.label(arm)
        raise PullError(
            f"candidate {label!r} gave agent {draws.agent} no reward: all of its {len(rewards)} pulls failed and were "
            "skipped, so there is no mean; allow more retries, a larger horizon, or failures='zero'",
            label,
        )

    def _ready_caller(self) -> Caller:
        caller = self._caller
        if caller is not None:
            return caller
        with self._lock:
            if self._caller is None:
                self._caller = make_caller(self._trial, self.policy, self._dumps)
            return self._caller

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_caller": None, "_users": 0, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()


class FunctionArms(CalledArms):
    """Candidates and a function that tries one of them once: `pull(candidate, rng)` gives a reward in [0, 1].

    `rng` is made anew for every pull from (seed, agent, pull number, attempt): use it for all chance in
    `pull`, and a run can be repeated to the letter. `pull` may be `async`, or marked with `batch` make
    many pulls of a candidate at once. `identify(candidates, m, pull=pull, ...)` is short for these arms.

    Args:
        candidates: what can be tried (the paper's I).
        pull: the function.
        labels: what to call the candidates; left out, what `str` makes of them.
        policy: what happens to pulls that fail.

    >>> import collabtop as ct
    >>> prompts = ["short", "polite", "step by step"]
    >>> def score(prompt, rng):
    ...     return rng.random() < len(prompt) / 20
    >>> arms = ct.FunctionArms(prompts, score)
    >>> ct.identify(arms, m=1, agents=2, horizon=200, seed=1).top
    ['step by step']
    """

    takes_pull: ClassVar[bool] = True

    def __init__(
        self,
        candidates: Sequence[Any],
        pull: Pull,
        *,
        labels: Sequence[str] | None = None,
        policy: PullPolicy | None = None,
    ) -> None:
        known = as_candidates(candidates)
        super().__init__(known, FunctionTrial(known, pull), labels=labels, agents=None, policy=policy)


def as_candidates(candidates: Any) -> list[Any]:
    """Read candidates as a list, or say what is wrong with them."""
    if isinstance(candidates, str | bytes):
        raise InputError(f"candidates is one string, {candidates!r:.80}, but a list of candidates is needed")
    try:
        return list(candidates)
    except TypeError:
        raise InputError(f"candidates is {candidates!r:.80}, but a list of candidates is needed") from None


def candidate_label(candidate: Any, place: int) -> str:
    """What to call a candidate: its text, or where that is a place in memory its kind and number.

    >>> candidate_label("short", 0), candidate_label(len, 1), candidate_label(object(), 2)
    ('short', 'len', 'object 2')
    """
    if isinstance(candidate, FunctionType | type | type(len)):
        return str(candidate.__name__)
    kind = type(candidate)
    shows_itself = {vars(it).get(name) for it in kind.__mro__[:-1] for name in ("__str__", "__repr__")} - {None}
    if not shows_itself:
        return f"{kind.__name__} {place}"
    return str(candidate)


def plain_data(candidates: Sequence[Any]) -> bytes | None:
    """Candidates as bytes that can be read back, if they are texts, numbers, lists and dictionaries of such.

    >>> plain_data(["a", 1, {"lr": 0.1}]) is None, plain_data([object()]) is None
    (False, True)
    """
    try:
        return msgspec.msgpack.encode(candidates) if all(_is_plain(it) for it in candidates) else None
    except (OverflowError, RecursionError):
        return None


def _is_plain(value: Any) -> bool:
    if type(value) is list:
        return all(_is_plain(it) for it in value)
    if type(value) is dict:
        return all(type(key) is str and _is_plain(it) for key, it in value.items())
    return value is None or type(value) in (str, int, float, bool, bytes)


def as_arms(arms: Any, pull: Pull | None = None, policy: PullPolicy | None = None) -> Arms:
    """Arms as they are, or candidates and a function made into arms."""
    if isinstance(arms, Arms):
        if pull is not None:
            raise InputError("pull goes with a list of candidates; these arms know how they are pulled")
        if policy is not None:
            raise InputError("policy goes with pull; give it to the arms: FunctionArms(..., policy=...)")
        return arms
    if pull is not None:
        return FunctionArms(arms, pull, policy=policy)
    raise InputError(
        f"arms is a {type(arms).__name__}, but arms are needed: BernoulliArms(means) to simulate, "
        "or a list of candidates of your own with pull=, the function that tries one"
    )
