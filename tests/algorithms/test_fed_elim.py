"""fed-elim: the best arms of all agents together, and those of each agent on its own."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pytest

import collabtop as ct
from collabtop.algorithms.fed_elim import FedElimAgent, FinishLocal, GlobalMeans, LocalTop, PullBoth
from collabtop.testing import ConstantArms, WireTeam

TABLE = np.array([[0.9, 0.1, 0.2], [0.6, 0.9, 0.4], [0.2, 0.3, 0.8], [0.1, 0.2, 0.1]])
PROBLEM = ct.Problem(n=4, m=1, agents=3, horizon=1_000)


def local_best(table, m):
    return [sorted(np.argsort(-table[:, agent])[:m].tolist()) for agent in range(table.shape[1])]


@pytest.mark.parametrize("m", [1, 2, 3])
def test_every_agent_finds_its_own_best_arms_and_all_find_the_global_ones(m):
    result = ct.identify(ct.HeterogeneousArms(TABLE), m, confidence=0.95, algorithm="fed-elim", seed=1)
    assert result.local_top == local_best(TABLE, m)  # for m = 3 the worst arms are looked for
    assert result.local_sure == [True, True, True]
    assert sorted(result.top) == sorted(np.argsort(-TABLE.mean(axis=1))[:m].tolist())
    assert result.sure


def test_labels_and_json_have_the_local_best_arms():
    labels = ["a", "b", "c", "d"]
    arms = ct.HeterogeneousArms(TABLE, labels=labels)
    result = ct.identify(arms, 1, confidence=0.95, algorithm="fed-elim", seed=1)
    assert result.local_top == [["a"], ["b"], ["c"]]
    assert result.to_dict()["local_top"] == [["a"], ["b"], ["c"]]
    other = ct.identify(arms, 1, confidence=0.95, seed=1)
    assert (other.local_top, other.local_sure) == (None, None)
    assert "local_top" not in other.to_dict()


def test_both_kinds_of_answers_keep_the_confidence():
    arms = ct.HeterogeneousArms([[0.75, 0.35], [0.45, 0.75], [0.4, 0.4]])
    runs = [ct.identify(arms, 1, confidence=0.7, algorithm="fed-elim", seed=seed) for seed in range(60)]
    wrong = sum(run.top != [1] or run.local_top != [[0], [1]] for run in runs)
    assert wrong <= 28  # 18 are allowed on average; false alarm 1%


def test_an_agent_that_is_not_sure_of_its_own_arms_says_so():
    # All agents together tell the arms apart at once, the second agent alone never does.
    arms = ConstantArms([[1.0, 0.5], [0.0, 0.5], [0.0, 0.0]])
    result = ct.identify(arms, 1, horizon=3_000, algorithm="fed-elim", seed=1)
    assert result.top == [0]
    assert result.local_sure == [True, False]
    assert result.local_top[0] == [0]
    assert result.local_top[1] in ([0], [1])


def test_out_of_time_the_rest_is_a_guess():
    result = ct.identify(ConstantArms([[0.5, 0.5]] * 3), 1, horizon=100, algorithm="fed-elim", seed=1)
    assert result.sure is False
    assert result.open == [0, 1, 2]
    assert result.time <= 100


def test_nothing_about_an_agents_own_arms_crosses_before_the_end():
    team = WireTeam()
    ct.identify(ct.HeterogeneousArms(TABLE), 1, confidence=0.95, algorithm="fed-elim", seed=1, team=team)
    up = [message for _, direction, message in team.crossed if direction == "up"]
    assert {type(message) for message in up[:-3]} == {GlobalMeans}
    assert [type(message) for message in up[-3:]] == [LocalTop] * 3


def test_messages_are_sent_only_when_the_pulls_have_doubled():
    result = ct.identify(ct.HeterogeneousArms(TABLE), 1, confidence=0.95, algorithm="fed-elim", seed=1)
    shared = [round_ for round_ in result.rounds if round_.phase == "shared"]
    assert result.round_trips == len(shared) + 1
    for before, after in pairwise(shared[1:]):
        assert after.time <= 2 * before.time  # twice the pulls of at most as many arms


@pytest.mark.parametrize(("n", "m", "agents"), [(2, 1, 1), (4, 1, 3), (8, 3, 5), (8, 6, 2)])
@pytest.mark.parametrize("doublings", [0, 1, 6])
def test_the_bounds_are_the_costs_of_a_run_on_equal_arms(n, m, agents, doublings):
    arms = ConstantArms([[0.5] * agents] * n)
    for horizon in (n * 2**doublings, 2 * n * 2**doublings - 1):  # the shortest and the longest with these rounds
        result = ct.identify(arms, m, horizon=horizon, algorithm="fed-elim", seed=1)
        problem = ct.Problem(n, m, agents, horizon).inner
        assert result.words == ct.FedElim().most_words(problem)
        assert result.round_trips == ct.FedElim().most_round_trips(problem) == doublings + 2


def test_a_run_that_ends_early_takes_fewer_words_than_the_bound():
    result = ct.identify(ct.HeterogeneousArms(TABLE), 1, confidence=0.95, algorithm="fed-elim", seed=1)
    problem = ct.Problem(4, 1, 3, result.horizon)
    assert result.horizon == 10_000_000
    assert result.words < ct.FedElim().most_words(problem)
    assert result.round_trips < ct.FedElim().most_round_trips(problem)


@pytest.mark.parametrize(
    "changed",
    [{"total": 0}, {"total": 1_001}, {"evidence": float("nan")}, {"tolerance": float("inf")}],
)
@pytest.mark.parametrize(
    "right", [PullBoth(np.array([True, False]), 8, 5.0, 0.0), FinishLocal(8, 100, 5.0, 0.0)], ids=["pull", "finish"]
)
def test_a_site_refuses_requests_that_cannot_be_right(right, changed):
    FedElimAgent.check(right, PROBLEM)
    with pytest.raises(ct.ProtocolError, match="more pulls than the horizon allows, or evidence"):
        FedElimAgent.check(msgspec.structs.replace(right, **changed), PROBLEM)


def test_a_site_refuses_too_many_flags_or_too_much_time():
    with pytest.raises(ct.ProtocolError, match="more flags than arms"):
        FedElimAgent.check(PullBoth(np.ones(5, bool), 8, 5.0, 0.0), PROBLEM)
    with pytest.raises(ct.ProtocolError, match="more time than the horizon"):
        FedElimAgent.check(FinishLocal(8, 1_001, 5.0, 0.0), PROBLEM)
    assert FedElimAgent.smallest_batch(PullBoth(np.empty(0, bool), 8, 5.0, 0.0)) == 4
    assert FedElimAgent.smallest_batch(FinishLocal(8, 100, 5.0, 0.0)) == 8


@pytest.mark.parametrize(
    "answer", [GlobalMeans(np.array([1.5])), GlobalMeans(np.zeros(5)), LocalTop(np.array([4]), sure=True)]
)
def test_a_coordinator_refuses_answers_that_cannot_be_right(answer):
    asked = FinishLocal(8, 100, 5.0, 0.0)
    FedElimAgent.check_answer(asked, GlobalMeans(np.array([0.5])), PROBLEM)
    FedElimAgent.check_answer(asked, LocalTop(np.array([3]), sure=True), PROBLEM)
    with pytest.raises(ct.ProtocolError):
        FedElimAgent.check_answer(asked, answer, PROBLEM)
