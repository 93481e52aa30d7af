"""Worker processes: what happens when a run ends while they make pulls."""

from __future__ import annotations

import pickle
import sys
import threading
import time

import pytest

import collabtop as ct
from collabtop.arms.calls import CandidatePull, PullAttempt
from collabtop.arms.unit import Unit
from collabtop.arms.workers import WorkerCaller


@pytest.fixture
def busy_threads():
    """Switch threads a thousand times as often as usual, to provoke race conditions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 1_000)
    yield
    sys.setswitchinterval(before)


def sleep(candidate, rng):
    time.sleep(60)


SLEEPS = CandidatePull(["slow"], sleep, unit=Unit())


def an_attempt():
    return PullAttempt(arm=0, times=1, seed=0, agent=0, number=0, replicate=0)


@pytest.mark.slow
def test_a_run_that_ends_while_its_agents_wait_for_pulls_ends_without_an_error(busy_threads, left_behind):
    caller = WorkerCaller(SLEEPS, ct.PullPolicy(time_limit=60), pickle.dumps)
    outcomes = []
    agents = [threading.Thread(target=lambda: outcomes.append(caller.call(an_attempt()))) for _ in range(6)]
    for agent in agents:
        agent.start()
    while sum(not worker.is_idle for worker in list(caller._all)) < len(agents):  # until all of them are busy
        time.sleep(0.01)
    caller.close()
    for agent in agents:
        agent.join(10)
    assert [getattr(outcome, "error", outcome) for outcome in outcomes] == ["ended its process (exit code -9)"] * len(
        agents
    )
    assert left_behind() == []


def test_no_process_is_started_for_a_run_that_has_ended(left_behind):
    caller = WorkerCaller(SLEEPS, ct.PullPolicy(time_limit=60), pickle.dumps)
    caller.close()
    with pytest.raises(ct.PullError, match="after the run had ended"):
        caller.call(an_attempt())
    assert left_behind() == []
