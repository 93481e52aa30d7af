"""Noise and accounting of differential privacy: exact distributions, proven limits, and attacks that stay at them.

Seeds are fixed. The rates of false alarms are for seeds chosen anew, from exact binomial tails unless noted.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collabtop as ct
from collabtop.planning.setting import with_noise
from collabtop.privacy import Noise, NoiseScale, RandomBits, discrete_gaussian, epsilon_of
from collabtop.protocol.agent import Agent
from collabtop.protocol.messages import Bill, Deal, Prune, Pull, PullHand, PullOpen, Request, SendSquares
from collabtop.protocol.setup import Setup

PRIVATE = ["uniform", "frugal-top", "kzz", "kzz-balanced", "collab-top-noniid", "batched-sar", "paired-top"]
EPSILONS = st.floats(0.01, 50.0)
DELTAS = st.floats(1e-12, 0.1)


def privacy(epsilon=1.0, unit="reward"):
    return ct.Privacy(epsilon=epsilon, delta=1e-6, unit=unit)


# -- the accountant


@given(epsilon=EPSILONS, delta=DELTAS, n=st.integers(1, 1_000), horizon=st.integers(1, 10**9))
def test_no_run_spends_more_than_its_epsilon(epsilon, delta, n, horizon):
    for unit in ("example", "reward"):
        asked = ct.Privacy(epsilon=epsilon, delta=delta, unit=unit)
        assert epsilon_of(asked.rho, delta) == pytest.approx(epsilon)
        scale = NoiseScale.of(asked, n, horizon)
        spent = scale.spent(asked)
        assert spent.epsilon <= epsilon * (1 + 1e-9)
        # One unit moves each of `entries` sums by at most 1, or by one step of the grid more after rounding.
        shift = math.sqrt(n if unit == "example" else 1) * (1 + scale.grid)
        assert shift**2 / (2 * scale.deviation**2) <= asked.rho * (1 + 1e-9)


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"unit": "patient"}, "unit"),
    ],
)
def test_a_wrong_privacy_names_its_argument(wrong, argument):
    with pytest.raises(ct.InputError, match=f"{argument} is ") as caught:
        ct.Privacy(**{"epsilon": 1.0, "delta": 1e-6, "unit": "reward", **wrong})
    assert caught.value.argument == argument


# -- the mechanism


def gaussian(variance, reach):
    """The probabilities of a discrete Gaussian from -reach to reach."""
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    return weights / weights.sum()


@pytest.mark.parametrize("variance", [1, 3, 10])
def test_the_noise_is_a_discrete_gaussian(variance):
    """A chi-squared test; false alarm 1.3e-5 at most.

    Of 2,000,000 multinomial samples each, 26, 23 and 12 are beyond the first limit; the second one has 2e-10 at most.
    """
    count, bits, reach = 3_000, RandomBits(b"test %d" % variance), 12 * variance
    drawn = np.bincount([discrete_gaussian(variance, bits) + reach for _ in range(count)], minlength=2 * reach + 1)
    expected = count * gaussian(variance, reach)
    often = expected >= 5
    squares = ((drawn - expected) ** 2 / expected)[often].sum()
    freedom = often.sum() - 1
    assert squares <= freedom + 4.75 * math.sqrt(2 * freedom) + 12
    assert drawn[~often].sum() <= 2 * expected[~often].sum() + 15


@given(variance=st.integers(1, 50), shift=st.integers(1, 10), alpha=st.floats(1.01, 20.0))
def test_the_divergence_of_shifted_noise_is_within_its_bound(variance, shift, alpha):
    """Rényi divergence of order alpha, summed directly: at most alpha shift^2 / (2 variance)."""
    reach = int(40 * math.sqrt(variance) + alpha * shift) + 20
    x = np.arange(-reach, reach + 1.0)
    log_total = math.log(np.exp(-(x**2) / (2 * variance)).sum())
    exponents = -(alpha * x**2 + (1 - alpha) * (x - shift) ** 2) / (2 * variance) - log_total
    top = exponents.max()
    divergence = (top + math.log(np.exp(exponents - top).sum())) / (alpha - 1)
    assert divergence <= alpha * shift**2 / (2 * variance) + 1e-9


def test_random_integers_are_uniform_and_differ_between_keys():
    bits, other = RandomBits(b"a"), RandomBits(b"b")
    counts = np.bincount([bits.below(6) for _ in range(6_000)], minlength=6)
    assert abs(counts - 1_000).max() <= 5 * math.sqrt(1_000 * 5 / 6)  # six binomials: false alarm 4e-6
    assert [bits.below(2**70) for _ in range(5)] != [other.below(2**70) for _ in range(5)]
    assert RandomBits(b"a").below(1) == 0


def test_noise_depends_on_seed_agent_and_pull_number_only():
    scale = NoiseScale.of(privacy(), n=3, horizon=100)
    sums, times = np.array([1.0, 2.0, 3.0]), np.array([10])

    def noisy(seed=1, agent=0, first=0):
        return Noise(scale, scale.margin, seed, agent).add(sums, times, first).tolist()

    assert noisy() == noisy()
    assert len({str(values) for values in (noisy(), noisy(seed=2), noisy(agent=1), noisy(first=1))}) == 4


def test_noise_beyond_the_margin_is_cut_off():
    scale = NoiseScale.of(privacy(0.01), n=200, horizon=100)
    noisy = Noise(scale, 0.0, 1, 0).add(np.full(200, 5.0), np.array([10]), 0)
    assert (noisy.min(), noisy.max()) == (0, 10)


# -- membership attacks: which of two neighbouring data sets was used?


class Fixed(ct.Arms):
    """Arms whose rewards are known to the attacker, but for one reward of each."""

    def __init__(self, sums):
        super().__init__(len(sums))
        self.sums = sums

    def pull(self, arms, times, draws):
        return self.sums[arms]


def means_of(reply):
    return reply.answer.means


def success(asked, trials=4_000):
    """How often the best attack finds out whether the sum of ten rewards is 5 or 6: one independent trial per arm."""
    changed = np.random.default_rng(1).integers(0, 2, trials)
    setup = Setup(ct.Problem(n=trials, m=1, agents=1, horizon=10 * trials), 7, privacy=asked)
    agent = Agent(0, Fixed(5.0 + changed), setup)
    released = means_of(agent.answer(Request(0, 1, (Pull(None, np.array([10])),)))) * 10
    return float(((released > 5.5) == changed).mean())  # the likelihood ratio is above 1 from there on


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 12.0])
def test_the_best_attack_on_one_reward_is_at_its_theoretical_bound(epsilon):
    """The bound is that of Gaussians that differ by one reward; false alarm 6e-7, above and below together."""
    asked = privacy(epsilon)
    deviation = NoiseScale.of(asked, n=4_000, horizon=40_000).deviation
    bound, chance = NormalDist().cdf(1 / (2 * deviation)), 5 * math.sqrt(0.25 / 4_000)
    assert bound <= (math.exp(epsilon) + 1e-6) / (1 + math.exp(epsilon))  # what epsilon and delta allow at most
    assert success(asked) <= bound + chance
    assert success(asked) >= bound - chance  # there is not more noise than needed
    assert success(None) == 1.0  # without privacy the attack always succeeds


def example_guesses(asked, trials=400):
    """How often the best attack finds out whether an example, used once for each of 6 candidates, is a success."""
    right, setup = 0, Setup(ct.Problem(n=6, m=1, agents=1, horizon=90), 7, privacy=asked)
    for trial in range(trials):
        arms = Fixed(np.full(6, 7.0 + trial % 2))
        arms.uses_examples_once, arms.pull_limit = True, 15
        agent = Agent(trial, arms, setup)  # each has noise of its own
        released = means_of(agent.answer(Request(trial, 1, (Pull(None, np.array([15])),)))) * 15
        right += (released.mean() > 7.5) == trial % 2
    return right / trials


def test_the_best_attack_on_one_example_is_at_its_theoretical_bound():
    """The example moves six sums at once; the noise is for that. False alarm 8e-8, and 3e-6 for the weaker unit."""
    asked = privacy(6.0, "example")
    deviation = NoiseScale.of(asked, n=6, horizon=90).deviation
    bound, chance = NormalDist().cdf(math.sqrt(6) / (2 * deviation)), 5 * math.sqrt(0.25 / 400)
    assert abs(example_guesses(asked) - bound) <= chance
    assert example_guesses(privacy(6.0, "reward")) > bound + chance  # protects single rewards, not examples
    assert example_guesses(None) == 1.0


# -- agents


@pytest.mark.parametrize(
    "message",
    [SendSquares(), PullOpen(None, 5, 0.05), Deal(np.array([1])), PullHand(5), Bill()],
    ids=lambda message: type(message).__name__,
)
def test_an_agent_with_privacy_answers_nothing_without_noise(message):
    setup = Setup(ct.Problem(n=4, m=1, agents=1, horizon=100), 1, privacy=privacy())
    request = Request(0, 1, (message, Pull(None, np.array([2]))))
    with pytest.raises(ct.ProtocolError, match="has no noise, so it is not answered with privacy"):
        Agent(0, ct.BernoulliArms([0.5] * 4), setup).answer(request)


def test_hands_are_pruned_by_noisy_sums():
    """Arms that always win would all stay without noise."""
    setup = Setup(ct.Problem(n=400, m=1, agents=1, horizon=10**5), 1)
    arms = ct.BernoulliArms([1.0] * 200 + [0.0] * 200)
    question = Request(0, 1, (Prune(3, np.array([200, 200]), np.array([1, 2])),))
    noisy = Setup(setup.problem, 1, privacy=privacy(0.1))
    hands: list[Any] = [Agent(0, arms, each).answer(question).answer for each in (setup, noisy)]
    kept, kept_noisy = (hand.arms for hand in hands)
    assert (kept < 200).all()
    assert 50 < (kept_noisy < 200).sum() < 150  # little more than a coin flip; false alarm below 1e-20


def test_an_example_cannot_be_used_twice_for_a_candidate():
    arms = ct.DatasetArms([1, 2], [0, 1, 1], lambda candidate, example: example)
    setup = Setup(ct.Problem(n=2, m=1, agents=1, horizon=100, pull_limit=3, numbered=True), 1, False)
    private = Setup(setup.problem, 1, privacy=privacy(1.0, "example"))
    for asked, numbers in ((4, (0,)), (2, (0, 1))):
        agent = Agent(0, arms, private)
        questions = [Pull(None, np.array([asked]), np.array([start, start])) for start in numbers]
        with pytest.raises(ct.ProtocolError, match="an example would be used twice"):
            agent.answer(Request(0, 1, tuple(questions)))


# -- runs

FLIPS = [0.2, 0.3, 0.5, 0.9]


def flip(candidate, rng):
    return rng.random() < candidate


@pytest.mark.parametrize("team", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", ["reward", "example"])
def test_every_local_team_gives_the_same_private_result(team, unit):
    arms = ct.FunctionArms(FLIPS, flip) if unit == "reward" else ct.DatasetArms(FLIPS, list(range(40)), _score)
    run = {"m": 1, "agents": 2, "horizon": 80, "privacy": privacy(5.0, unit), "seed": 3}
    assert ct.identify(arms, **run, team=team) == ct.identify(arms, **run)


def _score(candidate, example):
    return (example * 7) % 10 < 10 * candidate


@pytest.mark.parametrize("algorithm", PRIVATE)
@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_a_private_run_stays_within_its_horizon_words_and_epsilon(algorithm, seed):
    arms, run = ct.BernoulliArms(np.linspace(0.1, 0.9, 12)), {"m": 2, "agents": 3, "horizon": 900, "seed": seed}
    result = ct.identify(arms, **run, algorithm=algorithm, privacy=privacy())
    most = ct.make_algorithm(algorithm).most_words(ct.Problem(n=12, m=2, agents=3, horizon=900))
    assert result.words <= (most or result.words)
    assert result.pulls <= 3 * 900
    assert result.privacy.epsilon <= 1.0
    assert result.exact == []
    assert ct.identify(arms, **run, algorithm=algorithm, privacy=privacy(), team="threads") == result
    if algorithm == "uniform":  # a single round, which cannot end early
        plain = ct.identify(arms, **run, algorithm=algorithm)
        assert (result.words, result.bits, result.pulls) == (plain.words, plain.bits, plain.pulls)


def test_a_killed_private_run_resumes_with_the_same_noise(tmp_path):
    run = {"m": 1, "agents": 2, "horizon": 80, "privacy": privacy(5.0), "seed": 3, "algorithm": "frugal-top"}
    whole = ct.identify(FLIPS, pull=flip, **run)
    calls = 0

    def broken(candidate, rng):
        nonlocal calls
        calls += 1
        if calls == 100:
            raise OSError
        return flip(candidate, rng)

    with pytest.raises(ct.PullError):
        ct.identify(FLIPS, pull=broken, **run, checkpoint=tmp_path / "run.ctlog")
    peeked = ct.peek(tmp_path / "run.ctlog")
    assert peeked.observed is None  # the log has the rewards without noise, the result must not
    resumed = ct.resume(tmp_path / "run.ctlog", pull=flip)
    assert resumed == whole
    assert (resumed.privacy, ct.peek(tmp_path / "run.ctlog").privacy) == (whole.privacy, whole.privacy)
    with pytest.raises(ct.FileError, match="privacy is Privacy"):
        ct.identify(FLIPS, pull=flip, **{**run, "privacy": privacy(6.0)}, checkpoint=tmp_path / "run.ctlog")
    with pytest.raises(ct.SettingError, match="a private run has a fixed horizon"):
        ct.extend(tmp_path / "run.ctlog", horizon=200, pull=flip)


def test_a_stopped_private_run_shows_noisy_means_only():
    with ct.start(FLIPS, 1, pull=flip, agents=1, horizon=4_000, privacy=privacy(), seed=1, algorithm="sar") as run:
        run.stop()
        result = run.result()
    seen = result.observed
    assert seen is None or np.isnan(seen.deviations).all()


@pytest.mark.parametrize(
    ("changed", "message", "argument"),
    [
        ({"algorithm": "frugal-top-noniid"}, "whose messages have no noise, but privacy needs one of frugal-top, ", ""),
        ({"horizon": None, "confidence": 0.9}, "algorithm is 'confident-top', whose messages have no noise", ""),
        ({"robust": 1, "agents": 3}, "algorithm is 'robust-top', whose messages have no noise", ""),
        ({"bounds": None}, "bounds is None, but privacy has to know", "bounds"),
        ({"policy": ct.PullPolicy(failures="skip")}, "failures is 'skip', so one reward can stand for", "policy"),
        ({"horizon": None, "budget": 500, "cost": 2.0}, "cost reports what pulls cost, which has no noise", "cost"),
        ({"horizon": None, "timeout": 60}, "a private run has a fixed horizon", "privacy"),
        ({"privacy": privacy(1.0, "example")}, "FunctionArms may use an example more than once", "privacy"),
        ({"privacy": 1.0}, "privacy is 1.0, but a Privacy is needed", "privacy"),
    ],
)
def test_what_cannot_be_private_is_refused(changed, message, argument):
    with pytest.raises(ct.InputError, match=message) as caught:
        ct.identify(FLIPS, **{"m": 1, "pull": flip, "agents": 2, "horizon": 100, "privacy": privacy(), **changed})
    assert caught.value.argument == (argument or "algorithm")


def test_a_private_result_shows_what_it_spent_and_not_its_seed():
    run: dict[str, Any] = {"m": 1, "agents": 2, "horizon": 2_000, "seed": 987_654_321}
    result, plain = (ct.identify(ct.BernoulliArms(FLIPS), **run, privacy=each) for each in (privacy(), None))
    assert "epsilon 1 per reward (delta 1e-06)" in str(result)
    assert result.to_dict()["privacy"]["unit"] == "reward"
    for text in (str(result), result.to_json(), repr(result), result._repr_html_()):
        assert "987654321" not in text
    assert "987654321" in plain.to_json()
    assert "privacy" not in plain.to_dict()
    assert result.seed == 987_654_321


def test_the_default_has_few_batches():
    run = {"m": 1, "horizon": 2_000, "privacy": privacy(), "seed": 1}
    assert ct.identify(ct.BernoulliArms(FLIPS), agents=2, **run).algorithm == "kzz-balanced"
    assert ct.identify(ct.HeterogeneousArms([[0.2, 0.3], [0.8, 0.9]]), **run).algorithm == "collab-top-noniid"


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["kzz-balanced", "frugal-top", "uniform"])
def test_intervals_contain_the_means_in_spite_of_noise(algorithm):
    """Each of 12 intervals of 60 runs misses with probability .05 at most: more than 62 misses have 1.7e-5."""
    means, missed = np.linspace(0.05, 0.95, 12), 0
    arms = ct.BernoulliArms(means)
    for seed in range(60):
        run = {"m": 2, "agents": 3, "horizon": 900, "algorithm": algorithm, "seed": seed}
        low, high = ct.identify(arms, **run, privacy=privacy(0.5)).intervals
        missed += int(((low > means) | (high < means)).sum())
    assert missed <= 62


def test_more_noise_makes_intervals_longer():
    arms = ct.BernoulliArms([0.3, 0.5, 0.7])
    asked = [privacy(8.0), privacy(1.0), privacy(0.02)]
    runs = [ct.identify(arms, 1, agents=2, horizon=3_000, algorithm="uniform", seed=1, privacy=each) for each in asked]
    widths = [np.subtract(*run.intervals[::-1])[1] for run in runs]
    assert widths == sorted(set(widths))
    assert [run.standings[0].thin for run in runs] == [False, False, True]


# -- plans


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "epsilon", "horizon"),
    [("kzz-balanced", 0.3, 900), ("kzz", 1.0, 900), ("frugal-top", 0.5, 900), ("uniform", 0.8, 900)],
)
def test_simulated_noise_gives_the_error_of_private_runs(algorithm, epsilon, horizon):
    """The two shares of wrong answers differ by less than five standard deviations.

    False alarm 1e-6 for kzz-balanced, 1.3e-5 for kzz, 1.1e-5 for frugal-top and 1.4e-5 for uniform: binomial,
    averaged over the error of the simulated share.
    """
    arms, asked, runs = ct.BernoulliArms([0.4] * 11 + [0.6]), privacy(epsilon), 150
    chosen, problem = ct.make_algorithm(algorithm), ct.Problem(n=12, m=1, agents=3, horizon=horizon)
    noisy = with_noise(problem, asked)
    simulated = 1 - chosen.answers(noisy, arms.means, 4_000, np.random.default_rng(1))[:, -1].mean()
    plain = 1 - chosen.answers(problem, arms.means, 4_000, np.random.default_rng(1))[:, -1].mean()
    run = {"m": 1, "agents": 3, "horizon": horizon, "algorithm": chosen, "privacy": asked}
    wrong = np.mean([ct.identify(arms, **run, seed=seed).top != [11] for seed in range(runs)])
    assert abs(wrong - simulated) <= 5 * math.sqrt(simulated * (1 - simulated) / runs)
    assert simulated > plain + 0.03  # the noise matters here


def test_a_plan_needs_a_longer_horizon_for_more_privacy():
    arguments: dict[str, Any] = {
        "means": [0.3] * 7 + [0.7],
        "m": 1,
        "agents": 2,
        "error": 0.1,
        "algorithms": ["kzz-balanced"],
    }
    asked = [None, privacy(1.0), privacy(1.0, "example")]
    plans = [ct.plan(**arguments, privacy=each, runs=600, seconds=60) for each in asked]
    horizons = [plan.rows[0].horizon for plan in plans]
    assert horizons == sorted(set(horizons))
    assert all(plan.rows[0].bound_horizon is None for plan in plans)


def test_plans_list_and_accept_private_algorithms_only():
    plan = ct.plan(n=8, m=1, agents=2, gap=0.3, simulate=False, privacy=privacy())
    assert {row.algorithm for row in plan.rows} == {"frugal-top", "kzz", "kzz-balanced", "batched-sar", "uniform"}
    assert [row.bound_horizon for row in plan.rows] == [None] * 5
    with pytest.raises(ct.SettingError, match="algorithms is 'hkk', whose messages have no noise") as caught:
        ct.plan(n=8, m=1, agents=2, gap=0.3, algorithms=["hkk"], privacy=privacy())
    assert caught.value.argument == "algorithms"
    arguments: dict[str, Any] = {"n": 4, "m": 1, "budget": 400, "spread": (0.3, 0.7), "seconds": 0.2}
    budgets: list[Any] = [ct.plan(**arguments, privacy=each) for each in (None, privacy(0.1))]
    assert max(row.exact.mean for row in budgets[0].rows) > max(row.exact.mean for row in budgets[1].rows)
