"""Laws of weights: equal ones change nothing, others decide which arms are best, in every part of the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collabtop as ct
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.problem import arm_values, as_weights, effective_agents, is_best, right_answers
from collabtop.runlog.file import read_log
from collabtop.runlog.log_state import LogState
from collabtop.runlog.tally import Tally
from collabtop.runs.evidence import Comparisons
from collabtop.runs.identification import _prepare
from collabtop.runs.warnings import border
from collabtop.testing import ConstantArms, check_run
from collabtop.watch.intervals import SeenIntervals
from tests.laws.test_every_algorithm import EVERY
from tests.support.accepted import accepts

NON_IID = {
    name: it for name, it in EVERY.items() if not it.iid_only and accepts(it, m=1, agents=3) and name != "robust-top"
}
every_algorithm = pytest.mark.parametrize("algorithm", NON_IID.values(), ids=NON_IID.keys())

# By plain average arm 0 is best, for the people behind the sites arm 1.
TABLE, WEIGHTS = [[0.9, 0.8, 0.1], [0.4, 0.4, 0.7], [0.1, 0.2, 0.1]], [1.0, 1.0, 4.0]


def horizon_of(algorithm, problem):
    return {"horizon": 20 * algorithm.smallest_horizon(problem)}


@every_algorithm
@given(seed=st.integers(0, 1_000), n=st.integers(2, 12), weight=st.sampled_from([0.1, 1.0, 7.0]))
@settings(max_examples=10)
def test_equal_weights_change_nothing(algorithm, seed, n, weight):
    table = np.random.default_rng(seed).random((n, 3))
    problem = ct.Problem(n, 1, 3, 1)
    asked = {"m": 1, "seed": seed, "algorithm": algorithm, **horizon_of(algorithm, problem)}
    plain = ct.identify(ct.HeterogeneousArms(table), **asked)
    weighted = ct.identify(ct.HeterogeneousArms(table, weights=[weight] * 3), **asked)
    assert (weighted, weighted.ledger) == (plain, plain.ledger)


@every_algorithm
@given(seed=st.integers(0, 10_000), n=st.integers(2, 20), m=st.integers(1, 20), spare=st.integers(0, 300))
@settings(max_examples=25)
def test_without_noise_the_arms_with_the_best_weighted_averages_are_found(algorithm, seed, n, m, spare):
    rng, m = np.random.default_rng(seed), min(m, n)
    weights = rng.choice([1.0, 2.0, 5.0], 3).tolist()
    arms = ConstantArms(rng.integers(0, 33, (n, 3)) / 32, weights=weights)
    smallest = algorithm.smallest_horizon(ct.Problem(n, m, 3, 1)) if m < n else 1
    check_run(algorithm, arms, m, 3, smallest + spare, seed)


@every_algorithm
def test_weights_decide_which_arm_is_best(algorithm):
    asked = {"m": 1, "horizon": 40_000, "algorithm": algorithm, "seed": 1}
    assert ct.identify(ct.HeterogeneousArms(TABLE), **asked).top == [0]
    assert ct.identify(ct.HeterogeneousArms(TABLE, weights=WEIGHTS), **asked).top == [1]
    # The n - m worst are looked for instead.
    assert ct.identify(ct.HeterogeneousArms(TABLE, weights=WEIGHTS), **{**asked, "m": 2}).top == [1, 0]


@pytest.mark.parametrize("name", ["uniform", "collab-top-noniid", "frugal-top-noniid"])
def test_a_batched_simulation_with_weights_has_the_law_of_its_runs(name):
    algorithm = ct.make_algorithm(name)
    rng, runs = np.random.default_rng(3), 400
    arms = ct.HeterogeneousArms(rng.uniform(0.3, 0.7, (6, 4)), weights=[1, 2, 3, 9])
    horizon = 4 * algorithm.smallest_horizon(ct.Problem(6, 2, 4, 1))
    problem = ct.Problem(6, 2, 4, horizon, weights=arms.weights)
    answers = algorithm.answers(problem, arms.means, 4_000, np.random.default_rng(1))
    made = [ct.identify(arms, 2, horizon=horizon, algorithm=algorithm, seed=seed) for seed in range(runs)]
    rates = [right_answers(arms.values, answers).mean(), np.mean([is_best(arms.values, it.top_indices) for it in made])]
    assert 0.05 < rates[0] < 0.95
    assert abs(rates[0] - rates[1]) < 4 * np.sqrt(0.25 * (1 / 4_000 + 1 / runs))  # false alarm 1e-4
    differences = abs(answers.mean(axis=0) - np.mean([np.isin(np.arange(6), it.top_indices) for it in made], axis=0))
    assert differences.max() < 4.5 * np.sqrt(0.25 * (1 / 4_000 + 1 / runs))  # six arms, false alarm 1e-4


def test_a_confidence_holds_with_weights():
    arms = ct.HeterogeneousArms([[0.3, 0.75], [0.9, 0.5], [0.2, 0.2]], weights=[1, 9])
    results = [ct.identify(arms, 1, confidence=0.8, seed=seed) for seed in range(60)]
    assert all(result.sure for result in results)
    assert sum(result.top != [0] for result in results) <= 20  # 12 are allowed on average; false alarm 1%
    plain = [ct.identify(ct.HeterogeneousArms(arms.means[:, 1:].repeat(2, axis=1)), 1, confidence=0.8, seed=0)]
    assert np.mean([result.time for result in results]) > plain[0].time  # one agent decides nearly alone


def test_a_confidence_is_refused_for_weights_with_examples_that_are_used_once():
    with pytest.raises(ct.SettingError, match="a confidence needs one or the other") as caught:
        ct.identify(by_site(WEIGHTS), 1, confidence=0.9)
    assert caught.value.argument == "weights"


def test_the_interval_of_a_weighted_mean_is_wider():
    asked: dict[str, Any] = {"m": 1, "horizon": 3_000, "algorithm": "uniform", "seed": 1}
    arms = [ct.HeterogeneousArms([[0.5] * 3, [0.4] * 3], weights=weights) for weights in (None, WEIGHTS)]
    plain, weighted = (ct.identify(it, **asked).table().rows[0] for it in arms)
    assert weighted.high - weighted.low > 1.2 * (plain.high - plain.low)
    assert weighted.low < weighted.mean < weighted.high


def test_the_standard_error_of_a_difference_is_that_of_weighted_means():
    # 200 runs: the measured deviation is within 18% of the true one with probability .9997.
    arms = ct.HeterogeneousArms([[0.5] * 3, [0.4] * 3], weights=[1, 1, 8])
    gaps, errors = [], []
    for seed in range(200):
        result = ct.identify(arms, 1, horizon=400, algorithm="uniform", seed=seed)
        pair = border(result.estimates, result._problem, result._seen)
        gaps.append(pair.gap if pair.accepted == 0 else -pair.gap)
        errors.append(pair.standard_error)
    assert np.std(gaps) == pytest.approx(np.mean(errors), rel=0.18)


def test_a_standard_error_without_the_rewards_themselves_is_never_too_small():
    rng = np.random.default_rng(1)
    for _ in range(300):
        agents = int(rng.integers(2, 6))
        weights = as_weights(rng.uniform(0.05, 1, agents).tolist(), agents)
        assert weights is not None
        problem, local = ct.Problem(2, 1, agents, 9, weights=weights), rng.choice([0.0, rng.random(), 1.0], agents)
        columns = Scoreboard(2)
        columns.add(np.arange(2), np.full(2, np.dot(weights, local) / agents * 10**9), 10**9)
        columns.accept(np.array([0]), 0, "")
        columns.reject_rest()
        found = Comparisons(columns.verdict(), problem).variances[0] * 10**9
        assert found >= np.dot(np.square(weights), local * (1 - local)) / agents - 1e-6


def test_a_horizon_that_is_long_enough_for_equal_weights_may_be_too_short_for_others():
    table = [[0.56] * 10, [0.5] * 10]
    asked: dict[str, Any] = {"m": 1, "horizon": 300, "algorithm": "uniform", "seed": 1}
    plain = ct.identify(ct.HeterogeneousArms(table), **asked)
    weighted = ct.identify(ct.HeterogeneousArms(table, weights=[1] * 9 + [200]), **asked)
    assert not plain.standings[0].thin
    assert weighted.standings[0].thin


def test_rewards_without_bounds_have_intervals_of_weighted_means():
    rewards = np.random.default_rng(2).normal([[[10.0], [20.0]], [[9.0], [18.0]]], 1.0, (2, 2, 300)).tolist()
    means, halves = [], []
    for weights in (None, [1, 3]):
        arms = ct.LoggedArms(rewards, weights=weights, bounds=None)
        row = ct.identify(arms, 1, horizon=400, algorithm="uniform", seed=1).table().rows[0]
        means.append(row.mean)
        halves.append((row.high - row.low) / 2)
    assert means == pytest.approx([15, 17.5], abs=0.3)
    assert halves[1] > 1.2 * halves[0]


def test_an_interval_closes_when_all_examples_are_used():
    result = ct.identify(by_site(WEIGHTS), 1, horizon=30, seed=1)
    assert result.intervals[0][1] == result.intervals[1][1] == pytest.approx(0.6)


class StopsEarly(ct.LocalTeam):
    """A local team that stops the run as soon as its agents are asked."""

    stop: Callable[[], None]

    def deliver(self, requests):
        replies = super().deliver(requests)
        self.stop()
        return replies


@pytest.mark.parametrize("recorded", [False, True], ids=["in memory", "in a log"])
def test_the_answer_so_far_ranks_by_weighted_means(recorded, tmp_path):
    path = tmp_path / "run.ctlog" if recorded else None
    table = np.array([[14, 13, 2], [6, 6, 11], *[[0] * 3] * 6]) / 16
    arms = ConstantArms(table, weights=WEIGHTS)
    team = StopsEarly()
    execution = _prepare(arms, 1, horizon=4_000, algorithm="collab-top-noniid", seed=1, checkpoint=path, team=team)
    team.stop = execution.stop
    result = execution.run()
    assert (result.complete, result.top) == (False, [1])
    assert result.estimates[1].mean == pytest.approx(arm_values(table, WEIGHTS)[1])
    assert path is None or ct.peek(path).top == [1]


def test_a_tally_weights_the_agents_that_have_rewards():
    tally = Tally(2, 3, iid=False, weights=(0.5, 0.5, 2.0))
    for agent, reward in enumerate((0.9, 0.8, 0.1)):
        tally.add_pulls(agent, 0, np.array([reward] * 2))
    tally.add_pulls(0, 1, np.array([0.5]))
    tally.add_pulls(2, 1, np.array([0.25]))
    assert tally.means == pytest.approx([(0.9 + 0.8 + 4 * 0.1) / 6, (0.5 + 4 * 0.25) / 5])
    assert [tally.mean_of(arm) for arm in (0, 1)] == pytest.approx(tally.means)
    assert tally.pooled_means == pytest.approx([0.6, 0.375])


def test_the_page_shows_the_intervals_of_weighted_means(tmp_path):
    ct.identify(by_site(WEIGHTS), 1, horizon=3, seed=1, checkpoint=tmp_path / "run.ctlog", algorithm="uniform")
    state = LogState(read_log(tmp_path / "run.ctlog"))
    low, high = SeenIntervals().ends(state.tally, None, state.header)
    exact = pytest.approx(arm_values(TABLE, WEIGHTS))
    assert state.means == exact
    assert low == exact  # all examples were used
    assert high == exact


def test_bounds_on_the_error_count_agents_by_their_weights():
    assert effective_agents([1, 1, 1, 1], 4) == 4
    assert effective_agents([1, 1e-9, 1e-9, 1e-9], 4) == pytest.approx(1)
    means, heavy = [[0.9, 0.9], *[[0.3, 0.3]] * 15], [1, 1e-9]
    for bound in (ct.error_bound, ct.frugal_noniid_error_bound):
        alone = bound(np.array(means), 1, 2, 4_000 * 500, weights=heavy)
        assert bound(np.array(means), 1, 2, 4_000 * 500) <= alone
    algorithm, problem = ct.FrugalTopNonIID(), ct.Problem(16, 1, 2, 1_000, weights=as_weights(heavy, 2))
    by_function = ct.frugal_noniid_error_bound(means, 1, 2, 1_000, weights=heavy)
    assert algorithm.error_bound(means, problem) == pytest.approx(by_function)


def test_a_study_judges_by_the_weighted_values():
    arms = {"plain": ct.HeterogeneousArms(TABLE), "weighted": ct.HeterogeneousArms(TABLE, weights=WEIGHTS)}
    for engine in ("messages", "batched"):
        rows = ct.Study(arms=arms, algorithms="uniform", horizon=4_000, runs=5, engine=engine).run(jobs=1).rows
        assert all(row.correct for row in rows)
    same = {"arms": ct.HeterogeneousArms(TABLE)}, {"arms": arms["weighted"]}
    studies = [ct.Study(arms=it, algorithms="uniform", horizon=400, runs=5) for it in same]
    assert studies[0].fingerprint != studies[1].fingerprint
    with pytest.raises(ct.InputError, match="differ between the studies"):
        studies[0] + studies[1]


def test_a_plan_is_made_for_the_weighted_values():
    weighted = ct.HeterogeneousArms(TABLE, weights=WEIGHTS)
    plan = ct.plan(None, 1, means=weighted, simulate=False)
    assert plan.gap == pytest.approx(0.6 - 0.35)
    assert ct.plan(None, 1, means=TABLE, simulate=False).gap == pytest.approx(0.1)


def score(candidate, example):
    return candidate[example]


def by_site(weights=None):
    return ct.DatasetArms(TABLE, [[0], [1], [2]], score, by_agent=True, weights=weights)


def test_candidates_scored_on_the_examples_of_each_site_and_logged_rewards_take_weights(tmp_path):
    assert ct.identify(by_site(), 1, horizon=30, seed=1).top_indices == [0]
    assert ct.identify(by_site(WEIGHTS), 1, horizon=30, seed=1).top_indices == [1]
    logged = [[[mean] for mean in row] for row in TABLE]
    assert ct.identify(ct.LoggedArms(logged, weights=WEIGHTS, replace=True), 1, horizon=30, seed=1).top == [1]
    path = tmp_path / "rewards.csv"
    rows = [f"{arm},{agent},{mean}" for arm, row in enumerate(TABLE) for agent, mean in enumerate(row)]
    path.write_text("candidate,agent,reward\n" + "\n".join(rows))
    assert ct.identify(ct.read_rewards(path, replace=True), 1, horizon=30, seed=1).top == ["0"]
    assert ct.identify(ct.read_rewards(path, weights=WEIGHTS, replace=True), 1, horizon=30, seed=1).top == ["1"]


def test_a_checkpoint_belongs_to_arms_with_the_same_weights(tmp_path):
    path, weighted = tmp_path / "run.ctlog", ct.HeterogeneousArms(TABLE, weights=WEIGHTS)
    asked = {"m": 1, "horizon": 400, "seed": 1, "checkpoint": path}
    result = ct.identify(weighted, **asked)
    assert ct.resume(path, arms=weighted) == result
    with pytest.raises(ct.FileError, match="different run"):
        ct.identify(ct.HeterogeneousArms(TABLE), **asked)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "weights has 2 entries, but there are 3 agents"),
        ([1, 2, 0], r"weights\[2\] is 0.0, but a number above 0 is needed"),
        ([1, -2, 3], r"weights\[1\] is -2.0"),
        ([1, float("nan"), 3], r"weights\[1\] is nan"),
        ([1, "many", 3], r"weights is \[1, 'many', 3\], but one number per agent is needed"),
        (3, "weights is 3, but one number per agent is needed"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(ct.InputError, match=message) as caught:
        ct.HeterogeneousArms(TABLE, weights=weights)
    assert caught.value.argument == "weights"


@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=8))
def test_normalized_weights_stay_the_same(weights):
    normalized = as_weights(weights, len(weights))
    assert normalized is None or as_weights(normalized, len(weights)) == normalized


def test_an_algorithm_that_trusts_no_agent_more_than_another_refuses_weights():
    arms = ct.HeterogeneousArms(TABLE, weights=WEIGHTS)
    with pytest.raises(ct.SettingError, match="these arms have weights, but robust-top trusts no agent"):
        ct.identify(arms, 1, horizon=400, algorithm="robust-top")


def test_weights_of_arms_that_are_the_same_for_all_are_refused():
    for make in (
        lambda: ct.LoggedArms([[0, 1], [1, 1]], weights=[1, 2]),
        lambda: ct.RemoteArms(5, weights=[1, 2]),
        lambda: arm_values([0.5, 0.4], weights=[1, 2]),
    ):
        with pytest.raises(ct.InputError, match="weights only applies to arms that differ between agents"):
            make()


class LosesAnAgent(ct.LocalTeam):
    """A local team in which one agent is lost for good after its second reply."""

    tolerates_loss = True

    def deliver(self, requests):
        self.exchanges = getattr(self, "exchanges", 0) + 1
        present = [request for request in requests if request.agent != 2 or self.exchanges <= 2]
        return super().deliver(present)


@pytest.mark.parametrize("name", ["collab-top-noniid", "frugal-top-noniid"])
def test_without_a_lost_agent_the_weights_of_the_others_decide(name):
    # The lost agent alone would decide for arm 3. Of the others, agent 1 decides.
    table = np.array(
        [[0.875, 0.25, 0.0], [0.25, 0.75, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 1.0], *[[0.0, 0.0, 0.0]] * 12]
    )
    arms = ConstantArms(table, weights=[1, 3, 20])
    asked = {"m": 1, "horizon": 4_000, "algorithm": name, "seed": 1}
    assert ct.identify(arms, **asked).top == [3]
    result = ct.identify(arms, team=LosesAnAgent(), **asked)
    assert result.lost == (2,)
    assert result.top == [1]
    assert result.estimates[1].mean == pytest.approx((0.25 + 3 * 0.75) / 4)
