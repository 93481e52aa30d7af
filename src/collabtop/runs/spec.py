"""What a run is: all of its arguments, checked before anything is pulled."""

import math
import secrets
from contextlib import suppress
from typing import Any, Literal

import msgspec

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.default import choose
from collabtop.algorithms.registry import algorithms_where
from collabtop.arms import Arms, PullPolicy
from collabtop.arms.draws import leg_seed
from collabtop.arms.function import Pull, as_arms
from collabtop.arms.rate import RateLimit, as_rates
from collabtop.arms.unit import Bounds, Direction, Unit
from collabtop.coordination.team import Team
from collabtop.errors import HorizonError, InputError, SettingError
from collabtop.privacy import Privacy
from collabtop.problem import Problem
from collabtop.protocol.setup import Setup
from collabtop.runlog.format import Extended, Header
from collabtop.runs.budget import Cost, costs_of, horizon_for
from collabtop.runs.sample import within_sample
from collabtop.teams.local import LocalTeam
from collabtop.teams.processes import ProcessesTeam
from collabtop.teams.ray.team import RayTeam
from collabtop.teams.threads import ThreadsTeam
from collabtop.validation import counted, positive_number, real_number, whole_number, wrong_value

TeamName = Literal["local", "threads", "processes", "ray"]
"""The teams that a name is enough for."""

DEFAULT_MAX_HORIZON = 10_000_000
"""The limit of a run with a confidence, if none is given: arms that tie are never separated."""

_MOST_AGENTS = 10**6
_MOST_WORKERS = 4_096
_MOST_PULLS = 10**15  # of all agents together: as floats, sums of rewards are exact up to nine times that


class RunSpec(msgspec.Struct, frozen=True):
    """A run whose arguments are valid."""

    arms: Arms
    problem: Problem
    algorithm: Algorithm
    why: str
    """Why this algorithm."""
    seed: int
    team: Team
    budget: float | None = None
    costs: tuple[float, ...] | None = None
    """The price of a pull of each candidate, if the run has a budget."""
    name: str | None = None
    """What the user calls the run."""
    notes: tuple[str, ...] = ()
    """What was changed in the arguments, such as a horizon that was lowered."""
    doubling: bool = False
    """Whether the horizon is doubled again and again until the run is stopped."""
    extensions: int = 0
    """How often the run was extended."""
    workers: int | None = None
    """How many pulls are made at the same time, if it was given."""
    privacy: Privacy | None = None
    """The differential privacy of the run."""

    def __post_init__(self) -> None:
        if self.name is not None and not isinstance(self.name, str):
            raise wrong_value("name", self.name, "a text is needed")
        check_setting(self.algorithm, self.arms, self.problem)
        if self.privacy is not None:
            self._check_privacy(self.privacy)
        _check_horizon(self.algorithm, self.problem)

    def _check_privacy(self, privacy: Privacy) -> None:
        """Raise an error if something that depends on rewards would be used or sent without noise."""
        if not isinstance(privacy, Privacy):
            needed = "a Privacy is needed, such as Privacy(epsilon=1.0, delta=1e-6, unit='reward')"
            raise wrong_value("privacy", privacy, needed)
        self.arms.check_privacy(privacy)
        check_private(self.algorithm)
        if self.costs is not None and self.is_metered:
            raise SettingError(
                "cost reports what pulls cost, which has no noise: with privacy, give budget in pulls, or a horizon",
                argument="cost",
            )
        if self.doubling or self.extensions:
            raise SettingError(
                "a private run has a fixed horizon, since every use of the same rewards costs privacy: pass horizon, "
                "and start a new run instead of extending one",
                argument="privacy",
            )

    @property
    def prices(self) -> tuple[float, ...] | None:
        """The price of a pull of each candidate, 1 for a budget in pulls; None for a run without a budget."""
        return (1.0,) * self.problem.n if self.costs is None and self.budget is not None else self.costs

    @property
    def setup(self) -> Setup:
        """What the agents get before the run."""
        problem, algorithm = self.problem, self.algorithm
        extension = "" if algorithm.extension is None else algorithm.extension.name
        fixed = self.arms.paired or problem.pull_limit is not None  # pull number t must stay the same
        seed = self.seed if fixed else leg_seed(self.seed, self.extensions)
        return Setup(
            problem.inner,
            seed,
            problem.mirrored,
            algorithm.title,
            algorithm.options,
            extension,
            budget=self.budget if self.is_metered else None,
            prices=(self.costs or ()) if self.is_metered else (),
            iid=self.arms.iid,
            unit=self.arms.unit,
            privacy=self.privacy,
        )

    @property
    def is_metered(self) -> bool:
        """Whether agents report what their pulls cost, so that what the plan leaves of a budget can be spent."""
        return self.costs is not None and not self.extensions and not self.team.agents_outlive_run

    def at_leg(self, header: Header) -> "RunSpec":
        """The run in the leg that a header describes."""
        problem = header.problem
        budget, extensions = header.budget, header.extensions
        return msgspec.structs.replace(self, problem=problem, budget=budget, extensions=extensions)

    def extended(self, horizon: int, budget: float | None = None) -> "RunSpec":
        """The next leg of the run, in which pulls are numbered over all agents if the algorithm can do that."""
        problem, _ = within_sample(self.algorithm, self.arms, self.problem.at_horizon(horizon))
        numbered = msgspec.structs.replace(problem, numbered=self.arms.iid, reuses=not self.arms.paired)
        with suppress(SettingError):
            self.algorithm.check(numbered)
            problem = numbered
        return msgspec.structs.replace(self, problem=problem, budget=budget, extensions=self.extensions + 1)

    @property
    def can_double(self) -> bool:
        """Whether there is a run with twice the horizon."""
        horizon = 2 * self.problem.horizon
        try:
            return horizon <= _MOST_PULLS // self.problem.agents and self.extended(horizon).problem.horizon == horizon
        except InputError:  # the sample is too small
            return False

    @property
    def extension(self) -> Extended:
        """The record that begins this leg in a log."""
        return Extended(self.problem.horizon, self.budget, numbered=self.problem.numbered)


