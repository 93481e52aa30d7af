"""The audit has every message that a site sends, and a site sends nothing that it should not."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

import collabtop as ct
from collabtop.problem import Problem
from collabtop.protocol.setup import Setup
from collabtop.teams.sites.rehearsal import rehearse
from tests.support.thread_sites import ThreadSites

N, SITES, HORIZON = 600, 3, 60_000
MEANS = np.random.default_rng(1).uniform(0.1, 0.9, N)


class CountedArms(ct.BernoulliArms):
    """Arms of one site that count every pull, independently of the package."""

    def __init__(self):
        super().__init__(MEANS)
        self.batches = []

    def pull(self, arms, times, draws):
        self.batches.append(dict(zip(arms.tolist(), np.broadcast_to(times, arms.shape).tolist(), strict=True)))
        return super().pull(arms, times, draws)


class AuditedSites(ThreadSites):
    """Three sites with their own arms and audit files."""

    def __init__(self, certs, folder, **settings):
        super().__init__(certs, **settings)
        self.folder, self.arms = folder, {f"site{number}": CountedArms() for number in range(SITES)}

    def _join(self, name, arms, **more):
        super()._join(name, self.arms[name], audit=self.folder / f"{name}.jsonl", **more)

    def lines(self, name):
        return [json.loads(line) for line in (self.folder / f"{name}.jsonl").read_text().splitlines()]

    def answers(self, name):
        return [line for line in self.lines(name) if line["frame"] == "Answer"]

    def answers_with_new_pulls(self, name):
        """Each answer of a site, with the number of pulls of each arm that were made for it."""
        batches = iter(self.arms[name].batches)
        answers = []
        for line in self.answers(name):
            new = Counter()
            while new.total() < line["pulls"]:
                new.update(next(batches))
            answers.append((line, new))
        assert not any(sum(batch.values()) for batch in batches), "pulls without an answer"
        return answers


@pytest.fixture
def audited(certs, tmp_path):
    """Make a run with three sites; return the result and the team."""

    def run(algorithm, min_batch):
        team = AuditedSites(certs, tmp_path, min_batch=min_batch)
        arms = ct.BernoulliArms(MEANS)
        return ct.identify(arms, 20, agents=SITES, horizon=HORIZON, algorithm=algorithm, seed=5, team=team), team

    return run


def test_the_audits_contain_every_message_to_the_coordinator(audited):
    result, team = audited("collab-top-iid", min_batch=2)
    answers = [line for name in team.arms for line in team.answers(name)]
    up = sum(entry.messages for entry in result.ledger.entries if entry.direction == "up")
    assert len(answers) == up
    assert sum(line["pulls"] for line in answers) == result.pulls
    for number, name in enumerate(team.arms):
        assert {line["frame"] for line in team.lines(name)} == {"Hello", "Ready", "Answer"}
        assert {line["agent"] for line in team.answers(name)} == {number}


def test_no_arm_is_named_in_the_local_phases(audited):
    result, team = audited("collab-top-iid", min_batch=2)
    assert sum(entry.phase == "local" for entry in result.rounds) >= 3
    for name in team.arms:
        answers = team.answers(name)
        kinds = [line["kind"] for line in answers]
        local = answers[: kinds.index("Hand")]
        assert {line["kind"] for line in local} <= {"Held", "Values", "Window", "Accepted"}
        assert not any({"arms", "accepted"} & set(line) for line in local)


KINDS_WITH_MEANS = {"Values", "Window", "Means", "CoarseMeans", "Hand"}


@pytest.mark.parametrize("algorithm", ["collab-top-iid", "frugal-top", "frugal-top-noniid"])
def test_no_mean_over_fewer_pulls_than_min_batch_is_ever_sent(audited, algorithm):
    """Pulls are counted by the arms themselves, and min_batch is the largest that the schedule allows."""
    problem = Problem(n=N, m=20, agents=SITES, horizon=HORIZON)
    least = rehearse(Setup(problem, seed=5, algorithm=algorithm)).smallest
    assert least >= 2
    _, team = audited(algorithm, min_batch=least)
    batches = []
    for name in team.arms:
        for line, new in team.answers_with_new_pulls(name):
            if line["kind"] not in KINDS_WITH_MEANS:
                assert not any(isinstance(value, float | list) for value in line.values()), line["kind"]
                continue
            # A hand names its arms; other values may belong to any of the arms.
            named = line["arms"] + line["accepted"] if line["kind"] == "Hand" else new
            batches += [new[arm] for arm in named if new[arm]]
    # frugal-top prunes in stages: the smallest one counts, but means are over all of them.
    assert min(batches) >= least if algorithm == "frugal-top" else min(batches) == least


def test_nothing_is_sent_if_the_audit_cannot_be_written(certs, tmp_path):
    arms = ct.BernoulliArms(MEANS)
    with pytest.raises(ct.FileError, match=r"audit .*: no such file or directory"):
        ct.join("localhost:1", arms, cert=certs / "site0.pem", audit=tmp_path / "nowhere" / "sent.jsonl")
    with pytest.raises(ct.FileError, match="the message was not sent"):
        ct.join("localhost:1", arms, cert=certs / "site0.pem", audit="/dev/full")
