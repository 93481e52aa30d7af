"""The short ones of the points that must come out (SPEC section 4), on the embedded instances.

Rates are over a few hundred runs with fixed seeds. The references were measured on other files, to which the
embedded instances are close (H<1> within 2%, H<8> within 5%), so each stated interval is wider than
chance alone would ask for: 4 standard errors of the rate on either side, and a third of the rate.
The chance of a false alarm with seeds chosen anew is below 1e-4 for each.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import collabtop as ct
from collabtop.problem import is_best

AGENTS = 10
IID = ct.datasets.movielens_like()
GROUPS = ct.datasets.movielens_like_groups()


def wrong(arms, algorithm, m, horizon, runs):
    """The share of runs whose answer is not a set of m best arms."""
    results = (
        ct.identify(arms, m, agents=AGENTS, horizon=horizon, algorithm=algorithm, seed=seed) for seed in range(runs)
    )
    return sum(not is_best(arms.means, result.top_indices) for result in results) / runs


@pytest.mark.parametrize(
    ("arms", "algorithm", "m", "horizon", "reference", "runs"),
    [
        pytest.param(IID, "kzz", 1, 10_000, 0.063, 400, marks=pytest.mark.slow),
        pytest.param(IID, "collab-top-iid", 1, 10_000, 0.394, 200, marks=pytest.mark.slow),
        (IID, "collab-top-iid", 1, 30_000, 0.072, 200),
        (IID, "kzz", 8, 120_000, 0.184, 200),
        pytest.param(IID, "collab-top-iid", 8, 120_000, 0.812, 200, marks=pytest.mark.slow),
        pytest.param(IID, "collab-top-iid", 8, 240_000, 0.530, 200, marks=pytest.mark.slow),
        pytest.param(GROUPS, "collab-top-noniid", 1, 20_000, 0.0375, 300, marks=pytest.mark.slow),
        (GROUPS, "uniform", 1, 20_000, 0.497, 300),
        pytest.param(GROUPS, "uniform", 1, 50_000, 0.198, 300, marks=pytest.mark.slow),
    ],
    ids=lambda value: f"n={value.n}" if isinstance(value, ct.Arms) else None,
)
def test_the_error_is_that_of_independent_code(arms, algorithm, m, horizon, reference, runs):
    allowed = 4 * math.sqrt(reference * (1 - reference) / runs) + min(reference, 1 - reference) / 3
    assert abs(wrong(arms, algorithm, m, horizon, runs) - reference) <= allowed


def test_at_50_000_steps_the_noniid_algorithm_is_practically_never_wrong():
    # Reference: 0 of 2,000. Three or more of 60 would happen with probability below 1e-4 even at a rate of .3%.
    assert wrong(GROUPS, "collab-top-noniid", 1, 50_000, runs=60) <= 2 / 60


def test_kzz_says_17540_words_whatever_the_horizon():
    # Exactly so unless a run ends early, with all of its m arms accepted.
    words = [ct.identify(IID, 1, agents=AGENTS, horizon=30_000, algorithm="kzz", seed=seed).words for seed in range(20)]
    assert max(words) == 17_540
    assert np.median(words) == 17_540


def test_collab_top_iid_says_six_to_nine_times_fewer_words_than_kzz():
    # Statement C4 by full count; measured as a ratio of means over 40 runs each.
    def mean_words(algorithm):
        runs = (ct.identify(IID, 1, agents=AGENTS, horizon=30_000, algorithm=algorithm, seed=s) for s in range(40))
        return np.mean([run.words for run in runs])

    assert 6 <= mean_words("kzz") / mean_words("collab-top-iid") <= 9


def test_uniform_says_k_n_words_and_the_noniid_algorithm_three_times_as_many():
    uniform = ct.identify(GROUPS, 1, horizon=20_000, algorithm="uniform", seed=1)
    noniid = ct.identify(GROUPS, 1, horizon=20_000, algorithm="collab-top-noniid", seed=1)
    assert uniform.words == AGENTS * GROUPS.n
    assert noniid.words / uniform.words == pytest.approx(3, rel=0.05)
