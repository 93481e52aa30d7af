"""Several pulls at once: the same run as one after the other, nothing lost, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import collabtop as ct
from collabtop.arms.pool import PullPool
from collabtop.events import PullsMade
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Rewards

MEANS = [0.2, 0.35, 0.5, 0.65, 0.8]


def score(mean, rng):
    time.sleep(rng.random() / 2_000)  # pulls end in a different order than they begin
    return rng.random() < mean


async def score_async(mean, rng):
    await asyncio.sleep(rng.random() / 2_000)
    return rng.random() < mean


@ct.batch
def score_batch(mean, times, rng):
    return rng.random(times) < mean


def identify(pull, **more):
    return ct.identify(MEANS, 2, pull=pull, **{"agents": 3, "horizon": 40, "seed": 3} | more)


@pytest.mark.parametrize("pull", [score, score_async, score_batch])
@pytest.mark.parametrize("team", ["local", "threads"])
@pytest.mark.parametrize("agents", [1, 3])
def test_any_number_of_workers_gives_the_same_run(pull, team, agents, left_behind):
    alone = identify(pull, agents=agents)
    for workers in (1, 2, 16):
        result = identify(pull, agents=agents, team=team, workers=workers)
        assert result == alone
        assert result.ledger == alone.ledger
        assert result.observed.pulls.tolist() == alone.observed.pulls.tolist()
    assert left_behind() == []


@pytest.mark.parametrize("failures", ["zero", "skip"])
def test_failed_pulls_are_handled_as_without_workers(failures):
    def flaky(mean, rng):
        if rng.random() < 0.3:
            raise ConnectionError
        return rng.random() < mean

    policy = ct.PullPolicy(retries=1, wait=0, failures=failures)
    alone, together = identify(flaky, policy=policy), identify(flaky, policy=policy, workers=4)
    assert together == alone
    assert (together.failures, together.retries) == (alone.failures, alone.retries)


def test_so_many_pulls_run_at_once_and_never_more():
    running, most, lock = 0, 0, threading.Lock()
    all_here = threading.Barrier(5)

    def pull(mean, rng):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        all_here.wait(10)  # five pulls have to be under way together
        with lock:
            running -= 1
        return 0.5

    ct.identify(MEANS, 2, pull=pull, horizon=100, seed=3, workers=5, algorithm="uniform")
    assert most == 5


def test_one_agent_is_the_default_for_a_function_and_not_for_simulated_arms():
    assert ct.identify(MEANS, 2, pull=score, horizon=30, seed=3).agents == 1
    assert ct.dry_run(MEANS, 2, horizon=30).agents == 1
    with pytest.raises(ct.InputError, match="agents is missing"):
        ct.identify(ct.BernoulliArms(MEANS), 2, horizon=30)


def test_the_error_of_the_earliest_pull_is_raised_and_no_further_pull_begins(left_behind):
    calls = []

    def breaks(mean, rng):
        calls.append(mean)
        raise ZeroDivisionError(mean)

    with pytest.raises(ct.PullError, match=r"raised ZeroDivisionError: 0\.2"):
        ct.identify(MEANS, 2, pull=breaks, horizon=1_000, seed=3, workers=4, algorithm="uniform")
    assert len(calls) <= 4
    assert left_behind() == []


@pytest.mark.slow
def test_a_run_killed_in_the_middle_keeps_every_pull_that_had_ended(tmp_path):
    path, calls = tmp_path / "run.ctlog", 0
    stuck = threading.Event()

    def pull(mean, rng):
        nonlocal calls
        calls += 1
        if calls == 3:
            stuck.wait(3)  # the third pull hangs, while those after it end
        elif calls == 60:
            raise KeyboardInterrupt
        return rng.random() < mean

    with pytest.raises(KeyboardInterrupt):
        identify(pull, agents=1, horizon=200, workers=3, checkpoint=path)
    stuck.set()
    records = [record for record in read_log(path) if isinstance(record, Rewards)]
    kept = sum(record.pulls for record in records)
    assert kept >= 55
    assert sorted(record.first for record in records) != [0]  # there is a gap
    events = []
    result = ct.resume(path, pull=score, workers=3, on_event=events.append)
    pulls = [event for event in events if isinstance(event, PullsMade)]
    assert sum(event.pulls for event in pulls if event.recalled) == kept
    assert sum(event.pulls for event in pulls) == result.pulls


def test_workers_need_a_function_and_a_positive_number():
    with pytest.raises(ct.InputError, match="workers is 0, but a whole number of at least 1 is needed"):
        identify(score, workers=0)
    with pytest.raises(ct.InputError, match="workers= only applies to arms that call a function here"):
        ct.identify(ct.BernoulliArms(MEANS), 2, agents=1, horizon=30, workers=2)
    with pytest.raises(ct.InputError, match="rate= only applies to arms that call a function here"):
        ct.identify(ct.BernoulliArms(MEANS), 2, agents=1, horizon=30, rate=2)


def test_a_pool_raises_what_its_jobs_raise_and_stays_usable(left_behind):
    pool, done = PullPool(3), []

    def jobs():
        yield from range(5)
        raise ValueError("no more jobs")

    with pytest.raises(ValueError, match="no more jobs"):
        pool.run(jobs(), done.append, count=9)
    pool.run(iter(range(3)), done.append, count=3)
    pool.run(iter(()), done.append, count=3)
    assert sorted(done) == [0, 0, 1, 1, 2, 2, 3, 4]
    pool.close()
    assert left_behind() == []


def test_jobs_that_wait_behind_one_that_hangs_are_done_by_other_threads():
    pool, done, all_others = PullPool(2), [], threading.Event()

    def work(job):
        if job == 500:
            assert all_others.wait(10)
        done.append(job)
        if len(done) == 999:
            all_others.set()

    pool.run(iter(range(1_000)), work, count=1_000)
    assert sorted(done) == list(range(1_000))
    pool.close()


INTERRUPTED = """
import sys, time
import collabtop as ct

