"""Budgets: never overspent whichever candidates stay open, spent as far as that allows, and refused before a pull."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.events import RoundBegan
from collabtop.runs.budget import worst_case
from tests.support.accepted import accepted_setting

# kl-lucb, which has the bound that holds for all, would take a minute here.
ALGORITHMS = [name for name in ct.available_algorithms() if name != "kl-lucb"]


def dearest_best(n, rng):
    """The dearer a candidate, the better, so that the dear ones stay open: with prices of all sizes."""
    costs = np.sort(np.ceil(64 * rng.exponential(size=n) ** 2 + 1) / 64)  # whole 64ths add up exactly
    return costs, ct.BernoulliArms(np.linspace(0.05, 0.95, n))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 40), agents=st.integers(1, 12), tight=st.booleans())
def test_a_budget_is_never_overspent_even_when_the_dearest_stay_open(algorithm, seed, n, agents, tight):
    rng = np.random.default_rng(seed)
    costs, arms = dearest_best(n, rng)
    m, agents = accepted_setting(algorithm, int(rng.integers(1, n + 1)), agents)
    asked: dict[str, Any] = {"agents": agents, "algorithm": algorithm, "cost": costs.tolist()}
    try:
        ct.dry_run(arms, m, budget=1e-9, **asked)
        smallest = 1.0
    except ct.BudgetError as error:
        smallest = error.smallest
    budget = smallest * (1.0 if tight else float(rng.uniform(1, 50)))
    result = ct.identify(arms, m, budget=budget, seed=seed, **asked)
    assert result.spending.worst_case <= budget
    assert result.spending.spent <= budget
    assert result.spending.spent == pytest.approx(float(result.observed.pulls @ costs))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 60), agents=st.integers(1, 12), spare=st.integers(0, 3_000))
def test_the_costliest_run_is_an_upper_bound_on_every_run(algorithm, seed, n, agents, spare):
    _, agents = accepted_setting(algorithm, 1, agents)
    made = ct.make_algorithm(algorithm)
    horizon = made.smallest_horizon(ct.Problem(n, 1, agents, 1)) + spare
    arms = ct.BernoulliArms(np.random.default_rng(seed).uniform(size=n))
    result = ct.identify(arms, 1, agents=agents, horizon=horizon, algorithm=algorithm, seed=seed)
    dear = dearest_best(n, np.random.default_rng(seed))[0][::-1]
    spent = float(np.sort(result.observed.pulls)[::-1] @ dear)  # as if the dearest had been pulled most
    assert spent <= worst_case(made, ct.Problem(n, 1, agents, horizon), dear.tolist())


@given(
    qualities=st.lists(st.integers(0, 1_000), min_size=4, max_size=30, unique=True),
    m=st.integers(1, 3),
    spare=st.floats(1.0, 6.0),
    price=st.sampled_from([0.3, 1.0]),
    seed=st.integers(0, 1_000),
)
def test_the_rest_of_a_budget_is_decided_on_the_same_examples(qualities, m, spare, price, seed):
    luck = np.random.default_rng(seed).random(10_000)

    @ct.replicates
    def score(quality, number):  # examples differ a lot, but candidates always in the same way
        return ct.Reward((quality / 1_000 + 99 * luck[number]) / 100, cost=price)

    best = sorted(range(len(qualities)), key=lambda place: -qualities[place])[:m]
    result = ct.identify(qualities, m, pull=score, agents=1, budget=int(spare * len(qualities)), seed=seed)
    assert sorted(result.top_indices) == sorted(best)


TO_A_HORIZON = [name for name in ALGORITHMS if not ct.make_algorithm(name).stops_early]


@pytest.mark.parametrize("algorithm", TO_A_HORIZON)
@pytest.mark.parametrize("charged", [1.0, 0.4])
@pytest.mark.parametrize("team", ["local", "threads"])
def test_at_least_97_percent_of_a_budget_are_spent_and_never_more(algorithm, charged, team):
    m, agents = accepted_setting(algorithm, 2, 3)
    prices = [1.0, 0.5, 2.0, 0.75, 1.5, 0.25]

    def pull(arm, rng):
        return ct.Reward(rng.random() < 0.2 + arm / 10, cost=prices[arm] * charged)

    asked: dict[str, Any] = {"agents": agents, "budget": 600.0, "cost": prices, "algorithm": algorithm, "seed": 1}
    result = ct.identify(range(6), m, pull=pull, team=team, **asked)
    assert result.spending.spent == pytest.approx(result.cost)
    assert result.cost <= 600
    if ct.make_algorithm(algorithm).tops_up:
        assert result.cost >= 0.97 * 600


def test_a_run_with_a_budget_is_the_same_on_every_team_and_after_a_kill_at_any_pull(tmp_path):
    calls = 0

    def pull(word, rng):
        nonlocal calls
        calls += 1
        if calls == stop_at:
            raise KeyboardInterrupt
        if rng.random() < 0.1:
            return ct.Reward(None, cost=0.25)
        return ct.Reward(rng.random() < len(word) / 6, cost=len(word) * rng.random())

    policy = ct.PullPolicy(retries=9, wait=0)
    asked: dict[str, Any] = {"pull": pull, "policy": policy, "agents": 2, "budget": 200.0, "cost": len, "seed": 3}
    words, stop_at = ["a", "bb", "cccc", "dd"], 0
    whole = ct.identify(words, 1, **asked)
    assert 0.97 * 200 <= whole.cost <= 200
    assert {counted.phase for counted in whole.rounds} >= {"top-up"}
    places: list[dict[str, Any]] = [{"team": "threads"}, {"workers": 3}, {"team": "threads", "workers": 2}]
    for number, more in enumerate(places):
        calls, stop_at = 0, 40 + 50 * number
        path = tmp_path / f"{number}.ctlog"
        with pytest.raises(KeyboardInterrupt):
            ct.identify(words, 1, checkpoint=path, **asked, **more)
        calls, stop_at = 0, 0
        resumed = ct.resume(path, pull=pull, policy=policy, **more)
        assert resumed.cost == pytest.approx(resumed.spending.spent)
        assert resumed.cost <= 200
        again = ct.resume(path, pull=pull, policy=policy)
        assert (again, again.spending) == (resumed, resumed.spending)
        if not resumed.totals.attempts_failed > whole.totals.attempts_failed:  # no failed attempt was made again
            assert resumed == whole


def test_pulls_that_cost_more_than_their_price_never_exceed_the_budget():
    charged = []

    def pull(word, rng):
        charged.append(1.5)
        return ct.Reward(rng.random() < 0.5, cost=1.5)

    for workers in (None, 4):
        charged.clear()
        with pytest.raises(ct.BudgetError, match="the budget of 100 is used up before the run has ended"):
            ct.identify(["a", "b", "c"], 1, pull=pull, agents=1, budget=100, cost=1, seed=1, workers=workers)
        assert sum(charged) <= 100 + 0.5 * (workers or 1)  # only the calls under way may exceed their prices


def test_a_budget_in_seconds_is_spent_by_the_time_that_pulls_take(tmp_path):
    async def pull(word, rng):
        return rng.random() < 0.5

    policy = ct.PullPolicy(time_limit=0.5)
    path = tmp_path / "run.ctlog"
    asked: dict[str, Any] = {"budget": 20.0, "cost": "seconds", "seed": 1, "policy": policy, "checkpoint": path}
    with pytest.raises(
        ct.InputError, match="cost is 'seconds', but a budget of seconds needs the most that a pull can"
    ):
        ct.identify(["a", "b", "c"], 1, pull=pull, **asked | {"policy": None})
    with pytest.raises(ct.InputError, match="cost is 'hours', but"):
        ct.identify(["a", "b", "c"], 1, pull=pull, **asked | {"cost": "hours"})

    def stop(event):
        if isinstance(event, RoundBegan) and event.round == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ct.identify(["a", "b", "c"], 1, pull=pull, on_event=stop, **asked)
    result = ct.peek(path)
    assert 0 < result.cost < 20


def test_the_price_may_be_a_number_a_list_or_a_function_of_the_candidate():
    asked: dict[str, Any] = {
        "pull": lambda c, rng: rng.random() < len(c) / 6,
        "agents": 2,
        "algorithm": "kzz",
        "seed": 1,
    }
    words = ["a", "bb", "cccc"]
    horizons = [
        ct.identify(words, 1, budget=budget, cost=cost, **asked).horizon
        for budget, cost in ((3_000, 3), (3_000, [3, 3, 3]), (3_000, lambda word: 3), (1_000, None))
    ]
    assert len(set(horizons)) == 1
    dear = ct.identify(words, 1, budget=3_000, cost=len, **asked)
    assert dear.spending.budget == 3_000
    assert 2_500 < dear.spending.worst_case <= 3_000


def test_a_budget_that_cannot_work_is_refused_before_a_pull_and_says_what_would():
    def pull(candidate, rng):
        raise AssertionError("something was pulled")

    asked: dict[str, Any] = {"pull": pull, "agents": 2, "algorithm": "uniform", "cost": 0.5}
    with pytest.raises(ct.BudgetError, match=r"budget is 1, but 5 candidates and 2 agents may need 5 with uniform"):
        ct.identify(list("abcde"), 1, budget=1, **asked)
    assert ct.dry_run(list("abcde"), 1, agents=2, budget=5, algorithm="uniform", cost=0.5).pulls == 10


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "give exactly one of horizon, budget and confidence: none was given"),
        ({"horizon": 10, "budget": 10}, "horizon and budget were given"),
        ({"horizon": 100, "cost": 2}, "cost= only applies with budget="),
        ({"budget": 0}, "budget is 0, but a positive number is needed"),
        ({"budget": float("nan")}, "budget is nan"),
        ({"budget": "all"}, "budget is 'all'"),
        ({"budget": 100, "cost": [1, 2]}, "cost has 2 entries, but there are 3 candidates"),
        ({"budget": 100, "cost": [1, 0, 1]}, "cost of candidate 'b' is 0, but a positive number is needed"),
        ({"budget": 100, "cost": lambda c: None}, "cost of candidate 'a' is None"),
        ({"budget": 100, "cost": float("nan")}, "cost of candidate 'a' is nan, but a positive number is needed"),
        ({"budget": 100, "cost": [1, float("nan"), 1]}, "cost of candidate 'b' is nan, but a positive number"),
        ({"budget": 100, "cost": lambda c: -1 if c == "c" else 1}, "cost of candidate 'c' is -1, but a positive"),
        ({"budget": 100, "cost": lambda c: float("nan")}, "cost of candidate 'a' is nan, but a positive number"),
        ({"budget": 100, "m": 4}, "m is 4, but there are only 3 arms"),
        ({"budget": 100, "algorithm": "sar"}, "agents is 2, but sar runs with 1 agent"),
    ],
)
def test_bad_budgets_are_errors_that_name_the_argument(more, said):
    with pytest.raises(ct.InputError, match=said):
        ct.identify(list("abc"), **{"m": 1, "pull": lambda c, rng: 1, "agents": 2, **more})


def test_arms_without_candidates_take_no_function_for_a_price():
    with pytest.raises(ct.InputError, match="cost is a function of a candidate, but these arms have none"):
        ct.identify(ct.BernoulliArms([0.5, 0.6]), 1, agents=1, budget=100, cost=lambda c: 1)


def test_the_budget_belongs_to_the_checkpoint(tmp_path):
    path = tmp_path / "run.ctlog"
    asked: dict[str, Any] = {
        "pull": lambda c, rng: rng.random() < 0.5,
        "agents": 2,
        "seed": 1,
        "checkpoint": path,
        "cost": len,
    }
    result = ct.identify(["a", "bb"], 1, budget=400, **asked)
    again = ct.resume(path, pull=asked["pull"])
    assert (again, again.spending) == (result, result.spending)


def test_all_candidates_wanted_costs_nothing():
    result = ct.identify(list("abc"), 3, pull=lambda c, rng: 1, agents=2, budget=1)
    assert (result.pulls, result.spending.spent, result.spending.worst_case) == (0, 0.0, 0.0)
