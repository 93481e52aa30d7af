"""frugal-top-noniid: bitmaps down, few bits up, and the whole horizon is spent."""

from __future__ import annotations

import math

import numpy as np
import pytest

import collabtop as ct
from collabtop.algorithms.shared.frugal_plan import noniid_plan
from collabtop.protocol import messages
from collabtop.testing import ConstantArms, WireTeam

TABLE = np.random.default_rng(3).uniform(0.1, 0.9, (40, 4))


def run(horizon=8_000, m=2, seed=1, arms=None, **options):
    team = WireTeam()
    arms = arms or ct.HeterogeneousArms(TABLE)
    algorithm = ct.FrugalTopNonIID(**options)
    return ct.identify(arms, m, horizon=horizon, algorithm=algorithm, seed=seed, team=team), team


def test_only_bitmaps_go_down_and_coarse_means_up_and_the_first_bitmap_is_free():
    result, team = run()
    assert {(way, type(message)) for _, way, message in team.crossed} == {
        ("down", messages.PullOpen),
        ("up", messages.CoarseMeans),
    }
    assert all(message.survived is None for _, way, message in team.crossed[:8] if way == "down")
    down = [entry.words for entry in result.ledger.entries if entry.direction == "down"]
    assert down == [0, *(4 * round_.live for round_ in result.rounds[:-1])]  # one flag per arm that was open
    assert result.ledger.bits_by("direction")["down"] == sum(down)


def test_the_whole_horizon_is_spent_by_every_agent():
    result, _ = run()
    plan = noniid_plan(ct.Problem(40, 2, 4, 8_000))
    assert [round_.live for round_ in result.rounds] == list(plan.sizes)
    assert result.time > 8_000 - plan.sizes[-1]
    assert result.pulls == 4 * result.time


def test_a_mean_of_many_pulls_takes_far_fewer_bits_than_a_real():
    coarse, _ = run(horizon=200_000)
    means = sum(4 * round_.live for round_ in coarse.rounds)
    assert coarse.ledger.bits_by("direction")["up"] < 14 * means
    fine, _ = run(horizon=200_000, coarseness=0.0001)
    assert fine.bits > coarse.bits
    assert fine.words == coarse.words


def test_without_noise_means_are_sent_unrounded():
    table = np.random.default_rng(5).integers(0, 1025, (30, 3)) / 1024
    result, team = run(arms=ConstantArms(table), horizon=2_000)
    exact = [message for _, way, message in team.crossed if way == "up"]
    assert all(message.packed is None for message in exact)
    for estimate in result.estimates:
        assert estimate.mean == pytest.approx(table[estimate.arm].mean(), abs=1e-9)


@pytest.mark.parametrize("coarseness", [-0.1, 1, float("nan")])
def test_a_coarseness_that_is_no_share_is_refused(coarseness):
    with pytest.raises(ct.InputError, match="coarseness is"):
        ct.FrugalTopNonIID(coarseness=coarseness)


@pytest.mark.slow
def test_coarse_means_do_not_make_it_wrong_more_often():
    study = ct.Study(
        arms=ct.HeterogeneousArms(TABLE),
        algorithms=[ct.FrugalTopNonIID(), ct.FrugalTopNonIID(coarseness=0.0)],
        m=2,
        horizon=2_500,
        runs=400,
        seed=2,
    )
    coarse, exact = sorted(study.run(jobs=1).points(), key=lambda point: point.bits_mean)
    spread = np.sqrt(0.25 * 2 / 400)
    assert coarse.error < exact.error + 4 * spread  # a false alarm in 30,000


@pytest.mark.slow
def test_means_near_one_among_many_near_one_half_are_rounded_no_more_than_their_noise_allows():
    # The noise of the arms at .5 says nothing about that of the best four. Exact means have an error of .061 here, and
    # rounded ones of .069. One scale for all arms and rounds had .181. False alarm 2e-5.
    means = np.array([0.998] + [0.9965] * 3 + [0.5] * 36)
    arms, runs = ct.HeterogeneousArms(np.tile(means[:, np.newaxis], (1, 4))), 400
    wrong = sum(run(20_000, m=1, seed=seed, arms=arms)[0].top != [0] for seed in range(runs))
    assert wrong / runs < 0.122


EASY = {
    "one good arm": ([[0.95, 0.75]] + [[0.1, 0.3]] * 11, 1, (600, 800)),
    "two good arms": ([[0.9, 0.9, 0.3]] * 2 + [[0.1, 0.1, 0.4]] * 10, 2, (800, 1_200)),
    "most of them wanted": ([[0.95, 0.75]] * 9 + [[0.1, 0.3]], 9, (400, 600)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EASY)
def test_the_measured_error_is_never_above_the_bound(name):
    table, m, horizons = EASY[name]
    arms, runs = ct.HeterogeneousArms(table), 200
    bounds = [ct.frugal_noniid_error_bound(arms, m, len(table[0]), horizon) for horizon in horizons]
    assert 1 > bounds[0] > bounds[1] > 0
    for horizon, bound in zip(horizons, bounds, strict=True):
        study = ct.Study(arms=arms, algorithms="frugal-top-noniid", m=m, horizon=horizon, runs=runs, seed=1)
        wrong = study.run(jobs=1).points()[0].wrong
        # One-sided, 4 standard deviations: a false alarm in 30,000.
        assert wrong <= runs * bound + 4 * math.sqrt(runs * bound * (1 - bound)) + 1e-9


def test_the_bound_for_the_same_arms_everywhere_is_that_of_one_mean_per_arm():
    means = np.array([0.9, 0.6, 0.3, 0.2])
    everywhere = np.tile(means[:, np.newaxis], (1, 3))
    for horizon in (3, 300, 600):
        alike = ct.frugal_noniid_error_bound(everywhere, 1, 3, horizon)
        assert alike == pytest.approx(ct.frugal_noniid_error_bound(means, 1, 3, horizon))
    assert ct.frugal_noniid_error_bound([0.5, 0.5, 0.1], 1, 2, 10**9) == 1  # a tie


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 1.4], 1, 2, 100), "mean lies in"),
        (([0.5, 0.4], 2, 2, 100), "m is 2"),
        (([0.5, 0.4], 1, 0, 100), "agents is 0"),
        (([0.5, 0.4], 1, 1, 100, 1.0), "coarseness is 1.0"),
    ],
)
def test_the_bound_refuses_bad_arguments(arguments, message):
    with pytest.raises(ct.InputError, match=message):
        ct.frugal_noniid_error_bound(*arguments)
