"""Rewards with costs and notes: added up, kept with the reward, and never lost or charged twice."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

import collabtop as ct
from collabtop.arms.base import Drawn
from collabtop.runlog.file import RunLog, read_log
from collabtop.runlog.format import FailedAttempt, Rewards, decode_body
from collabtop.runlog.log_state import LogState, notes_in

PROMPTS = ["short", "polite", "step by step"]


def score(prompt, rng):
    return ct.Reward(rng.random() < len(prompt) / 20, cost=len(prompt) / 8, note=f"{prompt}!")


def identify(pull, path=None, **more):
    return ct.identify(PROMPTS, 1, pull=pull, **{"agents": 2, "horizon": 40, "seed": 1, "checkpoint": path} | more)


class Interrupted:
    """A function that stops the run at its call number `at`, as a kill would."""

    def __init__(self, function, at):
        self.function, self.left = function, at

    def __call__(self, candidate, rng):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return self.function(candidate, rng)


def test_a_reward_counts_like_its_value_and_costs_are_added_up():
    plain = identify(lambda prompt, rng: rng.random() < len(prompt) / 20)
    result = identify(score)
    assert result == plain
    pulls = result.observed.pulls
    assert (
        result.cost == result.totals.cost == sum(len(prompt) / 8 * n for prompt, n in zip(PROMPTS, pulls, strict=True))
    )
    assert plain.cost is None
    assert result.totals.seconds > 0


@pytest.mark.parametrize("team", ["local", "threads"])
def test_a_resumed_run_has_the_costs_and_notes_of_one_that_was_never_interrupted(tmp_path, team):
    whole = identify(score, tmp_path / "whole.ctlog", team=team)
    for at in (0, 7, 50):
        path = tmp_path / f"{at}.ctlog"
        with pytest.raises(KeyboardInterrupt):
            identify(Interrupted(score, at), path, team=team)
        result = ct.resume(path, pull=score, team=team)
        assert result == whole
        assert math.isclose(result.cost, whole.cost)
        assert notes_of(path) == notes_of(tmp_path / "whole.ctlog")
        assert ct.resume(path, pull=score).cost == result.cost


def notes_of(path):
    return sorted(
        (note.agent, note.pull, note.candidate, note.reward, note.cost, note.note) for note in notes_in(read_log(path))
    )


def test_a_batch_may_return_rewards_with_and_without_costs():
    @ct.batch
    def pull(prompt, times, rng):
        return [ct.Reward(0.5, cost=0.25) if number % 2 else 0.5 for number in range(times)]

    assert identify(pull).cost > 0


@pytest.mark.parametrize("cost", [-0.5, math.nan, math.inf, "much", True])
def test_a_cost_that_is_none_is_one_clear_error(cost):
    with pytest.raises(ct.InputError, match=r"cost is .*, but a finite number of at least 0 is needed"):
        ct.Reward(0.5, cost=cost)
    with pytest.raises(ct.PullError, match=r"candidate 'short' raised InputError: cost is .*") as raised:
        identify(lambda prompt, rng: ct.Reward(0.5, cost=cost), policy=ct.PullPolicy(retries=3, wait=0))
    assert "tried" not in str(raised.value)  # a second call would be charged again


async def score_async(prompt, rng):
    return ct.Reward(0.5, cost=math.nan)


@ct.batch
def score_in_bulk(prompt, times, rng):
    return [ct.Reward(0.5, cost=-1.0)] * times


def put_off(prompt, rng):
    raise ct.RetryLater(1, cost=math.nan)


@pytest.mark.parametrize("pull", [score_async, score_in_bulk, put_off])
def test_a_wrong_cost_is_the_same_error_for_every_kind_of_function(pull):
    with pytest.raises(ct.PullError, match=r"candidate 'short' raised InputError: cost is \S+, but a finite number"):
        identify(pull)


@pytest.mark.parametrize(("failures", "cost"), [("zero", -0.5), ("skip", math.nan)])
@pytest.mark.parametrize("team", ["local", pytest.param("processes", marks=pytest.mark.slow)])
def test_a_wrong_cost_is_not_counted_as_a_failed_pull(team, failures, cost):
    policy = ct.PullPolicy(failures=failures, retries=3, wait=0)
    with pytest.raises(
        ct.PullError, match=r"raised InputError: cost is .*, but a finite number of at least 0 is needed"
    ):
        identify(lambda prompt, rng: ct.Reward(0.5, cost=cost), policy=policy, team=team)


@pytest.mark.parametrize("cost", [-0.5, math.nan])
@pytest.mark.parametrize("limits", [{}, {"horizon": None, "budget": 100, "cost": 1.5}])
def test_a_wrong_cost_loses_nothing_that_was_paid_before(tmp_path, limits, cost):
    path, calls = tmp_path / "run.ctlog", 0

    def pull(prompt, rng):
        nonlocal calls
        calls += 1
        return ct.Reward(0.5, cost=cost) if calls == 12 else score(prompt, rng)

    whole = identify(score, **limits)
    with pytest.raises(ct.PullError, match=r"cost is .*, but a finite number of at least 0 is needed"):
        identify(pull, path, **limits)
    assert len(notes_of(path)) == 11
    resumed = ct.resume(path, pull=pull)
    assert resumed == whole
    assert resumed.totals.cost == pytest.approx(whole.cost)
    assert calls == whole.pulls + 1


def test_a_note_is_a_text():
    with pytest.raises(ct.InputError, match="note is 7, but a text is needed"):
        ct.Reward(0.5, note=7)  # type: ignore[arg-type]


def charged_failures(prompt, rng):
    failed = rng.random() < 0.3
    return ct.Reward(math.nan if failed else 0.5, cost=0.25)


def test_failed_attempts_that_report_a_cost_are_charged(tmp_path):
    result = identify(charged_failures, tmp_path / "run.ctlog", policy=ct.PullPolicy(retries=9, wait=0))
    assert result.totals.retries == result.totals.attempts_failed > 0
    assert result.cost == 0.25 * (result.pulls + result.retries)
    assert LogState(read_log(tmp_path / "run.ctlog")).calls.totals() == result.totals


def test_totals_survive_resumes_and_count_what_an_unfinished_pull_was_charged(tmp_path):
    path = tmp_path / "run.ctlog"
    calls = 0

    def pull(prompt, rng):
        nonlocal calls
        calls += 1
        if calls == 12:
            raise KeyboardInterrupt
        return ct.Reward(math.nan if calls in (3, 11) else 0.5, cost=0.25)

    policy = ct.PullPolicy(retries=2, wait=0)
    with pytest.raises(KeyboardInterrupt):
        identify(pull, path, policy=policy)
    result = ct.resume(path, pull=pull, policy=policy)
    assert result.totals.retries == result.totals.attempts_failed == 2
    assert result.cost == 0.25 * (calls - 1)
    assert result.cost == ct.resume(path, pull=pull, policy=policy).cost


def test_a_pull_that_fails_for_good_is_charged_and_counted(tmp_path):
    policy = ct.PullPolicy(retries=1, wait=0, failures="zero")
    result = identify(charged_failures, tmp_path / "run.ctlog", policy=policy)
    assert result.totals.failures == sum(result.failures.values()) > 0
    assert result.cost == 0.25 * (result.pulls + result.retries)
    resumed = ct.resume(tmp_path / "run.ctlog", pull=charged_failures)
    assert (resumed.totals, resumed.failures) == (result.totals, result.failures)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"costs": bytes(8)}, "the number of costs"),
        ({"costs": np.array([-1.0, 0.0]).tobytes()}, "a cost is not a number"),
        ({"notes": ((2, "late"),)}, "a note is about a pull that is not in the record"),
        ({"seconds": -1.0}, "Expected `float` >= 0"),
    ],
)
def test_a_record_with_wrong_costs_or_notes_is_refused(changed, error):
    fields = {"agent": 0, "first": 0, "arms": bytes(4), "counts": b"\2\0\0\0", "rewards": bytes(16)}
    body = {"type": "Rewards", **fields, **changed}
    with pytest.raises(msgspec.DecodeError, match=error):
        decode_body(memoryview(msgspec.msgpack.encode(body)))


def test_pulls_that_a_log_holds_twice_are_damage(tmp_path):
    record = Rewards.pack(0, 3, np.array([1]), np.array([2]), Drawn(np.ones(2)), "")
    path = tmp_path / "run.ctlog"
    with pytest.raises(KeyboardInterrupt):
        identify(Interrupted(score, 0), path)
    log = RunLog(path)
    log.append(record)
    log.append(FailedAttempt(0, 9, "polite", 0, "raised", again=True, cost=1.0))
    log.append(record)
    log.close()
    with pytest.raises(ct.FileError, match="it holds one of the pulls 3 to 4 of agent 0 twice"):
        ct.resume(path, pull=score)
