"""One run: check the arguments, choose, put arms, team and algorithm together, return a result."""

from __future__ import annotations

import operator
import secrets
from contextlib import ExitStack, closing
from functools import partial
from os import PathLike
from typing import Any

import msgspec
import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.catalogue import make_algorithm
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.arms import Arms, FunctionArms, PullPolicy
from collabtop.arms.draws import coordinator_rng
from collabtop.arms.function import CalledArms, Pull
from collabtop.checkpoint import make_header, open_log, seed_in
from collabtop.errors import HorizonError, InputError, ProtocolError, SettingError
from collabtop.events import OnEvent, RunEnded, RunStarted
from collabtop.problem import Problem
from collabtop.progress import progress_display
from collabtop.protocol.agent import Setup
from collabtop.protocol.log import Finished, RunLog
from collabtop.protocol.recording import RecordedArms, Tape
from collabtop.protocol.scoreboard import Scoreboard
from collabtop.protocol.team import Team
from collabtop.result import Result, observed_of
from collabtop.spending import Cost, Spending, checked_budget, costs_of, horizon_for, spent_on, worst_case
from collabtop.teams.in_process import LocalTeam
from collabtop.teams.threads import ThreadsTeam
from collabtop.teams.wrapped import LoggedTeam, WatchedTeam


def identify(
    arms: Any,
    m: int,
    *,
    agents: int | None = None,
    horizon: int | None = None,
    budget: float | None = None,
    cost: Cost | None = None,
    pull: Pull | None = None,
    policy: PullPolicy | None = None,
    algorithm: str | Algorithm = "auto",
    options: dict[str, Any] | None = None,
    seed: int | None = None,
    team: str | Team = "local",
    checkpoint: str | PathLike[str] | None = None,
    on_event: OnEvent | None = None,
    progress: bool = False,
) -> Result:
    """Find the best m arms with a team of agents.

    Args:
        arms: candidates of your own, with `pull`, or what can be pulled: `BernoulliArms`, `HeterogeneousArms`,
            `BetaArms`, `FunctionArms`, `DatasetArms`, or arms of your own (the paper's I).
        m: how many are wanted (m).
        agents: how many agents share the work (K); arms that differ from agent to agent know it themselves.
        horizon: how many pulls each agent may make (T).
        budget: instead of a horizon: how many pulls all agents may make together, or with `cost` what they may
            cost. The horizon is the largest that cannot cost more, whichever candidates stay open.
        cost: the price of one pull: a function of a candidate, a number for each, or one for all.
        pull: a function that tries a candidate once, `pull(candidate, rng)`, and gives a reward in [0, 1]; it
            may be `async`, or marked with `batch`.
        policy: what happens to pulls that fail: retries, a time limit, and what counts in the end.
        algorithm: a name (`available_algorithms()`), an algorithm object with its options, or `"auto"`: the
            best for the kind of arms.
        options: options of an algorithm given by name.
        seed: the same seed gives the same run, on every team; left out, one is drawn and reported.
        team: where the agents run: `"local"` (one after the other), `"threads"` (in parallel), or a team object.
        checkpoint: a file that keeps every pull and every exchange; the same call, or `resume`, goes on from it.
        on_event: called with every event of the run, from one thread at a time.
        progress: show how far the run is, on stderr.

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
    >>> result.algorithm, result.options
    ('collab-top-iid', {'schedule': 'full'})
    """
    arms = as_arms(arms, pull, policy)
    chosen, why = choose_algorithm(algorithm, options or {}, arms)
    if seed is None and checkpoint is not None:
        seed = seed_in(checkpoint)
    seed = secrets.randbits(63) if seed is None else _whole("seed", seed, least=0)
    horizon, prices = horizon_or_budget(arms, m, agents, horizon, budget, cost, chosen)
    problem = check_run_arguments(arms, m, agents, horizon, chosen)
    plan = Plan(arms, problem, chosen, why, seed, make_team(team), budget, prices)
    return run_plan(plan, checkpoint, on_event, progress=progress)


class Plan(msgspec.Struct, frozen=True):
    """A run whose arguments are fine."""

    arms: Arms
    problem: Problem
    algorithm: Algorithm
    why: str
    seed: int
    team: Team
    budget: float | None = None
    costs: tuple[float, ...] | None = None


def run_plan(
    plan: Plan, checkpoint: str | PathLike[str] | None, on_event: OnEvent | None, *, progress: bool = False
) -> Result:
    """Make a run, with a checkpoint and somebody watching where that is asked for."""
    with ExitStack() as stack:
        log = None
        if checkpoint is not None:
            header = make_header(plan.arms, plan.problem, plan.algorithm, plan.why, plan.seed, plan.budget, plan.costs)
            log = stack.enter_context(closing(open_log(checkpoint, header)))
        watcher = stack.enter_context(progress_display(on_event)) if progress else on_event
        tape = Tape(log, watcher, log.records if log else ())
        result = _recorded_run(plan, log, tape, watched=watcher is not None)
        if log is not None and not any(isinstance(record, Finished) for record in log.records):
            log.append(Finished(result.top_indices), sync=True)
        tape.tell(RunEnded(tuple(result.top_indices), result.time, result.pulls, result.words))
    return result


