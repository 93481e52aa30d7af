"""Frugal-Top for arms that look different to each agent: survivors as bitmaps, means with the bits they deserve."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.algorithms.shared.elimination import eliminate, settle_rest
from collabtop.algorithms.shared.frugal_bound import frugal_noniid_error_bound
from collabtop.algorithms.shared.frugal_plan import noniid_plan, noniid_sizes, smallest_noniid_horizon
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import InputError
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags
from collabtop.validation import real_number


@dataclass(frozen=True)
class FrugalTopNonIID(Algorithm):
    """The one to use for non-IID arms: all agents pull all open arms, and send few bits for each.

    Args:
        coarseness: how much rounding may add to the sampling variance of a mean, as a share of it.

    >>> import collabtop as ct
    >>> arms = ct.HeterogeneousArms([[0.9, 0.1], [0.6, 0.7], [0.2, 0.2]])
    >>> result = ct.identify(arms, m=1, horizon=4_000, algorithm=ct.FrugalTopNonIID(), seed=1)
    >>> result.top, result.bits
    ([1], 228)
    """

    name: ClassVar[str] = "frugal-top-noniid"
    summary: ClassVar[str] = "All agents pull all open arms and send few bits for each: the default for non-IID arms."
    survives_loss: ClassVar[bool] = True
    coarseness: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= real_number("coarseness", self.coarseness) < 1:
            raise InputError(
                f"coarseness is {self.coarseness}, but a share of at least 0 and below 1 is needed",
                argument="coarseness",
            )

    def smallest_horizon(self, problem: Problem) -> int:
        """Every agent pulls every arm once before the first elimination."""
        return smallest_noniid_horizon(problem.n, problem.inner.m)

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """What the plan says, at every agent."""
        plan = noniid_plan(problem)
        new = [after - before for before, after in pairwise([0, *plan.pulls])]
        return [(size, pulls * problem.agents) for size, pulls in zip(plan.sizes, new, strict=False)]

    def most_words(self, problem: Problem) -> int:
        """A mean an open arm and the fineness of them all from every agent; a flag down for each arm open before."""
        sizes = noniid_sizes(problem.n)
        return problem.agents * (sum(size + 1 for size in sizes) + sum(sizes[:-1]))

    def most_round_trips(self, problem: Problem) -> int:
        """One a round."""
        return len(noniid_sizes(problem.n))

    def error_bound(self, means: ArrayLike, problem: Problem) -> float:
        """The bound of docs/frugal-top.md."""
        return frugal_noniid_error_bound(means, problem.m, problem.agents, problem.horizon, self.coarseness)

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Pull all open arms everywhere, average, keep those nearest to the border."""
        plan = noniid_plan(problem)
        board, live = coordinator.scoreboard, np.arange(problem.n)
        agents = AllAgents(coordinator)
        survived: Flags | None = None  # all arms are open at first, which every agent knows
        r, to_accept, so_far = 0, problem.m, 0
        for keep, pulls in zip([*plan.sizes[1:], 0], plan.pulls, strict=True):
            if not 0 < to_accept < len(live):
                break
            coordinator.begin_round("shared", live=len(live))
            new = pulls - so_far
            board.add(live, *agents.pull_open(live, survived, new, self.coarseness))
            still_live = eliminate(board, live, to_accept, keep, r, "shared", rng)
            survived = np.isin(live, still_live, assume_unique=True)
            r, live, to_accept, so_far = r + 1, still_live, problem.m - board.accepted, pulls
        settle_rest(board, live, to_accept, r - 1, "shared")
