"""Executes a run: puts arms, team, recorder and algorithm together, and builds the result."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial
from os import PathLike
from typing import Literal

import numpy as np

from collabtop.algorithms.registry import algorithms_where
from collabtop.arms.draws import AgentHalted
from collabtop.coordination.coordinator import Coordinator, Outcome
from collabtop.coordination.team import Team
from collabtop.errors import InputError, SettingError
from collabtop.events import Event, OnEvent, RunEnded, RunStarted
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import Finished
from collabtop.runlog.recorder import RewardRecorder
from collabtop.runlog.tally import Scorer, Tally
from collabtop.runs.budget import Spending, worst_case
from collabtop.runs.checkpoint import header_of, make_header, open_checkpoint
from collabtop.runs.page_launcher import open_page
from collabtop.runs.partial import partial_outcome
from collabtop.runs.progress import progress_display
from collabtop.runs.result import Observed, Result, observed_in, observed_of
from collabtop.runs.spec import RunSpec
from collabtop.teams.logging_team import LoggingTeam
from collabtop.validation import positive_number, wrong_value

OnInterrupt = Literal["raise", "return"]
"""What happens at Ctrl-C: the `KeyboardInterrupt` is raised with the attribute `partial`, or `partial` is returned."""

Timeout = float | datetime
"""Seconds, or a deadline."""


class Execution:
    """One run. `run` makes it in the calling thread; other threads may stop it or, after `observe`, look at it.

    Args:
        spec: the run.
        checkpoint: the file that keeps every pull and every exchange.
        on_event: called with every event.
        progress: show the progress on stderr.
        watch: show the run on a page in the browser.
        timeout: stop it after so many seconds, or at this time.
        on_interrupt: what happens at Ctrl-C.
    """

    def __init__(
        self,
        spec: RunSpec,
        *,
        checkpoint: str | PathLike[str] | None = None,
        on_event: OnEvent | None = None,
        progress: bool = False,
        watch: bool = False,
        timeout: Timeout | None = None,
        on_interrupt: OnInterrupt = "raise",
    ) -> None:
        if on_interrupt not in ("raise", "return"):
            raise wrong_value("on_interrupt", on_interrupt, "'raise' or 'return' is needed")
        self.spec, self.on_interrupt = spec, on_interrupt
        self._seconds = seconds_until(timeout)
        self._progress, self._on_event = progress, on_event
        self._observer: OnEvent | None = None
        if watch:
            _, checkpoint = open_page(checkpoint)
        self._checkpoint = checkpoint
        self._header = make_header(spec, logged=checkpoint is not None)
        self._log = None if checkpoint is None else open_checkpoint(checkpoint, self._header)
        if self._log is not None and self._log.records:
            self._header = header_of(self._log.records, self._log.path)  # it may have a name
        self._stopped = threading.Event()
        self._recorder: RewardRecorder | None = None
        self._coordinator: Coordinator | None = None
        self._result: Result | None = None

    @property
    def checkpoint(self) -> str | PathLike[str] | None:
        """The file of the run's log, also if that is temporary (`watch`); None if there is none."""
        return self._checkpoint

    def observe(self, observer: OnEvent) -> None:
        """Have `observer` called with every event, and keep what `best` needs; call it before `run`."""
        self._observer = observer

    def run(self) -> Result:
        """Make the run and return its result, or what is known when it is stopped or interrupted."""
        try:
            with ExitStack() as stack:
                if self._log is not None:
                    stack.enter_context(closing(self._log))
                listener = self._listener
                if self._progress:
                    listener = stack.enter_context(progress_display(listener))
                self._recorder = recorder = self._make_recorder(listener)
                stack.callback(recorder.close)
                stack.enter_context(self._deadline())
                return self._run(recorder)
        except KeyboardInterrupt as interrupt:
            known = self._result or self._known_now()
            if self.on_interrupt == "return":
                return known
            interrupt.partial = known  # type: ignore[attr-defined]
            raise

    def stop(self) -> None:
        """Stop the run after the pulls under way; may be called from any thread, at any time."""
        self._stopped.set()
        coordinator = self._coordinator
        if coordinator is not None:
            coordinator.halt()

    def best(self) -> Result:
        """What is known now, for any thread."""
        if self._result is not None:
            return self._result
        coordinator = self._coordinator
        outcome = None if coordinator is None else coordinator.latest
        if coordinator is None or outcome is None:  # no agent was asked yet
            coordinator = Coordinator(self.spec.team, self.spec.setup)
            outcome = coordinator.outcome()
        return self._partial_result(outcome, self._seen(coordinator))

    def _known_now(self) -> Result:
        """What is known now, in the thread of the run."""
        coordinator = self._coordinator or Coordinator(self.spec.team, self.spec.setup)
        return self._partial_result(coordinator.outcome(), self._seen(coordinator))

    @property
    def _listener(self) -> OnEvent | None:
        observer, on_event = self._observer, self._on_event
        if observer is None or on_event is None:
            return observer or on_event

        def both(event: Event) -> None:
            observer(event)
            on_event(event)

        return both

    def _make_recorder(self, listener: OnEvent | None) -> RewardRecorder:
        spec, records = self.spec, self._log.records if self._log else ()
        arms, problem = spec.arms, spec.problem
        # Simulated arms are fast, so their rewards are added up only if they may be asked for before the run has ended.
        wanted = self._listener is not None or not arms.repeatable
        tally = Tally(problem.n, problem.agents, iid=arms.iid) if wanted else None
        scorer = None if tally is None or self._listener is None else Scorer(tally, arms.label, arms.unit, spec.costs)
        return RewardRecorder(self._log, listener, records, arms.failure_mode, tally, scorer)

    @contextmanager
    def _deadline(self) -> Iterator[None]:
        if self._seconds is None:
            yield
            return
        timer = threading.Timer(self._seconds, self.stop)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def _run(self, recorder: RewardRecorder) -> Result:
        spec, log = self.spec, self._log
        team = spec.team if log is None else LoggingTeam(spec.team, log)
        self._coordinator = coordinator = Coordinator(team, spec.setup, recorder, observable=self._observer is not None)
        if self._stopped.is_set():  # before there was a coordinator
            coordinator.halt()
        problem = spec.problem
        counts = problem.n, problem.m, problem.agents, problem.horizon
        recorder.publish(RunStarted(spec.algorithm.title, *counts, spec.seed, recorder.recorded_pulls))
        with ExitStack() as stack:
            spec.arms.open()
            stack.callback(spec.arms.close)
            stack.push(partial(_close, team))
            _check_loss(spec)
            try:
                coordinator.open(spec.arms)
                spec.algorithm.solve(coordinator, spec.setup)
            except AgentHalted:
                if not self._stopped.is_set():
                    raise
                return self._end_early(recorder)
            self._result = result = self._build_result(coordinator.outcome(), self._observed_by(coordinator))
            _publish_answer(log, recorder, result)
            team.finish()  # this may take a while: sites that are reconnecting are waited for
        return result

    def _end_early(self, recorder: RewardRecorder) -> Result:
        self._result = result = self._known_now()
        recorder.publish(_run_ended(result))
        return result

    def _seen(self, coordinator: Coordinator) -> Tally | None:
        """The rewards so far: as recorded, or on teams that share memory with their agents as these observed them."""
        recorder, problem = self._recorder, self.spec.problem
        if recorder is not None and recorder.tally is not None:
            return recorder.tally
        if recorder is None or not self.spec.team.messages_are_free:
            return None
        observed = self._observed_by(coordinator)()
        tally = Tally(problem.n, problem.agents)
        if observed is not None:
            sums = np.nan_to_num(self._header.unit.internal(observed.means) * observed.pulls)
            squares = (self._header.unit.internal_difference(observed.deviations) ** 2) * observed.pulls
            tally.add_sums(
                0, np.arange(problem.n), observed.pulls, sums, 0, squares + sums**2 / np.maximum(observed.pulls, 1)
            )
        return tally

    def _observed_by(self, coordinator: Coordinator) -> Callable[[], Observed | None]:
        problem = self.spec.problem
        return partial(observed_of, coordinator.observed(), problem, self._header.unit)

    def _partial_result(self, outcome: Outcome, seen: Tally | None) -> Result:
        spec = self.spec
        outcome = partial_outcome(outcome, spec.problem.m, spec.seed, seen, bounded=spec.problem.bounded)
        observed = None if seen is None else observed_in(seen, self._header.unit)
        return self._build_result(outcome, lambda: observed, complete=False)

    def _build_result(
        self, outcome: Outcome, observe: Callable[[], Observed | None], *, complete: bool = True
    ) -> Result:
        spec, recorder = self.spec, self._recorder
        failed = {} if recorder is None else recorder.failed
        return Result(
            self._header,
            outcome,
            observe=observe,
            failures={spec.arms.label(arm): count for arm, count in sorted(failed.items())},
            totals=None if recorder is None else recorder.totals,
            spending=None if spec.costs is None else _spending(spec, observe()),
            complete=complete,
        )


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


