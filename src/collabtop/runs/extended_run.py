"""`extend`: a longer run that uses the rewards of a shorter one."""

from bisect import bisect_right
from os import PathLike
from typing import Any

import msgspec
import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.arms import Arms, PullPolicy
from collabtop.arms.function import Pull
from collabtop.arms.rate import RateLimit
from collabtop.arms.stand_ins import NoiselessArms
from collabtop.coordination.team import Team
from collabtop.errors import BudgetError, InputError
from collabtop.events import OnEvent
from collabtop.protocol.messages import Reals
from collabtop.runlog.file import read_log
from collabtop.runlog.format import MAX_HORIZON, Header
from collabtop.runlog.log_state import LogState
from collabtop.runlog.tally import Tally
from collabtop.runs.checkpoint import leg_of
from collabtop.runs.execute import Execution, OnInterrupt, Timeout
from collabtop.runs.result import Result
from collabtop.runs.resumption import logged_spec
from collabtop.runs.spec import RunSpec, TeamName
from collabtop.teams.local import LocalTeam
from collabtop.validation import positive_number, whole_number

_SPENT = 0.96
"""The share of a budget that is planned: the run may keep other candidates open than the estimates so far suggest."""


def extend(
    checkpoint: str | PathLike[str],
    *,
    horizon: int | None = None,
    budget: float | None = None,
    pull: Pull | None = None,
    candidates: Any = None,
    arms: Arms | None = None,
    policy: PullPolicy | None = None,
    algorithm: Algorithm | None = None,
    team: TeamName | Team = "local",
    workers: int | None = None,
    rate: RateLimit | None = None,
    timeout: Timeout | None = None,
    on_event: OnEvent | None = None,
    on_interrupt: OnInterrupt = "raise",
    progress: bool = False,
    watch: bool = False,
) -> Result:
    """Make a run longer: a run with a larger horizon or budget, in which every earlier pull counts as made.

    The algorithm starts again with a plan for the larger horizon. Wherever it pulls a candidate that has earlier
    rewards, it uses them, in the order in which they were drawn, before it makes new pulls. So the answer is as good
    as if the run had been planned for this horizon from the start. `result.reuse` tells how many of the earlier pulls
    such a run would not have made.

    The same call, or `resume`, continues an extension that was interrupted.

    Args:
        checkpoint: the file of the run, finished or not; it also keeps what is added.
        horizon: how many pulls each agent may make, including earlier ones that are used.
        budget: instead of a horizon: what all pulls may cost, including all earlier ones. The horizon is the largest
            for which this suffices by the estimates so far; the run is stopped before it costs more.
        pull: the function that tries a candidate.
        candidates: as in `resume`.
        arms: as in `resume`.
        policy: as in `resume`.
        algorithm: as in `resume`.
        team: where the agents run: `"local"`, `"threads"`, or a team object that shares memory with its agents.
        workers: as in `identify`.
        rate: as in `identify`.
        timeout: as in `identify`.
        on_event: called with every event.
        on_interrupt: as in `identify`.
        progress: show the progress on stderr.
        watch: show the run on a page in the browser (needs the `watch` extra).

    Raises:
        InputError: the horizon or budget is not larger than before.
        FileError: the checkpoint is missing, damaged, or belongs to different candidates.

    >>> import collabtop as ct, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1])
    >>> first = ct.identify(arms, m=1, agents=2, horizon=300, seed=7, checkpoint=path)
    >>> result = ct.extend(path, horizon=600, arms=arms)
    >>> result.top, result.horizon, result.reuse.earlier == first.pulls
    ([0], 600, True)
    """
    records = read_log(checkpoint)
    header = leg_of(records, checkpoint).header
    spec = logged_spec(header, checkpoint, pull, candidates, arms, policy, algorithm, team, workers, rate)
    if header.doubling:
        raise InputError(
            f"checkpoint {str(checkpoint)!r} belongs to a run without a limit: resume() continues it",
            argument="checkpoint",
        )
    if (horizon is None) == (budget is None):
        count = "both were given" if horizon is not None else "none was given"
        raise InputError(f"give exactly one of horizon and budget: {count}")
    extended = None
    if budget is not None:
        budget = positive_number("budget", budget)
        if not (header.extensions and budget == header.budget):  # otherwise it has begun already
            extended = _within_budget(spec, header, LogState(records).tally, budget)
    else:
        horizon = whole_number("horizon", horizon, least=1)
        if not (header.extensions and horizon == header.horizon):
            _check_larger("horizon", horizon, header.horizon)
            extended = spec.extended(horizon)
            _check_larger("horizon", extended.problem.horizon, header.horizon)  # a log may not have enough rows
    execution = Execution(
        extended or spec,
        checkpoint=checkpoint,
        extension=None if extended is None else extended.extension,
        on_event=on_event,
        progress=progress,
        watch=watch,
        timeout=timeout,
        on_interrupt=on_interrupt,
    )
    return execution.run()


def _check_larger(name: str, value: float, before: float) -> None:
    if value <= before:
        raise InputError(
            f"{name} is {value:,g}, but the run already has {before:,g}: a larger one is needed", argument=name
        )


def _within_budget(spec: RunSpec, header: Header, tally: Tally, budget: float) -> RunSpec:
    """The longest extension that a budget pays for, by the estimates so far."""
    spent = float(tally.pulls @ np.asarray(spec.costs or (1.0,) * spec.problem.n))
    _check_larger("budget", budget, spent if header.budget is None else header.budget)
    return spec.extended(horizon_for_budget(spec, tally, budget), budget)


def horizon_for_budget(spec: RunSpec, tally: Tally, budget: float) -> int:
    """The largest horizon above that of a run that a budget pays for, together with all pulls so far.

    By the estimates so far: these decide how many pulls of each candidate a plan makes.
    """
    costs = np.asarray(spec.costs or (1.0,) * spec.problem.n)
    before = spec.problem.horizon

    def cost(horizon: int) -> float:
        return float(np.maximum(tally.pulls, _expected_pulls(spec, tally.means, horizon)) @ costs)

    low = high = before
    while cost(2 * high) <= _SPENT * budget and 2 * high <= MAX_HORIZON // spec.problem.agents:
        low = high = 2 * high
    horizons = range(low + 1, 2 * high + 1)
    longer = bisect_right(horizons, _SPENT * budget, key=cost)
    if not longer and low == before:
        needed = cost(low + 1) / _SPENT
        raise BudgetError(f"budget is {budget:,g}, but the next larger plan needs about {needed:,.6g}", needed)
    return horizons[longer - 1] if longer else low


def _expected_pulls(spec: RunSpec, means: Reals, horizon: int) -> Reals:
    """The pulls of each candidate in a run with this horizon, if the estimates were exact."""
    known = np.nan_to_num(means, nan=float(np.nanmin(means)) if not np.isnan(means).all() else 0.0)
    width = float(np.ptp(known))
    scaled = (known - known.min()) / width if width else np.full(len(known), 0.5)  # only their order matters
    problem = spec.problem
    stand_ins = NoiselessArms(scaled, agents=None if spec.arms.iid else problem.agents)
    run = msgspec.structs.replace(
        spec, arms=stand_ins, team=LocalTeam(), problem=problem.at_horizon(horizon), budget=None, costs=None
    )
    observed = Execution(msgspec.structs.replace(run, doubling=False, extensions=0)).run().observed
    assert observed is not None
    return observed.pulls.astype(np.float64)
