"""`check_algorithm` finds algorithms that cheat: with what they read, with what they send, and with time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import collabtop as ct
from collabtop.algorithms import collab_top_iid
from collabtop.errors import ProtocolError
from collabtop.extending import Draws
from collabtop.protocol import messages as msg
from collabtop.testing import check_algorithm
from collabtop.testing.free_information import ScriptedArms, check_free_information
from collabtop.testing.isolated_team import IsolatedTeam
from tests.support import cheats


@pytest.mark.parametrize(
    ("cheat", "message"),
    [
        (cheats.ReadsRewards, "reads something that was never sent"),
        (cheats.ReadsRewardsIfItCan, "reads something that was never sent"),
        (cheats.ReadsMeans, "reads something that was never sent"),
        (cheats.DataUpInAFreeField, "an answer pays for every number"),
        (cheats.DataDownInAMissingField, "gets hint of hints.AskHinted for nothing"),
        (cheats.DataDownInAFreeMessage, "gets arms of Pull for nothing"),
        (cheats.SerialWorkInOneRound, "its exchanges take .* one after the other"),
    ],
)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_a_cheat_is_found(cheat, message, seed):
    with pytest.raises((AssertionError, ProtocolError), match=message):
        check_algorithm(cheat(), seed=seed)


def test_a_field_that_is_there_or_not_is_a_word_of_one_bit():
    arms = ct.BernoulliArms([0.0, 1.0, 0.0, 0.0])
    up = ct.identify(arms, 1, agents=3, horizon=40, algorithm=cheats.DataUpInAnEmptyField(), seed=1)
    assert up.top == [1]
    assert (up.words, up.bits) == (3 * 4 * 4, 3 * 4 * 4)  # agents, arms and answers about each of them
    paid, free = (
        ct.identify(arms, 1, agents=3, horizon=40, algorithm=cheats.DataDownInAMissingField(pays=pays), seed=1)
        for pays in (True, False)
    )
    assert (paid.words - free.words, paid.bits - free.bits) == (3, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm", [cheats.DataUpInAnEmptyField(), cheats.DataDownInAMissingField(pays=True)], ids=lambda each: each.name
)
def test_what_is_paid_for_is_not_reported(algorithm):
    assert found(algorithm, [0]) == [None]


@pytest.mark.parametrize("cheat", [cheats.ReadsRewards, cheats.ReadsMeans, cheats.SerialWorkInOneRound])
def test_on_local_agents_the_cheat_works(cheat):
    arms = ct.BernoulliArms([0.0, 1.0, 0.0, 0.0])
    result = ct.identify(arms, 1, agents=3, horizon=40, algorithm=cheat(), seed=1)
    assert result.top == [1]


# The leaks that collab-top-iid had: what was free is found by the check.


def found(algorithm, seeds):
    """What the check finds with each seed, or None."""
    findings = []
    for seed in seeds:
        try:
            check_free_information(algorithm, np.random.default_rng(seed))
            findings.append(None)
        except AssertionError as error:
            findings.append(str(error))
    return findings


@pytest.mark.slow
def test_the_next_message_of_a_search_cannot_be_free(monkeypatch):
    right = msg.kinds_of
    monkeypatch.setattr(msg, "kinds_of", lambda *kinds: () if msg.Narrow in kinds else right(*kinds))
    assert all("gets the kind of" in finding for finding in found(ct.CollabTopIID(), [0]))


@pytest.mark.slow
def test_the_end_of_the_local_phase_cannot_be_free(monkeypatch):
    monkeypatch.setattr(collab_top_iid, "_next_round_or_end", lambda schedule, r: ())
    assert all("gets the kind of" in finding for finding in found(ct.CollabTopIID(), [0]))


def test_the_time_used_cannot_be_free(monkeypatch):
    # Two runs have to be the same for an agent over two local rounds, and differ for others. Not every seed has them.
    hand_over, choice = collab_top_iid.hand_over, collab_top_iid._next_round_or_end
    last = -1  # where no choice is left

    def leaking_hand_over(coordinator, schedule, r, *, open_arms):
        chosen_from = collab_top_iid._next_round_or_end(schedule, r)
        coordinator.tell_all(msg.TimeUsed(schedule.used, free=("time",), chosen_from=chosen_from))
        return hand_over(coordinator, schedule, last, open_arms=open_arms)

    def leaking_choice(schedule, r):
        return msg.kinds_of(msg.PullHand, msg.TimeUsed) if choice(schedule, r) else ()

    monkeypatch.setattr(collab_top_iid, "hand_over", leaking_hand_over)
    monkeypatch.setattr(collab_top_iid, "_next_round_or_end", leaking_choice)
    assert "gets time of TimeUsed for nothing" in str(found(ct.CollabTopIID(), [3])[0])


def test_agents_in_another_process_give_the_same_run_and_show_nothing():
    arms = ct.BernoulliArms(np.linspace(0.1, 0.9, 12))
    team = IsolatedTeam()
    isolated, local = (
        ct.identify(arms, 2, agents=3, horizon=200, algorithm="collab-top-iid", seed=4, team=where)
        for where in (team, "local")
    )
    assert isolated == local
    assert isolated.ledger == local.ledger
    assert isolated.observed is None
    assert team.words == local.words
    assert not any(isinstance(value, ct.Arms) for value in vars(team).values())


def test_an_error_of_an_agent_in_another_process_is_raised_and_the_next_run_works():
    arms = ct.BernoulliArms([0.9, 0.1])
    with pytest.raises(ProtocolError, match="past the horizon"):
        ct.identify(arms, 1, agents=2, horizon=10, algorithm=PullsTooMuch(), seed=1, team=IsolatedTeam())
    assert ct.identify(arms, 1, agents=2, horizon=100, seed=1, team=IsolatedTeam()).top == [0]


def test_several_runs_with_agents_in_another_process_can_be_open_at_once():
    arms = ct.BernoulliArms(np.linspace(0.1, 0.9, 12))

    def run(team):
        return ct.identify(arms, 2, agents=3, horizon=200, seed=4, team=team)

    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(run, [IsolatedTeam() for _ in range(8)]))
    assert results == [run("local")] * 8


def test_after_an_interruption_the_next_run_gets_a_new_process(monkeypatch):
    def interrupted(stream):
        raise KeyboardInterrupt

    arms = ct.BernoulliArms([0.9, 0.1])
    with monkeypatch.context() as patch:
        patch.setattr("collabtop.testing.isolated_team.pickle.load", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ct.identify(arms, 1, agents=2, horizon=100, seed=1, team=IsolatedTeam())
    assert ct.identify(arms, 1, agents=2, horizon=100, seed=1, team=IsolatedTeam()).top == [0]


class PullsTooMuch(cheats.Cheat):
    name = "pulls-too-much"

    def smallest_horizon(self, problem):
        return 1

    def scores(self, coordinator, problem):
        return cheats.pull_all(coordinator, problem.horizon)


def test_scripted_arms_pay_whole_rewards_that_depend_on_the_agent_only():
    arms = ScriptedArms(np.array([[0.5, 1.0], [0.0, 0.25]]))
    for agent, sums in enumerate([[2.0, 3.0], [0.0, 1.0]]):
        for seed in (1, 2):
            assert arms.pull(np.array([0, 1]), np.array([3]), Draws(seed, agent)).tolist() == sums
