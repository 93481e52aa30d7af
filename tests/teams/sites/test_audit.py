"""What left a site is written down, and nothing leaves that should not."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

import collabtop as ct
from collabtop.problem import Problem
from collabtop.protocol.setup import Setup
from collabtop.teams.sites.min_batch import rehearsed_smallest_batch
from tests.support.thread_sites import ThreadSites

N, SITES, HORIZON = 600, 3, 60_000
MEANS = np.random.default_rng(1).uniform(0.1, 0.9, N)


class Noted(ct.BernoulliArms):
    """Arms of one site that note every pull, beside all that the package counts."""

    def __init__(self):
        super().__init__(MEANS)
        self.batches = []

    def pull(self, arms, times, draws):
        self.batches.append(dict(zip(arms.tolist(), np.broadcast_to(times, arms.shape).tolist(), strict=True)))
        return super().pull(arms, times, draws)


class AuditedSites(ThreadSites):
    """Three sites with arms of their own; what each of them wrote down."""

    def __init__(self, certs, folder, **settings):
        super().__init__(certs, **settings)
        self.folder, self.arms = folder, {f"site{number}": Noted() for number in range(SITES)}

    def _join(self, name, arms):
        super()._join(name, self.arms[name], audit=self.folder / f"{name}.jsonl")

    def lines(self, name):
        return [json.loads(line) for line in (self.folder / f"{name}.jsonl").read_text().splitlines()]

    def answers(self, name):
        return [line for line in self.lines(name) if line["frame"] == "Answer"]

    def answers_with_new_pulls(self, name):
        """Each answer of a site, and how often it had pulled each arm for it."""
        batches = iter(self.arms[name].batches)
        found = []
        for line in self.answers(name):
            new = Counter()
            while new.total() < line["pulls"]:
                new.update(next(batches))
            found.append((line, new))
        assert not any(sum(batch.values()) for batch in batches), "pulls behind no answer"
        return found


@pytest.fixture
def audited(certs, tmp_path):
    """A run with three sites, and the team that has what they wrote down."""

    def run(algorithm, min_batch):
        team = AuditedSites(certs, tmp_path, min_batch=min_batch)
        arms, options = ct.BernoulliArms(MEANS), {"agents": SITES, "horizon": HORIZON, "seed": 5}
        return ct.identify(arms, 20, algorithm=algorithm, team=team, **options), team

    return run


def test_the_audits_hold_every_word_that_went_up(audited):
    result, team = audited("collab-top-iid", min_batch=2)
    answers = [line for name in team.arms for line in team.answers(name)]
    up = sum(entry.messages for entry in result.ledger.entries if entry.direction == "up")
    assert len(answers) == up
    assert sum(line["pulls"] for line in answers) == result.pulls
    for number, name in enumerate(team.arms):
        assert {line["frame"] for line in team.lines(name)} == {"Hello", "Ready", "Answer"}
        assert {line["agent"] for line in team.answers(name)} == {number}


def test_in_the_local_phases_no_arm_leaves(audited):
    result, team = audited("collab-top-iid", min_batch=2)
    assert sum(one.phase == "local" for one in result.rounds) >= 3
    for name in team.arms:
        answers = team.answers(name)
        kinds = [line["kind"] for line in answers]
        local = answers[: kinds.index("Hand")]
        assert {line["kind"] for line in local} <= {"Held", "Values", "Window", "Tied", "Accepted"}
        assert not any({"arms", "accepted"} & set(line) for line in local)


TELLS_MEANS = {"Values", "Window", "Means", "CoarseMeans", "Hand"}


@pytest.mark.parametrize("algorithm", ["collab-top-iid", "frugal-top", "frugal-top-noniid"])
def test_no_mean_over_fewer_pulls_than_the_site_gives_away_ever_leaves(audited, algorithm):
    """By the pulls that the arms themselves have seen, and with the largest min_batch that the schedule allows."""
    problem = Problem(n=N, m=20, agents=SITES, horizon=HORIZON)
    least = rehearsed_smallest_batch(Setup(problem, seed=5, algorithm=algorithm))
    assert least >= 2
    _, team = audited(algorithm, min_batch=least)
    told = []
    for name in team.arms:
        for line, new in team.answers_with_new_pulls(name):
            if line["kind"] not in TELLS_MEANS:
                assert not any(isinstance(value, float | list) for value in line.values()), line["kind"]
                continue
            # Arms that are named are those told about; of values without names, any of the arms may be.
            named = line["arms"] + line["accepted"] if line["kind"] == "Hand" else new
            told += [new[arm] for arm in named if new[arm]]
    assert min(told) == least


def test_an_audit_that_cannot_be_written_sends_nothing(certs, tmp_path):
    arms = ct.BernoulliArms(MEANS)
    with pytest.raises(ct.FileError, match=r"audit .*: no such file or directory"):
        ct.join("localhost:1", arms, cert=certs / "site0.pem", audit=tmp_path / "nowhere" / "sent.jsonl")
    with pytest.raises(ct.FileError, match="the message was not sent"):
        ct.join("localhost:1", arms, cert=certs / "site0.pem", audit="/dev/full")
