"""The words of a run by round and step, and the study of how words grow."""

import pytest

import collabtop as ct
from collabtop.reproduction.growth_study import (
    growth_evidence,
    growth_studies,
    local_study,
    observed_costs,
    round_costs,
)
from collabtop.studies.runner import observe_runs


def test_the_words_of_all_rounds_and_those_sent_once_add_up_to_the_words_of_the_run():
    arms = ct.datasets.uniform_means(300, seed=1)
    result = ct.identify(arms, m=2, agents=4, horizon=50_000, algorithm="collab-top-iid", seed=1)
    by_kind = result.ledger.words_by("kind")
    once = sum(by_kind.get(kind, 0) for kind in ("Deal", "Held", "HandOver", "Hand"))
    assert sum(cost.words for cost in round_costs(result)) == result.words - once
    searches = sum(by_kind.get(kind, 0) for kind in ("Sample", "Values", "Narrow", "Window"))
    assert sum(cost.searches for cost in round_costs(result)) == searches > 0


def local_runs(runs):
    movies = ct.datasets.movielens_like()
    return ct.Study(arms={"movies": movies}, algorithms="collab-top-iid", agents=[10, 100], horizon=200_000, runs=runs)


def observe_in(folder, made):
    """Make or load runs in a folder, and note which studies were made."""

    def observe(name, study):
        path = folder / f"{name} {next(iter(study.arms))}" / "rounds.json"
        before = path.read_bytes() if path.exists() else b""
        observed = observed_costs(path, study, jobs=1)
        made.extend([name] if path.read_bytes() != before else [])
        return observed

    return observe


@pytest.mark.slow
def test_growth_is_measured_once_and_then_read_from_its_files(tmp_path):
    studies, made = growth_studies(seed=0, powers=(7, 9), agent_counts=(2, 4)), []
    observe = observe_in(tmp_path, made)
    first = growth_evidence(studies, local_runs(3), observe)
    assert [(row.agents, row.local) for row in first.local] == [(10, 3), (100, 0)]
    assert {cost.n for cost in first.rounds} == {128, 512}
    assert {point.algorithm for point in first.points} == {"collab-top-iid", "collab-top-noniid"}
    assert made == ["growth", "growth", "local"]
    assert growth_evidence(studies, local_runs(3), observe) == first
    assert made == ["growth", "growth", "local"]
    # In the same folders, a truncated file and a file of different runs are both replaced.
    rounds = tmp_path / "growth n = 2^7" / "rounds.json"
    rounds.write_bytes(rounds.read_bytes()[:-10])
    again = growth_evidence(studies, local_runs(2), observe)
    assert made == ["growth", "growth", "local", "growth", "local"]
    assert again.rounds == first.rounds
    assert [(row.runs, row.local) for row in again.local] == [(2, 2), (2, 0)]


def test_observed_runs_are_those_of_the_study_for_any_number_of_processes():
    (study,) = growth_studies(seed=0, powers=(7,), agent_counts=(2,))
    alone, together = (dict(observe_runs(study, round_costs, jobs=jobs)) for jobs in (1, 2))
    assert alone == together
    assert tuple(sorted(alone)) == study.run(jobs=1).rows


def test_the_paper_s_instance_has_its_local_phase_measured():
    assert {point.agents for point in local_study(ct.datasets.movielens_like(), seed=0).points} == {10, 20, 30, 40, 50}
