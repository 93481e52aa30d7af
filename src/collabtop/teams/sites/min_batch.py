"""The smallest batch of pulls whose mean a site sends: checked for each request, and by rehearsal at the start."""

from contextlib import suppress

import numpy as np

from collabtop.algorithms.registry import available_algorithms, make_algorithm
from collabtop.arms.draws import coordinator_rng
from collabtop.arms.stand_ins import NoiselessArms
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import ProtocolError
from collabtop.protocol.extension import extension_of
from collabtop.protocol.messages import Prune, Pull, PullHand, PullOpen, Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.teams.local import LocalTeam


class SmallBatchError(ProtocolError):
    """A request asks for a mean over `pulls` pulls, fewer than min_batch."""

    def __init__(self, pulls: int, min_batch: int) -> None:
        super().__init__(f"a batch of size {pulls} was requested, but min_batch is {min_batch}")
        self.pulls = pulls


def check_batch(request: Request, min_batch: int) -> None:
    """Raise `SmallBatchError` if the answer would contain a mean over too few pulls.

    Two successive means of an arm reveal the mean of the pulls in between, so every batch has to be large enough.

    >>> check_batch(Request(0, 1, (Pull(None, np.array([5])),)), min_batch=5)
    >>> check_batch(Request(0, 2, (Pull(None, np.array([4])),)), min_batch=5)
    Traceback (most recent call last):
        ...
    collabtop.teams.sites.min_batch.SmallBatchError: a batch of size 4 was requested, but min_batch is 5
    """
    smallest = smallest_batch(request)
    if smallest is not None and smallest < min_batch:
        raise SmallBatchError(smallest, min_batch)


def smallest_batch(request: Request) -> int | None:
    """The fewest new pulls behind a mean in the answer; None if there are no means of new pulls."""
    batches: list[int] = []
    for message in request.messages:
        if isinstance(message, Pull):
            batches += message.times[message.times > 0].tolist()
        elif isinstance(message, PullOpen | PullHand):
            batches.append(message.times)
        elif isinstance(message, Prune):
            batches.append(int(message.pulls[-1]))  # earlier stages are not reported
        elif (extension := extension_of(type(message))) is not None:
            batches.append(extension.smallest_batch(message) or 0)
    return min((pulls for pulls in batches if pulls > 0), default=None)


_MOST_REHEARSED = 4_096
"""Agents; a rehearsal with more of them would take minutes."""


class _Rehearsal(LocalTeam):
    """A local team that notes the smallest batch."""

    smallest: int | None = None

    def deliver(self, requests: list[Request]) -> list[Reply]:  # type: ignore[override]
        for request in requests:
            batch = smallest_batch(request)
            if batch is not None and (self.smallest is None or batch < self.smallest):
                self.smallest = batch
        return list(super().deliver(requests))


def rehearsed_smallest_batch(setup: Setup) -> int | None:
    """The fewest pulls behind a mean in a rehearsal of the run with simulated arms; None if it cannot be rehearsed.

    >>> from collabtop.problem import Problem
    >>> rehearsed_smallest_batch(Setup(Problem(n=10, m=1, agents=2, horizon=70), 1, algorithm="uniform"))
    7
    """
    problem, team = setup.problem, _Rehearsal()
    if setup.algorithm not in available_algorithms() or not problem.m or problem.agents > _MOST_REHEARSED:
        return None
    # The coordinator may describe an invalid run, with which an algorithm fails in any way. That does no harm: every
    # request is checked again before it is answered.
    with suppress(Exception):
        algorithm = make_algorithm(setup.algorithm, **setup.options)
        algorithm.check(problem)
        if problem.horizon >= algorithm.smallest_horizon(problem):
            coordinator = Coordinator(team, Setup(problem, setup.seed))
            coordinator.open(NoiselessArms((np.arange(problem.n) + 0.5) / problem.n))
            algorithm.run(coordinator, problem, coordinator_rng(setup.seed))
    return team.smallest
