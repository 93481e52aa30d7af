"""Rates, and calls that a service puts off."""

from __future__ import annotations

import math
import pickle
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.arms import rate as rate_module
from collabtop.arms.draws import AgentHalted
from collabtop.arms.rate import Gate, _Pacer, as_rates, retry_after
from tests.support.chat_endpoint import StatusError

WORDS = ["a", "bb", "cccc"]


def starts_of(pacer, pauses, amount=1.0):
    """When calls begin that are asked for one after the other, with these pauses between them."""
    now, starts = 0.0, []
    for pause in pauses:
        now += pause
        starts.append(pacer.earliest(amount, now))
        pacer.take(amount, starts[-1])
        now = max(now, starts[-1])
    return starts


@given(limit=st.integers(1, 30), pauses=st.lists(st.floats(0, 2), max_size=200))
def test_no_second_has_more_calls_than_the_rate_whatever_the_pauses(limit, pauses):
    starts = starts_of(_Pacer(ct.Rate(limit), WORDS), pauses)
    for first, beyond in zip(starts, starts[limit:], strict=False):
        assert beyond - first > 1
    assert starts == sorted(starts)


@pytest.mark.parametrize("limit", [1, 7, 20, 1_000])
def test_calls_that_are_always_waiting_use_98_percent_of_the_rate(limit):
    starts = starts_of(_Pacer(ct.Rate(limit, per=2), WORDS), [0.0] * 50 * limit)
    assert 0.97 < 2 * len(starts) / limit / (starts[-1] + 2 / limit) < 1.02
    assert max(after - before for before, after in pairwise(starts)) < 2.1 / limit  # evenly, not in bursts


def test_a_short_pause_is_caught_up_with():
    steady = starts_of(_Pacer(ct.Rate(20), WORDS), [0.0] * 200)
    paused = starts_of(_Pacer(ct.Rate(20), WORDS), [0.3 if number == 100 else 0.0 for number in range(200)])
    assert paused[-1] == pytest.approx(steady[-1])


def test_a_rate_may_count_what_calls_use():
    pacer = _Pacer(ct.Rate(60, per=60, amount=len), WORDS)
    assert [pacer.amount(arm, times=2) for arm in range(3)] == [2.0, 4.0, 8.0]


@pytest.mark.parametrize("amount", ["b", -1, math.nan, math.inf, True])
def test_an_amount_that_is_none_is_one_clear_error_and_nothing_is_lost(tmp_path, amount):
    path, paid = tmp_path / "run.ctlog", []

    def pull(word, rng):
        paid.append(word)
        return len(word) / 5

    def wrong_later(word):
        return amount if len(paid) == 5 else np.int64(1)

    run = {"m": 1, "pull": pull, "horizon": 9, "seed": 1, "checkpoint": path}
    with pytest.raises(ct.InputError, match=r"amount of a rate returned .*, but a finite number of at least 0 is need"):
        ct.identify(WORDS, rate=ct.Rate(10_000, amount=wrong_later), **run)
    assert ct.resume(path, pull=pull).pulls == len(paid) == 9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_rates(0), "rate is 0, but a positive number of calls is needed"),
        (lambda: as_rates([5, -1]), "rate is -1, but a positive number of calls is needed"),
        (lambda: as_rates("fast"), "rate is 'fast', but"),
        (lambda: ct.Rate(5, per=0), "per is 0, but a positive number of seconds is needed"),
        (lambda: ct.Rate(5, amount=3), "amount is 3, but a function of a candidate is needed"),  # type: ignore[arg-type]
        (lambda: ct.RetryLater(-1), "seconds is -1, but a number of at least 0 is needed"),
        (lambda: ct.RetryLater(1, cost=-1), "cost is -1, but a finite number"),
        (lambda: ct.identify(WORDS, 1, pull=lambda word, rng: 0.5, horizon=9, rate=0), "rate is 0, but"),
    ],
)
def test_wrong_rates_and_times_are_one_clear_line(make, message):
    with pytest.raises(ct.InputError, match=message):
        make()


