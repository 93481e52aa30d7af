"""Executes a run: puts arms, team, recorder and algorithm together, and builds the result."""

from contextlib import ExitStack, closing, nullcontext, suppress
from functools import partial
from os import PathLike

import numpy as np

from collabtop.algorithms.registry import algorithms_where
from collabtop.coordination.coordinator import Coordinator
from collabtop.coordination.team import Team
from collabtop.errors import SettingError
from collabtop.events import OnEvent, RunEnded, RunStarted
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import Finished, Header
from collabtop.runlog.recorder import RewardRecorder
from collabtop.runs.budget import Spending, worst_case
from collabtop.runs.checkpoint import make_header, open_checkpoint
from collabtop.runs.page_launcher import open_page
from collabtop.runs.progress import progress_display
from collabtop.runs.result import Observed, Result, observed_of
from collabtop.runs.spec import RunSpec
from collabtop.teams.logging_team import LoggingTeam


def execute(
    spec: RunSpec,
    *,
    checkpoint: str | PathLike[str] | None = None,
    on_event: OnEvent | None = None,
    progress: bool = False,
    watch: bool = False,
) -> Result:
    """Execute a run, with a checkpoint, a progress display and a page in the browser if they are wanted."""
    if watch:
        _, checkpoint = open_page(checkpoint)
    header = make_header(spec, logged=checkpoint is not None)
    with ExitStack() as stack:
        log = None if checkpoint is None else stack.enter_context(closing(open_checkpoint(checkpoint, header)))
        listener = stack.enter_context(progress_display(on_event)) if progress else on_event
        recorder = RewardRecorder(log, listener, log.records if log else (), spec.arms.failure_mode)
        stack.callback(recorder.close)
        return _run(spec, header, log, recorder)


def _run(spec: RunSpec, header: Header, log: RunLog | None, recorder: RewardRecorder) -> Result:
    problem, setup = spec.problem, spec.setup
    team = spec.team if log is None else LoggingTeam(spec.team, log)
    coordinator = Coordinator(team, setup, recorder)
    counts = problem.n, problem.m, problem.agents, problem.horizon
    recorder.publish(RunStarted(spec.algorithm.title, *counts, spec.seed, recorder.recorded_pulls))
    with ExitStack() as stack:
        spec.arms.open()
        stack.callback(spec.arms.close)
        stack.push(partial(_close, team))
        _check_loss(spec)
        coordinator.open(spec.arms)
        spec.algorithm.solve(coordinator, setup)
        result = _build_result(spec, header, coordinator, recorder)
        _publish_answer(log, recorder, result)
        team.finish()  # this may take a while: sites that are reconnecting are waited for
    return result


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


def _build_result(spec: RunSpec, header: Header, coordinator: Coordinator, recorder: RewardRecorder) -> Result:
    problem = spec.problem
    observe = partial(observed_of, coordinator.observed(), problem, header.unit)
    return Result(
        header,
        coordinator.outcome(),
        observe=observe,
        failures={spec.arms.label(arm): count for arm, count in sorted(recorder.failed.items())},
        totals=recorder.totals,
        spending=None if spec.costs is None else _spending(spec, observe()),
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
    recorder.publish(RunEnded(tuple(result.top_indices), result.time, result.pulls, result.words))
