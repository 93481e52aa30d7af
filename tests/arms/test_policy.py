"""Functions that fail: every failure is handled according to the policy, and none counts as a reward."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import collabtop as ct
from collabtop.arms import Draws

FAULTS = [ZeroDivisionError("oh"), float("nan"), 1.7, -0.1, "good", None]


def flaky(candidate, rng):
    """Fail in a random way at a random pull."""
    if rng.random() < 0.2:
        fault = FAULTS[int(rng.integers(len(FAULTS)))]
        if isinstance(fault, Exception):
            raise fault
        return fault
    return candidate


async def flaky_async(candidate, rng):
    await asyncio.sleep(0)
    return flaky(candidate, rng)


def hangs_now_and_then(candidate, rng):
    if rng.random() < 0.3:
        time.sleep(600)
    return candidate


async def hangs_now_and_then_async(candidate, rng):
    if rng.random() < 0.3:
        await asyncio.sleep(600)
    return candidate


def ends_its_process(candidate, rng):
    if rng.random() < 0.2:
        os._exit(3)
    return candidate


CANDIDATES = [0.25, 0.5, 0.75]
ALL = ["local", "threads"]


def run(pull, policy, team="local", horizon=60, **more):
    return ct.identify(
        CANDIDATES,
        1,
        pull=pull,
        agents=2,
        horizon=horizon,
        algorithm="uniform",
        seed=4,
        policy=policy,
        team=team,
        **more,
    )


@pytest.mark.parametrize("team", ALL)
@pytest.mark.parametrize("pull", [flaky, flaky_async])
def test_retries_make_a_flaky_function_reliable(pull, team, left_behind):
    result = run(pull, ct.PullPolicy(retries=10, wait=0), team)
    assert [estimate.mean for estimate in result.estimates] == CANDIDATES
    assert result.failures == {}
    assert result.retries > 5
    assert left_behind() == []


@pytest.mark.parametrize("team", ALL)
def test_without_retries_the_run_stops_and_names_the_candidate(team):
    with pytest.raises(ct.PullError, match=r"pull of candidate '0\.\d+' (raised|returned)") as caught:
        run(flaky, None, team)
    assert caught.value.candidate in ("0.25", "0.5", "0.75")


@pytest.mark.parametrize("team", ALL)
@pytest.mark.parametrize("pull", [flaky, flaky_async])
def test_skipped_pulls_move_no_mean_and_are_counted(pull, team):
    result = run(pull, ct.PullPolicy(failures="skip"), team)
    assert [estimate.mean for estimate in result.estimates] == CANDIDATES
    assert set(result.failures) == {"0.25", "0.5", "0.75"}
    assert 10 < sum(result.failures.values()) < 50
    assert result.pulls == 120  # a skipped pull took its time step


def test_failed_pulls_can_count_as_zero_and_are_counted():
    result = run(flaky, ct.PullPolicy(failures="zero"))
    for candidate, estimate in zip(CANDIDATES, result.estimates, strict=True):
        failed = result.failures[str(candidate)]
        assert estimate.mean == pytest.approx(candidate * (40 - failed) / 40)


def test_the_same_failures_happen_on_both_teams():
    for failures in ("zero", "skip"):
        local, threads = (run(flaky, ct.PullPolicy(failures=failures), team) for team in ALL)
        assert local == threads
        assert local.failures == threads.failures


def test_a_skipped_batch_falls_back_on_the_agents_earlier_rewards_of_that_candidate():
    fails = [False, True, True]
    arms = ct.FunctionArms(["a"], lambda c, rng: "no" if fails.pop(0) else 0.5, policy=ct.PullPolicy(failures="skip"))
    draws = Draws(1, 0)
    assert arms.pull(np.array([0]), np.array([2]), draws).tolist() == [1.0]
    assert arms.pull(np.array([0]), np.array([1]), draws).tolist() == [0.5]


@pytest.mark.parametrize("team", ALL)
def test_a_candidate_without_any_reward_is_named(team):
    def pull(candidate, rng):
        return None if candidate == 0.5 else candidate

    with pytest.raises(ct.PullError, match=r"candidate '0.5' gave agent \d no reward: all of its 20 pulls") as caught:
        run(pull, ct.PullPolicy(failures="skip"), team)
    assert caught.value.candidate == "0.5"


@ct.batch
def bad_batch(candidate, times, rng):
    return [candidate] * (times - 1)


@ct.batch
def nan_batch(candidate, times, rng):
    return np.where(np.arange(times) == 3, np.nan, candidate)


@ct.batch
def text_batch(candidate, times, rng):
    return ["x"] * times


@pytest.mark.parametrize(
    ("pull", "message"),
    [
        (bad_batch, "returned 19 rewards, but 20 were requested"),
        (nan_batch, r"returned nan, but a reward lies in \[0, 1\]"),
        (text_batch, "which is not a list of rewards"),
    ],
)
def test_a_bad_batch_is_named_and_can_be_skipped_or_zero(pull, message):
    with pytest.raises(ct.PullError, match=message):
        run(pull, None)
    assert run(pull, ct.PullPolicy(failures="zero")).failures == {"0.25": 40, "0.5": 40, "0.75": 40}


@pytest.mark.parametrize("team", ALL)
@pytest.mark.parametrize("pull", [hangs_now_and_then, hangs_now_and_then_async])
@pytest.mark.slow
def test_a_pull_that_hangs_is_killed_and_retried(pull, team, left_behind):
    result = run(pull, ct.PullPolicy(retries=9, wait=0, time_limit=0.3), team, horizon=6)
    assert [estimate.mean for estimate in result.estimates] == CANDIDATES
    assert result.retries > 0
    assert left_behind() == []


@pytest.mark.parametrize("pull", [hangs_now_and_then, hangs_now_and_then_async])
def test_a_pull_that_takes_too_long_is_named_by_its_candidate(pull, left_behind):
    with pytest.raises(ct.PullError, match=r"pull of candidate '0\.\d+' took longer than 0.2 s"):
        run(pull, ct.PullPolicy(time_limit=0.2), horizon=60)
    assert left_behind() == []


@pytest.mark.slow
def test_a_function_that_ends_its_process_is_a_failed_pull(left_behind):
    with pytest.raises(ct.PullError, match=r"ended its process \(exit code 3\)"):
        run(ends_its_process, ct.PullPolicy(time_limit=5))
    result = run(ends_its_process, ct.PullPolicy(time_limit=5, retries=9, wait=0), horizon=9)
    assert [estimate.mean for estimate in result.estimates] == CANDIDATES
    assert left_behind() == []


def test_rewards_are_the_same_with_and_without_a_process():
    limit = ct.PullPolicy(retries=10, wait=0, time_limit=30)
    assert run(flaky, limit, "threads") == run(flaky, ct.PullPolicy(retries=10, wait=0))


def test_a_function_that_cannot_be_pickled_is_refused_with_a_time_limit():
    lock = threading.Lock()
    with pytest.raises(ct.InputError, match="as a time limit requires: leave out what cannot be pickled, such as"):
        run(lambda candidate, rng: 0.5 if lock else 0.4, ct.PullPolicy(time_limit=1))


def test_a_script_without_a_main_guard_gets_a_clear_error(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import collabtop as ct\n"
        "def pull(candidate, rng):\n    return candidate\n"
        "ct.identify([0.2, 0.8], 1, pull=pull, agents=1, horizon=10, policy=ct.PullPolicy(time_limit=5))\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert '__name__ == "__main__"' in ended.stderr.splitlines()[-1]


HANGS = """
import os, sys, time
import collabtop as ct