def make_spec(
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
    paired: bool = False,
    direction: Direction = "maximize",
    bounds: Bounds = (0.0, 1.0),
    policy: PullPolicy | None = None,
    robust: int = 0,
    privacy: Privacy | None = None,
    algorithm: str | Algorithm = "auto",
    options: dict[str, Any] | None = None,
    seed: int | None = None,
    team: TeamName | Team = "local",
    workers: int | None = None,
    rate: RateLimit | None = None,
    name: str | None = None,
    may_double: bool = False,
) -> RunSpec:
    """Check the arguments of `identify`, fill in what was left out, and choose the algorithm.

    If it `may_double`, no limit has to be given: the horizon is doubled until the run is stopped.
    """
    arms = as_arms(arms, pull, policy, paired=paired, direction=direction, bounds=bounds)
    arms = with_workers(arms, workers, rate)
    doubling = may_double and horizon is None and budget is None and confidence is None
    if not doubling:
        _check_limit(horizon, budget, cost, confidence, tolerance, max_horizon)
    team = make_team(team, workers)
    if agents is None and arms.calls_function and team.messages_are_free:
        agents = arms.agents or 1  # which then pools all that it sees
    tolerance = _internal_tolerance(tolerance, arms.unit)
    chosen, why = choose(
        algorithm,
        options or {},
        arms,
        confidence,
        tolerance,
        robust=robust,
        private=privacy is not None,
        messages_are_free=team.messages_are_free,
    )
    seed = secrets.randbits(63) if seed is None else whole_number("seed", seed, least=0, most=2**64 - 1)
    costs = None
    if budget is not None:
        budget, costs = positive_number("budget", budget), costs_of(arms, cost)
        if cost == "seconds":
            arms = arms.with_calls(charge="seconds")
        unlimited = make_problem(arms, m, agents, 1)
        check_setting(chosen, arms, unlimited)
        horizon = horizon_for(chosen, unlimited, budget, costs)
    elif doubling:
        unlimited = make_problem(arms, m, agents, 1)
        check_setting(chosen, arms, unlimited)
        horizon = chosen.smallest_horizon(unlimited)
    elif horizon is None:
        limit = DEFAULT_MAX_HORIZON if max_horizon is None else max_horizon
        horizon = whole_number("max_horizon", limit, least=1, most=_MOST_PULLS)
    problem, notes = within_sample(chosen, arms, make_problem(arms, m, agents, horizon))
    return RunSpec(
        *(arms, problem, chosen, why, seed, team, budget, costs, name, notes),
        doubling=doubling,
        workers=workers,
        privacy=privacy,
    )


