"""Ties cost no more accuracy than they must: both rankings of a round use one random perturbation of the means.

Statistical tests have fixed seeds; the comments give the probability that a correct program fails with other seeds.
The expected rates are those of `tests/support/naive.py` and of the package, which agree, over 6,500 runs.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import collabtop as ct
from collabtop.algorithms.shared.elimination import settle
from collabtop.protocol import messages as say
from collabtop.testing import WireTeam

THREE_LEVELS = ct.BernoulliArms([0.7] * 4 + [0.6] * 6 + [0.4] * 40)
CLICK_RATES = ct.BernoulliArms([0.01] * 5 + [0.002] * 45)


def share_with_a_bad_arm(arms, at_least, algorithm, horizon, runs):
    """The share of answers of five arms with one whose mean is below `at_least`; ties among good arms do not matter."""
    bad = 0
    for seed in range(runs):
        top = ct.identify(arms, 5, agents=6, horizon=horizon, algorithm=algorithm, seed=seed).top
        bad += bool((arms.means[top] < at_least).any())
    return bad / runs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "most", "runs"),
    [
        ("kzz", 0.197, 1_000),  # .150 expected, .247 with rounding in the gaps; false alarm 2e-5
        pytest.param("kzz-balanced", 0.197, 1_000, marks=pytest.mark.slow),
        ("frugal-top", 0.31, 300),  # .22 expected, .41 with rounding in the gaps; false alarm 1e-4
    ],
)
def test_equal_gaps_in_short_runs_do_not_double_the_error(algorithm, most, runs):
    assert share_with_a_bad_arm(THREE_LEVELS, 0.6, algorithm, horizon=168, runs=runs) < most


@pytest.mark.slow
def test_click_rates_that_tie_at_a_few_clicks_are_ranked_as_well_as_by_the_reference():
    # .538 expected, .605 with rounding in the gaps; false alarm 2e-4
    assert share_with_a_bad_arm(CLICK_RATES, 0.01, "kzz", horizon=8_000, runs=3_000) < 0.571


LEVELS = np.array([1.0] * 3 + [2 / 3] * 2 + [1 / 3] * 7)


class ThirdsArms(ct.Arms):
    """Arms without noise, whose means are thirds."""

    def pull(self, arms, times, draws):
        return LEVELS[arms] * times


def accepted_in_the_first_local_round(seed):
    """How many arms the agents of collab-top-iid accepted; None if the hands were too unequal for a local round."""
    team = WireTeam()
    algorithm = ct.CollabTopIID(schedule="full")
    ct.identify(ThirdsArms(len(LEVELS)), 4, agents=2, horizon=600, algorithm=algorithm, seed=seed, team=team)
    counts = [message.count for _, _, message in team.crossed if isinstance(message, say.Accepted)]
    return sum(counts[:2]) if counts else None


@pytest.mark.slow
def test_a_local_round_breaks_ties_of_gaps_as_the_coordinator_does():
    # Six of twelve arms stay. The two arms at 2/3 have gap 0; all others have gap 1/3, on both sides of the border.
    counts = Counter(accepted_in_the_first_local_round(seed) for seed in range(900))
    del counts[None]
    runs = counts.total()
    assert runs > 500
    rng, trials = np.random.default_rng(1), 4_000
    reference = Counter(len(settle(np.arange(12), LEVELS, 4, 6, rng).accepted) for _ in range(trials))
    assert set(reference) == {0, 1, 2, 3}
    for number, times in reference.items():
        p = times / trials
        spread = np.sqrt(p * (1 - p) * (1 / runs + 1 / trials))
        assert abs(counts[number] / runs - p) < 4.5 * spread  # four comparisons: one false alarm in 35,000
