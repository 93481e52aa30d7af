"""A run in the background: the answer so far, stopping, events, timeouts, interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import collabtop as ct
from collabtop.runs.identification import _prepare

MEANS = [0.1, 0.3, 0.5, 0.6, 0.7, 0.95]
ALGORITHMS = ct.available_algorithms()


def setting(algorithm: str) -> tuple[int, int]:
    """The m and the number of agents for an algorithm: 4 (more than half, so the search is mirrored) and 3, or 1."""
    for m, agents in ((4, 3), (1, 3), (4, 1), (1, 1)):
        try:
            ct.make_algorithm(algorithm).check(ct.Problem(n=len(MEANS), m=m, agents=agents, horizon=60))
        except ct.SettingError:
            continue
        return m, agents
    raise AssertionError(f"{algorithm} takes no problem")


def limits(algorithm: str) -> dict[str, Any]:
    """Arguments with which an algorithm runs on these means."""
    return {"agents": setting(algorithm)[1], "horizon": 60 * len(MEANS), "algorithm": algorithm, "seed": 3}


def m_of(algorithm: str) -> int:
    return setting(algorithm)[0]


def draw(mean, rng):
    return rng.random() < mean


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_result_of_a_handle_is_that_of_identify(algorithm):
    arguments = limits(algorithm)
    run = ct.start(MEANS, m_of(algorithm), pull=draw, **arguments)
    expected = ct.identify(MEANS, m_of(algorithm), pull=draw, **arguments)
    assert run.result() == expected == run.best()
    assert expected.complete
    assert run.progress.state == "done"
    assert run.progress.pulls == expected.pulls


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("stop_at", [1, 50, 250])
def test_the_answer_so_far_agrees_with_the_result_if_the_run_ends_there(algorithm, stop_at, tmp_path):
    calls, seen = 0, []

    def pull(mean, rng):
        nonlocal calls
        calls += 1
        if calls == stop_at:
            seen.append((MEANS.index(mean), execution.best()))
            execution.stop()
        return draw(mean, rng)

    path = tmp_path / "run.ctlog"
    execution = _prepare(MEANS, m_of(algorithm), pull=pull, checkpoint=path, **limits(algorithm))
    execution.observe(lambda event: None)
    result = execution.run()
    [(pulled, before)] = seen
    assert not result.complete
    assert not before.complete
    assert result.pulls == before.pulls + 1 == stop_at == sum(result.observed.pulls)
    assert len(set(result.top_indices)) == m_of(algorithm)
    assert execution.best() == result == ct.peek(path)
    if result.round_trips == before.round_trips:  # otherwise that pull completed the answers to a question
        for arm in set(range(len(MEANS))) - {pulled}:
            assert result.estimates[arm].mean == before.estimates[arm].mean
            assert result.estimates[arm].pulls == before.estimates[arm].pulls
    assert ct.resume(path, pull=draw) == ct.identify(MEANS, m_of(algorithm), pull=draw, **limits(algorithm))


def test_the_answer_so_far_has_the_accepted_candidates_and_then_the_best_open_ones():
    seen = []

    def pull(mean, rng):
        seen.append(execution.best())
        return draw(mean, rng)

    execution = _prepare(MEANS, 2, pull=pull, agents=2, horizon=120, algorithm="kzz", seed=1)
    execution.observe(lambda event: None)
    execution.run()
    assert seen[0].top_indices is not None
    assert all(estimate.mean is None and not estimate.settled for estimate in seen[0].estimates)
    for best in seen:
        accepted = [estimate.arm for estimate in best.estimates if estimate.settled and estimate.verdict == "accepted"]
        assert set(accepted) <= set(best.top_indices)
        assert len(best.top_indices) == 2
    rejected = {estimate.arm for estimate in seen[-1].estimates if estimate.settled and estimate.verdict == "rejected"}
    assert rejected
    assert not rejected & set(seen[-1].top_indices)


def test_few_lucky_rewards_do_not_outrank_many_good_ones():
    rewards = {"lucky": [1.0, 1.0, 1.0], "good": [1.0] * 45 + [0.0] * 5}
    made = []

    @ct.replicates
    def pull(candidate, number):
        made.append(candidate)
        if made.count("lucky") > 2 and made.count("good") > 49:
            execution.stop()
        return rewards[candidate][number] if number < len(rewards[candidate]) else 1.0

    execution = _prepare(["good", "lucky"], 1, pull=pull, agents=1, horizon=100, algorithm="uniform", seed=1)
    result = execution.run()
    assert result.table().rows[1].mean == 1.0
    assert result.top == ["good"]


@pytest.mark.parametrize("team", ["local", "threads"])
def test_stop_ends_the_run_after_the_pulls_under_way(team):
    started = threading.Semaphore(0)
    release = threading.Event()

    def pull(mean, rng):
        started.release()
        release.wait(30)
        return mean

    with ct.start(MEANS, 1, pull=pull, agents=4, horizon=90, seed=1, team=team) as run:
        for _ in range(1 if team == "local" else 4):
            assert started.acquire(timeout=30)
        run.stop()
        with pytest.raises(TimeoutError, match=r"the run has not ended within .* it continues"):
            run.result(timeout=0.01)
        release.set()
        result = run.result(timeout=30)
    assert result.pulls == sum(result.observed.pulls) == (1 if team == "local" else 4)
    assert not result.complete
    assert run.progress.state == "stopped"
    assert "not complete: " in result.warnings[0]
    assert not [
        thread for thread in threading.enumerate() if thread.name.startswith(("collabtop run", "collabtop agent"))
    ]


def test_simulated_arms_can_be_stopped_too():
    stopped = threading.Event()

    def stop(event):
        if isinstance(event, ct.events.Exchanged):
            execution.stop()
            stopped.set()

    arms = ct.BernoulliArms(MEANS)
    execution = _prepare(arms, 1, agents=2, horizon=600, algorithm="kzz", seed=1, on_event=stop)
    result = execution.run()
    assert stopped.is_set()
    assert result.round_trips == 1
    assert not result.complete
    assert result.pulls == sum(result.observed.pulls) > 0


def test_a_timeout_returns_the_best_answer_the_time_allowed():
    def pull(mean, rng):
        time.sleep(0.005)
        return draw(mean, rng)

    for in_seconds in (True, False):
        timeout = 0.2 if in_seconds else datetime.now(UTC) + timedelta(seconds=0.2)
        result = ct.identify(MEANS, 1, pull=pull, agents=2, horizon=100_000, seed=1, timeout=timeout, team="threads")
        assert not result.complete
        assert 0 < result.pulls == sum(result.observed.pulls)
    assert not [
        thread for thread in threading.enumerate() if thread.name.startswith(("collabtop run", "collabtop agent"))
    ]


def test_a_timeout_that_is_not_reached_changes_nothing():
    arms = ct.BernoulliArms(MEANS)
    assert ct.identify(arms, 1, agents=2, horizon=90, seed=1, timeout=600) == ct.identify(
        arms, 1, agents=2, horizon=90, seed=1
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"timeout": 0}, "timeout is 0, but a positive number of seconds is needed"),
        ({"timeout": "soon"}, "timeout is 'soon', but a positive number of seconds is needed"),
        ({"timeout": datetime(2020, 1, 1)}, "timeout is 2020-01-01 00:00:00, but a time in the future is needed"),
        ({"timeout": datetime(2020, 1, 1, tzinfo=UTC)}, "timeout is 2020-01-01 .* a time in the future is needed"),
        ({"on_interrupt": "ignore"}, "on_interrupt is 'ignore', but 'raise' or 'return' is needed"),
        ({"name": 3}, "name is 3, but a text is needed"),
        ({"horizon": 0}, "horizon is 0, but"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_pulled(arguments, message):
    for function in (ct.identify, ct.start):
        with pytest.raises(ct.InputError, match=message) as caught:
            function(ct.BernoulliArms(MEANS), 1, **{"agents": 2, "horizon": 90, **arguments})
        assert caught.value.argument == next(iter(arguments))


def test_start_has_the_signature_of_identify():
    import inspect

    assert inspect.signature(ct.start).parameters == inspect.signature(ct.identify).parameters


def test_an_error_of_the_run_is_raised_by_result_with_its_traceback():
    def pull(mean, rng):
        raise ZeroDivisionError("no")

    run = ct.start(MEANS, 1, pull=pull, agents=2, horizon=90, seed=1)
    with pytest.raises(ct.PullError, match="raised ZeroDivisionError: no") as caught:
        run.result()
    assert "pull" in [frame.name for frame in traceback.extract_tb(caught.value.__cause__.__traceback__)]
    assert run.progress.state == "failed"
    assert run.best().pulls == 0
    assert "failed" in repr(run)


def test_leaving_the_block_stops_the_run_and_ends_its_thread():
    before = threading.active_count()
    with pytest.raises(RuntimeError, match="mine"), ct.start(MEANS, 1, pull=draw, agents=2, horizon=10**9) as run:
        raise RuntimeError("mine")
    assert threading.active_count() == before
    assert not run.result().complete


def test_a_run_inside_a_pull_of_a_run():
    def pull(mean, rng):
        inner = ct.start(ct.BernoulliArms([mean, 0.5]), 1, agents=2, horizon=10, seed=int(rng.integers(1000)))
        return inner.result().top == [0]

    run = ct.start(MEANS, 1, pull=pull, agents=2, horizon=40, seed=1, team="threads")
    assert run.result() == ct.identify(MEANS, 1, pull=pull, agents=2, horizon=40, seed=1)


# -- events


def test_events_carry_candidate_reward_estimate_and_cost():
    rewards = {"a": 0.25, "b": 0.75}

    def pull(candidate, rng):
        time.sleep(0.011)  # slow enough to be reported one by one
        return rewards[candidate]

    run = ct.start(["a", "b"], 1, pull=pull, agents=1, budget=12, cost=[1.0, 2.0], algorithm="uniform", seed=1)
    events = list(run)
    scores = [score for event in events if isinstance(event, ct.events.Scored) for score in event.scores]
    assert sum(score.pulls for score in scores) == run.result().pulls
    assert {(score.candidate, score.reward, score.estimate, score.cost / score.pulls) for score in scores} == {
        ("a", 0.25, 0.25, 1.0),
        ("b", 0.75, 0.75, 2.0),
    }
    assert isinstance(events[0], ct.events.RunStarted)
    assert isinstance(events[-1], ct.events.RunEnded)
    assert events[-1].complete
    assert list(run) == events  # a later iteration has them too


def test_scores_of_simulated_arms_come_as_one_event_per_batch():
    run = ct.start(ct.BernoulliArms(MEANS), 1, agents=2, horizon=90, algorithm="uniform", seed=1)
    events = [event for event in run if isinstance(event, ct.events.Scored)]
    assert [len(event.scores) for event in events] == [len(MEANS)] * 2
    last = {score.arm: score.estimate for event in events for score in event.scores}
    result = run.result()
    assert [last[arm] for arm in range(len(MEANS))] == pytest.approx([it.mean for it in result.estimates])


def test_scores_tell_failed_and_recalled_pulls(tmp_path):
    def pull(mean, rng):
        if mean == 0.5:
            raise ConnectionError
        return mean

    arguments: dict[str, Any] = {"agents": 2, "horizon": 30, "algorithm": "uniform", "seed": 1}
    policy = ct.PullPolicy(failures="zero")
    first = ct.start(MEANS, 1, pull=pull, policy=policy, checkpoint=tmp_path / "run.ctlog", **arguments)
    scored = [event for event in first if isinstance(event, ct.events.Scored)]
    failed = [score for event in scored for score in event.scores if score.candidate == "0.5"]
    assert {(score.reward, score.estimate) for score in failed} == {(None, 0.0)}
    again = ct.start(MEANS, 1, pull=pull, policy=policy, checkpoint=tmp_path / "run.ctlog", **arguments)
    recalled = [event for event in again if isinstance(event, ct.events.Scored)]
    assert all(event.recalled for event in recalled)
    assert not any(event.recalled for event in scored)
    assert first.result() == again.result()


def test_both_the_handle_and_the_user_get_all_events():
    mine = []
    run = ct.start(MEANS, 1, pull=draw, agents=2, horizon=40, seed=1, on_event=mine.append)
    assert list(run) == mine


def test_a_slow_reader_misses_the_oldest_events_only(monkeypatch):
    monkeypatch.setattr("collabtop.runs.handle._KEPT_EVENTS", 5)
    run = ct.start(MEANS, 1, pull=draw, agents=2, horizon=400, algorithm="kzz", seed=1)
    run.result()
    events = list(run)
    assert len(events) == 5
    assert isinstance(events[-1], ct.events.RunEnded)


# -- interrupts


def partial_of(caught: Any) -> Any:
    return caught.value.partial


def test_an_interrupt_carries_what_is_known():
    calls = 0

    def pull(mean, rng):
        nonlocal calls
        calls += 1
        if calls == 20:
            raise KeyboardInterrupt
        return draw(mean, rng)

    arguments: dict[str, Any] = {"agents": 2, "horizon": 90, "seed": 1}
    with pytest.raises(KeyboardInterrupt) as caught:
        ct.identify(MEANS, 1, pull=pull, **arguments)
    assert not partial_of(caught).complete
    assert partial_of(caught).pulls == 19
    calls = 0
    result = ct.identify(MEANS, 1, pull=pull, on_interrupt="return", **arguments)
    assert result == partial_of(caught)
    calls = 0
    run = ct.start(MEANS, 1, pull=pull, **arguments)
    with pytest.raises(KeyboardInterrupt):  # raised in the run, not while it is waited for
        run.result()


def test_an_interrupt_before_the_first_pull_has_an_empty_answer():
    class Stubborn(ct.LocalTeam):
        def open(self, arms, setup, recorder):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        ct.identify(ct.BernoulliArms(MEANS), 2, agents=2, horizon=90, seed=1, team=Stubborn())
    assert partial_of(caught).pulls == 0
    assert len(partial_of(caught).top) == 2


SCRIPT = """
import sys, time
import collabtop as ct

