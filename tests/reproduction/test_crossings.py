"""The study of the horizons for error .01."""

from itertools import pairwise

import msgspec
import pytest

import collabtop as ct
from collabtop.crossing import Crossing, NotReached
from collabtop.reproduction.crossings import CrossingRuns, CrossingTarget, crossing_targets, find_crossings
from collabtop.reproduction.evidence import IID, Evidence

ARMS = ct.datasets.one_good_arm(n=16, gap=0.3)


def evidence(arms, points=()):
    return Evidence(points=tuple(points), arms={IID: arms})


def stages_of(target, points=(), seed=1, change=lambda number, table: table):
    """The horizon of a target, and the factors between the horizons of each stage."""
    stages = []

    def run(name, study):
        assert name == f"crossings-{len(stages) + 1}"
        table = change(len(stages), study.run(jobs=1))
        horizons = [point.horizon for point in study.points]
        stages.append([round(later / first, 1) for first, later in pairwise(horizons)])
        return table

    (crossed,) = find_crossings(evidence(ARMS, points), [target], run, seed=seed)
    return crossed.at, [_NAMES[tuple(stage)] for stage in stages]


_NAMES = {(2.0,) * 6: "pilot", (1.4, 1.4): "narrow", (1.1,) * 4: "fine"}
TARGET = CrossingTarget(ct.KZZ(), 1, 4, CrossingRuns(100, 200, 4_000))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "stages"),
    [(7, ["pilot", "narrow", "fine"]), (1, ["pilot", "narrow", "narrow", "fine"])],
    ids=["found at once", "outside of the narrow horizons at first"],
)
def test_crossings_are_found_near_where_the_error_is_one_in_a_hundred(seed, stages):
    at, names = stages_of(TARGET, seed=seed)
    assert names == stages
    assert isinstance(at, Crossing)
    check = ct.Study(arms=ARMS, algorithms="kzz", agents=4, horizon=round(at.horizon), runs=3_000, seed=9)
    (point,) = check.run(jobs=2).points()
    assert 0.004 < point.error < 0.022


@pytest.mark.slow
def test_where_the_panels_locate_the_horizon_only_runs_near_it_are_made():
    panels = ct.Study(
        arms={IID: ARMS}, algorithms="kzz", agents=4, horizon=[60, 90, 140, 200], runs=20_000, engine="batched"
    )
    at, names = stages_of(TARGET, panels.run(jobs=1).points())
    assert names == ["fine"]
    assert isinstance(at, Crossing)
    assert at.runs == 5 * TARGET.runs.fine


@pytest.mark.slow
def test_runs_near_a_horizon_are_repeated_until_it_is_known_to_a_tenth_but_not_forever():
    few, more = (msgspec.structs.replace(TARGET, runs=CrossingRuns(100, 200, fine)) for fine in (100, 2_000))
    _, names = stages_of(few, seed=7)
    assert names == ["pilot", "narrow", "fine", "fine", "fine"]
    at, names = stages_of(more, seed=7)
    assert names[:3] == ["pilot", "narrow", "fine"]
    assert at.high <= 1.21 * at.low
    assert at.runs == 5 * 2_000 * names.count("fine")


@pytest.mark.slow
def test_a_pilot_with_rare_errors_at_only_one_horizon_still_finds_the_region():
    _, names = stages_of(TARGET, change=lambda number, table: table if number else OneRare(table))
    assert names[-1] == "fine"


def test_all_horizons_are_looked_for_in_the_same_studies():
    targets = [
        CrossingTarget(algorithm, 1, 4, CrossingRuns(100, 100, 100)) for algorithm in (ct.KZZ(), ct.BatchedSAR())
    ]
    studied = []

    def run(name, study):
        studied.append({point.algorithm.title for point in study.points})
        return study.run(jobs=1)

    together = find_crossings(evidence(ARMS), targets, run, seed=1)
    assert studied[0] == {"kzz", "batched-sar"}
    alone = [find_crossings(evidence(ARMS), [target], lambda _, study: study.run(jobs=1), seed=1) for target in targets]
    assert together == tuple(crossed for (crossed,) in alone)


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
    (crossed,) = find_crossings(evidence(sure), [target], lambda _, study: study.run(jobs=1), seed=0)
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
