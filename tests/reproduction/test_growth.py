"""Where the words of a run go, and the studies that ask how they grow."""

import msgspec
import pytest

import collabtop as ct
from collabtop.reproduction.checks import bound_study, disjointness, disjointness_study
from collabtop.reproduction.growth import growth_evidence, growth_study, local_study, round_costs
from collabtop.reproduction.horizons import Place, find_crossings, wanted_places


def test_the_words_of_all_rounds_and_what_is_said_once_are_the_words_of_the_run():
    arms = ct.datasets.uniform_means(300, seed=1)
    result = ct.identify(arms, m=2, agents=4, horizon=50_000, algorithm="collab-top-iid", seed=1)
    by_kind = result.ledger.words_by("kind")
    once = sum(by_kind.get(kind, 0) for kind in ("Deal", "Held", "HandOver", "Hand"))
    assert sum(cost.words for cost in round_costs(result)) == result.words - once
    searches = sum(by_kind.get(kind, 0) for kind in ("Sample", "Values", "Narrow", "Window", "CountTies", "Tied"))
    assert sum(cost.searches for cost in round_costs(result)) == searches > 0


def test_growth_is_read_from_ledgers_once_and_then_from_its_file(tmp_path, monkeypatch):
    study, local = growth_study(seed=0, powers=(7, 9), crews=(2, 4)), local_study(ct.datasets.movielens_like(), seed=0)
    local = ct.Study(arms=local.arms, algorithms="collab-top-iid", agents=[10, 100], horizon=200_000, runs=3)
    tables = study.run(jobs=1), local.run(jobs=1)

    def folder(name, its):
        (tmp_path / name).mkdir(exist_ok=True)
        return tmp_path / name

    found = growth_evidence(study, tables[0], local, tables[1], folder)
    assert [(one.agents, one.local) for one in found.local] == [(10, 3), (100, 0)]
    assert {cost.n for cost in found.rounds} == {128, 512}
    with monkeypatch.context() as patch:
        patch.delattr("collabtop.reproduction.growth.run_again")
        assert growth_evidence(study, tables[0], local, tables[1], folder) == found
    # The same folders, but a file that is cut short, and one of other runs: both are read from ledgers again.
    rounds = tmp_path / "growth" / "rounds.json"
    rounds.write_bytes(rounds.read_bytes()[:-10])
    fewer = ct.Study(arms=local.arms, algorithms="collab-top-iid", agents=[10, 100], horizon=200_000, runs=2)
    again = growth_evidence(study, tables[0], fewer, fewer.run(jobs=1), folder)
    assert again.rounds == found.rounds
    assert [(one.runs, one.local) for one in again.local] == [(2, 2), (2, 0)]


def test_disjointness_is_judged_by_its_own_question():
    study = disjointness_study(runs=5, seed=0)
    answers = disjointness(study, study.run(jobs=1))
    assert [(one.line.name, one.runs, one.wrong) for one in answers][:3] == [
        ("CollabTopNIID, printed schedule", 10, 0), ("CollabTopNIID, full schedule", 10, 0), ("Uniform", 10, 0),
    ]  # fmt: skip


def test_a_run_that_missed_the_common_element_but_not_the_answer_is_right(monkeypatch):
    study = disjointness_study(runs=3, seed=0)
    table = study.run(jobs=1)
    missed = ct.StudyTable(ct.studies.table.Row(**{**_fields(row), "correct": False}) for row in table.rows)
    assert all(one.wrong == 0 for one in disjointness(study, missed))


def _fields(row):
    return {name: getattr(row, name) for name in row.__struct_fields__}


def test_the_bound_is_checked_at_the_horizons_where_it_begins():
    quick, whole = bound_study(seed=0, quick=True), bound_study(seed=0, quick=False)
    assert len({point.horizon for point in quick.points}) == 2
    assert len({point.horizon for point in whole.points}) == 3


@pytest.mark.slow
def test_crossings_are_found_near_where_the_error_is_one_in_a_hundred():
    arms = ct.datasets.one_good_arm(n=16, gap=0.3)
    made = []

    def run(name, study):
        made.append(name)
        return study.run(jobs=1)

    (found,) = find_crossings(arms, [Place(ct.KZZ(), 1, 4)], run, seed=1, runs=(100, 200, 400))
    assert made[:3] == ["kzz-m1-k4-pilot", "kzz-m1-k4-narrow", "kzz-m1-k4-fine"]
    check = ct.Study(arms=arms, algorithms="kzz", agents=4, horizon=round(found.at.horizon), runs=3_000, seed=9)
    (point,) = check.run(jobs=2).points()
    assert 0.004 < point.error < 0.022


@pytest.mark.slow
def test_a_pilot_with_rare_errors_at_one_horizon_only_still_leads_there():
    arms = ct.datasets.one_good_arm(n=16, gap=0.3)
    made = []

    def run(name, study):
        made.append(name)
        table = study.run(jobs=1)
        return table if not name.endswith("pilot") else OneRare(table)

    find_crossings(arms, [Place(ct.KZZ(), 1, 4)], run, seed=1, runs=(20, 100, 200))
    assert "kzz-m1-k4-fine" in made


class OneRare:
    """A pilot as luck may have it: a third wrong, then 7 of 100, then none."""

    def __init__(self, table):
        self._table = table

    def points(self):
        wrong = [33, 7, *[0] * 5]
        return [
            msgspec.structs.replace(point, runs=100, wrong=few, error=few / 100)
            for point, few in zip(self._table.points(), wrong, strict=True)
        ]


def test_an_error_that_never_comes_has_no_crossing():
    sure = ct.BernoulliArms([1.0] + [0.0] * 9)
    (found,) = find_crossings(sure, [Place(ct.KZZ(), 1, 2)], lambda _, study: study.run(jobs=1), seed=0)
    assert (found.line.algorithm, found.at) == ("kzz", None)


def test_every_horizon_that_the_statements_ask_for_is_wanted():
    names = {place.name for place in wanted_places()}
    assert {"kzz-m1-k10", "kzz-m8-k10", "collab-top-iid-full-m8-k10", "collab-top-iid-paper-m1-k100"} <= names
