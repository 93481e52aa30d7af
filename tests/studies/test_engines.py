"""The engines of a study: runs with messages, runs in batches, and both."""

import pytest

import collabtop as ct
from collabtop.studies import chunks
from collabtop.studies.runner import run_again
from collabtop.studies.table import COSTS, StudyTable

ARMS = ct.datasets.uniform_means(20, seed=1)


def study(engine, **changes):
    given = {"algorithms": ["kzz", "frugal-top"], "m": [1, 15], "agents": 4, "horizon": 400, "runs": 230, "seed": 3}
    return ct.Study(**({"arms": ARMS, "engine": engine} | given | changes))


def test_batched_rows_say_so_and_have_answers_but_no_costs():
    table = study("batched").run(jobs=1)
    assert len(table) == 4 * 230
    assert {row.engine for row in table.rows} == {"batched"}
    assert all(getattr(row, cost) is None for row in table.rows for cost in (*COSTS, "pulls"))
    for point in table.points():
        assert point.message_runs == 0
        assert point.runs == 230
        assert point.words_mean != point.words_mean  # NaN


@pytest.mark.parametrize("engine", ["batched", "auto"])
def test_rows_do_not_depend_on_the_number_of_processes(engine, tmp_path):
    tables = [study(engine, runs=1_100).run(tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2)]
    assert tables[0] == tables[1] == study(engine, runs=1_100).run(jobs=1)
    assert (tmp_path / "1" / "rows.csv").read_bytes() == (tmp_path / "2" / "rows.csv").read_bytes()
    assert StudyTable.from_csv(tmp_path / "1" / "rows.csv") == tables[0]


def test_more_runs_begin_with_the_same_runs():
    few, many = (study("batched", runs=runs).run(jobs=1) for runs in (130, 230))
    assert few.rows == tuple(row for row in many.rows if row.run < 130)


def test_auto_begins_with_runs_that_the_message_engine_would_make_until_their_costs_are_known():
    auto, messages = study("auto").run(jobs=1), study("messages", runs=100).run(jobs=1)
    made = tuple(row for row in auto.rows if row.engine == "messages")
    assert made == tuple(row for row in messages.rows if row in made)
    for point in auto.points():
        assert chunks._FEWEST <= point.message_runs <= chunks._MOST
        assert point.words_sd <= chunks._EXACT * point.words_mean * point.message_runs**0.5
        assert point.runs == 230


def test_runs_continue_until_costs_that_vary_are_known():
    varied = study("auto", algorithms=ct.CollabTopIID(), m=1).run(jobs=1)
    steady = study("auto", algorithms="uniform", m=1).run(jobs=1)
    assert varied.points()[0].message_runs > steady.points()[0].message_runs == chunks._FEWEST


def test_both_engines_find_the_same_errors():
    engines = (("batched", 2_000), ("messages", 200))
    (ours,), (theirs,) = (study(e, algorithms="uniform", m=5, runs=runs).run(jobs=1).points() for e, runs in engines)
    # Five standard deviations of the difference: exceeded by chance once in a million.
    assert abs(ours.error - theirs.error) < 5 * (0.25 / 200 + 0.25 / 2_000) ** 0.5


def test_auto_makes_runs_with_messages_where_there_is_nothing_else():
    beta = ct.BetaArms([0.9, 0.5, 0.1])
    for table in (
        ct.Study(arms=beta, algorithms="uniform", agents=2, horizon=30, runs=7, engine="auto").run(jobs=1),
        ct.Study(arms=ARMS, algorithms="confident-top", agents=1, horizon=400, runs=7, engine="auto").run(jobs=1),
    ):
        assert [row.engine for row in table.rows] == ["messages"] * 7


def test_an_impossible_engine_is_refused():
    with pytest.raises(ct.InputError, match="engine is 'fast', but 'messages', 'batched' or 'auto' is needed"):
        study("fast")
    with pytest.raises(ct.InputError, match="engine is 'batched', but confident-top has no `simulate`: use 'auto'"):
        study("batched", algorithms="confident-top", agents=1)
    with pytest.raises(ct.InputError, match="engine is 'batched', but BetaArms are not Bernoulli arms"):
        study("batched", arms=ct.BetaArms([0.9, 0.5]), m=1)
    with pytest.raises(ct.InputError, match="give both studies the same engine"):
        study("batched") + study("messages")


def test_a_batched_run_cannot_be_repeated_by_itself():
    batched = study("batched", runs=1)
    with pytest.raises(ct.InputError, match="run 0 of frugal-top is batched"):
        run_again(batched, batched.run(jobs=1).rows[0])


def test_a_stopped_study_continues_with_the_same_rows(tmp_path, monkeypatch):
    wanted = study("auto", runs=1_100).run(jobs=1)
    whole = chunks._run_batches
    made = []

    def stop_in_the_third_chunk(*arguments):
        made.append(arguments)
        if len(made) == 3:
            raise KeyboardInterrupt
        return whole(*arguments)

    monkeypatch.setattr(chunks, "_run_batches", stop_in_the_third_chunk)
    with pytest.raises(KeyboardInterrupt):
        study("auto", runs=1_100).run(tmp_path, jobs=1)
    assert study("auto", runs=1_100).run(tmp_path, jobs=1) == wanted


def test_ties_are_scored_alike_by_both_engines():
    # The .7 arm must be in the answer, and any one of the others.
    arms = ct.BernoulliArms([0.7] + [0.6] * 5)
    for engine in ("messages", "batched"):
        (point,) = (
            ct.Study(arms=arms, algorithms="uniform", m=2, agents=2, horizon=30, runs=400, engine=engine)
            .run(jobs=1)
            .points()
        )
        assert 0.3 < point.error < 0.7
