"""One run: check the arguments, choose, put arms, team and algorithm together, return a result."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from os import PathLike
from typing import Any

import msgspec

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.default import choose
from collabtop.arms import Arms, PullPolicy
from collabtop.arms.draws import coordinator_rng
from collabtop.arms.function import CalledArms, Pull, as_arms
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.coordination.team import Team
from collabtop.errors import HorizonError, InputError, ProtocolError, SettingError
from collabtop.events import OnEvent, RunEnded, RunStarted
from collabtop.problem import Problem
from collabtop.protocol.agent import Setup
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import Finished
from collabtop.runlog.recorder import RecordedArms, RewardRecorder
from collabtop.runs.budget import Cost, Spending, checked_budget, costs_of, horizon_for, spent_on, worst_case
from collabtop.runs.checkpoint import make_header, open_log, seed_in
from collabtop.runs.progress import progress_display
from collabtop.runs.result import Result, observed_of
from collabtop.runs.watch_page import open_page
from collabtop.teams.local import LocalTeam
from collabtop.teams.logging_team import LoggedTeam, WatchedTeam
from collabtop.teams.ray.team import RayTeam
from collabtop.teams.threads import ThreadsTeam
from collabtop.validation import whole_number

DEFAULT_MAX_HORIZON = 10_000_000
"""The limit of a run with a confidence, where none is given: arms that tie are never told apart."""

_MOST_AGENTS = 10**6
_MOST_PULLS = 10**15  # of all agents together: as floats, sums of rewards are exact up to nine times that


def identify(
    arms: Any,
    m: int,
    *,
    agents: int | None = None,
    horizon: int | None = None,
    budget: float | None = None,
    cost: Cost | None = None,
    confidence: float | None = None,
    tolerance: float = 0.0,
    max_horizon: int | None = None,
    pull: Pull | None = None,
    policy: PullPolicy | None = None,
    algorithm: str | Algorithm = "auto",
    options: dict[str, Any] | None = None,
    seed: int | None = None,
    team: str | Team = "local",
    checkpoint: str | PathLike[str] | None = None,
    on_event: OnEvent | None = None,
    progress: bool = False,
    watch: bool = False,
) -> Result:
    """Find the best m arms with a team of agents.

    Args:
        arms: candidates of your own, with `pull`, or what can be pulled: `BernoulliArms`, `HeterogeneousArms`,
            `BetaArms`, `FunctionArms`, `DatasetArms`, or arms of your own (the paper's I).
        m: how many are wanted (m).
        agents: how many agents share the work (K); arms that differ from agent to agent know it themselves.
        horizon: how many pulls each agent may make (T): all of them are spent.
        budget: instead of a horizon: how many pulls all agents may make together, or with `cost` what they may
            cost. The horizon is the largest that cannot cost more, whichever candidates stay open.
        cost: the price of one pull: a function of a candidate, a number for each, or one for all.
        confidence: instead of a horizon, stop as soon as the answer is right with this probability.
        tolerance: with a confidence, an arm this little worse than the m-th best is right as well.
        max_horizon: with a confidence, the most pulls an agent may make; 10,000,000 if left out. A run that
            meets it says that it is not sure (`result.sure`) and which arms are open.
        pull: a function that tries a candidate once, `pull(candidate, rng)`, and gives a reward in [0, 1]; it
            may be `async`, or marked with `batch`.
        policy: what happens to pulls that fail: retries, a time limit, and what counts in the end.
        algorithm: a name (`available_algorithms()`), an algorithm object with its options, or `"auto"`: the
            best for the kind of arms.
        options: options of an algorithm given by name.
        seed: the same seed gives the same run, on every team; left out, one is drawn and reported.
        team: where the agents run: `"local"` (one after the other), `"threads"` (in parallel), `"ray"` (on a Ray
            cluster), or a team object.
        checkpoint: a file that keeps every pull and every exchange; the same call, or `resume`, goes on from it.
        on_event: called with every event of the run, from one thread at a time.
        progress: show how far the run is, on stderr.
        watch: show the run on a page in the browser (needs the `watch` extra).

    Returns:
        The best m arms, what was learnt of all of them, and what it cost.

    Raises:
        InputError: an argument is wrong; nothing was pulled.
        PullError: the user's own function failed.
        CheckpointError: the checkpoint could not be written.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.2, 0.9, 0.5, 0.4], labels=["w", "x", "y", "z"])
    >>> result = ct.identify(arms, m=2, agents=3, horizon=1_000, seed=7)
    >>> result.top
    ['x', 'y']
    >>> result.algorithm, result.time
    ('frugal-top', 1000)
    >>> ct.identify(arms, m=2, agents=3, confidence=0.99, seed=7).sure
    True
    """
    arms = as_arms(arms, pull, policy)
    check_limit(horizon, budget, cost, confidence, tolerance, max_horizon)
    chosen, why = choose(algorithm, options or {}, arms, confidence, tolerance)
    if seed is None and checkpoint is not None:
        seed = seed_in(checkpoint)
    seed = secrets.randbits(63) if seed is None else whole_number("seed", seed, least=0)
    limit, prices = limit_of(arms, m, agents, horizon, budget, cost, max_horizon, chosen)
    problem = check_run_arguments(arms, m, agents, limit, chosen)
    plan = RunSpec(arms, problem, chosen, why, seed, make_team(team), budget, prices)
    return execute_run(plan, checkpoint, on_event, progress=progress, watch=watch)


class RunSpec(msgspec.Struct, frozen=True):
    """A run whose arguments are fine."""

    arms: Arms
    problem: Problem
    algorithm: Algorithm
    why: str
    seed: int
    team: Team
    budget: float | None = None
    costs: tuple[float, ...] | None = None


def execute_run(
    plan: RunSpec,
    checkpoint: str | PathLike[str] | None,
    on_event: OnEvent | None,
    *,
    progress: bool = False,
    watch: bool = False,
) -> Result:
    """Make a run, with a checkpoint and somebody watching where that is asked for."""
    if watch:
        _, checkpoint = open_page(checkpoint)
    with ExitStack() as stack:
        log = None
        if checkpoint is not None:
            header = make_header(plan.arms, plan.problem, plan.algorithm, plan.why, plan.seed, plan.budget, plan.costs)
            log = stack.enter_context(closing(open_log(checkpoint, header)))
        watcher = stack.enter_context(progress_display(on_event)) if progress else on_event
        failures = plan.arms.policy.failures if isinstance(plan.arms, CalledArms) else ""
        tape = RewardRecorder(log, watcher, log.records if log else (), failures)
        return _recorded_run(plan, log, tape, watched=watcher is not None)


def _recorded_run(plan: RunSpec, log: RunLog | None, tape: RewardRecorder, *, watched: bool) -> Result:
    arms, team, problem = plan.arms, plan.team, plan.problem
    if log is not None:
        team = LoggedTeam(team, log)
    if watched:
        team = WatchedTeam(team, tape)
    if log is not None or watched or isinstance(arms, CalledArms):
        arms = RecordedArms(arms, tape)
    start = RunStarted(
        plan.algorithm.title, problem.n, problem.m, problem.agents, problem.horizon, plan.seed, tape.known_pulls
    )
    tape.tell(start)
    plan.arms.open()
    try:
        result = _result(plan, arms, team, partial(_note_answer, log, tape))
    finally:
        plan.arms.close()
    result.failures = {plan.arms.label(arm): count for arm, count in sorted(tape.failed.items())}
    result.retries = tape.retries
    return result


def _note_answer(log: RunLog | None, tape: RewardRecorder, result: Result) -> None:
    """The answer is known: whoever watches learns it now, and nothing that goes wrong later on can undo it."""
    if log is not None and not any(isinstance(record, Finished) for record in log.records):
        log.note_time()
        log.append(Finished(result.top_indices), sync=True)
    tape.tell(RunEnded(tuple(result.top_indices), result.time, result.pulls, result.words))


def _result(plan: RunSpec, arms: Arms, team: Team, note_answer: Callable[[Result], None]) -> Result:
    problem, chosen = plan.problem, plan.algorithm
    mirrored = 2 * problem.m > problem.n  # look for the n - m worst instead, and return the rest
    inner = Problem(problem.n, problem.n - problem.m if mirrored else problem.m, problem.agents, problem.horizon)
    try:
        _check_loss(team, chosen)  # in here, since a team may have taken its port before
        team.start(arms, Setup(inner, plan.seed, mirrored, chosen.title, chosen.options))
        board = _run(chosen, team, inner, plan.seed)
        result = _told(plan, inner, arms, team, board, mirrored=mirrored)
        note_answer(result)
        team.finish()  # which may take its time: sites that are just coming back are waited for
    finally:
        team.close()
    return result


def _check_loss(team: Team, algorithm: Algorithm) -> None:
    if team.tolerates_loss and not algorithm.survives_loss:
        raise SettingError(
            f"on_lost is 'go-on', but {algorithm.title} cannot go on without an agent: use 'fail', or one of "
            "frugal-top, frugal-top-noniid, collab-top-iid, collab-top-noniid and uniform"
        )


def _told(plan: RunSpec, inner: Problem, arms: Arms, team: Team, board: Scoreboard, *, mirrored: bool) -> Result:
    problem, chosen = plan.problem, plan.algorithm
    result = Result(
        algorithm=chosen.title,
        options=chosen.options,
        why=plan.why,
        n=problem.n,
        m=problem.m,
        agents=problem.agents,
        horizon=problem.horizon,
        seed=plan.seed,
        confidence=chosen.options.get("confidence"),
        labels=arms.labels,
        estimates=board.verdict(mirrored=mirrored),
        rounds=team.meter.rounds(),
        ledger=team.meter.ledger(),
        observe=partial(observed_of, team.seen(), problem.n, mirrored=mirrored),
    )
    result.lost = tuple(sorted(team.lost))
    if plan.budget is not None and plan.costs is not None:
        pulls = None if result.observed is None else result.observed.pulls.tolist()
        most = worst_case(chosen, inner, plan.costs)
        result.spending = Spending(plan.budget, most, spent_on(pulls, plan.costs))
    return result


def _run(algorithm: Algorithm, team: Team, problem: Problem, seed: int) -> Scoreboard:
    if problem.m == 0:  # all arms are wanted: nothing to find out
        board = Scoreboard(problem.n)
    else:
        board = algorithm.run(team, problem, coordinator_rng(seed))
    board.reject_rest()
    if board.accepted != problem.m:
        raise ProtocolError(f"{algorithm.title} accepted {board.accepted} arms instead of {problem.m}")
    return board


def check_run_arguments(arms: Arms, m: int, agents: int | None, horizon: int, algorithm: Algorithm) -> Problem:
    """Raise the error that `identify` would raise for these arguments, before anything is pulled."""
    problem = _problem(arms, m, agents, horizon)
    _check(algorithm, arms, problem)
    return problem


def _problem(arms: Arms, m: int, agents: int | None, horizon: int) -> Problem:
    m = whole_number("m", m, least=1)
    if m > arms.n:
        raise InputError(f"m is {m}, but there are only {arms.n} arms")
    if agents is None:
        if arms.agents is None:
            raise InputError("agents is missing: say how many agents share the work, such as agents=10")
        agents = arms.agents
    agents = whole_number("agents", agents, least=1, most=_MOST_AGENTS)
    if arms.agents not in (None, agents):
        raise InputError(f"agents is {agents}, but these arms are for {arms.agents} agents")
    return Problem(arms.n, m, agents, whole_number("horizon", horizon, least=1, most=_MOST_PULLS // agents))


def check_limit(
    horizon: int | None,
    budget: float | None,
    cost: Cost | None,
    confidence: float | None,
    tolerance: float,
    max_horizon: int | None,
) -> None:
    """See that exactly one thing ends the run, and that what goes with it is there and nothing else."""
    given = [
        name
        for name, value in (("horizon", horizon), ("budget", budget), ("confidence", confidence))
        if value is not None
    ]
    if len(given) != 1:
        found = f"{' and '.join(given)} were given" if given else "none was given"
        raise InputError(f"give exactly one of horizon, budget and confidence: {found}")
    if cost is not None and budget is None:
        raise InputError("cost goes with budget: say what the pulls may cost in all")
    if confidence is None and max_horizon is not None:
        raise InputError(f"max_horizon goes with confidence; {given[0]} is the limit already")
    if confidence is None and tolerance != 0:
        raise InputError(f"tolerance goes with confidence; a run to a {given[0]} makes no promise it could loosen")


def limit_of(
    arms: Arms,
    m: int,
    agents: int | None,
    horizon: int | None,
    budget: float | None,
    cost: Cost | None,
    max_horizon: int | None,
    algorithm: Algorithm,
) -> tuple[int, tuple[float, ...] | None]:
    """The most pulls an agent may make; and with a budget, the price of a pull of each candidate."""
    if horizon is not None:
        return horizon, None
    if budget is None:
        most = DEFAULT_MAX_HORIZON if max_horizon is None else whole_number("max_horizon", max_horizon, 1, _MOST_PULLS)
        return most, None
    budget, prices = checked_budget(budget), costs_of(arms, cost)
    problem = _problem(arms, m, agents, 1)
    _check_setting(algorithm, arms, problem)
    inner = min(problem.m, problem.n - problem.m)
    return horizon_for(algorithm, problem.n, inner or problem.n, problem.agents, budget, prices), prices


def _check_setting(algorithm: Algorithm, arms: Arms, problem: Problem) -> None:
    if algorithm.iid_only and not arms.iid:
        raise SettingError(
            f"{algorithm.title} divides the arms among the agents, so it needs arms that are the same for all of "
            "them; these differ from agent to agent (use collab-top-noniid or uniform)"
        )
    algorithm.check(problem)
    if "confidence" in algorithm.options and isinstance(arms, CalledArms) and arms.policy.failures == "skip":
        raise SettingError(
            "failures is 'skip', but a confidence cannot be promised when nobody is told how many pulls were skipped; "
            "use 'zero', 'raise', or a horizon"
        )


def _check(algorithm: Algorithm, arms: Arms, problem: Problem) -> None:
    _check_setting(algorithm, arms, problem)
    if problem.m == problem.n:
        return
    smallest = algorithm.smallest_horizon(problem)
    if problem.horizon < smallest:
        raise HorizonError(
            f"horizon is {problem.horizon}, but {problem.n} arms and {problem.agents} agents need at least "
            f"{smallest} with {algorithm.title} (one pull an arm before the first elimination, and all rounds "
            "within the horizon)",
            smallest,
        )


def make_team(team: str | Team) -> Team:
    """A team by its name."""
    if isinstance(team, Team):
        return team
    if team == "local":
        return LocalTeam()
    if team == "threads":
        return ThreadsTeam()
    if team == "ray":
        return RayTeam()
    raise InputError(f"team is {team!r}, but 'local', 'threads', 'ray' or a team object is needed")
