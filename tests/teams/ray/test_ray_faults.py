"""After hosts are killed, lost with their node, or frozen, the answer and ledger are those of an undisturbed run."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.events import PullsMade
from collabtop.runlog.file import read_log
from collabtop.runlog.format import AgentStatus, Rewards

pytestmark = [pytest.mark.usefixtures("three_nodes"), pytest.mark.slow]

MEANS = [0.2, 0.35, 0.5, 0.65, 0.8]
AGENTS = 6


class Counted:
    """A slow function that counts its calls in a file, each with the first number its generator gave."""

    def __init__(self, path, seconds=0.02):
        self.path, self.seconds = str(path), seconds

    def __call__(self, mean, rng):
        first = rng.random()
        with open(self.path, "ab", buffering=0) as file:  # noqa: PTH123  (the path is a string, so that it can be pickled)
            file.write(f"{first!r}\n".encode())
        time.sleep(self.seconds)
        return first < mean

    def calls(self):
        with open(self.path) as file:  # noqa: PTH123
            return file.read().split()


def run(pull, team, **more):
    return ct.identify(MEANS, 1, pull=pull, agents=AGENTS, horizon=40, algorithm="kzz", seed=5, team=team, **more)


def after(pulls, team, harm):
    """An `on_event` that calls `harm` once, after this many pulls, while the agents are pulling."""
    total = 0

    def on_event(event):
        nonlocal total
        if isinstance(event, PullsMade):
            before, total = total, total + event.pulls
            if before < pulls <= total:
                harm(team.whereabouts()[0])

    return on_event


def disturbed(harm, tmp_path, **settings):
    """A run with a fault in the middle of a pull: its result, its function, and its duration."""
    pull, team = Counted(tmp_path / "calls"), ct.RayTeam(**{"hosts": 3, "heartbeat": 0.1, **settings})
    began = time.monotonic()
    result = run(pull, team, checkpoint=tmp_path / "run.ctlog", on_event=after(60, team, harm))
    return result, pull, time.monotonic() - began


def recorded_pulls(path):
    return sum(record.pulls for record in read_log(path) if isinstance(record, Rewards))


def check_undisturbed(result, pull, tmp_path, *, paid_twice):
    plain = run(Counted(tmp_path / "undisturbed", seconds=0), "local")
    assert (result, result.ledger) == (plain, plain.ledger)
    assert 0 < result.ledger.transport.repeats <= AGENTS
    assert recorded_pulls(tmp_path / "run.ctlog") == plain.pulls
    calls = pull.calls()
    assert len(set(calls)) == plain.pulls
    assert len(calls) - plain.pulls <= paid_twice  # only pulls that were never reported are repeated


def test_a_host_killed_in_the_middle_of_a_pull_is_replaced(tmp_path):
    def kill(host):
        os.kill(host[1], signal.SIGKILL)

    result, pull, seconds = disturbed(kill, tmp_path)
    # Two agents were lost, each with what it drew since the last heartbeat.
    check_undisturbed(result, pull, tmp_path, paid_twice=2 * 12)
    assert seconds < 30
    away, *back = [record for record in read_log(tmp_path / "run.ctlog") if isinstance(record, AgentStatus)]
    assert (away.state, len(away.agents)) == ("away", 2)
    assert sorted(agent for record in back for agent in record.agents) == away.agents
    assert {record.state for record in back} == {"here"}


def test_a_node_killed_in_the_middle_of_a_round_is_replaced(tmp_path, three_nodes):
    pull, team = Counted(tmp_path / "calls", seconds=0.1), ct.RayTeam(hosts=3, heartbeat=0.1, silence=5)

    def kill(_):
        named = [re.search(r"\((\w+)\)", node).group(1) for node, _, _ in team.whereabouts()]
        three_nodes.kill(next(node for node in named if node in three_nodes.workers()))

    began = time.monotonic()
    try:
        result = run(pull, team, checkpoint=tmp_path / "run.ctlog", on_event=after(30, team, kill))
    finally:
        three_nodes.replace_killed()
    check_undisturbed(result, pull, tmp_path, paid_twice=2 * 10)
    assert time.monotonic() - began < 40


def test_a_frozen_host_is_noticed_after_the_stated_silence_and_replaced(tmp_path):
    frozen = []

    def freeze(host):
        frozen.append(host[1])
        os.kill(host[1], signal.SIGSTOP)

    try:
        result, pull, seconds = disturbed(freeze, tmp_path, silence=4)
    finally:
        for process in frozen:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    check_undisturbed(result, pull, tmp_path, paid_twice=2 * 12)
    assert 4 < seconds < 30


def test_a_slow_pull_does_not_count_as_a_frozen_host(tmp_path):
    pull = Counted(tmp_path / "calls", seconds=2.5)
    team = ct.RayTeam(hosts=2, heartbeat=0.1, silence=2)
    result = ct.identify(MEANS[:2], 1, pull=pull, agents=2, horizon=2, algorithm="uniform", seed=5, team=team)
    assert len(pull.calls()) == result.pulls == 4
    assert result.ledger.transport.repeats == 0


class LosesAHostEveryTime(ct.RayTeam):
    """Kills a host before every exchange."""

    def deliver(self, requests):
        os.kill(self.whereabouts()[0][1], signal.SIGKILL)
        return super().deliver(requests)


@pytest.mark.parametrize("algorithm", ["collab-top-iid", pytest.param("frugal-top-noniid", marks=pytest.mark.long)])
def test_simulated_rewards_are_drawn_again_after_any_number_of_losses(algorithm):
    arms = ct.BernoulliArms(np.linspace(0.2, 0.8, 12))
    asked: dict[str, Any] = {"agents": 5, "horizon": 600, "algorithm": algorithm, "seed": 3}
    events: list[Any] = []
    ray = ct.identify(arms, 2, team=LosesAHostEveryTime(hosts=2), on_event=events.append, **asked)
    local = ct.identify(arms, 2, **asked)
    assert (ray, ray.ledger) == (local, local.ledger)
    assert ray.ledger.transport.repeats > 0
    assert sum(event.pulls for event in events if isinstance(event, PullsMade)) == local.pulls


class RestartedByRay(ct.RayTeam):
    """Before the second exchange, one host is replaced by one without agents, as after a restart by Ray."""

    def deliver(self, requests):
        if requests[0].number == 2:
            host = self._pool._hosts[0]
            self._pool._ray.kill(host.actor)
            host.actor = self._pool._start_another().actor
        return super().deliver(requests)


def test_a_restarted_host_does_not_count_as_the_earlier_one():
    arms = ct.BernoulliArms(np.linspace(0.2, 0.8, 12))
    asked: dict[str, Any] = {"agents": 4, "horizon": 600, "algorithm": "collab-top-iid", "seed": 3}
    ray = ct.identify(arms, 2, team=RestartedByRay(hosts=2), **asked)
    local = ct.identify(arms, 2, **asked)
    assert (ray, ray.ledger) == (local, local.ledger)
    assert ray.ledger.transport.repeats == 2


def ends_its_process(candidate, rng):
    time.sleep(0.3 if candidate == "poison" else 0.03)  # so that earlier pulls are reported
    if candidate == "poison":
        os._exit(1)
    return 0.5


def fine(candidate, rng):
    return 0.5


def test_a_pull_that_ends_every_host_stops_the_run_which_can_be_resumed(tmp_path):
    path = tmp_path / "run.ctlog"
    asked: dict[str, Any] = {"agents": 2, "horizon": 8, "algorithm": "uniform", "seed": 1}
    message = (
        r"agent \d( and 1 others)? on node .*, process \d+, was lost while answering request 1 \(Pull\): its host is"
    )
    team = ct.RayTeam(hosts=2, heartbeat=0.1, recoveries=1)
    with pytest.raises(ct.AgentLostError, match=message) as caught:
        ct.identify(["good", "poison"], 1, pull=ends_its_process, team=team, checkpoint=path, **asked)
    assert caught.value.agent in (0, 1)
    assert caught.value.node
    assert recorded_pulls(path) == 2 * 4
    plain = ct.identify(["good", "poison"], 1, pull=fine, **asked)
    assert ct.resume(path, pull=fine) == plain
