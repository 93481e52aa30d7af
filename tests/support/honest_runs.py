"""The messages of honest runs, which fuzzers start from."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

import collabtop as ct
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.teams.sites.validation import PublicState

N, AGENTS = 120, 3
RUNS: list[tuple[str | ct.Algorithm, int, int, int]] = [
    ("frugal-top", 1, 4_000, 1),  # m is so small that agents prune on their own
    ("collab-top-iid", 3, 700, 0),  # few pulls, so that there are ties
    ("collab-top-iid", 3, 700, 5),
    ("collab-top-iid", 3, 1_000, 0),
    (ct.CollabTopIID(schedule="full"), 3, 1_000, 10),
    ("collab-top-noniid", 3, 4_000, 1),
    ("frugal-top-noniid", 3, 4_000, 1),
    ("kzz", 3, 4_000, 1),
    ("confident-top", 3, 4_000, 1),
]
"""Algorithm, m, horizon and seed; together they contain every kind of message."""


class Exchange(NamedTuple):
    """A request, its reply, and the public state of the agent before it."""

    state: PublicState
    request: Request
    reply: Reply


class _RecordingTeam(ct.LocalTeam):
    def open(self, arms, setup, recorder):
        super().open(arms, setup, recorder)
        self.setup = setup
        self.exchanges = [[] for _ in range(setup.problem.agents)]
        self.states = [PublicState(agent, setup.problem) for agent in range(setup.problem.agents)]

    def deliver(self, requests):
        replies = super().deliver(requests)
        for request, reply in zip(requests, replies, strict=True):
            before = self.states[request.agent]
            self.states[request.agent] = before._copy()
            self.states[request.agent].check_reply(request, reply)
            self.exchanges[request.agent].append(Exchange(before, request, reply))
        return replies


def simulated_arms() -> ct.Arms:
    """The arms of all honest runs."""
    return ct.BernoulliArms(np.random.default_rng(2).integers(1, 9, N) / 10)


@cache
def conversations() -> list[tuple[Setup, list[Exchange]]]:
    """The setup and exchanges of each agent in each run."""
    conversations = []
    for algorithm, m, horizon, seed in RUNS:
        team = _RecordingTeam()
        ct.identify(simulated_arms(), m, agents=AGENTS, horizon=horizon, algorithm=algorithm, seed=seed, team=team)
        conversations += [(team.setup, exchanges) for exchanges in team.exchanges]
    return conversations


@cache
def exchanges() -> list[Exchange]:
    """The exchanges of all conversations."""
    return [exchange for _, exchanges in conversations() for exchange in exchanges]
