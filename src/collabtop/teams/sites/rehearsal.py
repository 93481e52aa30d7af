"""A rehearsal of an announced run on simulated arms: the batches and the questions that its schedule needs."""

import time
from contextlib import suppress
from threading import Event, Thread

import msgspec
import numpy as np

from collabtop.algorithms.registry import available_algorithms, make_algorithm
from collabtop.arms.draws import coordinator_rng
from collabtop.arms.stand_ins import NoiselessArms
from collabtop.coordination.coordinator import Coordinator
from collabtop.protocol.messages import Prune, Pull, PullOpen, Reply, Request, kind_of
from collabtop.protocol.setup import Setup
from collabtop.teams.local import LocalTeam
from collabtop.teams.sites.min_batch import smallest_batch

MOST_SECONDS = 5.0
"""How long a rehearsal may take: the coordinator chooses what is rehearsed."""
MOST_MEANS = 1 << 22
"""The most arms times agents that are rehearsed: a round may need this many numbers several times over."""
_MOST_AGENTS = 4_096
_SECONDS_BETWEEN_CHECKS = 0.05

Shape = tuple[object, ...]
"""The part of a request that does not depend on rewards, if the schedule is fixed."""


class Rehearsal(msgspec.Struct, frozen=True):
    """What a rehearsal showed."""

    smallest: int | None = None
    """The smallest batch; None if there was none."""
    shapes: dict[int, list[Shape]] = {}
    """The requests to each of the site's agents, in order."""
    complete: bool = False
    """Whether the run was rehearsed to its end."""


def shape_of(request: Request) -> Shape:
    """The kinds of messages in a request, with their numbers of arms and pulls, but without the arms themselves.

    >>> shape_of(Request(0, 1, (Pull(np.array([4, 2]), np.array([10])),)))
    ('Pull', 2, (10,))
    """
    shape: list[object] = []
    for message in request.messages:
        shape.append(kind_of(type(message)))
        if isinstance(message, Pull):
            shape += [None if message.arms is None else len(message.arms), tuple(message.times.tolist())]
        elif isinstance(message, PullOpen):
            survived = None if message.survived is None else int(np.count_nonzero(message.survived))
            shape += [survived, message.times, message.coarseness]
        elif isinstance(message, Prune):
            shape += [tuple(message.sizes.tolist()), tuple(message.pulls.tolist())]
    return tuple(shape)


class _Stopped(Exception):  # noqa: N818  (control flow, not an error)
    """The rehearsal was stopped, or showed what it had to."""


class _RehearsalTeam(LocalTeam):
    """A local team that notes the smallest batch and the shapes of requests, until it is stopped."""

    def __init__(self, agents: tuple[int, ...], min_batch: int) -> None:
        super().__init__()
        self.smallest: int | None = None
        self.shapes: dict[int, list[Shape]] = {agent: [] for agent in agents}
        self.complete = False
        self.stopped = Event()
        self._min_batch = min_batch

    def deliver(self, requests: list[Request]) -> list[Reply]:  # type: ignore[override]
        if self.stopped.is_set():
            raise _Stopped
        for request in requests:
            batch = smallest_batch(request)
            if batch is not None and (self.smallest is None or batch < self.smallest):
                self.smallest = batch
            if request.agent in self.shapes:
                self.shapes[request.agent].append(shape_of(request))
        if self.smallest is not None and self.smallest < self._min_batch:
            raise _Stopped
        return list(super().deliver(requests))

    def rehearse(self, setup: Setup) -> None:
        """Run the announced algorithm on simulated arms.

        The coordinator may describe an invalid run, with which an algorithm fails in any way. That does no harm: every
        request is checked again before it is answered.
        """
        problem = setup.problem
        with suppress(Exception):
            algorithm = make_algorithm(setup.algorithm, **setup.options)
            algorithm.check(problem)
            if problem.horizon >= algorithm.smallest_horizon(problem):
                coordinator = Coordinator(self, Setup(problem, setup.seed))
                coordinator.open(NoiselessArms((np.arange(problem.n) + 0.5) / problem.n))
                algorithm.run(coordinator, problem, coordinator_rng(setup.seed))
                self.complete = True


def rehearse(
    setup: Setup,
    agents: tuple[int, ...] = (),
    *,
    min_batch: int = 1,
    seconds: float = MOST_SECONDS,
    halted: Event | None = None,
) -> Rehearsal:
    """Rehearse a run with simulated arms, within limits of time and size; it ends early below `min_batch`.

    A run that cannot be rehearsed, or not to its end, gives an incomplete rehearsal. `halted` ends it at once. An
    algorithm may compute for long between two requests, so it has its own thread, which ends at the next request.

    >>> from collabtop.problem import Problem
    >>> rehearse(Setup(Problem(n=10, m=1, agents=2, horizon=70), 1, algorithm="uniform"), agents=(1,))
    Rehearsal(smallest=7, shapes={1: [('Pull', None, (7,))]}, complete=True)
    """
    problem = setup.problem
    too_large = problem.agents > _MOST_AGENTS or problem.n * problem.agents > MOST_MEANS
    if setup.algorithm not in available_algorithms() or not problem.m or too_large:
        return Rehearsal()
    team, halted, deadline = _RehearsalTeam(agents, min_batch), halted or Event(), time.monotonic() + seconds
    thread = Thread(target=team.rehearse, args=[setup], name="collabtop-rehearsal", daemon=True)
    thread.start()
    while thread.is_alive() and not halted.is_set() and time.monotonic() < deadline:
        thread.join(_SECONDS_BETWEEN_CHECKS)
    team.stopped.set()
    complete = team.complete  # before the shapes: they are final then
    return Rehearsal(team.smallest, {agent: [*shapes] for agent, shapes in team.shapes.items()}, complete)
