"""One run: check the arguments, choose, put arms, team and algorithm together, return a result."""

from __future__ import annotations

import operator
import secrets
from functools import partial
from typing import Any

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.arms import Arms
from collabtop.arms.draws import coordinator_rng
from collabtop.choice import choose
from collabtop.errors import HorizonError, InputError, ProtocolError, SettingError
from collabtop.problem import Problem
from collabtop.protocol.agent import Setup
from collabtop.protocol.scoreboard import Scoreboard
from collabtop.protocol.team import Team
from collabtop.result import Result, observed_of
from collabtop.teams.in_process import LocalTeam

DEFAULT_MAX_HORIZON = 10_000_000
"""The limit of a run with a confidence, where none is given: arms that tie are never told apart."""


def identify(
    arms: Arms,
    m: int,
    *,
    agents: int | None = None,
    horizon: int | None = None,
    confidence: float | None = None,
    tolerance: float = 0.0,
    max_horizon: int | None = None,
    algorithm: str | Algorithm = "auto",
    options: dict[str, Any] | None = None,
    seed: int | None = None,
    team: str | Team = "local",
) -> Result:
    """Find the best m arms with a team of agents.

    Args:
        arms: what can be pulled: `BernoulliArms`, `HeterogeneousArms`, `BetaArms`, `FunctionArms`, or
            arms of your own (the paper's I).
        m: how many are wanted (m).
        agents: how many agents share the work (K); arms that differ from agent to agent know it themselves.
        horizon: how many pulls each agent may make (T): all of them are spent.
        confidence: instead of a horizon, stop as soon as the answer is right with this probability.
        tolerance: with a confidence, an arm this little worse than the m-th best is right as well.
        max_horizon: with a confidence, the most pulls an agent may make; 10,000,000 if left out. A run that
            meets it says that it is not sure (`result.sure`) and which arms are open.
        algorithm: a name (`available_algorithms()`), an algorithm object with its options, or `"auto"`: the
            best for the kind of arms.
        options: options of an algorithm given by name.
        seed: the same seed gives the same run, on every team; left out, one is drawn and reported.
        team: where the agents run: `"local"`, or a team object.

    Returns:
        The best m arms, what was learnt of all of them, and what it cost.

    Raises:
        InputError: an argument is wrong; nothing was pulled.
        PullError: the user's own function failed.

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
    seed = secrets.randbits(63) if seed is None else _whole("seed", seed, least=0)
    limit = _limit(horizon, confidence, tolerance, max_horizon)
    chosen, why = choose(algorithm, options or {}, _are_arms(arms), confidence, tolerance)
    problem = check_run_arguments(arms, m, agents, limit, chosen)
    crew = _team(team)

    mirrored = 2 * problem.m > problem.n  # look for the n - m worst instead, and return the rest
    inner = Problem(problem.n, problem.n - problem.m if mirrored else problem.m, problem.agents, problem.horizon)
    try:
        crew.start(arms, Setup(inner, seed, mirrored))
        board = _run(chosen, crew, inner, seed)
        batches = crew.seen()
    finally:
        crew.close()
    return Result(
        algorithm=chosen.title,
        options=chosen.options,
        why=why,
        n=problem.n,
        m=problem.m,
        agents=problem.agents,
        horizon=problem.horizon,
        seed=seed,
        confidence=chosen.options.get("confidence"),
        labels=arms.labels,
        estimates=board.verdict(mirrored=mirrored),
        rounds=crew.meter.rounds(),
        ledger=crew.meter.ledger(),
        observe=partial(observed_of, batches, problem.n, mirrored=mirrored),
    )


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


def _are_arms(arms: Any) -> Arms:
    if not isinstance(arms, Arms):
        raise InputError(
            f"arms is a {type(arms).__name__}, but arms are needed: BernoulliArms(means) to simulate, "
            "FunctionArms(candidates, pull) to try out candidates of your own"
        )
    return arms


def _whole(name: str, value: Any, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name} is {value!r}, but a whole number is needed") from None
    if isinstance(value, bool | np.bool_) or number < least:
        raise InputError(f"{name} is {value!r}, but a whole number of at least {least} is needed")
    return number


def _limit(horizon: int | None, confidence: float | None, tolerance: float, max_horizon: int | None) -> int:
    if (horizon is None) == (confidence is None):
        both = "both were given" if horizon is not None else "neither was given"
        raise InputError(f"give exactly one of horizon and confidence: {both}")
    if horizon is not None:
        if max_horizon is not None:
            raise InputError("max_horizon goes with confidence; horizon is the limit already")
        if tolerance != 0:
            raise InputError("tolerance goes with confidence; a run to a horizon makes no promise it could loosen")
        return horizon
    return DEFAULT_MAX_HORIZON if max_horizon is None else _whole("max_horizon", max_horizon, least=1)


def _check(algorithm: Algorithm, arms: Arms, problem: Problem) -> None:
    if algorithm.iid_only and not arms.iid:
        raise SettingError(
            f"{algorithm.title} divides the arms among the agents, so it needs arms that are the same for all of "
            "them; these differ from agent to agent (use collab-top-noniid or uniform)"
        )
    algorithm.check(problem)
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


def _team(team: str | Team) -> Team:
    if isinstance(team, Team):
        return team
    if team == "local":
        return LocalTeam()
    raise InputError(f"team is {team!r}, but 'local' or a team object is needed")
