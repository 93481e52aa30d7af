"""What left a site is written down, and nothing leaves that should not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from in_threads import ThreadSites

import collabtop as ct

N = 600
ARMS = ct.BernoulliArms(np.random.default_rng(1).uniform(0.1, 0.9, N))


@pytest.fixture
def audited(certs, tmp_path):
    """A run of collab-top-iid with several local rounds, and what each site wrote down."""

    class Audited(ThreadSites):
        def _join(self, name, arms):
            self.joins = {"audit": tmp_path / f"{name}.jsonl"}
            super()._join(name, arms)

    def run(**settings):
        team = Audited(certs, **settings)
        result = ct.identify(ARMS, 20, agents=1, horizon=60_000, algorithm="collab-top-iid", seed=5, team=team)
        lines = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
        return result, lines, team

    return run


def test_the_audit_holds_every_word_that_went_up(audited):
    result, lines, _ = audited(min_batch=2)
    answers = [line for line in lines if line["frame"] == "Answer"]
    up = sum(entry.messages for entry in result.ledger.entries if entry.direction == "up")
    assert len(answers) == up
    assert sum(line["pulls"] for line in answers) == result.pulls
    assert {line["frame"] for line in lines} == {"Hello", "Ready", "Answer"}


def test_in_the_local_phases_no_arm_leaves_and_no_single_reward_ever(audited):
    result, lines, _ = audited(min_batch=2)
    assert sum(one.phase == "local" for one in result.rounds) >= 3
    answers = [line for line in lines if line["frame"] == "Answer"]
    kinds = [line["kind"] for line in answers]
    local = answers[: kinds.index("Hand")]
    assert {line["kind"] for line in local} <= {"Held", "Values", "Window", "Tied", "Accepted"}
    assert not any({"arms", "accepted"} & set(line) for line in local)


def test_an_audit_that_cannot_be_written_sends_nothing(certs, tmp_path):
    with pytest.raises(ct.FileError, match=r"audit .*: no such file or directory"):
        ct.join("localhost:1", ARMS, cert=certs / "site0.pem", audit=tmp_path / "nowhere" / "sent.jsonl")
    with pytest.raises(ct.FileError, match="nothing is sent unwritten"):
        ct.join("localhost:1", ARMS, cert=certs / "site0.pem", audit="/dev/full")
