"""The study of the horizons for error .01."""

import msgspec
import pytest

import collabtop as ct
from collabtop.reproduction.crossings import CrossingRuns, CrossingTarget, crossing_targets, find_crossings
from collabtop.reproduction.evidence import IID
from collabtop.stats import Crossing, NotReached


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "stages"),
    [(1, ["pilot", "narrow", "fine"]), (4, ["pilot", "narrow", "narrower", "fine"])],
    ids=["found at once", "outside of the narrow horizons at first"],
)
def test_crossings_are_found_near_where_the_error_is_one_in_a_hundred(seed, stages):
    arms = ct.datasets.one_good_arm(n=16, gap=0.3)
    names = []

    def run(name, study):
        names.append(name)
        return study.run(jobs=1)

    (crossed,) = find_crossings(
        {IID: arms}, [CrossingTarget(ct.KZZ(), 1, 4, CrossingRuns(100, 200, 400))], run, seed=seed
    )
    assert names == [f"kzz-m1-k4-{stage}" for stage in stages]
    assert isinstance(crossed.at, Crossing)
    check = ct.Study(arms=arms, algorithms="kzz", agents=4, horizon=round(crossed.at.horizon), runs=3_000, seed=9)
    (point,) = check.run(jobs=2).points()
    assert 0.004 < point.error < 0.022


@pytest.mark.slow
def test_a_pilot_with_rare_errors_at_only_one_horizon_still_finds_the_region():
    arms = ct.datasets.one_good_arm(n=16, gap=0.3)
    names = []

    def run(name, study):
        names.append(name)
        table = study.run(jobs=1)
        return table if not name.endswith("pilot") else OneRare(table)

    find_crossings({IID: arms}, [CrossingTarget(ct.KZZ(), 1, 4, CrossingRuns(20, 100, 200))], run, seed=1)
    assert "kzz-m1-k4-fine" in names


class OneRare:
    """A pilot whose errors happen to be a third, then 7 of 100, then none."""

    def __init__(self, table):
        self._table = table

    def points(self):
        wrong = [33, 7, *[0] * 5]
        return [
            msgspec.structs.replace(point, runs=100, wrong=count, error=count / 100)
            for point, count in zip(self._table.points(), wrong, strict=True)
        ]


def test_an_algorithm_that_is_never_wrong_has_no_crossing():
    sure = ct.BernoulliArms([1.0] + [0.0] * 9)
    target = CrossingTarget(ct.KZZ(), 1, 2, CrossingRuns(100, 200, 400))
    (crossed,) = find_crossings({IID: sure}, [target], lambda _, study: study.run(jobs=1), seed=0)
    assert crossed.line.algorithm == "kzz"
    assert isinstance(crossed.at, NotReached)
    assert crossed.at.reason.startswith("the error is below 0.01 at the shortest horizon already")


def test_every_horizon_that_the_statements_need_is_a_target():
    names = {target.name for target in crossing_targets(10, deep=False)}
    assert {"kzz-m1-k10", "kzz-m8-k10", "collab-top-iid-full-m8-k10", "collab-top-iid-paper-m1-k100"} <= names
    assert {"collab-top-noniid-full-m1-k10", "frugal-top-noniid-m8-k10"} <= names


def test_deep_means_more_numbers_of_agents_and_ten_times_the_runs_near_a_crossing():
    standard, deep = ({t.name: t.runs for t in crossing_targets(10, deep=deep)} for deep in (False, True))
    assert standard.keys() < deep.keys()
    compared = {f"{algorithm}-m{m}-k10" for algorithm in ("kzz", "collab-top-iid-full") for m in (1, 8)}
    for name, runs in standard.items():  # C2 and C3 have by far the most runs already
        assert deep[name].fine == (2 if name in compared else 10) * runs.fine
