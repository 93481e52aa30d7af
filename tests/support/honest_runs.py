"""What coordinators and agents say to each other in honest runs: what fuzzers begin with."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

import collabtop as ct
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.teams.sites.validation import PublicState

N, AGENTS = 60, 3
RUNS = [
    ("frugal-top", 1, 4_000, 1),  # so few are wanted that agents prune on their own
    ("collab-top-iid", 3, 400, 0),  # few pulls, so that there are ties
    ("collab-top-iid", 3, 400, 5),
    ("collab-top-iid", 3, 1_000, 10),
    ("collab-top-noniid", 3, 4_000, 1),
    ("frugal-top-noniid", 3, 4_000, 1),
    ("kzz", 3, 4_000, 1),
    ("confident-top", 3, 4_000, 1),
]
"""Algorithm, m, horizon and seed: every kind of message is in one of them."""


class Exchange(NamedTuple):
    """A question, its answer, and what was known of the agent before it."""

    state: PublicState
    request: Request
    reply: Reply


class _Listening(ct.LocalTeam):
    def open(self, arms, setup, recorder):
        super().open(arms, setup, recorder)
        self.setup = setup
        self.heard = [[] for _ in range(setup.problem.agents)]
        self.states = [PublicState(agent, setup.problem) for agent in range(setup.problem.agents)]

    def deliver(self, requests):
        replies = super().deliver(requests)
        for request, reply in zip(requests, replies, strict=True):
            before = self.states[request.agent]
            self.states[request.agent] = before._copy()
            self.states[request.agent].check_reply(request, reply)
            self.heard[request.agent].append(Exchange(before, request, reply))
        return replies


def some_arms() -> ct.Arms:
    """Arms that cost nothing to pull."""
    return ct.BernoulliArms(np.random.default_rng(2).integers(1, 9, N) / 10)


@cache
def conversations() -> list[tuple[Setup, list[Exchange]]]:
    """All exchanges of each agent, in runs with every kind of message."""
    found = []
    for algorithm, m, horizon, seed in RUNS:
        team = _Listening()
        ct.identify(some_arms(), m, agents=AGENTS, horizon=horizon, algorithm=algorithm, seed=seed, team=team)
        found += [(team.setup, heard) for heard in team.heard]
    return found


@cache
def exchanges() -> list[Exchange]:
    """All exchanges of all conversations."""
    return [exchange for _, heard in conversations() for exchange in heard]
