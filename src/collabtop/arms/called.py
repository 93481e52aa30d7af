"""Arms that call a function of the user's for every pull: attempts, retries, costs, and what is recorded of them."""

import copy
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any, ClassVar

import msgspec
import numpy as np

from collabtop.arms.base import Arms, Drawn, FailureMode, Ints, Reals, Recorder
from collabtop.arms.callers import Caller, make_caller
from collabtop.arms.calls import TICK, AttemptOutcome, CallOutcome, PullAttempt, PullFunction, full_outcome
from collabtop.arms.draws import AgentHalted, Draws
from collabtop.arms.policy import PullPolicy
from collabtop.arms.pool import CallOptions, PullPool
from collabtop.arms.pull_batch import PullBatch, sum_of_squares, sums_of_rows
from collabtop.arms.rate import Gate
from collabtop.arms.tables import LabelledList, candidate_labels, plain_data
from collabtop.arms.workers import dumps
from collabtop.errors import InputError, PullError
from collabtop.validation import wrong_value

_Call = Callable[[PullAttempt, threading.Event], tuple[CallOutcome, float]]
"""Makes an attempt unless the event is set, and returns its outcome and how long it took."""

_MOST_THROTTLED = 30
"""How often a service may put off one call before that counts as a failure."""


class CalledArms(Arms):
    """The common part of `FunctionArms` and `DatasetArms`."""

    calls_function: ClassVar[bool] = True

    def __init__(
        self,
        candidates: Sequence[Any],
        function: PullFunction,
        *,
        labels: Sequence[str] | None,
        agents: int | None,
        policy: PullPolicy | None,
        weights: Sequence[float] | None = None,
    ) -> None:
        self.unit = function.unit
        if policy is not None and not isinstance(policy, PullPolicy):
            raise wrong_value("policy", policy, "a PullPolicy is needed, such as PullPolicy(retries=3)")
        self.candidates: Sequence[Any] = candidates
        if isinstance(candidates, LabelledList):
            self.library = candidates.library
        labels = candidate_labels(candidates) if labels is None else labels
        super().__init__(len(candidates), labels=labels, agents=agents, weights=weights)
        self.policy = policy or PullPolicy()
        """What happens to pulls that fail."""
        if self.policy.failures == "zero" and not self.unit.bounded:
            raise InputError(
                "failures is 'zero', which gives a failed pull the worst reward, but without bounds there is none: use "
                "failures='raise' or 'skip', or pass bounds=(low, high)",
                argument="policy",
            )
        self.failure_mode: FailureMode = self.policy.failures
        self._dumps: Callable[[Any], bytes] = dumps
        self._function = function
        self._options = CallOptions()
        self._caller: Caller | None = None
        self._gate: Gate | None = None
        self._pool: PullPool | None = None
        self._users = 0
        self._lock = threading.Lock()

    def identity(self) -> list[Any]:
        """The candidates belong to the identity if they are plain data."""
        return [*super().identity(), plain_data(self.candidates)]

    def open(self) -> None:
        """Note that a run begins; several runs may use the arms at the same time."""
        with self._lock:
            self._users += 1

    def close(self) -> None:
        """Note that a run is over; after the last one, threads and processes are released."""
        with self._lock:
            self._users -= 1
            if self._users > 0:
                return
            resources, self._caller, self._pool, self._gate = (self._caller, self._pool), None, None, None
        for resource in resources:
            if resource is not None:
                resource.close()

    @property
    def call_options(self) -> CallOptions:
        """How the function is called."""
        return self._options

    def with_calls(self, **options: Any) -> Arms:
        """A copy of these arms with other `CallOptions`."""
        arms = copy.copy(self)
        arms._options = msgspec.structs.replace(self._options, **options)
        return arms

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Call the function once per pull, in the order of `arms`."""
        return self.pull_recorded(arms, times, draws, Recorder())

    def use_pickler(self, dumps: Callable[[Any], bytes]) -> None:
        """Use `dumps` to pickle the function for pulls in a separate process."""
        self._dumps = dumps

    def pull_recorded(self, arms: Ints, times: Ints, draws: Draws, recorder: Recorder) -> Reals:
        """Call the function for the pulls that are not recorded yet, and record each reward immediately."""
        times = np.broadcast_to(times, arms.shape)
        rewards = self._recalled(arms, times, draws, recorder)
        if rewards is None:
            batch = PullBatch(arms, times, draws)
            draws.count_pulls(arms, times)
            self._fill(batch, draws, recorder)
            for charged in batch.charged():  # `sum` adds up differently in different versions of Python
                draws.charged += charged
            rewards = batch.rewards
        else:
            draws.count_pulls(arms, times)
        return self._sums(arms, times, rewards, draws)

    def _recalled(self, arms: Ints, times: Ints, draws: Draws, recorder: Recorder) -> Reals | None:
        """The rewards of a batch that is recorded as a whole: faster than pull by pull. None if it is not."""
        rewards = recorder.recall_batch(draws.agent, draws.pulls_made, arms, times)
        if rewards is not None and draws.prices is not None:  # added up one by one, as pulls are charged
            draws.charged = float(np.cumsum([draws.charged, *(draws.prices[arms] * times).tolist()])[-1])
        return rewards

    def _fill(self, batch: PullBatch, draws: Draws, recorder: Recorder) -> None:
        """Make the pulls of a batch, except recorded ones."""
        jobs, halted, call = self._jobs(batch, draws, recorder), draws.halted, self._charging_call(draws, recorder)

        def make(attempt: PullAttempt) -> None:
            outcome, seconds = call(attempt, halted)
            if isinstance(outcome, float) and not recorder.charged_before:  # the usual case, and the fastest
                batch.put_reward(attempt.number, outcome)
                recorder.keep_reward(attempt, outcome, seconds)
            else:
                self._complete(attempt, full_outcome(outcome, seconds), batch, draws, recorder)

        try:
            pool = self._ready_pool()
            if pool is None:
                for attempt in jobs:
                    make(attempt)
            else:
                pool.run(jobs, make, count=len(batch.rewards))
        finally:
            recorder.flush(draws.agent)

    def _jobs(self, batch: PullBatch, draws: Draws, recorder: Recorder) -> Iterator[PullAttempt]:
        """The pulls to make; the rewards of recorded ones are put into the batch on the way."""
        number, several = draws.pulls_made, self._function.batch
        for arm, count, replicate in zip(batch.arms.tolist(), batch.times.tolist(), batch.starts, strict=True):
            done = 0
            pulls = PullAttempt(arm, count, draws.seed, draws.agent, number, replicate)
            while done < count:
                attempt = pulls.after(done, None if several else 1)
                recalled = recorder.recall(attempt, count - done)
                if len(recalled.rewards):
                    batch.put(attempt.number, recalled)
                    done += len(recalled.rewards)
                    continue
                until = done + recorder.unrecorded(attempt, count - done)
                while done < until:
                    attempt = pulls.after(done, until - done if several else 1)
                    yield attempt
                    done += attempt.times
            number += count

    def _complete(
        self, attempt: PullAttempt, outcome: AttemptOutcome, batch: PullBatch, draws: Draws, recorder: Recorder
    ) -> None:
        """Complete and record a pull whose first attempt had this outcome."""
        before = recorder.charged_before.get((attempt.agent, attempt.number))
        charged = [] if before is None else [before]  # by failed attempts
        drawn = self._repeat_until_done(attempt, outcome, charged, draws, recorder)
        recorder.keep(attempt, drawn)
        batch.put(attempt.number, drawn)

    def _repeat_until_done(
        self, attempt: PullAttempt, outcome: AttemptOutcome, charged: list[float], draws: Draws, recorder: Recorder
    ) -> Drawn:
        """What a pull gives whose first attempt had this outcome."""
        label, throttled, waited = self.label(attempt.arm), 0, 0.0
        while True:
            waited += outcome.waited
            if outcome.drawn is not None:
                drawn = outcome.drawn._replace(waited=waited) if waited else outcome.drawn
                return _charged_too(drawn, charged)
            if draws.halted.is_set():
                raise AgentHalted
            # A call that the service put off has not been made: it is repeated with the same random numbers.
            put_off = outcome.retry_after is not None and throttled < _MOST_THROTTLED
            again = put_off or (outcome.retry and attempt.retries < self.policy.retries)
            recorder.note_failure(attempt, label, outcome, again=again)
            if outcome.cost is not None:
                charged.append(outcome.cost)
            if not again:
                return _charged_too(Drawn(self._failed_rewards(attempt, outcome, label)), charged)
            delay = self.policy.spread_delay(throttled if put_off else attempt.retries, attempt.number)
            delay = max(delay, outcome.retry_after or 0.0)
            draws.halted.wait(delay)
            if put_off:
                throttled += 1
                waited += delay
            else:
                attempt = msgspec.structs.replace(attempt, retries=attempt.retries + 1)
            outcome = full_outcome(*self._charging_call(draws, recorder)(attempt, draws.halted))

    def _charging_call(self, draws: Draws, recorder: Recorder) -> _Call:
        """What makes an attempt of an agent, and pays for it if the run has a budget."""
        purse, prices = recorder.purse, draws.prices
        if purse is None:
            return self._call

        def call(attempt: PullAttempt, halted: threading.Event) -> tuple[CallOutcome, float]:
            price = 0.0 if prices is None else float(prices[attempt.arm])
            with purse.call(price * attempt.times) as bill:
                outcome, seconds = self._call(attempt, halted)
                bill.append(price if isinstance(outcome, float) else _charge_of(outcome, price))
            return outcome, seconds

        return call

    def _call(self, attempt: PullAttempt, halted: threading.Event) -> tuple[CallOutcome, float]:
        """Make one attempt when its turn comes, and measure how long it takes."""
        caller, gate = self._caller, self._gate
        if caller is None or gate is None:
            caller, gate = self._ready()
        waited = gate.enter(attempt.arm, attempt.times, halted)
        try:
            began = perf_counter()
            outcome = caller.call(attempt)
            took = perf_counter() - began
        except BaseException:
            gate.leave()
            raise
        seconds = took - took % TICK
        if isinstance(outcome, float) and not waited and self._options.charge == "reported":
            gate.leave()
            return outcome, seconds
        full = full_outcome(outcome, seconds).after(seconds, waited)
        gate.leave(full.retry_after)
        return self._charged(full, attempt), seconds

    def _charged(self, outcome: AttemptOutcome, attempt: PullAttempt) -> AttemptOutcome:
        """The outcome with the seconds that it took as its cost, if pulls are charged by time."""
        if self._options.charge != "seconds":
            return outcome
        limit = math.inf if self.policy.time_limit is None else self.policy.time_limit
        seconds = min(outcome.seconds, limit * attempt.times)
        if outcome.drawn is None:
            return outcome._replace(cost=seconds)
        costs = np.full(len(outcome.drawn.rewards), seconds / len(outcome.drawn.rewards))
        return outcome._replace(drawn=outcome.drawn._replace(costs=costs))

    def _failed_rewards(self, attempt: PullAttempt, outcome: AttemptOutcome, label: str) -> Reals:
        if self.policy.failures == "raise" or outcome.ends_run:
            tried = f" (tried {attempt.retries + 1} times)" if attempt.retries else ""
            called_with = f"candidate {label!r}{self._function.describe(attempt)}"
            raise PullError(f"pull of {called_with} {outcome.error}{tried}", label) from outcome.cause
        return np.full(attempt.times, np.nan)

    def _sums(self, arms: Ints, times: Ints, rewards: Reals, draws: Draws) -> Reals:
        """The sum of each arm's rewards; `draws.squares` gets those of their squares."""
        if self.policy.failures != "skip" and not np.isnan(rewards).any():
            sums, draws.squares = sums_of_rows(rewards, times)
            return sums
        rows = np.split(rewards, np.cumsum(times)[:-1])
        draws.squares = np.array([sum_of_squares(row) for row in rows])
        return np.array([self._sum(arm, row, draws) for arm, row in zip(arms.tolist(), rows, strict=True)])

    def _sum(self, arm: int, rewards: Reals, draws: Draws) -> float:
        if self.policy.failures != "skip":
            total = float(rewards.sum())
            return float(np.nansum(rewards)) if math.isnan(total) else total
        # The sum is the mean of the valid rewards times the number of pulls. A skipped pull therefore does not
        # change the mean, and the number of skipped pulls does not have to be sent to the coordinator.
        valid = rewards[~np.isnan(rewards)]
        total, count = draws.rewards_by_arm.get(arm, (0.0, 0))
        draws.rewards_by_arm[arm] = total + float(np.sum(valid)), count + len(valid)
        if len(valid):
            return float(np.sum(valid)) / len(valid) * len(rewards)
        if count:  # all of these pulls failed, but this agent has earlier rewards
            return total / count * len(rewards)
        label = self.label(arm)
        raise PullError(
            f"candidate {label!r} gave agent {draws.agent} no reward: all of its {len(rewards)} pulls failed and were "
            "skipped, so there is no mean; allow more retries, a larger horizon, or failures='zero'",
            label,
        )

    def _ready(self) -> tuple[Caller, Gate]:
        """What calls the function and what says when, made for the first pull."""
        caller, gate = self._caller, self._gate
        if caller is None or gate is None:
            with self._lock:
                caller, gate = self._caller, self._gate
                if caller is None or gate is None:
                    caller = make_caller(self._function, self.policy, self._dumps, self._options)
                    gate = Gate(self.candidates, self._options.rates)
                    self._gate, self._caller = gate, caller
        return caller, gate

    def _ready_pool(self) -> PullPool | None:
        """The threads that make pulls; None if each agent makes its own, one after the other."""
        if self._options.workers is None:
            return None
        with self._lock:
            if self._pool is None:
                self._pool = PullPool(self._options.workers)
            return self._pool

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_caller": None, "_gate": None, "_pool": None, "_users": 0, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()


def _charge_of(outcome: AttemptOutcome, price: float) -> float:
    """What an attempt was charged; a pull that does not report it costs its price, a failed attempt nothing."""
    if outcome.drawn is None:
        return outcome.cost or 0.0
    if outcome.drawn.costs is None:
        return price * len(outcome.drawn.rewards)
    return math.fsum(np.where(np.isnan(outcome.drawn.costs), price, outcome.drawn.costs).tolist())


def _charged_too(drawn: Drawn, charged: list[float]) -> Drawn:
    """Pulls that cost what their failed attempts were charged, too: the first one of a batch."""
    if not charged:
        return drawn
    costs = np.full(len(drawn.rewards), np.nan) if drawn.costs is None else drawn.costs
    costs[0] = math.fsum([*charged, 0.0 if math.isnan(costs[0]) else costs[0]])
    return drawn._replace(costs=costs)
