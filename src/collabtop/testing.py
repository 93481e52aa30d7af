"""The laws that arms, algorithms and teams keep, as functions: ours are tested with them, and yours can be.

>>> import collabtop as ct
>>> from collabtop.testing import check_algorithm, check_arms, check_team
>>> check_arms(ct.BernoulliArms([0.2, 0.7]))
>>> check_algorithm(ct.KZZ(balanced=True))
>>> check_team(ct.LocalTeam)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.registry import available_algorithms, make_algorithm
from collabtop.arms import Arms, BernoulliArms, Draws, FunctionArms, HeterogeneousArms
from collabtop.arms.base import Reals
from collabtop.arms.simulated import SimulatedArms
from collabtop.arms.stand_ins import NoiselessArms
from collabtop.coordination.team import Team
from collabtop.errors import HorizonError, InputError, PullError, SettingError
from collabtop.problem import Problem
from collabtop.protocol import wire
from collabtop.protocol.messages import Message, Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.recorder import RewardRecorder
from collabtop.runs.identification import identify
from collabtop.runs.result import Result
from collabtop.teams.local import LocalTeam


class ConstantArms(NoiselessArms):
    """Arms without noise: every pull of arm i pays exactly `means[i]`, a multiple of 1/1024, so that sums are exact.

    A table of n x K means makes them non-IID.

    >>> import collabtop as ct
    >>> ct.identify(ConstantArms([0.5, 0.75, 0.25]), m=1, agents=2, horizon=20).top
    [1]
    """

    def __init__(self, means: ArrayLike, *, labels: Sequence[str] | None = None) -> None:
        super().__init__(means, labels=labels)
        if (self.means * 1024 % 1).any():
            raise InputError(
                "means of ConstantArms must be multiples of 1/1024, so that sums are exact", argument="means"
            )


class WireTeam(LocalTeam):
    """A team whose every message goes through bytes, and is counted there: a check on the ledger.

    Nothing that is not in a message can pass. `words` is counted on the decoded bytes, by a rule written
    down a second time, so that it agrees with the ledger only if both are right.

    >>> import collabtop as ct
    >>> team = WireTeam()
    >>> arms = ct.BernoulliArms([0.9, 0.5])
    >>> result = ct.identify(arms, m=1, agents=3, horizon=100, algorithm="uniform", team=team)
    >>> team.words == result.words
    True
    """

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Make the agents, from a set-up that went through bytes too."""
        super().open(arms, msgspec.msgpack.decode(msgspec.msgpack.encode(setup), type=Setup), recorder)
        self.words = 0
        self.crossed: list[tuple[int, str, Message]] = []
        """Every message that crossed: agent, "down" or "up", and the message."""

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Pass requests and replies on as bytes."""
        arrived = [
            Request(r.agent, r.number, tuple(self._cross(r.agent, "down", message) for message in r.messages))
            for r in requests
        ]
        return [
            Reply(r.agent, r.number, r.pulls, self._cross(r.agent, "up", r.answer)) for r in super().deliver(arrived)
        ]

    def _cross(self, agent: int, direction: str, message: Message) -> Message:
        data = wire.encode(message)
        self.words += words_on_wire(data)
        arrived = wire.decode(data)
        self.crossed.append((agent, direction, arrived))
        return arrived


def words_on_wire(data: bytes) -> int:
    """Count the paid numbers in an encoded message, knowing nothing of message classes.

    >>> from collabtop.protocol.messages import Border
    >>> words_on_wire(wire.encode(Border(upper=0.8, lower=0.7, top=3)))
    3
    """
    payload = msgspec.msgpack.decode(data, ext_hook=_array_of_zeros)
    free = {"kind", "free", *payload["free"]}
    return sum(_numbers(value) for name, value in payload.items() if name not in free)


def _array_of_zeros(code: int, buffer: memoryview) -> list[int]:
    size = int.from_bytes(buffer[:4], "little") if code == 3 else len(buffer) // {1: 4, 2: 8}[code]
    return [0] * size


def _numbers(value: Any) -> int:
    if isinstance(value, dict):  # packed numbers
        return int(value["count"])
    return 0 if value is None else len(value) if isinstance(value, list) else 1


def check_arms(arms: Arms) -> None:
    """Check that arms keep their contract: sums in range, all chance from `draws`, arguments left alone."""
    chosen = np.arange(arms.n)[::2].copy()
    times = np.arange(1, len(chosen) + 1)
    given = chosen.copy(), times.copy()
    sums = arms.pull(chosen, times, Draws(seed=1, agent=0))
    assert sums.dtype == np.float64, f"pull gives {sums.dtype}, not float64"
    assert sums.shape == chosen.shape, f"pull of {len(chosen)} arms gives {sums.shape} sums"
    assert ((sums >= 0) & (sums <= times)).all(), "a sum of rewards lies outside [0, times]"
    assert np.array_equal(chosen, given[0]), "pull changes the list of arms it was given"
    assert np.array_equal(times, given[1]), "pull changes the numbers of pulls it was given"
    again = arms.pull(chosen, times, Draws(seed=1, agent=0))
    assert np.array_equal(sums, again), "the same draws give other rewards: pull takes chance from elsewhere"
    one_for_all = arms.pull(chosen, np.array([3]), Draws(seed=1, agent=0))
    one_each = arms.pull(chosen, np.full(len(chosen), 3), Draws(seed=1, agent=0))
    assert np.array_equal(one_for_all, one_each), "one number for all arms is not the same as one an arm"
    assert arms.labels is None or len(arms.labels) == arms.n, "there is not one label an arm"


def check_run(algorithm: Algorithm, arms: SimulatedArms, m: int, agents: int, horizon: int, seed: int) -> Result:
    """Run an algorithm once and check every law of a single run; on `ConstantArms` also that it is right."""
    team = WireTeam()

    def run(team: Team) -> Result:
        return identify(arms, m, agents=agents, horizon=horizon, algorithm=algorithm, seed=seed, team=team)

    result = run(team)
    case = f"{algorithm}: n={arms.n} m={m} agents={agents} horizon={horizon} seed={seed}"
    assert result.time <= horizon, f"time {result.time} is past the horizon ({case})"
    assert result.words == team.words, f"ledger has {result.words} words, the wire {team.words} ({case})"
    assert result == run(LocalTeam()), f"the same seed gave another run ({case})"
    assert len(set(result.top_indices)) == m, f"{result.top_indices} are not {m} different arms ({case})"
    assert result.observed is not None
    _check_pulls(result, case)
    _check_rounds(result, case)
    _check_most(algorithm, result, case)
    if isinstance(arms, ConstantArms):
        values = arms.means if arms.iid else arms.means.mean(axis=1)
        _check_right(result, values, float(algorithm.options.get("tolerance", 0.0)), case)
    return result


def _check_right(result: Result, values: Reals, tolerance: float, case: str) -> None:
    """Without noise the answer is right; an algorithm that may give up has to be right in what it calls settled."""
    last = np.sort(values)[len(values) - result.m]  # the m-th best
    wrong = values[result.top_indices] < last - tolerance
    if result.sure is False:
        assert result.open, f"the run is not sure, and names no open arm ({case})"
        wrong &= ~np.isin(result.top_indices, list(result.estimates.guesses))
    assert not wrong.any(), f"{result.top_indices} are not the best ({case})"


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

    Without noise it finds the best m for every n, K, m and horizon that it accepts; it never goes past the
    horizon; the ledger equals what crosses the wire, and is within `most_words` and `most_round_trips` where it has
    them; the same seed gives the same run; a horizon below its smallest is refused.
    """
    rng, tried = np.random.default_rng(seed), 0
    for n in (1, 2, 3, 4, 7, 8, 13, 16, 40):
        for agents in (1, 2, 5, 60):
            for m in {1, int(rng.integers(1, n + 1))}:
                tried += _check_instance(algorithm, n, m, agents, rng)
    assert tried, f"{algorithm} refuses every number of arms, agents and every m that was tried"


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


