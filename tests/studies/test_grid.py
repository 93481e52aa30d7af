"""Which runs a study makes, and with which seeds."""

from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.studies.runner import run_again

ARMS = ct.BernoulliArms([0.9, 0.5, 0.4, 0.1])
OTHER = ct.BernoulliArms([0.8, 0.5, 0.4, 0.1])


def study(**changes):
    given: dict[str, Any] = {
        "arms": ARMS,
        "algorithms": ["kzz", "uniform"],
        "agents": 2,
        "horizon": [20, 80],
        "runs": 10,
        "seed": 1,
    }
    return ct.Study(**(given | changes))


def rows_at(table, algorithm, horizon):
    return [row for row in table.rows if (row.algorithm, row.horizon) == (algorithm, horizon)]


def test_the_grid_is_all_combinations_each_once():
    points = study(m=[1, 2], agents=[2, 3, 2]).points
    assert len(points) == 2 * 2 * 2 * 2
    assert len({point.key for point in points}) == len(points)


def test_seeds_of_a_point_do_not_depend_on_the_rest_of_the_grid():
    alone = study(algorithms="kzz", horizon=80).run(jobs=1)
    among = study(algorithms=["uniform", "kzz"], horizon=[20, 40, 80], m=[1, 2]).run(jobs=1)
    assert [row for row in rows_at(among, "kzz", 80) if row.m == 1] == rows_at(alone, "kzz", 80)


def test_more_runs_begin_with_the_same_runs():
    few, many = study(runs=5).run(jobs=1), study(runs=12).run(jobs=1)
    assert set(few.rows) < set(many.rows)


def test_another_seed_makes_other_runs():
    seeds = [{row.seed for row in study(seed=seed).run(jobs=1).rows} for seed in (1, 2)]
    assert not seeds[0] & seeds[1]


def test_studies_add_up_with_each_run_once():
    both = study(algorithms="kzz") + study(runs=15)
    assert {(point.algorithm.title, point.horizon, point.runs) for point in both.points} == {
        ("kzz", 20, 15), ("kzz", 80, 15), ("uniform", 20, 15), ("uniform", 80, 15),
    }  # fmt: skip
    assert both.run(jobs=1) == study(runs=15).run(jobs=1)
    assert (study() + study()).fingerprint == study().fingerprint


def test_studies_whose_arms_differ_under_one_name_do_not_add_up():
    with pytest.raises(ct.InputError, match="arms 'arms' differ"):
        study() + study(arms=OTHER)
    assert len((study(arms={"a": ARMS}) + study(arms={"b": OTHER})).points) == 8


@pytest.mark.parametrize(
    "changes",
    [{"seed": 2}, {"runs": 11}, {"arms": OTHER}, {"arms": {"x": ARMS}}, {"m": 2}, {"horizon": 20}, {"agents": 3},
     {"algorithms": "kzz"}, {"arms": ct.BetaArms(ARMS.means)}],
)  # fmt: skip
def test_whatever_changes_the_rows_changes_the_fingerprint(changes):
    assert study(**changes).fingerprint != study().fingerprint


def test_non_iid_arms_bring_their_agents():
    groups = ct.HeterogeneousArms([[0.9, 0.8, 0.7], [0.1, 0.2, 0.3]])
    assert {point.agents for point in study(arms=groups, algorithms="uniform", agents=None).points} == {3}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": {}}, "arms is empty"),
        ({"algorithms": []}, "algorithms is empty"),
        ({"m": []}, "m is empty"),
        ({"horizon": ()}, "horizon is empty"),
        ({"agents": None}, "agents is missing"),
        ({"runs": 0}, "runs is 0"),
        ({"m": 5}, "kzz on arms: m is 5, but there are only 4 arms"),
        ({"horizon": 1}, "horizon is 1"),
        ({"algorithms": "nonsense"}, "nonsense"),
        ({"arms": ct.FunctionArms(["a", "b"], lambda one, rng: 0.5)}, "no known means"),
    ],
)
def test_a_grid_with_nothing_in_it_or_something_wrong_is_refused_before_any_run(changes, message):
    with pytest.raises(ct.InputError, match=message):
        study(**changes)


def test_with_tied_means_either_arm_is_right():
    tied = ct.BernoulliArms([1.0, 1.0, 0.0])
    table = ct.Study(arms=tied, algorithms="uniform", agents=1, horizon=9, runs=20).run(jobs=1)
    assert all(row.correct for row in table.rows)


def test_a_grid_of_numpy_numbers_is_one_of_plain_numbers(tmp_path):
    arms = ct.BernoulliArms([0.9, 0.5, 0.1])
    grid: dict[str, Any] = {"arms": arms, "algorithms": "uniform", "runs": 2, "seed": 1}
    numbers: dict[str, Any] = {"horizon": np.array([50, 60]), "m": np.int64(1), "agents": np.array([2])}
    with_numpy = ct.Study(**numbers, **grid)
    assert with_numpy.run(tmp_path / "out", jobs=1) == ct.Study(horizon=[50, 60], m=1, agents=2, **grid).run(jobs=1)


@pytest.mark.parametrize("seed", [-1, None, "abc", 0.5])
def test_a_seed_that_is_no_whole_number_is_an_error(seed):
    with pytest.raises(ct.InputError, match=r"seed is .*, but a whole number of at least 0 is needed") as caught:
        ct.Study(arms=ct.BernoulliArms([0.9, 0.5]), algorithms="uniform", horizon=10, agents=1, seed=seed)
    assert caught.value.argument == "seed"


def test_an_answer_of_tied_arms_without_the_better_arm_counts_as_wrong():
    arms = ct.BernoulliArms([0.7] + [0.6] * 5)
    study = ct.Study(arms=arms, algorithms="uniform", m=2, agents=1, horizon=60, runs=40, seed=1)
    table = study.run(jobs=1)
    answers = [run_again(study, row).top_indices for row in table.rows]
    assert [row.correct for row in table.rows] == [0 in answer for answer in answers]
    assert {row.correct for row in table.rows} == {True, False}
