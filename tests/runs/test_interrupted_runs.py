"""Killed or stopped by Ctrl-C at any moment, a run goes on to the same answer and pays for nothing twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import collabtop as ct
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Rewards
from tests.support.resumable import Counted, identify
from tests.support.unmeasured import unmeasured

ZYGOTE = """
import json, os, sys
import collabtop as ct
from tests.support.resumable import Counted, identify
from pathlib import Path

for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        pull = Counted(Path(job["calls"]), seconds=0.002)
        if job["resume"]:
            result = ct.resume(job["log"], pull=pull, team=job["team"])
        else:
            result = identify(pull, job["log"], team=job["team"])
        Path(job["out"]).write_text(result.to_json())
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture
def zygote():
    """A process with everything imported, which starts others in no time."""
    process = subprocess.Popen(
        [sys.executable, "-c", ZYGOTE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**unmeasured(), "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    yield process
    process.stdin.close()
    process.wait(10)
    process.stdout.close()


def run_and_kill(zygote, job, after):
    """Start a run, kill it after so many seconds (if it lives that long), and say whether it was killed."""
    zygote.stdin.write(json.dumps(job) + "\n")
    zygote.stdin.flush()
    child = int(zygote.stdout.readline())
    if after is not None:
        time.sleep(after)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    return int(zygote.stdout.readline()) != 0


@pytest.mark.slow
@pytest.mark.parametrize("team", ["local", "threads"])
def test_killed_at_twenty_random_moments_a_run_ends_as_if_undisturbed(team, tmp_path, zygote):
    undisturbed = identify(Counted(tmp_path / "undisturbed"))
    chance, kills, number = random.Random(8), 0, 0
    while kills < 20:
        number += 1
        longest = 0.35 if team == "local" else 0.15
        log, out, pull = tmp_path / f"log{number}", tmp_path / f"out{number}", Counted(tmp_path / f"calls{number}")
        job = {"log": str(log), "out": str(out), "calls": str(pull.path), "team": team, "resume": False}
        twice = 0
        while run_and_kill(zygote, job, chance.uniform(0, longest)):
            kills += 1
            longest *= 1.1  # on a busy machine a run might never have the time to get further than its log
            records = read_log(log) if log.exists() else []
            kept = sum(len(it.rewards) // 8 for it in records if isinstance(it, Rewards))
            twice_now = len(pull.calls()) - kept - twice
            assert 0 <= twice_now <= (3 if team == "threads" else 1)  # what was under way: a pull per agent
            twice += twice_now
            job["resume"] = bool(records)
        assert out.read_text() == undisturbed.to_json()
        assert len(pull.calls()) == undisturbed.pulls + twice
        assert set(pull.calls()) == set((tmp_path / "undisturbed").read_text().split())


WORKERS = 4
QUICK = """
import os, sys, time
import collabtop as ct

path, calls, team = sys.argv[1:]

def pull(candidate, rng):
    time.sleep(0.001)
    reward = rng.random() < candidate
    with open(calls, "a") as file:
        file.write("x")
    return reward

if __name__ == "__main__":
    ct.identify([0.2, 0.4, 0.6, 0.8], 1, pull=pull, workers=4, horizon=4000, seed=1, team=team, checkpoint=path)
"""


@pytest.mark.parametrize("team", ["threads", "processes"])
def test_a_kill_loses_at_most_one_completed_call_per_worker(team, tmp_path):
    script, calls, path = tmp_path / "quick.py", tmp_path / "calls", tmp_path / "run.ctlog"
    script.write_text(QUICK)
    calls.touch()
    for most in (150, 400, 800):
        with subprocess.Popen([sys.executable, script, path, calls, team], env=unmeasured()) as process:
            while calls.stat().st_size < most:
                assert process.poll() is None
                time.sleep(0.0005)
            process.kill()
        time.sleep(0.1 if team == "processes" else 0.0)  # workers end with the run, after the call under way
        kept = sum(record.pulls for record in read_log(path) if isinstance(record, Rewards))
        lost = calls.stat().st_size - kept
        assert 0 <= lost <= WORKERS
        os.truncate(calls, kept)  # those that are lost are made again


SLOW = """
import sys, time
import collabtop as ct

def pull(candidate, rng):
    open({calls!r}, "a").write("x")
    time.sleep({seconds})
    return rng.random() < candidate

async def pull_async(candidate, rng):
    import asyncio
    open({calls!r}, "a").write("x")
    await asyncio.sleep({seconds})
    return rng.random() < candidate

if __name__ == "__main__":
    policy = ct.PullPolicy(time_limit={limit})
    ct.identify([0.2, 0.4, 0.6, 0.8], 1, pull={pull}, agents=4, horizon=60, seed=1, team={team!r},
                checkpoint=sys.argv[1], policy=policy)
"""


@pytest.mark.parametrize("team", ["local", "threads"])
@pytest.mark.parametrize(
    ("pull", "seconds", "limit"),
    [
        ("pull", 0.03, None),
        ("pull_async", 0.03, None),
        ("pull", 0.03, 20),
        ("pull", 600, None),
        ("pull_async", 600, None),
    ],
)
def test_ctrl_c_ends_within_two_seconds_and_leaves_a_log_that_can_be_resumed(team, pull, seconds, limit, tmp_path):
    script, calls, path = tmp_path / "slow.py", tmp_path / "calls", tmp_path / "run.ctlog"
    calls.touch()
    script.write_text(SLOW.format(seconds=seconds, pull=pull, team=team, limit=limit, calls=str(calls)))
    with subprocess.Popen([sys.executable, script, path], stderr=subprocess.PIPE, text=True) as process:
        while calls.stat().st_size < (1 if seconds == 600 else 12):  # 4 at a time: some have come back
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        process.wait(10)
        assert time.monotonic() - began < 2
        said = process.stderr.read()
    assert "KeyboardInterrupt" in said
    assert process.returncode == -signal.SIGINT, said
    kept = sum(len(it.rewards) // 8 for it in read_log(path) if isinstance(it, Rewards))
    assert kept > 0 or seconds == 600

    def quick(candidate, rng):
        return rng.random() < candidate

    undisturbed = ct.identify([0.2, 0.4, 0.6, 0.8], 1, pull=quick, agents=4, horizon=60, seed=1)
    assert ct.resume(path, pull=quick) == undisturbed
