"""The laws that every team keeps."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.registry import available_algorithms, make_algorithm
from collabtop.arms import Arms, BernoulliArms, FunctionArms, HeterogeneousArms
from collabtop.coordination.team import Team
from collabtop.errors import PullError, SettingError
from collabtop.events import Event, PullsMade
from collabtop.problem import Problem
from collabtop.runs.identification import identify
from collabtop.runs.result import Result
from collabtop.teams.local import LocalTeam


def check_team(make_team: Callable[[], Team], *, algorithms: Sequence[str | Algorithm] | None = None) -> None:
    """Check that a team gives the runs of the local team, whatever the arms.

    Answer, estimates and ledger are compared for simulated arms with each algorithm, and for two functions: one with
    rewards of 0 and 1, and one without bounds, to be minimized. A run with a checkpoint is resumed without a single
    pull, every pull is published once, and a failing pull stops the run and leaves the team usable.
    """
    rng = np.random.default_rng(5)
    iid = BernoulliArms(rng.uniform(0.2, 0.8, 60))
    mixed = HeterogeneousArms(rng.uniform(0.2, 0.8, (20, 3)))
    for given in algorithms or available_algorithms():
        algorithm = given if isinstance(given, Algorithm) else make_algorithm(given)
        for simulated, agents, m in ((iid, 4, 3), (iid, 1, 1), (mixed, 3, 2)):
            if _fits(algorithm, simulated, m, agents):
                _check_same(make_team, algorithm, simulated, m, agents)
    for arms in (
        FunctionArms([0.2, 0.8, 0.5], _coin),
        FunctionArms([120.0, 80.0, 100.0], _latency, direction="minimize", bounds=None),
    ):
        _check_function_and_checkpoint(make_team, arms)
    _check_failing_pull(make_team)


def _fits(algorithm: Algorithm, arms: Arms, m: int, agents: int) -> bool:
    if algorithm.iid_only and not arms.iid:
        return False
    try:
        algorithm.check(Problem(arms.n, m, agents, 1))
    except SettingError:
        return False
    return True


def _check_same(make_team: Callable[[], Team], algorithm: Algorithm, arms: Arms, m: int, agents: int) -> None:
    def run(team: Team) -> Result:
        return identify(arms, m, agents=agents, horizon=3_000, algorithm=algorithm, seed=11, team=team)

    theirs, ours = run(make_team()), run(LocalTeam())
    assert theirs == ours, f"{algorithm} ran differently: {theirs!r} instead of {ours!r}"
    assert theirs.ledger == ours.ledger, f"{algorithm} was counted differently"


def _check_function_and_checkpoint(make_team: Callable[[], Team], arms: Arms) -> None:
    def run(team: Team, checkpoint: Path | None = None) -> tuple[Result, list[PullsMade]]:
        events: list[Event] = []
        settings: dict[str, Any] = {"agents": 2, "horizon": 30, "algorithm": "uniform", "seed": 3}
        result = identify(arms, 1, team=team, checkpoint=checkpoint, on_event=events.append, **settings)
        return result, [event for event in events if isinstance(event, PullsMade)]

    ours, _ = run(LocalTeam())
    if make_team().agents_outlive_run:  # such agents keep their rewards, and come back to a resumed run by themselves
        theirs, _ = run(make_team())
        assert theirs == ours, f"a function's run came out differently: {theirs!r} instead of {ours!r}"
        return
    with TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "run.ctlog"
        for resumed in (False, True):
            theirs, pulls = run(make_team(), checkpoint)
            assert theirs == ours, f"a function's run came out differently: {theirs!r} instead of {ours!r}"
            total = sum(event.pulls for event in pulls)
            assert total == ours.pulls, f"{ours.pulls} pulls were made, but {total} published"
            assert all(event.recalled == resumed for event in pulls), "a resumed run made pulls again"


def _check_failing_pull(make_team: Callable[[], Team]) -> None:
    arms = FunctionArms(["good", "broken"], _breaks_for_broken)
    team = make_team()
    try:
        identify(arms, 1, agents=2, horizon=20, algorithm="uniform", team=team)
    except PullError as error:
        assert error.candidate == "broken", f"the error names {error.candidate!r} instead of 'broken'"
    else:
        raise AssertionError("a failing pull went unnoticed")
    simulated = BernoulliArms([1.0, 0.0])
    assert identify(simulated, 1, agents=2, horizon=20, team=team).top == [0], "the team is unusable after a failure"


def _coin(mean: float, rng: np.random.Generator) -> bool:
    return bool(rng.random() < mean)


def _latency(mean: float, rng: np.random.Generator) -> float:
    return mean + float(rng.standard_normal())


def _breaks_for_broken(candidate: str, rng: np.random.Generator) -> float:
    if candidate == "broken":
        raise RuntimeError("no such thing")
    return 1.0
