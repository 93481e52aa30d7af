"""The studies for T1 and T4: horizons at which the bound is below 1, and set disjointness."""

import msgspec

import collabtop as ct
from collabtop.reproduction.theorem_studies import bound_study, disjointness, disjointness_study


def test_disjointness_is_judged_by_its_own_question():
    study = disjointness_study(runs=5, seed=0)
    answers = disjointness(study, study.run(jobs=1))
    assert [(answer.line.name, answer.runs, answer.wrong) for answer in answers][:3] == [
        ("CollabTopNIID, printed schedule", 10, 0), ("CollabTopNIID, full schedule", 10, 0), ("Uniform", 10, 0),
    ]  # fmt: skip


def test_a_run_that_missed_the_common_element_but_not_the_answer_is_correct():
    study = disjointness_study(runs=3, seed=0)
    table = study.run(jobs=1)
    missed = ct.StudyTable(msgspec.structs.replace(row, correct=False) for row in table.rows)
    assert all(answer.wrong == 0 for answer in disjointness(study, missed))


def test_the_bound_is_checked_at_the_horizons_where_it_begins():
    quick, whole = bound_study(seed=0, quick=True), bound_study(seed=0, quick=False)
    assert len({point.horizon for point in quick.points}) == 2
    assert len({point.horizon for point in whole.points}) == 3
