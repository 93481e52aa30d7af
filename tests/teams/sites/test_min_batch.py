"""A site sends nothing that depends on a batch of fewer pulls than min_batch, and declines early."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.protocol.messages import Deal, HandOver, Prune, Pull, PullHand, PullOpen, Request, Sample
from collabtop.teams.sites.min_batch import smallest_batch
from tests.support.site_processes import Trial
from tests.support.thread_sites import ThreadSites

ARMS = ct.BernoulliArms(np.random.default_rng(1).uniform(0.1, 0.9, 600))


def sent(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("messages", "smallest"),
    [
        ((Pull(None, np.array([7])),), 7),
        ((Pull(np.array([0, 1, 2]), np.array([7, 0, 3])),), 3),  # an arm without pulls has no mean
        ((PullHand(4), Sample(1, 2)), 4),
        ((PullOpen(None, 6, 0.0),), 6),
        ((Prune(1, np.array([4, 2]), np.array([1, 9])),), 1),  # the survivors of the first stage reveal its pulls
        ((Prune(1, np.array([4, 2]), np.array([9, 12])),), 3),
        ((Prune(1, np.array([4, 2]), np.array([9, 9])),), 9),  # a stage without pulls of its own
        ((Deal(np.array([1, 2])),), None),
        ((HandOver(live=True),), None),  # means that were sent before
    ],
)
def test_the_smallest_batch_of_every_kind_of_request(messages, smallest):
    assert smallest_batch(Request(0, 1, messages)) == smallest


def test_a_schedule_with_smaller_batches_is_declined_before_the_first_pull(certs, tmp_path):
    team = ThreadSites(certs, min_batch=50, joins={"audit": tmp_path / "sent.jsonl"})
    with pytest.raises(ct.SiteError, match=r"site0 declined to take part: the schedule has a batch of size \d+"):
        ct.identify(ARMS, 20, agents=1, horizon=60_000, algorithm="collab-top-iid", seed=5, team=team)
    assert "min_batch is 50" in str(team.errors[0])
    assert [line["frame"] for line in sent(tmp_path / "sent.jsonl")] == ["Hello", "Declined"]


@pytest.mark.slow
def test_both_commands_report_small_batches_at_the_start(certs, tmp_path):
    run = Trial(tmp_path, certs, algorithm="collab-top-iid")
    try:
        run.start_coordinator()
        run.start_site(0, more=("--min-batch", 5))
        assert (run.processes["site0"].wait(60), run.processes["coordinator"].wait(60)) == (1, 1)
    finally:
        run.stop()
    assert run.pulls_made("site0") == []
    assert "error: site site0 declined to take part: the schedule has a batch of size 1" in run.stderr("coordinator")
    reason = "declined to take part: the schedule of collab-top-iid at horizon 500 has a batch of size 1"
    assert f"{reason}, but min_batch is 5: try a different horizon" in run.stderr("site0")


@dataclass(frozen=True)
class Shrinking(ct.Algorithm):
    """Eight pulls per arm, then three. It is not registered, so a site cannot rehearse it."""

    name = "shrinking"

    def run(self, coordinator, problem, rng):
        board, arms = coordinator.scoreboard, np.arange(problem.n)
        for times in (8, 3):
            coordinator.begin_round("shared", live=problem.n)
            board.add(arms, *AllAgents(coordinator).pull(arms, times, all_live=True))
        board.accept(np.argsort(-board.means(arms))[: problem.m], round=0, phase="shared")


def test_a_small_batch_that_could_not_be_rehearsed_is_declined_when_it_is_requested(certs, tmp_path):
    team = ThreadSites(certs, min_batch=5, joins={"audit": tmp_path / "sent.jsonl"})
    run: dict[str, Any] = {"m": 1, "agents": 1, "horizon": 100, "algorithm": Shrinking(), "seed": 1}
    with pytest.raises(ct.SiteError, match="site0 stopped taking part: the schedule has a batch of size 3"):
        ct.identify(ct.BernoulliArms([0.9, 0.1]), **run, team=team)
    assert "a batch of size 3 was requested, but min_batch is 5" in str(team.errors[0])
    lines = sent(tmp_path / "sent.jsonl")
    assert [line["frame"] for line in lines] == ["Hello", "Ready", "Answer", "Declined"]
    assert [line["pulls"] for line in lines if line["frame"] == "Answer"] == [16]
    ct.identify(ct.BernoulliArms([0.9, 0.1]), **run, team=ThreadSites(certs, min_batch=3))