class ThrottledError(Exception):
    """An exception like that of aiohttp, with the status and headers on itself."""

    def __init__(self, status, headers):
        super().__init__()
        self.status, self.headers = status, headers


def test_retry_after_is_read_from_the_exceptions_of_http_libraries():
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert retry_after(StatusError(429, {"retry-after": "2.5"})) == 2.5
    assert retry_after(StatusError(503, {"Retry-After": "2"})) == 2
    assert 20 < retry_after(StatusError(429, {"retry-after": later})) <= 30
    assert retry_after(ThrottledError(429, {"Retry-After": "7"})) == 7
    assert [retry_after(StatusError(429, headers)) for headers in ({}, {"retry-after": "soon"}, None)] == [0, 0, 0]
    assert retry_after(StatusError(429, {"retry-after": "-3"})) == 0
    assert retry_after(StatusError(500, {"retry-after": "2"})) is None
    assert retry_after(ValueError("no")) is None
    assert retry_after(ct.RetryLater(4)) == 4


def test_a_request_to_wait_can_cross_to_a_different_process():
    copy = pickle.loads(pickle.dumps(ct.RetryLater(1.5, cost=0.25)))
    assert (copy.seconds, copy.cost) == (1.5, 0.25)


@pytest.mark.parametrize("put_off", [lambda: ct.RetryLater(0.01), lambda: StatusError(429, {"retry-after": "0.01"})])
def test_a_call_that_is_put_off_is_repeated_with_the_same_numbers_and_is_no_retry(put_off):
    def plain(word, rng):
        return rng.random() < len(word) / 5

    calls = 0

    def throttled(word, rng):
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise put_off()
        return plain(word, rng)

    policy = ct.PullPolicy(wait=0.001)  # no retries
    result = ct.identify(WORDS, 1, pull=throttled, horizon=20, seed=1, policy=policy)
    assert result == ct.identify(WORDS, 1, pull=plain, horizon=20, seed=1)
    assert result.totals.retries == result.totals.attempts_failed == calls - result.pulls > 0


def test_a_service_that_never_lets_a_call_pass_fails_the_pull():
    def pull(word, rng):
        raise ct.RetryLater(0)

    with pytest.raises(ct.PullError, match="raised RetryLater: try again after 0 s"):
        ct.identify(WORDS, 1, pull=pull, horizon=9, seed=1, policy=ct.PullPolicy(wait=0))


def test_fewer_calls_run_at_once_after_a_refusal_and_more_again_later(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(rate_module, "monotonic", lambda: clock[0])
    gate, never = Gate(WORDS), threading.Event()
    for _ in range(9):
        gate.enter(0, 1, never)
    gate.leave(asked_to_wait=0.0)
    assert gate._limit == 4
    for _ in range(8):
        gate.leave()
    for _ in range(20):
        clock[0] += 1
        gate.enter(0, 1, never)
        gate.leave()
    assert gate._limit > 7


def test_calls_that_a_pause_puts_off_count_from_its_end(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(rate_module, "monotonic", lambda: clock[0])

    class Halted(threading.Event):
        def wait(self, timeout=None):
            clock[0] += timeout
            return False

    gate, began = Gate(WORDS, [ct.Rate(2)]), []
    for asked_to_wait in (5.0, None, None, None):
        gate.enter(0, 1, Halted())
        began.append(clock[0])
        gate.leave(asked_to_wait)
    assert began == pytest.approx([0.0, 5.0, 5.0, 5.0 + 1 / 0.98])  # two per second, also after the pause


def test_a_call_that_waits_for_its_turn_stops_when_the_agent_does():
    gate, halted = Gate(WORDS, [ct.Rate(1, per=3600)]), threading.Event()
    gate.enter(0, 1, halted)
    gate.leave()
    halted.set()
    with pytest.raises(AgentHalted):
        gate.enter(0, 1, halted)
    assert not gate.running
