"""Seen from the coordinator's chair: the algorithm, run again on the logged answers, knows what it knew."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

import collabtop as ct
from collabtop.coordination.scoreboard import ACCEPTED, REJECTED
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Exchange
from collabtop.watch.baselines import rival_of
from collabtop.watch.replay import INSIDE, Replay
from collabtop.watch.runs import WatchedRun

MEANS = np.linspace(0.1, 0.9, 40)
ONE_AGENT = ("sar", "sequential-halving", "kl-lucb")


def logged(path, algorithm="kzz", m=1, arms=None, **more):
    agents = 1 if algorithm in ONE_AGENT else 4
    asked = {
        "agents": agents,
        "horizon": 600 if algorithm == "kl-lucb" else 4_000,
        "seed": 5,
        "algorithm": algorithm,
        "checkpoint": path,
        **more,
    }
    return ct.identify(arms or ct.BernoulliArms(MEANS), m, **asked)


def watched(path):
    run = WatchedRun(path, path.name)
    run.read_on(closer=True)
    return run


@pytest.mark.parametrize("m", [1, 3, 37])
@pytest.mark.parametrize("algorithm", ct.available_algorithms())
def test_a_finished_run_is_told_as_it_was_down_to_the_last_word(algorithm, m, tmp_path):
    m = 1 if algorithm == "sequential-halving" else m
    result = logged(tmp_path / "run.ctlog", algorithm, m)
    run = watched(tmp_path / "run.ctlog")
    assert run.replay.trouble is None
    again = run.result()
    assert again == result
    assert again.ledger == result.ledger
    assert again.table().rows == result.table().rows


def test_half_way_the_verdicts_are_those_of_the_rounds_that_ended(tmp_path):
    path = tmp_path / "run.ctlog"
    result = logged(path, "kzz", m=3)
    records = read_log(path)
    replay = Replay(records[0])
    assert replay.asked == [0, 1, 2, 3]
    for number, exchange in enumerate((it for it in records if isinstance(it, Exchange)), 1):
        replay.take(exchange)
        settled = {it.arm: it.verdict for it in result.estimates if it.round is not None and it.round < number}
        verdicts = replay.columns().verdicts
        assert {arm: verdicts[arm] for arm in settled} == {
            arm: ACCEPTED if verdict == "accepted" else REJECTED for arm, verdict in settled.items()
        }
        assert replay.now().accepted + replay.now().rejected == len(settled)
    assert replay.done
    assert replay.asked == []


def test_arms_that_agents_pruned_on_their_own_are_said_to_be_settled_inside(tmp_path):
    path = tmp_path / "run.ctlog"
    arms = ct.BernoulliArms(np.linspace(0.1, 0.9, 400))
    result = logged(path, "frugal-top", arms=arms)
    records = read_log(path)
    replay = Replay(records[0])
    replay.take(next(it for it in records if isinstance(it, Exchange)))
    handed_over = result.ledger.words_by("kind")["Hand"] // 2  # an arm and its mean
    assert np.count_nonzero(replay.columns().verdicts == INSIDE) == 400 - handed_over
    now = replay.now()
    assert (now.live, now.inside) == (result.rounds[1].live, 400 - handed_over)
    assert now.accepted + now.rejected == handed_over - now.live
    replay.close()


@dataclass(frozen=True)
class Unknown(ct.KZZ):
    name = "of-my-own"

    @property
    def title(self):
        return "of-my-own"


def test_an_algorithm_that_is_not_registered_is_shown_from_its_log_alone(tmp_path):
    result = logged(tmp_path / "run.ctlog", Unknown())
    run = watched(tmp_path / "run.ctlog")
    assert "of-my-own is not an algorithm" in run.replay.trouble
    assert (run.tally.words, run.tally.pulls, run.tally.top) == (result.words, result.pulls, result.top_indices)


def test_an_algorithm_that_does_something_else_is_found_out(tmp_path):
    ct.register_algorithm("of-my-own", Unknown)
    logged(tmp_path / "run.ctlog", Unknown())
    ct.register_algorithm("of-my-own", lambda balanced: ct.Uniform())
    assert "exchange 1 asks for something else" in watched(tmp_path / "run.ctlog").replay.trouble


def test_a_long_log_is_taken_in_piece_by_piece_and_said_to_be_read(tmp_path):
    path = tmp_path / "run.ctlog"
    result = logged(path, "confident-top", horizon=None, confidence=0.9)
    run, seen = WatchedRun(path, path.name), []
    while not seen or run.status == "reading":
        run.read_on(closer=True, seconds=0.001)
        seen.append((run.status, run.tally.pulls))
    assert [status for status, _ in seen[:-1]] == ["reading"] * (len(seen) - 1)
    assert len(seen) > 2
    assert [pulls for _, pulls in seen] == sorted(pulls for _, pulls in seen)
    assert run.status == "finished"
    assert run.result() == result


def test_a_run_goes_on_being_resumable_while_it_is_looked_at(tmp_path):
    path = tmp_path / "run.ctlog"
    result = logged(path)
    path.write_bytes(path.read_bytes()[:-300])
    run = watched(path)
    assert run.status == "stopped"
    assert ct.resume(path, arms=ct.BernoulliArms(MEANS)) == result
    run._read_at = 0.0
    run.read_on(closer=True)
    assert run.status == "finished"
    assert run.result() == result


def test_beside_a_run_stands_its_own_rival_also_if_that_of_the_log_before_is_found_later(tmp_path, monkeypatch):
    path = tmp_path / "run.ctlog"
    threads, may_go_on = [], threading.Event()

    def slow_at_first(header):
        threads.append(threading.current_thread())
        if header.horizon == 4_000:
            may_go_on.wait(10)
        return rival_of(header)

    monkeypatch.setattr("collabtop.watch.runs.rival_of", slow_at_first)
    logged(path)
    run = watched(path)
    logged(tmp_path / "other.ctlog", horizon=2_000)
    (tmp_path / "other.ctlog").replace(path)
    run._read_at = 0.0
    run.read_on(closer=True)
    deadline = time.monotonic() + 30
    while run.rival is None and time.monotonic() < deadline:
        time.sleep(0.01)
    may_go_on.set()
    for thread in threads:
        thread.join(10)
    assert len(threads) == 2
    assert run.rival == rival_of(run.header)
