"""No mean over fewer pulls than a site wants to give away: seen to at every question, and before the first."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from collabtop.algorithms.registry import available_algorithms, make_algorithm
from collabtop.arms.draws import coordinator_rng
from collabtop.arms.stand_ins import NoiselessArms
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import ProtocolError
from collabtop.protocol.messages import Prune, Pull, PullHand, PullOpen, Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.teams.local import LocalTeam


class SmallBatchError(ProtocolError):
    """A question asks for a mean over `pulls` pulls, fewer than the site gives away."""

    def __init__(self, pulls: int, least: int) -> None:
        super().__init__(f"a mean over {pulls} pulls was asked for, and min_batch is {least}")
        self.pulls = pulls


def check_batch(request: Request, least: int) -> None:
    """Refuse a request whose answer would tell a mean over too few pulls.

    Means that add to earlier ones tell the difference too, so every addition has to be large enough by itself.

    >>> check_batch(Request(0, 1, (Pull(None, np.array([5])),)), least=5)
    >>> check_batch(Request(0, 2, (Pull(None, np.array([4])),)), least=5)
    Traceback (most recent call last):
        ...
    collabtop.teams.sites.min_batch.SmallBatchError: a mean over 4 pulls was asked for, and min_batch is 5
    """
    smallest = smallest_batch(request)
    if smallest is not None and smallest < least:
        raise SmallBatchError(smallest, least)


def smallest_batch(request: Request) -> int | None:
    """The fewest new pulls behind a mean that the answer would tell; None where it tells none of new pulls."""
    found: list[int] = []
    for message in request.messages:
        if isinstance(message, Pull):
            found += message.times[message.times > 0].tolist()
        elif isinstance(message, PullOpen | PullHand):
            found.append(message.times)
        elif isinstance(message, Prune):
            found.append(int(message.pulls[-1]))  # the stages before are told to nobody
    return min((pulls for pulls in found if pulls > 0), default=None)


_MOST_REHEARSED = 4_096
"""Agents; more of them would take a site minutes."""


class _Rehearsal(LocalTeam):
    smallest: int | None = None

    def deliver(self, requests: list[Request]) -> list[Reply]:  # type: ignore[override]
        for request in requests:
            batch = smallest_batch(request)
            if batch is not None and (self.smallest is None or batch < self.smallest):
                self.smallest = batch
        return list(super().deliver(requests))


def rehearsed_smallest_batch(setup: Setup) -> int | None:
    """The fewest pulls behind a mean in a rehearsal of the run, on arms made up here; None: it cannot be told.

    >>> from collabtop.problem import Problem
    >>> rehearsed_smallest_batch(Setup(Problem(n=10, m=1, agents=2, horizon=70), 1, algorithm="uniform"))
    7
    """
    problem, team = setup.problem, _Rehearsal()
    if setup.algorithm not in available_algorithms() or not problem.m or problem.agents > _MOST_REHEARSED:
        return None
    # A coordinator may describe what cannot be, in ways that no algorithm was made for. What could not be rehearsed
    # is not lost: every question is looked at again before it is answered.
    with suppress(Exception):
        algorithm = make_algorithm(setup.algorithm, **setup.options)
        algorithm.check(problem)
        if problem.horizon >= algorithm.smallest_horizon(problem):
            coordinator = Coordinator(team, Setup(problem, setup.seed))
            coordinator.open(NoiselessArms((np.arange(problem.n) + 0.5) / problem.n))
            algorithm.run(coordinator, problem, coordinator_rng(setup.seed))
    return team.smallest
