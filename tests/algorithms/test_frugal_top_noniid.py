"""frugal-top-noniid: bitmaps down, few bits up, the whole horizon spent."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.algorithms.frugal_plan import noniid_plan
from collabtop.protocol import messages as say
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
        ("down", say.PullOpen),
        ("up", say.CoarseMeans),
    }
    assert all(message.survived is None for _, way, message in team.crossed[:8] if way == "down")
    down = [entry.words for entry in result.ledger.entries if entry.direction == "down"]
    assert down == [0, *(4 * one.live for one in result.rounds[:-1])]  # a flag for each arm that was open
    assert result.ledger.bits_by("direction")["down"] == sum(down)


def test_the_whole_horizon_is_spent_by_every_agent():
    result, _ = run()
    plan = noniid_plan(ct.Problem(40, 2, 4, 8_000))
    assert [one.live for one in result.rounds] == list(plan.sizes)
    assert result.time > 8_000 - plan.sizes[-1]
    assert result.pulls == 4 * result.time


def test_a_mean_of_many_pulls_takes_far_fewer_bits_than_a_real():
    coarse, _ = run(horizon=200_000)
    means = sum(4 * one.live for one in coarse.rounds)
    assert coarse.ledger.bits_by("direction")["up"] < 14 * means
    fine, _ = run(horizon=200_000, coarseness=0.0001)
    assert fine.bits > coarse.bits
    assert fine.words == coarse.words


def test_without_noise_means_cross_as_they_are():
    table = np.random.default_rng(5).integers(0, 1025, (30, 3)) / 1024
    result, team = run(arms=ConstantArms(table), horizon=2_000)
    exact = [message for _, way, message in team.crossed if way == "up"]
    assert all(message.packed is None for message in exact)
    for one in result.estimates:
        assert one.mean == pytest.approx(table[one.arm].mean(), abs=1e-9)


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
