"""The laws that every algorithm keeps."""

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.arms import Arms
from collabtop.arms.base import Reals
from collabtop.arms.simulated import SimulatedArms
from collabtop.coordination.team import Team
from collabtop.errors import HorizonError, SettingError
from collabtop.events import Event, OnEvent
from collabtop.problem import Problem, misplaced
from collabtop.runs.identification import identify
from collabtop.runs.result import Result
from collabtop.teams.local import LocalTeam
from collabtop.testing.arms import ConstantArms, UnboundedArms
from collabtop.testing.free_information import check_free_information, check_parallel
from collabtop.testing.isolated_team import IsolatedTeam
from collabtop.testing.simulations import check_simulation


def check_run(algorithm: Algorithm, arms: SimulatedArms, m: int, agents: int, horizon: int, seed: int) -> Result:
    """Run an algorithm once and check every law of a single run; on `ConstantArms` also that it is right.

    The agents are in another process, so that nothing but messages can reach the algorithm. A second run, with agents
    in this process, has to be the same.
    """
    team, events = IsolatedTeam(), list[Event]()

    def run(team: Team, on_event: OnEvent | None = None) -> Result:
        return identify(
            arms, m, agents=agents, horizon=horizon, algorithm=algorithm, seed=seed, team=team, on_event=on_event
        )

    case = f"{algorithm}: n={arms.n} m={m} agents={agents} horizon={horizon} seed={seed}"
    local = run(LocalTeam())
    try:
        result = run(team, events.append)
    except Exception as error:
        raise AssertionError(
            f"it runs only if its agents are in the same process, so it reads something that was never sent: "
            f"{type(error).__name__}: {error} ({case})"
        ) from error
    assert result.time <= horizon, f"time {result.time} is past the horizon ({case})"
    assert result.words == team.words, f"ledger has {result.words} words, the wire {team.words} ({case})"
    assert result == local, (
        f"the same seed gave another run when the agents were in another process ({case}). It takes chance from "
        "elsewhere, remembers an earlier run, or reads something that was never sent"
    )
    assert len(set(result.top_indices)) == m, f"{result.top_indices} are not {m} different arms ({case})"
    check_parallel(result, team, events, case)
    _check_pulls(local, case)
    _check_rounds(result, case)
    _check_most(algorithm, result, case)
    if isinstance(arms, ConstantArms):
        _check_right(result, algorithm.values(arms), float(algorithm.options.get("tolerance", 0.0)), case)
    return result


def _check_right(result: Result, values: Reals, tolerance: float, case: str) -> None:
    """Without noise the answer is right; an algorithm that may give up has to be right in what it calls settled."""
    wrong = misplaced(values, result.top_indices, tolerance)
    if result.sure is False:
        assert result.open, f"the run is not sure, and names no open arm ({case})"
        wrong = np.setdiff1d(wrong, list(result.estimates.guesses))
    assert not len(wrong), f"{result.top_indices} are not the best: arms {wrong.tolist()} are misplaced ({case})"


def _check_pulls(result: Result, case: str) -> None:
    assert result.observed is not None
    seen = result.observed.pulls
    assert result.pulls == seen.sum(), f"{result.pulls} pulls in the ledger, {seen.sum()} made ({case})"
    assert result.pulls <= result.time * result.agents, f"more pulls than agents have time for ({case})"
    for arm, (known, made) in enumerate(zip(result.pulls_by_arm, seen, strict=True)):
        assert known in (None, made), f"arm {arm} was pulled {made} times, reported are {known} ({case})"


def _check_rounds(result: Result, case: str) -> None:
    for what in ("words", "bits", "round_trips"):
        by_round = sum(getattr(one, what) for one in result.rounds)
        assert by_round == getattr(result, what), f"the rounds' {what} do not add up ({case})"
    for one in result.estimates:
        assert one.round is None or one.round < len(result.rounds), f"{one} names no round of the run ({case})"


def _check_most(algorithm: Algorithm, result: Result, case: str) -> None:
    """A run says no more than the algorithm says it can."""
    if result.m == result.n:
        return
    inner = Problem(result.n, result.m, result.agents, result.horizon).inner
    words, trips = algorithm.most_words(inner), algorithm.most_round_trips(inner)
    assert words is None or result.words <= words, f"{result.words} words, {words} at most ({case})"
    assert trips is None or result.round_trips <= trips, f"{result.round_trips} trips, {trips} at most ({case})"


def check_algorithm(algorithm: Algorithm, *, seed: int = 0) -> None:
    """Check that an algorithm keeps the laws on small instances of every shape.

    Without noise it finds the best m for every n, K, m and horizon that it accepts, also if rewards have no bounds
    (unless it `needs_bounds`); it never goes past the horizon; the ledger equals what crosses the wire, and is within
    `most_words` and `most_round_trips` where it has them; the same seed gives the same run; a horizon below its
    smallest is refused.

    It also has to keep to the rules of the count. The agents are in another process, where an algorithm cannot read
    rewards, means or the state of agents. Whatever a message does not pay for follows from what the agent knows. The
    exchanges of a round do not take more time, one after the other, than the round is counted with.

    If it implements `simulate`, `check_simulation` compares that with its runs; a correct one fails there with a
    probability of at most 0.0001.
    """
    rng, tried = np.random.default_rng(seed), 0
    for n in (1, 2, 3, 4, 7, 8, 13, 16, 40):
        for agents in (1, 2, 5, 60):
            for m in {1, int(rng.integers(1, n + 1))}:
                tried += _check_instance(algorithm, n, m, agents, rng)
    assert tried, f"{algorithm} refuses every number of arms, agents and every m that was tried"
    check_free_information(algorithm, rng)
    if algorithm.batched:
        check_simulation(algorithm, seed=seed)


_UNBOUNDED = (7, 16)
"""The numbers of arms that are also tried with rewards without bounds."""


def _check_instance(algorithm: Algorithm, n: int, m: int, agents: int, rng: np.random.Generator) -> bool:
    shape = n if algorithm.iid_only or rng.random() < 0.5 else (n, agents)
    arms = ConstantArms(rng.integers(0, 9, shape) / 8)  # few values, so that many tie
    try:
        algorithm.check(Problem(n, m, agents, 1))
    except SettingError:
        return False
    smallest = algorithm.smallest_horizon(Problem(n, m, agents, 1)) if m < n else 1
    for horizon in (smallest, smallest + int(rng.integers(1, 50)), 20 * smallest):
        check_run(algorithm, arms, m, agents, horizon, seed=int(rng.integers(1000)))
    if n in _UNBOUNDED and not algorithm.needs_bounds:
        check_run(algorithm, UnboundedArms(arms.means), m, agents, 20 * smallest, seed=1)
    if smallest > 1:
        _check_refused(algorithm, arms, m, agents, smallest - 1)
    return True


def _check_refused(algorithm: Algorithm, arms: Arms, m: int, agents: int, horizon: int) -> None:
    try:
        identify(arms, m, agents=agents, horizon=horizon, algorithm=algorithm)
    except HorizonError as error:
        assert str(error.smallest) in str(error), f"{error} does not say which horizon works"
    else:
        raise AssertionError(f"{algorithm} took a horizon of {horizon}, below its smallest")
