"""The checks that are shipped pass what is right and find what is wrong (for algorithms: tests/laws)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import collabtop as ct
from collabtop.errors import ProtocolError
from collabtop.extending import AllAgents
from collabtop.protocol.messages import Means, Reply, Request
from collabtop.runlog.recorder import RewardRecorder
from collabtop.testing import ConstantArms, UnboundedArms, WireTeam, check_algorithm, check_arms, check_run, check_team


class Coins(ct.Arms):
    """Somebody's own arms, as they should be."""

    def pull(self, arms, times, draws):
        return draws.bulk.binomial(times, np.full(len(arms), 0.5)).astype(float)


class WholeNumbers(Coins):
    def pull(self, arms, times, draws):
        return super().pull(arms, times, draws).astype(int)


class OneSumForAll(Coins):
    def pull(self, arms, times, draws):
        return super().pull(arms, times, draws).sum(keepdims=True)


class MoreThanOneAPull(Coins):
    def pull(self, arms, times, draws):
        return super().pull(arms, times, draws) + times


class NotANumber(Coins):
    def pull(self, arms, times, draws):
        return super().pull(arms, times, draws) * np.nan


class ChanceOfItsOwn(Coins):
    def pull(self, arms, times, draws):
        return np.random.default_rng().binomial(times, np.full(len(arms), 0.5)).astype(float)


class SortsTheListItWasGiven(Coins):
    def pull(self, arms, times, draws):
        arms[:] = arms[::-1]
        return super().pull(arms, times, draws)


class CountsDownTheTimesItWasGiven(Coins):
    def pull(self, arms, times, draws):
        sums = super().pull(arms, times, draws)
        times -= times
        return sums * 0


class OneNumberIsForTheFirstArmOnly(Coins):
    def pull(self, arms, times, draws):
        times = np.concatenate([times, np.zeros(len(arms) - len(times), int)])
        return super().pull(arms, times, draws)


class LosesALabel(Coins):
    def __init__(self, n):
        super().__init__(n)
        self.labels = ("only one",)


def test_arms_that_keep_the_contract_pass():
    check_arms(Coins(9))
    check_arms(Coins(1))


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        (WholeNumbers, "pull gives int64, not float64"),
        (OneSumForAll, r"pull of 20 arms gives \(1,\) sums"),
        (MoreThanOneAPull, "outside"),
        (NotANumber, "not a finite number"),
        (ChanceOfItsOwn, "pull takes chance from elsewhere"),
        (SortsTheListItWasGiven, "changes the list of arms"),
        (CountsDownTheTimesItWasGiven, "numbers of pulls it was given|outside"),
        (OneNumberIsForTheFirstArmOnly, "one number for all arms is not the same"),
        (LosesALabel, "not one label an arm"),
    ],
)
def test_the_check_of_arms_finds_the_fault(arms, said):
    with pytest.raises(AssertionError, match=said):
        check_arms(arms(40))


@pytest.mark.slow
def test_the_local_team_and_the_team_of_bytes_pass():
    check_team(ct.LocalTeam)
    check_team(WireTeam)


class Forgets(ct.LocalTeam):
    """Delivers the question, but not what was told before it."""

    def deliver(self, requests):
        return super().deliver([Request(r.agent, r.number, r.messages[-1:]) for r in requests])


class Swaps(ct.LocalTeam):
    def deliver(self, requests):
        return super().deliver(requests)[::-1]


class RoundsOff(ct.LocalTeam):
    """Sends means as 16-bit numbers, and tells nobody."""

    def deliver(self, requests):
        return [
            Reply(r.agent, r.number, r.pulls, Means(r.answer.means.astype(np.float16).astype(float)))
            if isinstance(r.answer, Means)
            else r
            for r in super().deliver(requests)
        ]


class OneSeedForAll(ct.LocalTeam):
    def open(self, arms, setup, recorder):
        super().open(arms, setup, recorder)
        for agent in self._members:
            agent.draws = self._members[0].draws


class RecordsNothing(ct.LocalTeam):
    def open(self, arms, setup, recorder):
        super().open(arms, setup, RewardRecorder())


class DrawsAgain(ct.LocalTeam):
    """Publishes every pull, but never recalls one."""

    def open(self, arms, setup, recorder):
        super().open(arms, setup, RewardRecorder(None, recorder.publish))