def make_problem(arms: Arms, m: int, agents: int | None, horizon: int) -> Problem:
    """The problem that these arguments pose."""
    m = whole_number("m", m, least=1)
    if m > arms.n:
        raise wrong_value("m", m, f"there are only {arms.n} arms")
    if agents is None:
        if arms.agents is None:
            raise InputError(
                "agents is missing: pass how many agents share the work, such as agents=10", argument="agents"
            )
        agents = arms.agents
    agents = whole_number("agents", agents, least=1, most=_MOST_AGENTS)
    if arms.agents not in (None, agents):
        raise wrong_value("agents", agents, f"these arms are for {arms.agents} agents")
    horizon = whole_number("horizon", horizon, least=1, most=_MOST_PULLS // agents)
    numbered = arms.iid and (arms.paired or arms.sample_size is not None)
    return Problem(
        arms.n,
        m,
        agents,
        horizon,
        arms.pull_limit,
        numbered=numbered,
        bounded=arms.unit.bounded,
        sample_size=arms.sample_size,
        weights=arms.weights,
    )


def _check_limit(
    horizon: int | None,
    budget: float | None,
    cost: Cost | None,
    confidence: float | None,
    tolerance: float,
    max_horizon: int | None,
) -> None:
    """Check that exactly one limit is given, with only the arguments that belong to it."""
    given = [
        name
        for name, value in (("horizon", horizon), ("budget", budget), ("confidence", confidence))
        if value is not None
    ]
    if len(given) != 1:
        count = f"{' and '.join(given)} were given" if given else "none was given"
        hint = "" if given else "; or pass timeout=, or use start(), to double the horizon until the run is stopped"
        raise InputError(f"give exactly one of horizon, budget and confidence: {count}{hint}")
    if cost is not None and budget is None:
        raise InputError("cost= only applies with budget=: pass what all pulls together may cost", argument="cost")
    if confidence is None and max_horizon is not None:
        raise InputError(
            f"max_horizon= only applies with confidence=; {given[0]} is the limit already", argument="max_horizon"
        )
    if confidence is None and tolerance != 0:
        raise InputError("tolerance= only applies with confidence=", argument="tolerance")


def _internal_tolerance(tolerance: float, unit: Unit) -> float:
    """The tolerance, which is given in the unit of the rewards, as a difference of internal values."""
    largest = unit.shown_difference(1.0) if unit.bounded else math.inf
    if not 0 <= real_number("tolerance", tolerance) < largest:
        raise wrong_value("tolerance", tolerance, f"a number of at least 0 and below {largest:g} is needed")
    return unit.internal_difference(tolerance)


def check_setting(algorithm: Algorithm, arms: Arms, problem: Problem) -> None:
    """Raise `SettingError` if the algorithm does not work for these arms, this many agents or this m."""
    if algorithm.iid_only and not arms.iid:
        raise SettingError(
            f"{algorithm.title} divides the arms among the agents, so it needs arms that are the same for all of "
            "them; these differ from agent to agent. algorithm='auto' chooses a suitable one",
            argument="algorithm",
        )
    algorithm.check(problem)
    if algorithm.needs_bounds and not problem.bounded:
        raise SettingError(
            f"bounds is None, but {algorithm.title} computes intervals from bounds: pass bounds=(low, high), or use a "
            "horizon or a budget instead of a confidence",
            argument="bounds",
        )
    if algorithm.stops_early and arms.sample_size is not None and arms.pull_limit is None:
        raise SettingError(
            f"replace is True, but a confidence comes from distinct rewards, and there are {arms.sample_size:,} of a "
            "candidate: use replace=False, or a horizon",
            argument="replace",
        )
    if algorithm.stops_early and arms.failure_mode == "skip":
        raise SettingError(
            "failures is 'skip', but a confidence needs the number of pulls behind every mean, and skipped pulls are "
            "not reported; use 'zero', 'raise', or a horizon",
            argument="policy",
        )


def check_private(algorithm: Algorithm, *, argument: str = "algorithm") -> None:
    """Raise `SettingError` if the algorithm cannot run with privacy."""
    if not algorithm.private:
        raise SettingError(
            f"{argument} is {algorithm.title!r}, whose messages have no noise, but privacy needs one of "
            f"{', '.join(algorithms_where(private=True))}",
            argument=argument,
        )


def _check_horizon(algorithm: Algorithm, problem: Problem) -> None:
    if problem.m == problem.n:
        return
    smallest = algorithm.smallest_horizon(problem)
    if problem.horizon < smallest:
        raise HorizonError(
            f"horizon is {problem.horizon}, but {counted(problem.n, 'arm')} and {counted(problem.agents, 'agent')} "
            f"need at least {smallest} with {algorithm.title} (one pull per arm before the first elimination, and "
            "all rounds within the horizon)",
            smallest,
        )


def with_workers(arms: Arms, workers: int | None, rate: RateLimit | None) -> Arms:
    """Arms whose function is called by so many workers, at this rate."""
    if workers is None and rate is None:
        return arms
    rates = as_rates(rate)
    if workers is not None:
        workers = whole_number("workers", workers, least=1, most=_MOST_WORKERS)
    if not arms.calls_function:
        name = "rate" if workers is None else "workers"
        raise InputError(
            f"{name}= only applies to arms that call a function here, but these are {type(arms).__name__}",
            argument=name,
        )
    return arms.with_calls(workers=workers, rates=rates)


def make_team(team: TeamName | Team, workers: int | None = None) -> Team:
    """A team by its name. With workers, local agents run in threads, so that the workers can make pulls of all."""
    if isinstance(team, Team):
        return team
    local = LocalTeam if workers is None else ThreadsTeam
    teams: dict[str, type[Team]] = {
        "local": local,
        "threads": ThreadsTeam,
        "processes": ProcessesTeam,
        "ray": RayTeam,
    }
    if not isinstance(team, str) or team not in teams:
        raise wrong_value("team", team, "'local', 'threads', 'processes', 'ray' or a team object is needed")
    return teams[team]()
