"""The words of a run by round and step, and the study of how words grow."""

import pytest

import collabtop as ct
from collabtop.reproduction.growth_study import growth_evidence, growth_study, local_study, round_costs


def test_the_words_of_all_rounds_and_those_sent_once_add_up_to_the_words_of_the_run():
    arms = ct.datasets.uniform_means(300, seed=1)
    result = ct.identify(arms, m=2, agents=4, horizon=50_000, algorithm="collab-top-iid", seed=1)
    by_kind = result.ledger.words_by("kind")
    once = sum(by_kind.get(kind, 0) for kind in ("Deal", "Held", "HandOver", "Hand"))
    assert sum(cost.words for cost in round_costs(result)) == result.words - once
    searches = sum(by_kind.get(kind, 0) for kind in ("Sample", "Values", "Narrow", "Window"))
    assert sum(cost.searches for cost in round_costs(result)) == searches > 0


@pytest.mark.slow
def test_growth_is_read_from_ledgers_once_and_then_from_its_file(tmp_path, monkeypatch):
    study, local = (
        growth_study(seed=0, powers=(7, 9), agent_counts=(2, 4)),
        local_study(ct.datasets.movielens_like(), seed=0),
    )
    local = ct.Study(arms=local.arms, algorithms="collab-top-iid", agents=[10, 100], horizon=200_000, runs=3)
    tables = study.run(jobs=1), local.run(jobs=1)

    def folder(name, study):
        (tmp_path / name).mkdir(exist_ok=True)
        return tmp_path / name

    first = growth_evidence(study, tables[0], local, tables[1], folder)
    assert [(row.agents, row.local) for row in first.local] == [(10, 3), (100, 0)]
    assert {cost.n for cost in first.rounds} == {128, 512}
    with monkeypatch.context() as patch:
        patch.delattr("collabtop.reproduction.growth_study.repeat_runs")
        assert growth_evidence(study, tables[0], local, tables[1], folder) == first
    # In the same folders, a truncated file and a file of different runs are both replaced from the ledgers.
    rounds = tmp_path / "growth" / "rounds.json"
    rounds.write_bytes(rounds.read_bytes()[:-10])
    fewer = ct.Study(arms=local.arms, algorithms="collab-top-iid", agents=[10, 100], horizon=200_000, runs=2)
    again = growth_evidence(study, tables[0], fewer, fewer.run(jobs=1), folder)
    assert again.rounds == first.rounds
    assert [(row.runs, row.local) for row in again.local] == [(2, 2), (2, 0)]
