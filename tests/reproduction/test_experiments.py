"""The sweeps follow from the instance: from error .5 of the first algorithm to error .01 of the last."""

from itertools import pairwise

import numpy as np
import pytest

import collabtop as ct
from collabtop.reproduction.evidence import IID, KZZ, NON_IID, PRINTED, UNIFORM
from collabtop.reproduction.experiments import (
    baselines,
    baselines_study,
    fixed_horizon,
    pilot_study,
    sweeps,
    words_study,
)
from tests.support.made_up_evidence import ARMS, made_up_rows


def pilot(half, runs=400, seed=None):
    """Points whose error halves with every `half[line]` time steps; with a seed, wrong answers are drawn."""
    rows, rng = [], np.random.default_rng(seed)
    for arms, lines in ((IID, (KZZ, PRINTED)), (NON_IID, (UNIFORM,))):
        for line in lines:
            for m in (1, 8):
                for power in range(-4, 7):
                    horizon = round(half[line] * 2.0**power)
                    error = min(0.95, 0.5 ** (horizon / half[line]))
                    wrong = round(runs * error) if seed is None else int(rng.binomial(runs, error))
                    rows += made_up_rows(line, arms, m, 10, horizon, wrong=wrong, runs=runs)
    return ct.StudyTable(rows).points()


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("scale", [1, 50])
def test_a_sweep_extends_from_error_a_half_to_error_one_in_a_hundred(scale, quick):
    half = {KZZ: 3_000 * scale, PRINTED: 9_000 * scale, UNIFORM: 20_000 * scale}
    ranges = sweeps(pilot(half), ARMS[IID], quick=quick)
    horizons = ranges[IID, 1].horizons
    assert horizons == tuple(sorted(horizons))
    fixed = fixed_horizon(ARMS[IID], 1)
    assert fixed in horizons
    horizons = tuple(horizon for horizon in horizons if scale == 1 or horizon != fixed)
    assert 0.5 * half[KZZ] < horizons[0] < 1.5 * half[KZZ]
    assert 6.6 * half[PRINTED] < horizons[-1] < 12 * half[PRINTED]
    assert all(later < 4 * earlier for earlier, later in pairwise(horizons))
    assert ranges[NON_IID, 8].agents == ()
    agents = ranges[IID, 1].agents
    assert 10 in agents
    assert 66 * half[PRINTED] / fixed < agents[-1] < 120 * half[PRINTED] / fixed


def test_a_sweep_ends_at_about_the_same_agents_whatever_the_seed():
    # With 24 runs per point of the pilot, the ends differed by a factor of two, and with them what C5 is about.
    arms = ct.datasets.movielens_like()
    points = pilot_study(arms, ct.datasets.movielens_like_groups(), seed=0, quick=False).points
    (runs,) = {point.runs for point in points if point.arms == IID}
    half = {KZZ: 3_000, PRINTED: 9_000, UNIFORM: 20_000}
    ends = [sweeps(pilot(half, runs, seed), ARMS[IID], quick=False)[IID, 1].agents[-1] for seed in range(8)]
    assert max(ends) < 1.5 * min(ends)


def test_the_words_that_c5_compares_have_many_runs_with_messages():
    half = {KZZ: 3_000, PRINTED: 9_000, UNIFORM: 20_000}
    ranges = sweeps(pilot(half), ARMS[IID], quick=False)
    points = words_study(ct.datasets.movielens_like(), ranges, seed=0).points
    assert {(point.engine, point.runs) for point in points} == {("messages", 120)}
    agents = ranges[IID, 1].agents
    assert {point.agents for point in points if point.m == 1} == {agents[0], agents[(len(agents) - 1) // 2], agents[-1]}


def test_the_fixed_horizon_is_the_papers_for_its_arms_and_in_proportion_to_h_for_others():
    arms = ct.datasets.movielens_like()
    assert fixed_horizon(arms, 1) == 30_000
    ratio = ct.complexity(arms, 8) / ct.complexity(arms, 1)
    assert fixed_horizon(arms, 8) == pytest.approx(30_000 * ratio, rel=0.06)


def test_arms_that_tie_at_the_border_are_refused():
    tied = ct.BernoulliArms([0.9, 0.9] + [0.5 - 0.01 * index for index in range(20)])
    with pytest.raises(ct.InputError, match="IID arms of ranks 1 and 2 have the same mean"):
        pilot_study(tied, ct.datasets.movielens_like_groups(), seed=0, quick=True)


def test_baselines_run_at_horizons_of_the_panels_and_nsar_with_the_pulls_of_all_agents():
    half = {KZZ: 3_000, PRINTED: 9_000, UNIFORM: 20_000}
    ranges = sweeps(pilot(half), ARMS[IID], quick=True)
    points = baselines_study(ct.datasets.movielens_like(), ranges, runs=1_000, seed=0, quick=False).points
    for m in (1, 8):
        names = {point.algorithm.name for point in points if point.m == m}
        assert names == {algorithm.name for algorithm in baselines(m)}
    for point in points:
        together = point.agents * point.horizon
        assert together // 10 in ranges[IID, point.m].horizons
        assert point.agents == (1 if point.algorithm.name == "nsar" else 10)
        assert point.runs <= 100