def pull(candidate, rng):
    with open(sys.argv[1], "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(600)

if __name__ == "__main__":
    ct.identify([0.2, 0.8], 1, pull=pull, agents=2, horizon=10, policy=ct.PullPolicy(time_limit=500), team="threads")
"""


def test_no_process_outlives_one_that_is_killed(tmp_path):
    script, pids = tmp_path / "hangs.py", tmp_path / "pids"
    script.write_text(HANGS)
    with subprocess.Popen([sys.executable, script, pids], stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        process.kill()
    wait_until(lambda: not any(is_alive(int(pid)) for pid in pids.read_text().split()))


def wait_until(done):
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def test_only_the_named_exceptions_are_retried():
    calls = []

    def pull(candidate, rng):
        calls.append(candidate)
        raise KeyError("x") if len(calls) < 3 else ConnectionError("y")

    with pytest.raises(ct.PullError, match="raised ConnectionError: y"):
        run(pull, ct.PullPolicy(retries=10, wait=0, retry_on=KeyError))  # type: ignore[arg-type]
    assert len(calls) == 3


def test_each_attempt_has_its_own_generator():
    numbers = []

    def pull(candidate, rng):
        numbers.append(rng.random())
        raise KeyError("x")

    with pytest.raises(ct.PullError, match="tried 3 times"):
        run(pull, ct.PullPolicy(retries=2, wait=0))
    assert numbers == [Draws(4, 0).for_pull(0, attempt).random() for attempt in range(3)]


def test_the_waits_between_attempts_double():
    times = []

    def pull(candidate, rng):
        times.append(time.monotonic())
        raise KeyError("x")

    with pytest.raises(ct.PullError):
        run(pull, ct.PullPolicy(retries=2, wait=0.05))
    assert times[1] - times[0] >= 0.05
    assert times[2] - times[1] >= 0.1


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"retries": -1}, "retries is -1, but"),
        ({"retries": 1.5}, "retries is 1.5, but"),
        ({"wait": -1}, "wait is -1, but"),
        ({"wait": float("inf")}, "wait is inf, but"),
        ({"longest_wait": "x"}, "longest_wait is 'x', but"),
        ({"time_limit": 0}, "time_limit is 0, but a positive number of seconds"),
        ({"time_limit": True}, "time_limit is True, but"),
        ({"retry_on": (KeyboardInterrupt,)}, "retry_on is .* but exception classes are needed"),
        ({"failures": "ignore"}, "failures is 'ignore', but 'raise', 'zero' or 'skip' is needed"),
    ],
)
def test_a_bad_policy_names_the_argument(more, message):
    with pytest.raises(ct.InputError, match=message):
        ct.PullPolicy(**more)


def test_a_confidence_is_not_guaranteed_with_skipped_pulls():
    with pytest.raises(ct.SettingError, match="failures is 'skip', but a confidence needs the number of pulls"):
        ct.identify([0.2, 0.8], 1, pull=flaky, agents=2, confidence=0.9, policy=ct.PullPolicy(failures="skip"))
    policy = ct.PullPolicy(failures="zero")
    assert ct.identify([0.2, 0.8], 1, pull=flaky, agents=2, confidence=0.9, seed=1, policy=policy).sure


def test_a_policy_has_to_be_a_pull_policy_and_needs_a_function():
    with pytest.raises(ct.InputError, match="policy is 'retry', but a PullPolicy is needed"):
        run(flaky, "retry")
    with pytest.raises(ct.InputError, match="policy only applies with pull"):
        ct.identify(ct.BernoulliArms([0.5]), 1, agents=1, horizon=9, policy=ct.PullPolicy())  # type: ignore[call-overload]
