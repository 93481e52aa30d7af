"""A longer run that uses the rewards of a shorter one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Extended, Rewards, Sums
from collabtop.runlog.pool import RewardPool
from collabtop.runs.checkpoint import read_header
from tests.runs.test_handle import ALGORITHMS, MEANS, draw, setting


class Tape:
    """A function whose t-th call for a candidate has the t-th reward of a repeated sequence; it counts its calls."""

    def __init__(self, *, limit: int = 10**9) -> None:
        self.calls: Counter[float] = Counter()
        self._lock = threading.Lock()
        self._rewards = {mean: np.random.default_rng(index).random(10**6) < mean for index, mean in enumerate(MEANS)}
        self.limit = limit

    def __call__(self, mean, rng):
        with self._lock:
            if sum(self.calls.values()) == self.limit:
                raise KeyboardInterrupt
            self.calls[mean] += 1
            return bool(self._rewards[mean][(self.calls[mean] - 1) % 20_000])


def run(algorithm: str, horizon: int, pull: Any, **more: Any) -> ct.Result:
    m, agents = setting(algorithm)
    return ct.identify(MEANS, m, pull=pull, agents=agents, horizon=horizon, algorithm=algorithm, seed=3, **more)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_earlier_reward_counts_and_none_is_drawn_twice(algorithm, tmp_path):
    tape, path = Tape(), tmp_path / "run.ctlog"
    first = run(algorithm, 300, tape, checkpoint=path)
    before = sum(tape.calls.values())
    assert before == first.pulls
    longer = ct.extend(path, horizon=600, pull=tape)
    assert longer.horizon == 600
    assert longer.complete
    assert longer.reuse.earlier == before
    assert longer.reuse.reused + sum(longer.reuse.unused.values()) == before
    assert longer.pulls - longer.reuse.reused == sum(tape.calls.values()) - before
    assert [tape.calls[mean] for mean in MEANS] == longer.observed.pulls.tolist()
    again = ct.resume(path, pull=tape)
    assert again == longer == ct.extend(path, horizon=600, pull=tape) == ct.peek(path)
    assert again.reuse == longer.reuse
    assert sum(tape.calls.values()) == longer.observed.pulls.sum()


@pytest.mark.parametrize("algorithm", ["kzz-balanced", "frugal-top-noniid", "uniform", "sar", "confident-top"])
def test_an_extended_run_reads_the_same_rewards_as_one_planned_from_the_start(algorithm, tmp_path):
    # Shared rounds in the order of agents: pull number t of a candidate has reward number t in both.
    path = tmp_path / "run.ctlog"
    run(algorithm, 300, Tape(), checkpoint=path)
    tape = Tape()
    tape.calls.update({mean: int(ct.peek(path).observed.pulls[arm]) for arm, mean in enumerate(MEANS)})
    longer, planned = ct.extend(path, horizon=600, pull=tape), run(algorithm, 600, Tape())
    assert set(longer.top) == set(planned.top)
    assert longer.pulls_by_arm == planned.pulls_by_arm
    assert [it.mean for it in longer.estimates] == pytest.approx([it.mean for it in planned.estimates])


@pytest.mark.parametrize("paired", [False, True])
def test_arms_of_an_extended_run_count_as_paired_only_if_they_are(paired, tmp_path):
    path = tmp_path / "run.ctlog"
    run("kzz", 300, draw, checkpoint=path, paired=paired)
    ct.extend(path, horizon=600, pull=draw)
    problem = read_header(path).problem
    assert problem.numbered
    assert problem.paired == paired


@pytest.mark.parametrize("team", ["local", "threads"])
def test_an_extension_is_the_same_on_every_team(team, tmp_path):
    path = tmp_path / "run.ctlog"
    run("kzz", 300, draw, checkpoint=path, team=team)
    result = ct.extend(path, horizon=700, pull=draw, team=team)
    other = tmp_path / "other.ctlog"
    run("kzz", 300, draw, checkpoint=other)
    assert result == ct.extend(other, horizon=700, pull=draw)


@pytest.mark.parametrize(
    "arms",
    [
        ct.BernoulliArms(MEANS),
        ct.BetaArms(MEANS),
        ct.HeterogeneousArms([[mean, mean / 2] for mean in MEANS]),
        ct.LoggedArms([[int(t % 10 < 10 * mean) for t in range(2_000)] for mean in MEANS], replay=True),
    ],
)
def test_arms_that_return_sums_can_be_extended_twice(arms, tmp_path):
    path = tmp_path / "run.ctlog"
    first = ct.identify(arms, 2, agents=2, horizon=200, seed=1, checkpoint=path)
    second = ct.extend(path, horizon=400, arms=arms)
    third = ct.extend(path, horizon=900, arms=arms, team="threads")
    assert second.reuse.earlier == first.pulls
    assert third.reuse.earlier == second.observed.pulls.sum()
    assert third == ct.resume(path, arms=arms) == ct.peek(path)
    assert [record.horizon for record in read_log(path) if isinstance(record, Extended)] == [400, 900]


def test_paired_examples_are_never_scored_twice(tmp_path):
    scored: Counter[tuple[str, int]] = Counter()

    def score(candidate, example):
        scored[candidate, example] += 1
        return (example * 7 % 10) / 10 if candidate == "a" else (example * 3 % 10) / 12

    arms = ct.DatasetArms(["a", "b", "c"], range(60), score)
    path = tmp_path / "run.ctlog"
    ct.identify(arms, 1, agents=2, horizon=20, seed=1, checkpoint=path)
    result = ct.extend(path, horizon=200, arms=arms)
    assert set(scored.values()) == {1}
    assert result.exact


def test_an_unfinished_run_can_be_extended(tmp_path):
    tape, path = Tape(limit=40), tmp_path / "run.ctlog"
    with pytest.raises(KeyboardInterrupt):
        run("kzz", 300, tape, checkpoint=path)
    tape.limit = 10**9
    longer = ct.extend(path, horizon=600, pull=tape)
    assert longer.reuse.earlier == 40
    assert sum(tape.calls.values()) == longer.observed.pulls.sum()


def test_failed_pulls_are_used_as_they_were(tmp_path):
    calls: Counter[float] = Counter()

    def pull(mean, rng):
        calls[mean] += 1
        if calls[mean] % 3 == 0:
            raise ConnectionError("no answer")
        return mean

    path, policy = tmp_path / "run.ctlog", ct.PullPolicy(failures="skip")
    first = run("kzz", 300, pull, checkpoint=path, policy=policy)
    longer = ct.extend(path, horizon=600, pull=pull, policy=policy)
    assert longer.totals.failures == sum(count // 3 for count in calls.values()) > first.totals.failures
    assert [it.mean for it in longer.estimates] == pytest.approx(MEANS)


# -- budgets


@pytest.mark.parametrize("algorithm", ["frugal-top", "kzz", "collab-top-iid", "uniform", "hkk"])
def test_a_larger_budget_is_used_and_never_exceeded(algorithm, tmp_path):
    path, tape = tmp_path / "run.ctlog", Tape()
    run(algorithm, 300, tape, checkpoint=path)
    before = sum(tape.calls.values())
    result = ct.extend(path, budget=before + 2_000, pull=tape)
    assert before + 1_500 < sum(tape.calls.values()) <= before + 2_000
    assert result.spending.spent == sum(tape.calls.values()) == result.observed.pulls.sum()
    assert ct.resume(path, pull=tape) == result == ct.extend(path, budget=before + 2_000, pull=tape)
    assert sum(tape.calls.values()) == result.spending.spent


def test_costs_of_a_run_with_a_budget_stay(tmp_path):
    path, tape = tmp_path / "run.ctlog", Tape()
    arguments: dict[str, Any] = {"agents": 2, "seed": 1, "checkpoint": path, "pull": tape}
    ct.identify(MEANS, 1, budget=500, cost=[1, 2, 1, 2, 1, 2], **arguments)
    result = ct.extend(path, budget=1_500, pull=tape)
    spent = sum(tape.calls[mean] * (1 + arm % 2) for arm, mean in enumerate(MEANS))
    assert 500 < spent <= 1_500
    assert result.spending.spent == spent


# -- errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 100}, "horizon is 100, but the run already has 300: a larger one is needed"),
        ({"horizon": 300}, "horizon is 300, but the run already has 300: a larger one is needed"),
        ({"budget": 10}, "budget is 10, but the run already has 900: a larger one is needed"),
        ({"budget": 902}, "budget is 902, but the next larger plan needs about 9[0-9.]*"),
        ({"budget": 0}, "budget is 0, but a positive number is needed"),
        ({"horizon": 2.5}, "horizon is 2.5, but a whole number of at least 1 is needed"),
        ({}, "give exactly one of horizon and budget: none was given"),
        ({"horizon": 600, "budget": 9_000}, "give exactly one of horizon and budget: both were given"),
        ({"horizon": 600, "candidates": MEANS[:3]}, "the number of candidates is 6 there and 3 here"),
        ({"horizon": 600, "candidates": [0.2, *MEANS[1:]]}, "its candidates are different"),
        ({"horizon": 600, "timeout": -1}, "timeout is -1, but a positive number of seconds is needed"),
        ({"horizon": 600, "team": "ray"}, "team has agents in other processes, which cannot use earlier rewards again"),
    ],
)
def test_what_cannot_be_extended_is_one_clear_line(arguments, message, tmp_path):
    path = tmp_path / "run.ctlog"
    run("kzz", 300, draw, checkpoint=path)
    data = path.read_bytes()
    with pytest.raises(ct.InputError, match=message) as caught:
        ct.extend(path, pull=draw, **arguments)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == data


def test_an_extended_log_is_continued_with_resume_not_with_the_first_arguments(tmp_path):
    path = tmp_path / "run.ctlog"
    run("kzz", 300, draw, checkpoint=path)
    ct.extend(path, horizon=600, pull=draw)
    with pytest.raises(ct.FileError, match=r"it was extended to a horizon of 600, so continue it with resume\(\)"):
        run("kzz", 300, draw, checkpoint=path)


def test_agents_elsewhere_cannot_use_earlier_rewards(tmp_path):
    class Elsewhere(ct.LocalTeam):
        messages_are_free = False

    path = tmp_path / "run.ctlog"
    run("kzz", 300, draw, checkpoint=path)
    with pytest.raises(ct.SettingError, match="team has agents in other processes"):
        ct.extend(path, horizon=600, pull=draw, team=Elsewhere())


# -- kills


SCRIPT = """
import sys, time
import collabtop as ct