def pull(mean, rng):
    with open(sys.argv[2], "a") as file:
        file.write("x")
    time.sleep({seconds})
    return rng.random() < mean

if __name__ == "__main__":
    means = [0.2, 0.4, 0.6, 0.8]
    ct.identify(means, 1, pull=pull, horizon=400, seed=1, team={team!r}, workers=3, checkpoint=sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("team", "seconds"), [("local", 0.02), ("local", 600), ("processes", 0.02), ("processes", 600)]
)
def test_ctrl_c_ends_a_run_with_workers_and_keeps_what_was_pulled(tmp_path, team, seconds):
    script, path, calls = tmp_path / "slow.py", tmp_path / "run.ctlog", tmp_path / "calls"
    calls.touch()
    script.write_text(INTERRUPTED.format(team=team, seconds=seconds))
    environment = {**os.environ, "COLLABTOP_TEST_RUN": str(tmp_path)}
    with subprocess.Popen([sys.executable, script, path, calls], stderr=subprocess.PIPE, env=environment) as run:
        while calls.stat().st_size < (3 if seconds == 600 else 20):
            assert run.poll() is None
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)
        run.wait(30)
        assert b"KeyboardInterrupt" in run.stderr.read()
    assert processes_with(str(tmp_path)) == []
    kept = sum(record.pulls for record in read_log(path) if isinstance(record, Rewards))
    assert kept > 0 or seconds == 600


def processes_with(value):
    """The processes that have this value in their environment, after those that are ending had time to do so."""
    deadline = time.monotonic() + 10
    while (running := [path.parent.name for path in Path("/proc").glob("[0-9]*/environ") if has(path, value)]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.05)
    return running


def has(path, value):
    try:
        return value.encode() in path.read_bytes()
    except OSError:
        return False
