"""robust-top: a few agents may lie, and the answer hardly changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.stats import trimmed_mean
from collabtop.testing import ConstantArms
from tests.support.liars import LIES, LyingArms, hide_best, honest, invert, is_right, own_arm, swap_at_border

SHARES = st.floats(0, 1)


@given(honest_means=st.lists(SHARES, min_size=3, max_size=12), lies=st.lists(SHARES, min_size=1, max_size=5))
def test_lies_move_a_trimmed_mean_only_within_the_spread_of_honest_means(honest_means, lies):
    lies = lies[: (len(honest_means) - 1)]  # fewer liars than honest agents
    f, ordered = len(lies), np.sort(honest_means)
    value = trimmed_mean(np.array(honest_means + lies), f)
    kept = len(honest_means) - f
    assert ordered[:kept].mean() - 1e-9 <= value <= ordered[-kept:].mean() + 1e-9
    assert abs(value - ordered.mean()) <= f / len(ordered) * (ordered[-1] - ordered[0]) + 1e-9


def errors(lie, runs=60, horizon=8_000, **options):
    results = [ct.identify(LyingArms(lie), 4, agents=10, horizon=horizon, seed=s, **options) for s in range(runs)]
    return sum(not is_right(result) for result in results), results


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_one_liar_of_ten_does_not_change_the_answer(lie):
    # At this horizon the error of honest runs is .004. With an error of .03, a test of 60 runs fails in 1 of 200.
    wrong, results = errors(lie, robust=1)
    assert wrong <= 5
    assert all(set(result.suspects) <= {0} for result in results)


@pytest.mark.slow
@pytest.mark.parametrize("lie", [own_arm, hide_best])
def test_a_liar_that_owns_other_algorithms_changes_at_most_2_percent_at_3_5_times_the_horizon(lie):
    """Wrong answers of honest runs count as well; their share is below .006 here (docs/sites-trust.md).

    If the true share were .02, at most 1 of 240 answers would be wrong with probability .046. The share falls to a
    tenth with each 4,500 time steps, to about .00013 here, so that the test fails by chance in fewer than 1 of 1,000.
    """
    wrong, results = errors(lie, runs=240, horizon=round(3.5 * 4_500), robust=1)
    assert wrong <= 1
    assert {result.words for result in results} == {2_360}
    assert all(result.suspects == [0] for result in results)


@pytest.mark.parametrize(("lie", "algorithm"), [(own_arm, "frugal-top"), (hide_best, "kzz")])
def test_the_same_liar_owns_the_answer_of_others(lie, algorithm):
    wrong, _ = errors(lie, runs=10, algorithm=algorithm)
    assert wrong >= 9


def test_confident_top_is_sure_of_what_a_liar_reports():
    for seed in range(5):
        result = ct.identify(LyingArms(own_arm), 4, agents=10, confidence=0.95, algorithm="confident-top", seed=seed)
        assert result.sure
        assert 0 in result.top_indices  # the worst arm


def test_a_gross_liar_is_named_and_honest_agents_are_not():
    result = ct.identify(LyingArms(invert, liars=[3]), 4, agents=10, horizon=4_000, robust=1, seed=1)
    assert result.suspects == [3]
    assert any("agent 3 do not fit" in line for line in result.warnings)
    assert result.to_dict()["suspects"] == [3]
    assert ct.identify(LyingArms(honest), 4, agents=10, horizon=4_000, robust=1, seed=1).suspects == []


def test_more_liars_than_expected_can_decide_the_answer():
    for seed in range(5):
        arms = LyingArms(swap_at_border, liars=[0, 1, 2])
        assert not is_right(ct.identify(arms, 4, agents=10, horizon=16_000, robust=1, seed=seed))


def test_where_agents_see_different_arms_a_liar_can_decide_between_arms_closer_than_the_stated_bias():
    """The honest agents see 1/8 to 7/8 of arm 0, on average 1/2, and 15/32 of arm 1; a lie lowers arm 0 by 1/8."""
    lies = np.array([[1 / 8, 3 / 8, 5 / 8, 7 / 8, 0], [15 / 32] * 5])
    result = ct.identify(ConstantArms(lies), 1, horizon=3_000, robust=1, seed=1)
    assert (result.top_indices, result.suspects) == ([1], [])
    moved = lies[0, :4].mean() - trimmed_mean(lies[0], 1)
    assert moved == pytest.approx(1 / 8)
    assert moved <= (7 / 8 - 1 / 8) * 1 / 4  # f / (K - f) times the spread


def test_where_agents_see_different_arms_no_agent_is_suspected():
    local_means = np.tile([[0.9], [0.5], [0.1]], 5)
    local_means[:, 0] = [0.1, 0.5, 0.9]
    result = ct.identify(ct.HeterogeneousArms(local_means), 1, horizon=3_000, robust=1, seed=1)
    assert (result.top, result.suspects) == ([0], [])


def test_robust_chooses_the_algorithm_and_gives_the_reason():
    result = ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, agents=5, horizon=100, robust=2, seed=1)
    assert (result.algorithm, result.options["liars"]) == ("robust-top", 2)
    assert result.why == "up to 2 of the agents may lie, so extreme means are left out"
    named = ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, agents=5, horizon=100, algorithm="robust-top", seed=1)
    assert named.options["liars"] == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"agents": 4, "robust": 2}, "2 of 4 agents may lie, but then at least 5 agents are needed"),
        ({"robust": -1}, "robust is -1"),
        ({"robust": 1, "algorithm": "kzz"}, "robust= only applies with algorithm='auto' or 'robust-top', but"),
        ({"robust": 1, "horizon": None, "confidence": 0.9}, "robust= only applies with horizon= or budget="),
    ],
)
def test_what_cannot_be_robust_is_refused(settings, message):
    with pytest.raises(ct.InputError, match=message) as caught:
        ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, **({"agents": 10, "horizon": 100} | settings))
    assert caught.value.argument == "robust"


def test_agents_that_share_examples_are_refused():
    arms = ct.DatasetArms(["a", "b"], score=lambda candidate, example: 1.0, examples=[1, 2, 3])
    with pytest.raises(ct.SettingError, match="needs agents that draw independently"):
        ct.identify(arms, 1, agents=5, horizon=100, robust=1)


def test_no_bound_on_the_error_is_claimed():
    assert ct.RobustTop().error_bound([0.9, 0.1], ct.Problem(2, 1, 5, 1_000)) is None