def pull(candidate, rng):
    time.sleep(0.001)
    print("pulled", flush=True)
    return rng.random() < candidate

ct.extend(sys.argv[1], horizon=600, pull=pull, team="threads")
"""


@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_a_killed_extension_continues(name, tmp_path):
    path, script = tmp_path / "run.ctlog", tmp_path / "script.py"
    script.write_text(SCRIPT)
    run("kzz", 200, draw, checkpoint=path)
    whole = tmp_path / "whole.ctlog"
    whole.write_bytes(path.read_bytes())
    expected = ct.extend(whole, horizon=600, pull=draw)
    for lines in (5, 40):
        with subprocess.Popen(
            [sys.executable, script, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as child:
            for _ in range(lines):
                child.stdout.readline()
            os.kill(child.pid, getattr(signal, name))
    so_far = ct.peek(path)
    assert not so_far.complete
    assert so_far.horizon == 600
    made = sum(record.pulls for record in read_log(path) if isinstance(record, Rewards))
    assert so_far.observed.pulls.sum() == made > 600
    tape = Counter[str]()

    def counted(mean, rng):
        tape["calls"] += 1
        return draw(mean, rng)

    assert ct.resume(path, pull=counted) == expected
    assert tape["calls"] == expected.observed.pulls.sum() - made


# -- without a number


def test_without_a_limit_the_horizon_is_doubled_until_the_run_is_stopped():
    tape = Tape()
    run = ct.start(MEANS, 1, pull=tape, agents=2, seed=1)
    horizons = []
    for event in run:
        if isinstance(event, ct.events.RunStarted):
            horizons.append(event.horizon)
            if len(horizons) == 5:
                break
    run.stop()
    result = run.result()
    assert [later / earlier for earlier, later in pairwise(horizons)] == [2] * 4
    assert not result.complete
    assert result.observed.pulls.sum() == sum(tape.calls.values())
    assert result.top == ["0.95"]
    assert run.progress.state == "stopped"


def test_a_run_without_a_limit_is_resumed_where_it_was(tmp_path):
    path, tape = tmp_path / "run.ctlog", Tape()
    arguments: dict[str, Any] = {"pull": tape, "agents": 2, "seed": 1, "checkpoint": path, "timeout": 0.3}
    first = ct.identify(MEANS, 1, **arguments)
    second = ct.identify(MEANS, 1, **arguments)
    third = ct.resume(path, pull=tape, timeout=0.3)
    assert first.horizon <= second.horizon <= third.horizon
    assert third.observed.pulls.sum() == sum(tape.calls.values())
    with pytest.raises(ct.InputError, match="belongs to a run without a limit"):
        ct.extend(path, horizon=10**6, pull=tape)


def test_doubling_ends_when_all_examples_are_used():
    arms = ct.DatasetArms(
        ["a", "b"], range(20), lambda candidate, example: (example % 5) / (5 if candidate == "a" else 6)
    )
    result = ct.start(arms, 1, agents=2, seed=1).result(timeout=60)
    assert result.complete
    assert result.exact == ["a", "b"]


def test_identify_without_a_limit_or_a_timeout_asks_for_one():
    with pytest.raises(ct.InputError, match=r"none was given; or pass timeout=, or use start\(\)"):
        ct.identify(MEANS, 1, pull=draw, agents=2)


# -- the pool


def test_rewards_are_used_in_the_order_of_exchanges_not_of_the_log(tmp_path):
    path, tape = tmp_path / "run.ctlog", Tape()
    run("kzz", 300, tape, checkpoint=path)
    records = read_log(path)
    shuffled = [records[0], *sorted(records[1:], key=lambda record: -getattr(record, "agent", -1))]
    pools = [RewardPool([order], n=len(MEANS), agents=3, shared=True) for order in (records, shuffled)]
    for arm, mean in enumerate(MEANS):
        one, other = (pool.take(0, arm, 0, 10**6) for pool in pools)
        assert one.tolist() == other.tolist() == tape._rewards[mean][: len(one)].astype(float).tolist()


def test_a_batch_of_which_only_the_sum_is_known_counts_with_its_mean():
    rng = np.random.default_rng(0)
    arms = np.array([0, 1])
    records = [Sums.pack(0, 0, arms, np.array([4, 2]), np.array([2.0, 2.0]), rng)]
    records.append(Sums.pack(0, 6, arms, np.array([2, 2]), np.array([2.0, 0.0]), rng))
    pool = RewardPool([records], n=2, agents=1, shared=True)
    sums, taken = pool.take_sums(0, arms, np.array([5, 9]), np.array([0, 0]))
    assert (sums.tolist(), taken.tolist()) == ([3.0, 2.0], [5, 4])
    sums, taken = pool.take_sums(0, arms, np.array([5, 9]), np.array([5, 9]))
    assert (sums.tolist(), taken.tolist()) == ([1.0, 0.0], [1, 0])
    assert not pool.unused.any()