def pull(candidate, rng):
    time.sleep(0.01)
    print("pulled", flush=True)
    return rng.random() < candidate

arguments = dict(pull=pull, agents=4, horizon=2_000, seed=1, team="threads", checkpoint=sys.argv[2], name="trial")
if sys.argv[1] == "start":
    run = ct.start([0.2, 0.4, 0.6, 0.8], 1, on_interrupt="return", **arguments)
    result = run.result()
else:
    try:
        ct.identify([0.2, 0.4, 0.6, 0.8], 1, **arguments)
    except KeyboardInterrupt as interrupt:
        result = interrupt.partial
print(result.complete, result.pulls, sum(result.observed.pulls))
"""


@pytest.mark.parametrize("way", ["identify", "start"])
def test_ctrl_c_leaves_what_is_known(way, tmp_path):
    script, path = tmp_path / "script.py", tmp_path / "run.ctlog"
    script.write_text(SCRIPT)
    process = subprocess.Popen([sys.executable, script, way, path], stdout=subprocess.PIPE, text=True)
    with process:
        for _ in range(8):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        last = process.stdout.read().splitlines()[-1].split()
    assert process.returncode == 0
    assert last[0] == "False"
    assert int(last[1]) == int(last[2]) >= 4
    peeked = ct.peek(path)
    assert peeked.name == "trial"
    assert peeked.pulls >= int(last[1])


# -- from a log


def test_a_log_can_be_looked_at_while_it_is_written_and_after_a_kill(tmp_path):
    script, path = tmp_path / "script.py", tmp_path / "run.ctlog"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, script, "identify", path], stdout=subprocess.PIPE, text=True) as process:
        pulls = []
        while len(pulls) < 3 or pulls[-1] == pulls[0]:
            process.stdout.readline()
            if path.exists() and path.stat().st_size > 300:
                pulls.append(ct.peek(path).pulls)
        assert pulls == sorted(pulls)
        os.kill(process.pid, signal.SIGKILL)
    result = ct.peek(path)
    assert not result.complete
    assert result.pulls == sum(result.observed.pulls) >= pulls[-1]
    assert result.open == list(result.labels)
    resumed = ct.resume(path, pull=draw, timeout=0.05)
    assert resumed.pulls >= result.pulls
    assert resumed.name == "trial"


def test_a_log_of_an_algorithm_that_is_not_registered_here_shows_its_pulls(tmp_path, monkeypatch):
    path = tmp_path / "run.ctlog"
    result = ct.identify(MEANS, 2, pull=draw, agents=2, horizon=60, algorithm="kzz", seed=1, checkpoint=path)
    monkeypatch.setattr("collabtop.runs.replay.make_algorithm", unknown)
    peeked = ct.peek(path)
    assert set(peeked.top) == set(result.top)
    assert peeked.complete
    assert (peeked.words, peeked.pulls, peeked.time) == (result.words, result.pulls, result.time)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    peeked = ct.peek(path)
    assert not peeked.complete
    assert len(peeked.open) == len(MEANS)


def unknown(name, **options):
    raise ct.UnknownAlgorithmError(f"there is no {name}")


def test_a_log_without_a_run_cannot_be_looked_at(tmp_path):
    with pytest.raises(ct.FileError, match="no such file"):
        ct.peek(tmp_path / "none.ctlog")


def test_the_name_is_kept_and_shown_but_does_not_make_a_different_run(tmp_path):
    path = tmp_path / "run.ctlog"
    arguments: dict[str, Any] = {"pull": draw, "agents": 2, "horizon": 60, "seed": 1, "checkpoint": path}
    result = ct.identify(MEANS, 2, name="first [trial]", **arguments)
    assert "first [trial]: the best 2" in str(result)
    assert json.loads(result.to_json())["name"] == "first [trial]"
    assert ct.identify(MEANS, 2, **arguments) == result


def test_non_iid_arms_are_averaged_over_agents():
    arms = ct.DatasetArms(["a", "b"], [[0.0] * 50, [1.0] * 50], lambda candidate, x: x, by_agent=True)

    def stop(event):
        if isinstance(event, ct.events.Scored) and (event.agent, event.scores[-1].candidate) == (1, "b"):
            execution.stop()

    execution = _prepare(arms, 1, horizon=40, algorithm="uniform", seed=1, on_event=stop)
    result = execution.run()
    assert all(estimate.mean == 0.5 for estimate in result.estimates)