def _recorded_run(plan: Plan, log: RunLog | None, tape: Tape, *, watched: bool) -> Result:
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
        result = _result(plan, arms, team)
    finally:
        plan.arms.close()
    result.failures = {plan.arms.label(arm): count for arm, count in sorted(tape.failed.items())}
    result.retries = tape.retries
    return result


def _result(plan: Plan, arms: Arms, team: Team) -> Result:
    problem, chosen = plan.problem, plan.algorithm
    mirrored = 2 * problem.m > problem.n  # look for the n - m worst instead, and return the rest
    inner = Problem(problem.n, problem.n - problem.m if mirrored else problem.m, problem.agents, problem.horizon)
    try:
        team.start(arms, Setup(inner, plan.seed, mirrored))
        board = _run(chosen, team, inner, plan.seed)
        batches = team.seen()
    finally:
        team.close()
    result = Result(
        algorithm=chosen.title,
        options=chosen.options,
        why=plan.why,
        n=problem.n,
        m=problem.m,
        agents=problem.agents,
        horizon=problem.horizon,
        seed=plan.seed,
        labels=arms.labels,
        estimates=board.verdict(mirrored=mirrored),
        rounds=team.meter.rounds(),
        ledger=team.meter.ledger(),
        observe=partial(observed_of, batches, problem.n, mirrored=mirrored),
    )
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
    m = _whole("m", m, least=1)
    if m > arms.n:
        raise InputError(f"m is {m}, but there are only {arms.n} arms")
    if agents is None:
        if arms.agents is None:
            raise InputError("agents is missing: say how many agents share the work, such as agents=10")
        agents = arms.agents
    agents = _whole("agents", agents, least=1)
    if arms.agents not in (None, agents):
        raise InputError(f"agents is {agents}, but these arms are for {arms.agents} agents")
    return Problem(arms.n, m, agents, _whole("horizon", horizon, least=1))


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


def horizon_or_budget(
    arms: Arms,
    m: int,
    agents: int | None,
    horizon: int | None,
    budget: float | None,
    cost: Cost | None,
    algorithm: Algorithm,
) -> tuple[int, tuple[float, ...] | None]:
    """The horizon that was given, or that the budget pays for; and the price of a pull of each candidate."""
    if (horizon is None) == (budget is None):
        given = "neither" if horizon is None else "both"
        raise InputError(f"exactly one of horizon and budget is needed, and {given} is given")
    if horizon is not None:
        if cost is not None:
            raise InputError("cost goes with budget: say what the pulls may cost in all")
        return horizon, None
    budget, prices = checked_budget(budget), costs_of(arms, cost)
    problem = _problem(arms, m, agents, 1)
    _check_setting(algorithm, arms, problem)
    inner = min(problem.m, problem.n - problem.m)
    horizon = horizon_for(algorithm, problem.n, inner or problem.n, problem.agents, budget, prices)
    return horizon, prices


def _whole(name: str, value: Any, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} is {value!r}, but a whole number is needed") from None
    if isinstance(value, bool | np.bool_) or number < least:
        raise InputError(f"{name} is {value!r}, but a whole number of at least {least} is needed")
    return number


def choose_algorithm(algorithm: str | Algorithm, options: dict[str, Any], arms: Arms) -> tuple[Algorithm, str]:
    """The algorithm that was asked for, or the one for this kind of arms; and why."""
    if isinstance(algorithm, Algorithm):
        if options:
            raise InputError("options go with an algorithm's name; this algorithm object has its own")
        return algorithm, "asked for"
    if not isinstance(algorithm, str):
        raise InputError(f"algorithm is {algorithm!r:.80}, but a name or an algorithm object is needed")
    if algorithm != "auto":
        return make_algorithm(algorithm, **options), "asked for"
    if options:
        raise InputError(f"options {sorted(options)} need an algorithm: name one")
    if arms.iid:
        return CollabTopIID(schedule="full"), "the arms are the same for all agents: few words, full horizon"
    return CollabTopNonIID(schedule="full"), "the arms differ from agent to agent: all must pull all, full horizon"


def _check_setting(algorithm: Algorithm, arms: Arms, problem: Problem) -> None:
    if algorithm.iid_only and not arms.iid:
        raise SettingError(
            f"{algorithm.title} divides the arms among the agents, so it needs arms that are the same for all of "
            "them; these differ from agent to agent (use collab-top-noniid or uniform)"
        )
    algorithm.check(problem)


def _check(algorithm: Algorithm, arms: Arms, problem: Problem) -> None:
    _check_setting(algorithm, arms, problem)
    if problem.m == problem.n:
        return
    smallest = algorithm.smallest_horizon(problem)
    if problem.horizon < smallest:
        raise HorizonError(
            f"horizon is {problem.horizon}, but {problem.n} arms and {problem.agents} agents need at least "
            f"{smallest} with {algorithm.title} (one pull an arm before the first elimination)",
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
    raise InputError(f"team is {team!r}, but 'local', 'threads' or a team object is needed")
