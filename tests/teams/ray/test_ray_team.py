"""Agents on a Ray cluster of three nodes: exactly the runs of the local team."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.events import PullFailed, PullsMade
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Rewards
from collabtop.testing import check_team
from tests.support.accepted import accepted_setting

pytestmark = pytest.mark.usefixtures("three_nodes")

MEANS = [0.2, 0.35, 0.5, 0.65, 0.8]


def score(mean, rng):
    return rng.random() < mean


def fails_now_and_then(mean, rng):
    if rng.random() < 0.3:
        raise ConnectionError("no answer")
    return rng.random() < mean


def is_right(mean, example):
    return (example * 7) % 10 < 10 * mean


def waits(mean, rng):
    time.sleep(0.02)
    return rng.random() < mean


_FEW = ("collab-top-iid", "frugal-top-noniid")  # all the others in .ci/run


@pytest.mark.parametrize(
    "algorithm",
    [pytest.param(name, marks=() if name in _FEW else pytest.mark.slow) for name in ct.available_algorithms()],
)
def test_every_algorithm_runs_as_on_the_local_team(algorithm):
    rng = np.random.default_rng(4)
    m, agents = accepted_setting(algorithm, 4, 7)
    arms: ct.Arms
    if ct.make_algorithm(algorithm).iid_only or agents == 1:
        arms = ct.BernoulliArms(rng.uniform(0.2, 0.8, 60))
    else:
        arms = ct.HeterogeneousArms(rng.uniform(0.2, 0.8, (30, agents)))
    ray, local = (
        ct.identify(arms, m, agents=agents, horizon=3_000, algorithm=algorithm, seed=11, team=team)
        for team in (ct.RayTeam(hosts=2), "local")
    )
    assert (ray, ray.ledger) == (local, local.ledger)
    assert ray.observed.pulls.tolist() == local.observed.pulls.tolist()
    assert ray.ledger.transport.bytes > 0
    assert ray.ledger.transport.repeats == 0


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["reward", "example"])
@pytest.mark.parametrize("algorithm", ["kzz-balanced", "frugal-top"])
def test_a_private_run_has_the_noise_of_the_local_team(algorithm, unit):
    """The same answer, words and noisy means, to the last bit."""
    arms: ct.Arms
    arms = ct.FunctionArms(MEANS, score) if unit == "reward" else ct.DatasetArms(MEANS, list(range(60)), is_right)
    privacy = ct.Privacy(epsilon=3.0, delta=1e-6, unit=unit)
    run: dict[str, Any] = {"m": 2, "agents": 3, "horizon": 90, "algorithm": algorithm, "seed": 5}
    ray, local = (ct.identify(arms, **run, privacy=privacy, team=team) for team in (ct.RayTeam(hosts=2), "local"))
    assert (ray, ray.ledger, ray.privacy) == (local, local.ledger, local.privacy)
    means = [[estimate.mean for estimate in result.estimates] for result in (ray, local)]
    assert means[0] == means[1]
    plain = ct.identify(arms, **run)
    assert means[0] != [estimate.mean for estimate in plain.estimates]  # there was noise


@pytest.mark.slow
def test_the_team_keeps_the_laws():
    check_team(lambda: ct.RayTeam(hosts=2), algorithms=["frugal-top-noniid"])


@pytest.mark.long
@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_the_team_keeps_the_laws_with_every_algorithm_and_any_number_of_hosts(hosts):
    check_team(lambda: ct.RayTeam(hosts=hosts))


class Watching(ct.RayTeam):
    """Keeps the locations of the agents."""

    def deliver(self, requests):
        self.locations = self.whereabouts()
        return super().deliver(requests)


@pytest.mark.slow
def test_hosts_are_spread_over_the_nodes_and_share_the_agents():
    team = Watching(agents_per_host=4)
    ct.identify(ct.BernoulliArms(MEANS), 1, agents=10, horizon=100, seed=1, team=team)
    assert [agents for _, _, agents in team.locations] == [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]]
    assert len({node for node, _, _ in team.locations}) == 3
    assert team.whereabouts() == []


@pytest.mark.slow
def test_slow_pulls_of_a_host_run_in_parallel_up_to_the_limit():
    def seconds(width):
        team = ct.RayTeam(hosts=1, max_concurrent_pulls=width)
        result = ct.identify(MEANS, 1, pull=waits, agents=16, horizon=5, algorithm="uniform", seed=1, team=team)
        return result.ledger.transport.seconds

    wide, narrow = seconds(16), seconds(2)
    assert narrow > 16 / 2 * 5 * 0.02
    assert wide < narrow / 3, f"{wide:.2f} s sixteen at once, {narrow:.2f} s two at once"


def test_a_run_on_ray_can_be_resumed_on_any_team_and_vice_versa(tmp_path):
    path = tmp_path / "run.ctlog"
    asked: dict[str, Any] = {"agents": 4, "horizon": 30, "algorithm": "kzz", "seed": 3}
    plain = ct.identify(MEANS, 2, pull=score, **asked)
    first = ct.identify(MEANS, 2, pull=score, checkpoint=path, team=ct.RayTeam(hosts=2), **asked)
    assert (first, first.ledger) == (plain, plain.ledger)
    assert recorded_pulls(path) == plain.pulls
    assert ct.resume(path, pull=never) == plain
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    recorded = recorded_pulls(path)
    events: list[Any] = []
    again = ct.resume(path, pull=score, team=ct.RayTeam(hosts=3), on_event=events.append)
    assert (again, again.ledger) == (plain, plain.ledger)
    pulls = [event for event in events if isinstance(event, PullsMade)]
    assert sum(event.pulls for event in pulls) == plain.pulls
    assert sum(event.pulls for event in pulls if event.recalled) == recorded > 0
    assert path.read_bytes()[: len(data) // 2] == data[: len(data) // 2]


def never(mean, rng):
    raise AssertionError("a recorded pull was repeated")


def recorded_pulls(path):
    return sum(record.pulls for record in read_log(path) if isinstance(record, Rewards))


@pytest.mark.slow
def test_failures_and_retries_are_counted_as_on_the_local_team():
    policy = ct.PullPolicy(retries=1, wait=0, failures="zero")

    def run(team):
        events: list[Any] = []
        result = ct.identify(
            MEANS, 1, pull=fails_now_and_then, policy=policy, agents=3, horizon=40, seed=2, team=team,
            on_event=events.append,
        )  # fmt: skip
        failed = sorted(
            (event.agent, event.candidate, event.attempt) for event in events if isinstance(event, PullFailed)
        )
        pulls = sum(event.pulls for event in events if isinstance(event, PullsMade))
        return result, result.failures, result.retries, failed, pulls

    ray, local = run(ct.RayTeam(hosts=2)), run("local")
    assert ray == local
    assert ray[1]
    assert ray[2] > 0


@ct.batch
async def score_batch_async(mean, times, rng):
    await asyncio.sleep(0.01)
    return (rng.random(times) < mean).astype(float)


def hangs(mean, rng):
    if mean == 0.2:
        time.sleep(60)
    return mean


@pytest.mark.slow
def test_an_async_function_in_batch_form_gives_the_local_run():
    asked: dict[str, Any] = {"pull": score_batch_async, "agents": 4, "horizon": 60, "seed": 3}
    ray, local = (ct.identify(MEANS, 2, team=team, **asked) for team in (ct.RayTeam(hosts=2), "local"))
    assert (ray, ray.ledger) == (local, local.ledger)


@pytest.mark.slow
def test_hosts_share_the_workers_and_give_the_local_run(tmp_path):
    asked: dict[str, Any] = {"pull": score, "agents": 4, "horizon": 60, "seed": 3}
    local = ct.identify(MEANS, 2, **asked)
    ray = ct.identify(MEANS, 2, team=ct.RayTeam(hosts=2), workers=6, rate=1e4, checkpoint=tmp_path / "run", **asked)
    assert (ray, ray.ledger) == (local, local.ledger)
    assert ct.resume(tmp_path / "run", pull=score, workers=3) == local


@pytest.mark.slow
def test_a_pull_that_takes_too_long_is_killed_in_its_host():
    policy = ct.PullPolicy(time_limit=1, failures="zero")
    asked: dict[str, Any] = {
        "pull": hangs,
        "policy": policy,
        "agents": 2,
        "horizon": 5,
        "algorithm": "uniform",
        "seed": 1,
    }
    result = ct.identify(MEANS, 1, team=ct.RayTeam(hosts=1), **asked)
    assert result.top == ["0.8"]
    assert result.failures == {"0.2": 2}


@pytest.mark.slow
def test_a_budget_reports_what_was_spent():
    asked: dict[str, Any] = {"agents": 3, "budget": 200.0, "cost": [1, 2, 3, 4, 5], "seed": 2}
    ray, local = (ct.identify(MEANS, 1, pull=score, team=team, **asked) for team in (ct.RayTeam(hosts=2), "local"))
    assert ray.spending == local.spending
    assert ray.spending.spent is not None


def breaks(candidate, rng):
    if candidate == "bad":
        raise LookupError("no such model")
    return 0.5


def test_a_runtime_environment_that_ray_rejects_is_named():
    with pytest.raises(ct.InputError, match=r"runtime_env is \{'working_dir': 'nowhere'\}, which Ray rejects: "):
        ct.identify(
            ct.BernoulliArms(MEANS), 1, agents=2, horizon=60, team=ct.RayTeam(runtime_env={"working_dir": "nowhere"})
        )


def test_a_users_exception_becomes_a_pull_error_with_the_candidate_and_a_traceback():
    with pytest.raises(ct.PullError, match="pull of candidate 'bad' raised LookupError: no such model") as caught:
        ct.identify(["good", "bad"], 1, pull=breaks, agents=2, horizon=10, team=ct.RayTeam(hosts=2))
    assert caught.value.candidate == "bad"
    assert "in breaks" in caught.value.__notes__[0]


def test_arms_that_cannot_be_sent_are_rejected_in_one_line():
    lock = threading.Lock()
    with pytest.raises(ct.InputError, match=r"cannot be sent to Ray's hosts \(.*lock.*\): pull may only use data"):
        ct.identify(["a", "b"], 1, pull=lambda candidate, rng: lock.locked(), agents=2, horizon=10, team="ray")


@pytest.mark.slow
def test_hosts_without_room_are_rejected_after_the_timeout():
    team = ct.RayTeam(hosts=2, resources={"CPU": 1, "GPU": 1}, start_timeout=1)
    with pytest.raises(
        ct.InputError, match=r"no room for 2 hosts with \{'CPU': 1, 'GPU': 1\} each .* it has \{'CPU': 12"
    ):
        ct.identify(ct.BernoulliArms(MEANS), 1, agents=2, horizon=100, team=team)


@pytest.mark.slow
def test_a_different_address_than_the_connected_one_is_rejected(three_nodes):
    arms = ct.BernoulliArms(MEANS)
    with pytest.raises(ct.InputError, match=r"address is '1.2.3.4:5', but this process is connected to the Ray at "):
        ct.identify(arms, 1, agents=2, horizon=100, team=ct.RayTeam(address="1.2.3.4:5"))
    team = ct.RayTeam(hosts=1, address=three_nodes.address)
    assert ct.identify(arms, 1, agents=2, horizon=200, seed=1, team=team).top == [4]


@pytest.mark.slow
def test_a_stopped_run_ends_with_what_is_known_and_can_be_resumed(tmp_path):
    path = tmp_path / "run.ctlog"
    asked: dict[str, Any] = {"agents": 4, "horizon": 400, "seed": 3, "algorithm": "kzz"}
    with ct.start(MEANS, 2, pull=waits, team=ct.RayTeam(hosts=2), checkpoint=path, **asked) as run:
        next(event for event in run if isinstance(event, PullsMade))
        run.stop()
        result = run.result()
    assert (result.complete, len(result.top)) == (False, 2)
    assert 0 < result.pulls < 4 * 400
    assert ct.resume(path, pull=score) == ct.identify(MEANS, 2, pull=score, **asked)


@pytest.mark.slow
def test_a_timeout_ends_a_run_whose_pulls_take_long():
    result = ct.identify(MEANS, 2, pull=waits, agents=2, horizon=100_000, seed=3, timeout=1.0, team=ct.RayTeam(hosts=1))
    assert (result.complete, len(result.top)) == (False, 2)
    assert "not complete" in result.warnings[0]
