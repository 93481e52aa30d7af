"""The team that docs/extending.md shows, which uses nothing but what is documented there, keeps all laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.testing import check_team
from tests.support.pickling_team import PicklingTeam

MEANS = [0.2, 0.5, 0.8, 0.4]


def score(mean: float, rng: np.random.Generator) -> bool:
    return bool(rng.random() < mean)


def fails_at_the_third_call(mean: float, rng: np.random.Generator) -> float:
    if mean == 0.8:
        raise ConnectionError("no answer")
    return mean


@pytest.mark.slow
def test_it_passes_check_team_with_simulated_arms_functions_and_a_checkpoint():
    check_team(PicklingTeam, algorithms=["frugal-top"])


@pytest.mark.slow
def test_it_passes_check_team_with_every_algorithm():
    check_team(PicklingTeam)


@pytest.mark.slow
def test_a_resumed_run_pulls_nothing_again(tmp_path):
    path = tmp_path / "run.ctlog"
    run: dict[str, Any] = {"agents": 2, "horizon": 40, "seed": 3}
    first = ct.identify(MEANS, 1, pull=score, team=PicklingTeam(), checkpoint=path, **run)
    events = []
    again = ct.resume(path, pull=fails_at_the_third_call, team=PicklingTeam(), on_event=events.append)
    assert again == first == ct.identify(MEANS, 1, pull=score, **run)
    made = [event for event in events if isinstance(event, ct.events.PullsMade)]
    assert sum(event.pulls for event in made) == first.pulls
    assert all(event.recalled for event in made)


def test_failures_in_its_processes_are_counted(tmp_path):
    policy = ct.PullPolicy(failures="zero", retries=1, wait=0)
    run: dict[str, Any] = {"agents": 2, "horizon": 20, "seed": 3, "policy": policy, "pull": fails_at_the_third_call}
    result, local = (ct.identify(MEANS, 1, team=team, **run) for team in (PicklingTeam(), "local"))
    assert result == local
    assert (result.failures, result.retries) == (local.failures, local.retries)
    assert result.failures["0.8"] > 0