def check_team(make_team: Callable[[], Team], *, algorithms: Sequence[str | Algorithm] | None = None) -> None:
    """Check that a team gives the runs of the local team, ledger and all, and survives a failing pull."""
    rng = np.random.default_rng(5)
    iid = BernoulliArms(rng.uniform(0.2, 0.8, 60))
    mixed = HeterogeneousArms(rng.uniform(0.2, 0.8, (20, 3)))
    for algorithm in algorithms or available_algorithms():
        made = algorithm if isinstance(algorithm, Algorithm) else make_algorithm(algorithm)
        for arms, agents, m in ((iid, 4, 3), (iid, 1, 1), (mixed, 3, 2)):
            if made.iid_only and not arms.iid:
                continue
            try:
                made.check(Problem(arms.n, m, agents, 1))
            except SettingError:
                continue
            _check_same(make_team, made, arms, m, agents)
    _check_failing_pull(make_team)


def _check_same(make_team: Callable[[], Team], algorithm: Algorithm, arms: Arms, m: int, agents: int) -> None:
    def run(team: Team) -> Result:
        return identify(arms, m, agents=agents, horizon=3_000, algorithm=algorithm, seed=11, team=team)

    theirs, ours = run(make_team()), run(LocalTeam())
    assert theirs == ours, f"{algorithm} ran differently: {theirs!r} instead of {ours!r}"
    assert theirs.ledger == ours.ledger, f"{algorithm} was counted differently"


def _check_failing_pull(make_team: Callable[[], Team]) -> None:
    arms = FunctionArms(["good", "broken"], _breaks_for_broken)
    team = make_team()
    try:
        identify(arms, 1, agents=2, horizon=20, algorithm="uniform", team=team)
    except PullError as error:
        assert error.candidate == "broken", f"the error names {error.candidate!r} instead of 'broken'"
    else:
        raise AssertionError("a failing pull went unnoticed")
    well = BernoulliArms([1.0, 0.0])
    assert identify(well, 1, agents=2, horizon=20, team=team).top == [0], "the team is of no use after a failure"


def _breaks_for_broken(candidate: str, rng: np.random.Generator) -> float:
    if candidate == "broken":
        raise RuntimeError("no such thing")
    return 1.0
