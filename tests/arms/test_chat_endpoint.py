"""A run against a server like a chat endpoint: its rate is used, and kills lose only the calls under way."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time

import pytest

import collabtop as ct
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Rewards
from tests.support.chat_endpoint import get
from tests.support.chat_run import POLICY, PROMPTS, run, scorer

pytestmark = pytest.mark.slow


@pytest.fixture
def port(tmp_path):
    file = tmp_path / "port"
    server = subprocess.Popen([sys.executable, "-m", "tests.support.chat_endpoint", file])
    while not file.exists():
        assert server.poll() is None
        time.sleep(0.02)
    yield int(file.read_text())
    server.kill()
    server.wait()


def stats_of(port):
    stats = asyncio.run(get(port, "/stats"))
    return {"200": 0, "429": 0, "500": 0, "hung": 0, **stats}


@pytest.mark.long  # a figure that a busy machine spoils
def test_the_rate_is_used_and_hardly_ever_exceeded(port, tmp_path):
    result = run(port, tmp_path / "run.ctlog", calls=500)
    stats = stats_of(port)
    made = stats["200"] + stats["500"] + stats["hung"]
    assert made >= 0.95 * 20 * stats["seconds"]
    assert stats["429"] < 0.02 * (made + stats["429"])
    assert result.pulls == stats["200"]
    assert result.cost == stats["charged"]
    assert result.totals.retries == stats["429"] + stats["500"] + stats["hung"]


def test_a_budget_of_money_is_spent_and_not_exceeded(port):
    prices = {prompt: 4 * (len(prompt) + len("/chat/")) for prompt in PROMPTS}  # a pull costs a quarter of that
    result = ct.identify(
        PROMPTS, 1, pull=scorer(port), budget=6_000, cost=prices.get, seed=1, policy=POLICY, workers=16, rate=20
    )
    stats = stats_of(port)
    assert result.cost == stats["charged"]
    assert 0.97 * 6_000 <= stats["charged"] <= 6_000


def test_two_kills_and_a_resume_lose_at_most_the_calls_under_way(port, tmp_path):
    path, calls, workers = tmp_path / "run.ctlog", 160, 16
    for seconds in (3, 2):
        before = stats_of(port)["200"]
        process = subprocess.Popen([sys.executable, "-m", "tests.support.chat_run", str(port), path, str(calls)])
        while stats_of(port)["200"] < before + 20 * seconds:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = sum(record.pulls for record in read_log(path) if isinstance(record, Rewards))
    result = ct.resume(path, pull=scorer(port), policy=POLICY, workers=workers, rate=20)
    lost = stats_of(port)["200"] - result.pulls
    assert 0 <= lost <= 2 * workers
    assert kept > 60
    assert result.cost <= stats_of(port)["charged"]