def _spending(spec: RunSpec, observed: Observed | None) -> Spending:
    assert spec.budget is not None
    assert spec.costs is not None
    spent = None if observed is None else float(observed.pulls @ np.asarray(spec.costs))
    return Spending(spec.budget, worst_case(spec.algorithm, spec.problem.inner, spec.costs), spent)


def _publish_answer(log: RunLog | None, recorder: RewardRecorder, result: Result) -> None:
    """Log and publish the answer as soon as it is known: nothing that fails later can undo it."""
    if log is not None and log.answer is None:
        log.note_time()
        log.append(Finished(result.top_indices))
    recorder.publish(_run_ended(result))


def _run_ended(result: Result) -> RunEnded:
    return RunEnded(tuple(result.top_indices), result.time, result.pulls, result.words, result.complete)


def seconds_until(timeout: Timeout | None) -> float | None:
    """The seconds that a timeout leaves from now on; a deadline without a time zone is in local time.

    >>> seconds_until(datetime(2020, 1, 1))
    Traceback (most recent call last):
    collabtop.errors.InputError: timeout is 2020-01-01 00:00:00, but a time in the future is needed
    """
    if timeout is None or not isinstance(timeout, datetime):
        return None if timeout is None else positive_number("timeout", timeout, of="seconds")
    seconds = (timeout - datetime.now(timeout.tzinfo)).total_seconds()
    if seconds <= 0:
        raise InputError(f"timeout is {timeout}, but a time in the future is needed", argument="timeout")
    return seconds
