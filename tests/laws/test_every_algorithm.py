"""Laws of all algorithms on all arms: one test per law."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import accumulate, repeat, takewhile
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import collabtop as ct
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import ProtocolError, SettingError
from collabtop.testing import ConstantArms, check_algorithm, check_run
from tests.support.accepted import accepted_setting

OF_THE_PAPER = {
    "collab-top-iid paper": ct.CollabTopIID(),
    "collab-top-iid full": ct.CollabTopIID(schedule="full"),
    "collab-top-noniid paper": ct.CollabTopNonIID(),
    "collab-top-noniid full": ct.CollabTopNonIID(schedule="full"),
    "kzz": ct.KZZ(),
    "kzz-balanced": ct.KZZ(balanced=True),
    "uniform": ct.Uniform(),
    "sar": ct.SAR(),
    "sequential-halving": ct.SequentialHalving(),
}
TITLES = {algorithm.title for algorithm in OF_THE_PAPER.values()}
OTHERS = {name: ct.make_algorithm(name) for name in ct.available_algorithms() if name not in TITLES}
OTHERS["frugal-top, adaptive"] = ct.FrugalTop(adaptive=True)
EVERY = OF_THE_PAPER | OTHERS  # algorithms added to the registry are tested as well
every_algorithm = pytest.mark.parametrize("algorithm", EVERY.values(), ids=EVERY.keys())
of_the_paper = pytest.mark.parametrize("algorithm", OF_THE_PAPER.values(), ids=OF_THE_PAPER.keys())

SIZES = st.one_of(st.integers(1, 12), st.integers(1, 200), st.sampled_from([2**power for power in range(8)]))
TEAMS = st.one_of(st.just(1), st.integers(1, 8), st.integers(1, 80))


@dataclass
class Case:
    """One instance, of any shape, and how much horizon to give beyond the smallest."""

    n: int
    m: int
    agents: int
    levels: int
    """How many different means there are at most: few make ties."""
    spare: int
    mixed: bool
    """Whether arms differ between agents, if the algorithm accepts that."""
    seed: int

    def setting(self, algorithm: ct.Algorithm) -> tuple[int, int]:
        """The m and the number of agents nearest to those of the case that the algorithm accepts."""
        return accepted_setting(algorithm, self.m, self.agents)

    def arms(self, algorithm: ct.Algorithm) -> ConstantArms:
        agents = self.setting(algorithm)[1]
        shape = (self.n, agents) if self.mixed and not algorithm.iid_only else (self.n,)
        return ConstantArms(np.random.default_rng(self.seed).integers(0, self.levels + 1, shape) / 1024)

    def horizon(self, algorithm: ct.Algorithm) -> int:
        # KL-LUCB runs up to the limit if arms tie, two pulls at a time.
        spare = self.spare % 200 if isinstance(algorithm, ct.KLLUCB) else self.spare
        return smallest(algorithm, self.arms(algorithm), *self.setting(algorithm)) + spare


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n = draw(SIZES)
    return Case(
        n=n,
        m=draw(st.one_of(st.integers(1, n), st.just(n), st.just(max(1, n // 2)))),
        agents=draw(TEAMS),
        levels=draw(st.sampled_from([0, 1, 2, 8, 1024])),
        spare=draw(st.one_of(st.just(0), st.integers(0, 60), st.integers(0, 20_000))),
        mixed=draw(st.booleans()),
        seed=draw(st.integers(0, 2**32 - 1)),
    )


def smallest(algorithm: ct.Algorithm, arms: ct.Arms, m: int, agents: int) -> int:
    """The smallest horizon that works, from the error for a horizon of 1."""
    try:
        ct.identify(arms, m, agents=agents, horizon=1, algorithm=algorithm, seed=0)
    except ct.HorizonError as error:
        return error.smallest
    return 1


@every_algorithm
@given(case=cases())
@settings(max_examples=settings().max_examples * 3 // 2)
@example(case=Case(n=1, m=1, agents=3, levels=8, spare=0, mixed=False, seed=1))
@example(case=Case(n=64, m=32, agents=1, levels=1024, spare=0, mixed=False, seed=1))
@example(case=Case(n=5, m=4, agents=50, levels=2, spare=0, mixed=True, seed=1))
@example(case=Case(n=40, m=1, agents=3, levels=0, spare=7, mixed=True, seed=1))
def test_without_noise_the_answer_is_right_and_every_law_is_kept(algorithm: ct.Algorithm, case: Case) -> None:
    # Right answer, time, pulls, rounds that add up, the ledger against the wire: see `check_run`.
    m, agents = case.setting(algorithm)
    check_run(algorithm, case.arms(algorithm), m, agents, case.horizon(algorithm), case.seed)


@every_algorithm
@given(case=cases())
@settings(max_examples=max(settings().max_examples // 4, 8))
def test_with_noise_every_law_but_the_right_answer_is_kept(algorithm: ct.Algorithm, case: Case) -> None:
    m, agents = case.setting(algorithm)
    means = case.arms(algorithm).means
    arms = ct.BernoulliArms(means) if means.ndim == 1 else ct.HeterogeneousArms(means)
    check_run(algorithm, arms, m, agents, case.horizon(algorithm), case.seed)


@every_algorithm
@given(case=cases())
@settings(max_examples=max(settings().max_examples // 4, 8))
def test_the_smallest_horizon_works_and_one_less_is_refused(algorithm: ct.Algorithm, case: Case) -> None:
    arms, (m, agents) = case.arms(algorithm), case.setting(algorithm)
    least = smallest(algorithm, arms, m, agents)
    result = ct.identify(arms, m, agents=agents, horizon=least, algorithm=algorithm, seed=case.seed)
    assert result.time <= least
    if least > 1:
        with pytest.raises(ct.HorizonError, match=rf"^horizon is {least - 1}, but .* need at least {least} ") as caught:
            ct.identify(arms, m, agents=agents, horizon=least - 1, algorithm=algorithm)
        assert caught.value.smallest == least


@every_algorithm
def test_all_algorithms_bound_their_words_and_round_trips_except_those_without_a_proof(algorithm: ct.Algorithm) -> None:
    # `check_run` compares runs with the bounds, and accepts an algorithm that has none.
    m, agents = accepted_setting(algorithm, 3, 4)
    problem = ct.Problem(30, m, agents, 2_000)
    unbounded = isinstance(algorithm, ct.CollabTopIID | ct.ConfidentTop | ct.ConfidentTopNonIID | ct.KLLUCB)
    assert (algorithm.most_words(problem) is None) == unbounded
    assert (algorithm.most_round_trips(problem) is None) == unbounded


def live_sizes(algorithm: ct.Algorithm, n: int) -> list[int]:
    """Arms that are live at the start of each round, if no round is left out."""
    if isinstance(algorithm, ct.Uniform):
        return [n]
    if isinstance(algorithm, ct.SAR):
        return list(range(n, 1, -1))
    step = (lambda size, _: -(-size // 2)) if isinstance(algorithm, ct.SequentialHalving) else lambda size, _: size // 2
    return list(takewhile(lambda size: size > 1, accumulate(repeat(n), step)))


@of_the_paper
@given(case=cases())
@settings(max_examples=max(settings().max_examples // 4, 8))
def test_a_round_begins_with_exactly_the_planned_number_of_arms(algorithm: ct.Algorithm, case: Case) -> None:
    m, agents = case.setting(algorithm)
    means = case.arms(algorithm).means
    arms = ct.BernoulliArms(means) if means.ndim == 1 else ct.HeterogeneousArms(means)
    horizon = case.horizon(algorithm)
    result = ct.identify(arms, m, agents=agents, horizon=horizon, algorithm=algorithm, seed=case.seed)
    planned = live_sizes(algorithm, case.n) if m < case.n else []
    assert [round_.live for round_ in result.rounds] == planned[: len(result.rounds)]
    last = len(result.rounds) - 1
    for round_, after in zip(result.rounds[:-1], planned[1:], strict=False):
        if round_.phase == "shared":
            assert sum(estimate.round == round_.round for estimate in result.estimates) == round_.live - after
    if last >= 0 and result.rounds[last].phase == "shared":  # it settles all arms that are left
        assert sum(estimate.round == last for estimate in result.estimates) == planned[last]


@every_algorithm
def test_a_run_can_be_repeated_from_its_result(algorithm: ct.Algorithm) -> None:
    m, agents = accepted_setting(algorithm, 3, 4)
    arms = ct.BernoulliArms(np.linspace(0.1, 0.9, 30))
    first = ct.identify(arms, m, agents=agents, horizon=2_000, algorithm=algorithm)
    again = ct.identify(
        arms,
        first.m,
        agents=first.agents,
        horizon=first.horizon,
        algorithm=first.algorithm,
        options=first.options,
        seed=first.seed,
    )
    assert again == first
    assert again.ledger == first.ledger


SCRIPT = """
import json, sys
import numpy as np
import collabtop as ct
from tests.support.accepted import accepted_setting

