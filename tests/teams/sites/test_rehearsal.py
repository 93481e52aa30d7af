"""A coordinator cannot freeze a site before it takes part: a rehearsal is limited and can be ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

import collabtop as ct
from collabtop.protocol.messages import Means, Pull
from collabtop.protocol.setup import Setup
from collabtop.teams.sites import client, rehearsal
from collabtop.teams.sites.frames import Done, Welcome
from collabtop.teams.sites.rehearsal import Rehearsal, rehearse
from tests.support.memory import resident_bytes
from tests.support.peers import MaliciousCoordinator


def setup_of(algorithm, n, agents, horizon):
    return Setup(ct.Problem(n=n, m=1, agents=agents, horizon=horizon), 1, algorithm=algorithm)


@dataclass(frozen=True)
class Endless(ct.Algorithm):
    """Asks for large batches for ever, or at least for so long that a test without a limit fails."""

    name = "endless"

    def run(self, coordinator, problem, rng):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            coordinator.begin_round("shared", live=problem.n)
            coordinator.ask_all(Pull(np.array([0]), np.array([20])), Means)


@pytest.fixture
def endless(monkeypatch):
    monkeypatch.setattr("collabtop.algorithms.registry._catalogue", {"endless": Endless})
    return setup_of("endless", n=10, agents=1, horizon=10**12)


def test_a_rehearsal_ends_at_its_time_limit(endless):
    began = time.monotonic()
    shown = rehearse(endless, min_batch=20, seconds=0.3)
    assert 0.3 <= time.monotonic() - began < 2
    assert (shown.smallest, shown.complete) == (20, False)


def test_a_rehearsal_ends_at_its_time_limit_though_its_algorithm_computes_for_longer(endless, monkeypatch):
    released = threading.Event()
    monkeypatch.setattr(Endless, "run", lambda *_: released.wait(30))
    began = time.monotonic()
    assert rehearse(endless, seconds=0.2) == Rehearsal()
    assert time.monotonic() - began < 10
    released.set()


def test_a_rehearsal_ends_when_the_site_leaves(endless):
    halted = threading.Event()
    threading.Timer(0.2, halted.set).start()
    began = time.monotonic()
    rehearse(endless, min_batch=20, seconds=60, halted=halted)
    assert time.monotonic() - began < 2


def test_ctrl_c_at_a_site_ends_its_rehearsal(endless, certs, monkeypatch):
    """Its thread would otherwise keep the process of the site alive."""
    began, ended = threading.Event(), threading.Event()

    def long_rehearsal(*arguments, **options):
        began.set()
        shown = rehearse(*arguments, **options, seconds=30)
        ended.set()
        return shown

    def talk(frames):
        next(frames)
        yield Welcome("ab" * 16, endless, (0,))
        assert began.wait(20)
        os.kill(os.getpid(), signal.SIGINT)
        yield from (Done() for _ in frames)

    monkeypatch.setattr(client, "rehearse", long_rehearsal)
    arms = ct.BernoulliArms(np.linspace(0.1, 0.9, 10))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores Ctrl-C
    try:
        with MaliciousCoordinator(certs, talk) as coordinator, pytest.raises(KeyboardInterrupt):
            ct.join(f"localhost:{coordinator.port}", arms, cert=certs / "site0.pem", min_batch=20, give_up=20)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.wait(10)


def test_a_rehearsal_ends_with_the_first_batch_that_is_too_small():
    began = time.monotonic()
    shown = rehearse(setup_of("kl-lucb", n=400, agents=1, horizon=10**9), min_batch=2)
    assert time.monotonic() - began < 1  # to its end it takes minutes
    assert (shown.smallest, shown.complete) == (1, False)


def test_a_run_with_too_many_agents_is_not_rehearsed():
    for agents, complete in ((rehearsal._MOST_AGENTS, True), (rehearsal._MOST_AGENTS + 1, False)):
        assert rehearse(setup_of("uniform", n=2, agents=agents, horizon=100)).complete is complete


def test_a_run_with_too_many_means_is_not_rehearsed():
    before, began = resident_bytes(), time.monotonic()
    assert rehearse(setup_of("uniform", n=100_000, agents=4_096, horizon=10**6), min_batch=2) == Rehearsal()
    assert time.monotonic() - began < 1
    assert resident_bytes() - before < 50e6  # it would take 9.5 GB
