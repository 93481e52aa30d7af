"""Frugal-Top: agents prune hands of their own without a word, hand over the few arms left, and finish together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import pull_balanced
from collabtop.algorithms.shared.elimination import eliminate, settle_rest
from collabtop.algorithms.shared.frugal_bound import frugal_error_bound, frugal_round_trips_bound, frugal_words_bound
from collabtop.algorithms.shared.frugal_plan import FrugalPlan, frugal_plan, smallest_frugal_horizon
from collabtop.algorithms.shared.recovery import planned_pulls, reopen_arms
from collabtop.coordination.coordinator import Coordinator
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.errors import InputError
from collabtop.problem import Problem
from collabtop.protocol import shuffling
from collabtop.protocol.messages import Hand, Ints, Prune
from collabtop.validation import real_number


@dataclass(frozen=True)
class FrugalTop(Algorithm):
    """The one to use for IID arms: few words, few round trips, and the whole horizon spent.

    Args:
        risk: the chance that the shuffle deals some agent more of the best m than it is prepared for. It is
            part of the error bound; a smaller risk means more arms handed over.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9] + [0.4] * 99)
    >>> result = ct.identify(arms, m=1, agents=4, horizon=2_000, algorithm=ct.FrugalTop(), seed=1)
    >>> result.top, result.words, result.round_trips
    ([0], 130, 5)
    """

    name: ClassVar[str] = "frugal-top"
    summary: ClassVar[str] = "Few words, few round trips, whole horizon spent: the default for IID arms."
    iid_only: ClassVar[bool] = True
    survives_loss: ClassVar[bool] = True
    risk: float = 0.001

    def __post_init__(self) -> None:
        if not 0 < real_number("risk", self.risk) < 1:
            raise InputError(f"risk is {self.risk}, but a probability between 0 and 1 is needed", argument="risk")

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull an arm before the first elimination."""
        return smallest_frugal_horizon(problem.n, problem.inner.m, problem.agents, self.risk)

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """What the plan says: all hands of a local stage, then the arms open in each shared round."""
        plan = frugal_plan(problem, self.risk)
        pulls = [*plan.local_pulls, *plan.shared_pulls]
        live = [size * problem.agents for size in plan.local_sizes[: len(plan.local_pulls)]] + list(plan.shared_sizes)
        new = [after - before for before, after in pairwise([0, *pulls])]
        return [(min(problem.n, size), pulls) for size, pulls in zip(live, new, strict=True)]

    def most_words(self, problem: Problem) -> int:
        """What the plan says, which at any horizon has the same sizes."""
        return frugal_words_bound(self._shortest(problem), self.risk)

    def most_round_trips(self, problem: Problem) -> int:
        """One to deal, prune and hand over, and one a shared round after that."""
        return frugal_round_trips_bound(self._shortest(problem), self.risk)

    def error_bound(self, means: ArrayLike, problem: Problem) -> float:
        """The bound of docs/frugal-top.md."""
        return frugal_error_bound(means, problem.m, problem.agents, problem.horizon, self.risk)

    def _shortest(self, problem: Problem) -> Problem:
        return problem.at_horizon(self.smallest_horizon(problem))

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Local stages in one exchange, then shared rounds."""
        plan = frugal_plan(problem, self.risk)
        board, live, to_accept = coordinator.scoreboard, np.arange(problem.n), problem.m
        new_pulls = [after - before for before, after in pairwise([0, *plan.shared_pulls])]
        planned = list(zip(plan.shared_sizes, new_pulls, strict=True))
        last, phase = 0, "shared"
        for r, keep in enumerate([*plan.shared_sizes[1:], 0]):
            if not 0 < to_accept < len(live):
                break
            phase = "local" if r == 0 and plan.local_pulls else "shared"
            coordinator.begin_round(phase, live=len(live))
            if phase == "local":
                live = prune(coordinator, problem.n, plan, board, rng)
            else:
                new = planned_pulls(coordinator, planned[r:], len(live))
                board.add(live, pull_balanced(coordinator, live, new, all_live=len(live) == problem.n), new)
            live = eliminate(board, live, to_accept, keep, r, phase, rng)
            to_accept, last = problem.m - board.accepted, r
        settle_rest(board, live, to_accept, last, phase)


def prune(coordinator: Coordinator, n: int, plan: FrugalPlan, board: Scoreboard, rng: np.random.Generator) -> Ints:
    """Agents prune their hands on their own, and pull what is left for the first comparison; what they hand over."""
    sizes = np.array([*plan.local_sizes[1:], plan.local_sizes[-1]])
    pulls = np.array([*plan.local_pulls, plan.shared_pulls[0]])
    question = Prune(int(rng.integers(2**31)), sizes, pulls, free=("sizes", "pulls"))
    hands = coordinator.ask_present(dict.fromkeys(coordinator.present, question), Hand)
    had = plan.shared_pulls[0]
    for hand in hands.values():
        board.add(hand.arms, hand.means * had, had)
    taken_back = reopen_arms(
        coordinator, board, had, lambda agent: shuffling.hand(question.seed, n, coordinator.agents, agent)
    )
    return np.concatenate([*(hand.arms for hand in hands.values()), taken_back])