class HidesPulls(ct.LocalTeam):
    def deliver(self, requests):
        return [Reply(r.agent, r.number, 0, r.answer) for r in super().deliver(requests)]


class SwallowsFailures(ct.LocalTeam):
    def deliver(self, requests):
        try:
            return super().deliver(requests)
        except ct.PullError:
            return [Reply(r.agent, r.number, 0, Means(np.zeros(2))) for r in requests]


class BrokenForGood(ct.LocalTeam):
    broken = False

    def deliver(self, requests):
        if self.broken:
            raise ProtocolError("still broken")
        try:
            return super().deliver(requests)
        except ct.PullError:
            self.broken = True
            raise


@pytest.mark.slow
@pytest.mark.parametrize(
    ("team", "said"),
    [
        (Forgets, "keys|index|values|differently|Moments"),
        (Swaps, "was asked"),
        (RoundsOff, "ran differently"),
        (OneSeedForAll, "ran differently|past the horizon"),
        (RecordsNothing, "but 0 published"),
        (DrawsAgain, "made pulls again"),
        (HidesPulls, "ran differently"),
        (SwallowsFailures, "went unnoticed"),
        (BrokenForGood, "still broken"),
    ],
)
def test_the_check_of_teams_finds_the_fault(team, said):
    with pytest.raises((AssertionError, ProtocolError, IndexError, ValueError), match=said):
        check_team(team)


def test_a_check_can_be_made_for_some_algorithms_only():
    check_team(ct.LocalTeam, algorithms=["kzz", ct.CollabTopIID(schedule="full")])


def test_the_wire_counts_what_the_ledger_counts_and_keeps_all_that_crossed():
    team = WireTeam()
    result = ct.identify(ct.BernoulliArms([0.9, 0.5]), 1, agents=3, horizon=100, algorithm="uniform", team=team)
    assert team.words == result.words == 6
    assert [(agent, way) for agent, way, _ in team.crossed] == [(k, "down") for k in range(3)] + [
        (k, "up") for k in range(3)
    ]


def test_a_single_run_can_be_checked_and_its_result_looked_at():
    result = check_run(ct.KZZ(), ConstantArms([0.5, 0.25, 0.75]), m=2, agents=2, horizon=50, seed=1)
    assert result.top == [2, 0]


@dataclass(frozen=True)
class TakesRewardsForShares(ct.Algorithm):
    """Right for rewards in [0, 1] only: all larger means are alike for it."""

    name = "takes-rewards-for-shares"

    def smallest_horizon(self, problem):
        return problem.n

    def run(self, coordinator, problem, rng):
        coordinator.begin_round("shared", live=problem.n)
        board, arms = coordinator.scoreboard, np.arange(problem.n)
        board.add(arms, *AllAgents(coordinator).pull(arms, 1, all_live=True))
        means = np.clip(board.means(arms), 0, 1)
        board.accept(np.argsort(-means, kind="stable")[: problem.m], round=0, phase="shared")


def test_an_algorithm_that_assumes_bounds_without_saying_so_fails_the_check():
    check_run(TakesRewardsForShares(), ConstantArms([0.5, 0.25, 0.75]), m=1, agents=2, horizon=50, seed=1)
    with pytest.raises(AssertionError, match="are not the best"):
        check_run(TakesRewardsForShares(), UnboundedArms([0.5, 0.25, 0.75]), m=1, agents=2, horizon=50, seed=1)
    with pytest.raises(AssertionError, match="are not the best"):
        check_algorithm(TakesRewardsForShares())


@dataclass(frozen=True)
class LeavesOutTheBest(ct.Algorithm):
    """A fault that ties hide: it answers with arms of the m-th best mean, without the better ones."""

    name = "leaves-out-the-best"

    def run(self, coordinator, problem, rng):
        coordinator.begin_round("shared", live=problem.n)
        board, arms = coordinator.scoreboard, np.arange(problem.n)
        board.add(arms, *AllAgents(coordinator).pull(arms, 1, all_live=True))
        board.accept(np.argsort(-board.means(arms), kind="stable")[1 : problem.m + 1], round=0, phase="shared")


def test_an_answer_of_tied_arms_without_the_better_arm_fails_the_check():
    tied = ConstantArms([0.75] + [0.5] * 5)
    with pytest.raises(AssertionError, match=r"are not the best: arms \[0\] are misplaced"):
        check_run(LeavesOutTheBest(), tied, m=2, agents=2, horizon=100, seed=1)
