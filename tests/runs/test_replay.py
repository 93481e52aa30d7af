"""The algorithm, run again on the logged replies, has the same state as in the run."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

import collabtop as ct
from collabtop.coordination.scoreboard import ACCEPTED, REJECTED
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Exchange, Header
from collabtop.runs.replay import INSIDE, Replay
from collabtop.watch.baselines import baseline_of
from collabtop.watch.watched_runs import WatchedRun
from tests.support.accepted import accepted_setting

MEANS = np.linspace(0.1, 0.9, 40)


def logged(path, algorithm="kzz", m=1, arms=None, **more):
    m, agents = accepted_setting(algorithm, m, 4)
    arguments = {
        "agents": agents,
        "horizon": 600 if algorithm == "kl-lucb" else 4_000,
        "seed": 5,
        "algorithm": algorithm,
        "checkpoint": path,
        **more,
    }
    return ct.identify(arms or ct.BernoulliArms(MEANS), m, **arguments)


def exchanges_in(records):
    return [record for record in records if isinstance(record, Exchange)]


def watched(path):
    run = WatchedRun(path, path.name)
    run.update(replay=True)
    return run


@pytest.mark.parametrize("m", [1, 3, 37])
@pytest.mark.parametrize("algorithm", ct.available_algorithms())
def test_a_finished_run_is_replayed_exactly(algorithm, m, tmp_path):
    result = logged(tmp_path / "run.ctlog", algorithm, m)
    run = watched(tmp_path / "run.ctlog")
    assert run.replay_error is None
    replayed = run.result()
    assert replayed == result
    assert replayed.ledger == result.ledger
    assert replayed.table().rows == result.table().rows


def test_verdicts_half_way_are_those_of_the_rounds_that_ended(tmp_path):
    path = tmp_path / "run.ctlog"
    result = logged(path, "kzz", m=3)
    records = read_log(path)
    assert isinstance(records[0], Header)
    replay = Replay(records[0])
    assert replay.asked == [0, 1, 2, 3]
    for number, exchange in enumerate(exchanges_in(records), 1):
        replay.add(exchange)
        settled = {
            estimate.arm: estimate.verdict
            for estimate in result.estimates
            if estimate.round is not None and estimate.round < number
        }
        verdicts = replay.columns().verdicts
        assert {arm: verdicts[arm] for arm in settled} == {
            arm: ACCEPTED if verdict == "accepted" else REJECTED for arm, verdict in settled.items()
        }
        assert replay.now().accepted + replay.now().rejected == len(settled)
    assert replay.done
    assert replay.asked == []


def test_arms_that_agents_pruned_on_their_own_are_settled_inside(tmp_path):
    path = tmp_path / "run.ctlog"
    arms = ct.BernoulliArms(np.linspace(0.1, 0.9, 400))
    result = logged(path, "frugal-top", arms=arms)
    records = read_log(path)
    assert isinstance(records[0], Header)
    replay = Replay(records[0])
    replay.add(exchanges_in(records)[0])
    handed_over = result.ledger.words_by("kind")["Hand"] // 2  # an arm and its mean
    assert np.count_nonzero(replay.columns().verdicts == INSIDE) == 400 - handed_over
    now = replay.now()
    assert (now.live, now.inside) == (result.rounds[1].live, 400 - handed_over)
    assert now.accepted + now.rejected == handed_over - now.live
    replay.close()


@dataclass(frozen=True)
class Unknown(ct.KZZ):
    name = "custom"

    @property
    def title(self):
        return "custom"


def test_an_algorithm_that_is_not_registered_is_shown_from_its_log_alone(tmp_path):
    result = logged(tmp_path / "run.ctlog", Unknown())
    run = watched(tmp_path / "run.ctlog")
    assert "custom is not an algorithm that is registered here" in run.replay_error
    assert (run.state.words, run.state.pulls, run.state.top) == (result.words, result.pulls, result.top_indices)


def test_an_algorithm_that_sends_different_requests_is_reported(tmp_path):
    ct.register_algorithm("custom", Unknown)
    logged(tmp_path / "run.ctlog", Unknown())
    ct.register_algorithm("custom", lambda balanced: ct.Uniform())
    assert "exchange 1 has different requests" in watched(tmp_path / "run.ctlog").replay_error


def test_a_long_log_is_read_in_pieces_with_the_status_reading(tmp_path):
    path = tmp_path / "run.ctlog"
    result = logged(path, "confident-top", horizon=None, confidence=0.9)
    run, seen = WatchedRun(path, path.name), []
    while not seen or run.status == "reading":
        run.update(replay=True, seconds=0.001)
        seen.append((run.status, run.state.pulls))
    assert [status for status, _ in seen[:-1]] == ["reading"] * (len(seen) - 1)
    assert len(seen) > 2
    assert [pulls for _, pulls in seen] == sorted(pulls for _, pulls in seen)
    assert run.status == "finished"
    assert run.result() == result


def test_a_run_can_be_resumed_while_it_is_watched(tmp_path):
    path = tmp_path / "run.ctlog"
    result = logged(path)
    path.write_bytes(path.read_bytes()[:-300])
    run = watched(path)
    assert run.status == "stopped"
    assert ct.resume(path, arms=ct.BernoulliArms(MEANS)) == result
    run._last_read = 0.0
    run.update(replay=True)
    assert run.status == "finished"
    assert run.result() == result


def test_a_late_baseline_of_the_previous_log_is_ignored(tmp_path, monkeypatch):
    path = tmp_path / "run.ctlog"
    threads, may_continue = [], threading.Event()

    def slow_at_first(header):
        threads.append(threading.current_thread())
        if header.horizon == 4_000:
            may_continue.wait(10)
        return baseline_of(header)

    monkeypatch.setattr("collabtop.watch.watched_runs.baseline_of", slow_at_first)
    logged(path)
    run = watched(path)
    logged(tmp_path / "other.ctlog", horizon=2_000)
    (tmp_path / "other.ctlog").replace(path)
    run._last_read = 0.0
    run.update(replay=True)
    deadline = time.monotonic() + 30
    while run.baseline is None and time.monotonic() < deadline:
        time.sleep(0.01)
    may_continue.set()
    for thread in threads:
        thread.join(10)
    assert len(threads) == 2
    assert run.baseline == baseline_of(run.header)