def run(name, options):
    m, agents = accepted_setting(name, 5, 6)
    arms = ct.BernoulliArms(np.linspace(0.2, 0.7, 120), labels=[f"arm {i}" for i in range(120)])
    result = ct.identify(arms, m, agents=agents, horizon=4_000, algorithm=name, options=options, seed=12)
    return json.loads(result.to_json())

def all_runs():
    scheduled = [(name, {"schedule": s}) for name in ("collab-top-iid", "collab-top-noniid") for s in ("paper", "full")]
    return [run(name, options) for name, options in [*scheduled, *((name, {}) for name in ct.available_algorithms())]]
"""


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_in_a_second_process() -> None:
    here: dict[str, Any] = {}
    exec(SCRIPT, here)
    printed = subprocess.run(
        [sys.executable, "-c", SCRIPT + "\nprint(json.dumps(all_runs()))"],
        env={**os.environ, "PYTHONHASHSEED": "4242"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    there = json.loads(printed)
    assert there == here["all_runs"]()
    assert all(run["ledger"] and run["rounds"] for run in there)


# The check must be able to fail. Each of these is `uniform` with one fault.


@dataclass(frozen=True)
class Faulty(ct.Algorithm):
    """A correct `uniform`: the base of the faulty ones below."""

    name: ClassVar[str] = "faulty"

    def smallest_horizon(self, problem: ct.Problem) -> int:
        return problem.n

    def times(self, problem: ct.Problem) -> int:
        return problem.horizon // problem.n

    def pick(self, means: Any, problem: ct.Problem, rng: np.random.Generator) -> Any:
        return np.lexsort((rng.random(problem.n), -means))[: problem.m]

    def run(self, coordinator: Coordinator, problem: ct.Problem, rng: np.random.Generator) -> None:
        board, arms, times = coordinator.scoreboard, np.arange(problem.n), self.times(problem)
        coordinator.begin_round("shared", live=problem.n)
        board.add(arms, *AllAgents(coordinator).pull(arms, times, all_live=True))
        board.accept(self.pick(board.means(arms), problem, rng), round=0, phase="shared")


class SecondBest(Faulty):
    def pick(self, means, problem, rng):
        return np.argsort(-means)[1 : problem.m + 1]


class OneTooFew(Faulty):
    def pick(self, means, problem, rng):
        return super().pick(means, problem, rng)[1:]


class TheSameArmTwice(Faulty):
    def pick(self, means, problem, rng):
        return np.repeat(super().pick(means, problem, rng)[:1], problem.m)


class PastTheHorizon(Faulty):
    def times(self, problem):
        return problem.horizon // problem.n + 1


class RandomnessFromElsewhere(Faulty):
    def pick(self, means, problem, rng):
        return super().pick(means, problem, np.random.default_rng())


class RemembersTheLastRun(Faulty):
    runs: ClassVar[list[int]] = []

    def times(self, problem):
        self.runs.append(1)
        return max(1, problem.horizon // problem.n - len(self.runs) % 2)


class TakesAnyHorizon(Faulty):
    def smallest_horizon(self, problem):
        return 1


class RefusesEverything(Faulty):
    def check(self, problem):
        raise SettingError("not today")


class ReportsPullsNeverMade(Faulty):
    def run(self, coordinator, problem, rng):
        super().run(coordinator, problem, rng)
        coordinator.scoreboard.add(np.array([0]), np.zeros(1), 1)


class NamesARoundThatDoesNotExist(Faulty):
    def run(self, coordinator, problem, rng):
        super().run(coordinator, problem, rng)
        board = coordinator.scoreboard
        board.reject(np.flatnonzero(board._verdicts == 0), round=1, phase="shared")


class SendsMoreWordsThanItsBound(Faulty):
    def most_words(self, problem):
        return problem.n * problem.agents - 1


class TakesMoreRoundTripsThanItsBound(Faulty):
    def most_round_trips(self, problem):
        return 0


@dataclass(frozen=True)
class IsWrongWithManyAgents(Faulty):
    def pick(self, means, problem, rng):
        return np.arange(problem.m) if problem.agents > problem.n else super().pick(means, problem, rng)


@pytest.mark.slow
def test_the_check_accepts_a_correct_algorithm() -> None:
    check_algorithm(Faulty())


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (SecondBest, "are not the best"),
        (OneTooFew, "accepted 0 arms instead of 1"),
        (TheSameArmTwice, "instead of"),
        (PastTheHorizon, "horizon"),
        (RandomnessFromElsewhere, "the same seed gave another run"),
        (RemembersTheLastRun, "the same seed gave another run"),
        (TakesAnyHorizon, "never pulled"),
        (RefusesEverything, "refuses every"),
        (ReportsPullsNeverMade, "reported are"),
        (NamesARoundThatDoesNotExist, "names no round"),
        (SendsMoreWordsThanItsBound, "words, .* at most"),
        (TakesMoreRoundTripsThanItsBound, "1 trips, 0 at most"),
        (IsWrongWithManyAgents, "are not the best"),
    ],
)
def test_the_check_finds_the_fault(fault: type[Faulty], message: str) -> None:
    with pytest.raises((AssertionError, ProtocolError, ValueError), match=message):
        check_algorithm(fault())


def test_the_check_finds_a_ledger_that_leaves_out_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    from collabtop.protocol import ledger

    right = ledger._cost_of_form
    monkeypatch.setattr(ledger, "_cost_of_form", lambda *arguments: (right(*arguments)[0] - 1, right(*arguments)[1]))
    with pytest.raises(AssertionError, match=r"ledger has .* words, the wire"):
        check_algorithm(ct.KZZ())
