"""One leg of a run while it is made: arms, team, recorder and algorithm together, and the result built from them."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from threading import Event

import numpy as np

from collabtop.algorithms.registry import algorithms_where
from collabtop.arms.draws import AgentHalted
from collabtop.arms.purse import Purse
from collabtop.coordination.coordinator import Coordinator, Outcome
from collabtop.coordination.team import Team
from collabtop.errors import SettingError
from collabtop.events import OnEvent, RunStarted
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import Record
from collabtop.runlog.legs import Leg
from collabtop.runlog.memory import MemoryLog
from collabtop.runlog.pool import RewardPool
from collabtop.runlog.recorder import RewardRecorder
from collabtop.runlog.tally import Scorer, Tally
from collabtop.runlog.totals import spent_in
from collabtop.runs.budget import Spending, SpendingLimit, worst_case
from collabtop.runs.observed import Observed, observed_in, observed_of
from collabtop.runs.partial import partial_outcome
from collabtop.runs.result import Result, Reuse
from collabtop.runs.spec import RunSpec
from collabtop.teams.logging_team import LoggingTeam


class LegRun:
    """A leg of a run; most runs have only one.

    Args:
        spec: the run, with the horizon of this leg.
        leg: what is logged of it, and of those before it.
        log: where it is logged, if anywhere.
        listener: gets its events.
        observable: whether `latest_result` is needed.
        stop: stops the run when a budget is used up.
    """

    def __init__(
        self,
        spec: RunSpec,
        leg: Leg,
        log: RunLog | MemoryLog | None,
        listener: OnEvent | None,
        *,
        observable: bool,
        stop: Callable[[], None],
    ) -> None:
        self.spec, self._header = spec, leg.header
        self.recorder = _recorder(spec, leg, log, listener, stop)
        self.team = spec.team if log is None else LoggingTeam(spec.team, log, leg.records)
        self._coordinator = Coordinator(self.team, spec.setup, self.recorder, observable=observable)

    def run(self, stopped: Event, publish: Callable[[Result], None]) -> Result:
        """Make it and return its result, after `publish` was called with it; if it is `stopped`, what is known."""
        spec, coordinator = self.spec, self._coordinator
        if stopped.is_set():  # before there was a coordinator
            coordinator.halt()
        problem = spec.problem
        counts = problem.n, problem.m, problem.agents, problem.horizon
        self.recorder.publish(RunStarted(spec.algorithm.title, *counts, spec.seed, self.recorder.recorded_pulls))
        with ExitStack() as stack:
            spec.arms.open()
            stack.callback(spec.arms.close)
            stack.push(partial(_close, self.team))
            _check_loss(spec)
            try:
                coordinator.open(spec.arms)
                spec.algorithm.solve(coordinator, spec.setup)
            except AgentHalted:
                if not stopped.is_set():
                    raise
                result = self.partial_result()
                publish(result)
                return result
            result = self._build_result(coordinator.outcome(), self._observer())
            publish(result)
            self.team.finish()  # this may take a while: sites that are reconnecting are waited for
        return result

    def halt(self) -> None:
        """Stop it after the pulls under way."""
        self._coordinator.halt()

    def latest_result(self) -> Result:
        """What is known, for any thread: as of the last time agents were asked, and with the rewards since."""
        outcome = self._coordinator.latest
        if outcome is None:  # no agent was asked yet
            outcome = Coordinator(self.spec.team, self.spec.setup).outcome()
        return self._partial_result(outcome)

    def partial_result(self) -> Result:
        """What is known, for the thread of the run."""
        return self._partial_result(self._coordinator.outcome())

    def _partial_result(self, outcome: Outcome) -> Result:
        spec, seen = self.spec, self._seen()
        outcome = partial_outcome(outcome, spec.problem, spec.seed, seen)
        observed = None if seen is None else observed_in(seen, self._header.unit)
        return self._build_result(outcome, lambda: observed, complete=False)

    def _seen(self) -> Tally | None:
        """The rewards so far: as recorded, or on teams that share memory with their agents as these observed them."""
        tally, problem = self.recorder.tally, self.spec.problem
        if self.spec.privacy is not None:
            tally = None  # it has the rewards without noise
        if tally is not None or not self.spec.team.messages_are_free:
            return tally
        observed = self._observer()()
        tally = Tally(problem.n, problem.agents)
        if observed is not None:
            unit, pulls = self._header.unit, observed.pulls
            sums = np.nan_to_num(unit.internal(observed.means) * pulls)
            squares = unit.internal_difference(observed.deviations) ** 2 * pulls + sums**2 / np.maximum(pulls, 1)
            tally.add_sums(0, np.arange(problem.n), pulls, sums, 0, squares)
        return tally

    def _observer(self) -> Callable[[], Observed | None]:
        unit, tally = self._header.unit, self.recorder.tally
        if self.recorder.pool is not None and tally is not None:  # agents have not seen rewards that are not used again
            observed = observed_in(tally, unit)
            return lambda: observed
        return partial(observed_of, self._coordinator.observed(), self.spec.problem, unit)

    def _build_result(
        self, outcome: Outcome, observe: Callable[[], Observed | None], *, complete: bool = True
    ) -> Result:
        spec, recorder = self.spec, self.recorder
        return Result(
            self._header,
            outcome,
            observe=observe,
            failures={spec.arms.label(arm): count for arm, count in sorted(recorder.failed.items())},
            totals=recorder.totals,
            spending=None if spec.budget is None else _spending(spec, self._coordinator.spent, observe()),
            complete=complete,
            reuse=_reuse(spec, recorder.pool) if complete and recorder.pool is not None else None,
            candidates=spec.arms.candidates,
            library=spec.arms.library,
        )


def _recorder(
    spec: RunSpec, leg: Leg, log: RunLog | MemoryLog | None, listener: OnEvent | None, stop: Callable[[], None]
) -> RewardRecorder:
    arms, problem = spec.arms, spec.problem
    pool = None
    if leg.earlier:
        pool = RewardPool(leg.earlier, n=problem.n, agents=problem.agents, shared=problem.numbered)
    # Simulated arms are fast, so their rewards are added up only if they may be asked for before the run has ended.
    # What all agents observed together does not show a weighted mean.
    wanted = listener is not None or pool is not None or not arms.repeatable or problem.weights is not None
    tally = Tally(problem.n, problem.agents, iid=arms.iid, weights=problem.weights) if wanted else None
    scorer = None if tally is None or listener is None else Scorer(tally, arms.label, arms.unit, spec.prices)
    charge = None
    if tally is not None and pool is not None:
        for record in (record for records in leg.earlier for record in records):
            tally.add_earlier(record)
        if spec.budget is not None and spec.prices is not None:
            spent = float(tally.pulls @ np.asarray(spec.prices))
            under_way = max(problem.agents, spec.workers or os.cpu_count() or 1)
            charge = SpendingLimit(spec.budget, spec.prices, spent, under_way, stop).charge
    earlier = [record for records in leg.earlier for record in records]
    purse = _purse(spec, leg.records) if pool is None else None
    return RewardRecorder(log, listener, leg.records, arms.failure_mode, tally, scorer, pool, earlier, charge, purse)


def _purse(spec: RunSpec, records: Sequence[Record]) -> Purse | None:
    """What the run may spend and has spent, if pulls are counted in this process."""
    if spec.budget is None or spec.prices is None or not (spec.arms.calls_function and spec.team.messages_are_free):
        return None
    return Purse(spec.budget, spent_in(records, spec.prices))


def _close(team: Team, kind: object, error: BaseException | None, trace: object) -> None:
    """Close the team; if the run failed, and perhaps the team was never opened, that error is the one to report."""
    with nullcontext() if error is None else suppress(Exception):
        team.close()


def _check_loss(spec: RunSpec) -> None:
    if spec.team.tolerates_loss and not spec.algorithm.survives_loss:
        raise SettingError(
            f"on_lost is 'go-on', but {spec.algorithm.title} cannot continue without an agent: use 'fail', or one of "
            f"{', '.join(algorithms_where(survives_loss=True))}",
            argument="on_lost",
        )


def _spending(spec: RunSpec, spent: float | None, observed: Observed | None) -> Spending:
    assert spec.budget is not None
    assert spec.prices is not None
    if spent is None and observed is not None:
        spent = float(observed.pulls @ np.asarray(spec.prices))
    most = worst_case(spec.algorithm, spec.problem.inner, spec.prices)
    return Spending(spec.budget, min(most, spec.budget), spent)


def _reuse(spec: RunSpec, pool: RewardPool) -> Reuse:
    unused = {spec.arms.label(arm): int(pool.unused[arm]) for arm in np.flatnonzero(pool.unused).tolist()}
    return Reuse(pool.pulls, pool.pulls - sum(unused.values()), unused)
