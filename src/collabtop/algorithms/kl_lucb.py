"""KL-LUCB (Kaufmann and Kalyanakrishnan 2013): a baseline for one agent that stops when it is confident."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.confident_top import check_confidence
from collabtop.algorithms.sar import one_agent_only
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.algorithms.shared.elimination import guess_rest
from collabtop.coordination.coordinator import Coordinator
from collabtop.problem import Problem
from collabtop.protocol.messages import Message, Pull
from collabtop.stats import interval_end

# The exploration rate of the authors' theorem: ln(405.5 n t^1.1 / delta) + its logarithm.
_RATE, _POWER = 405.5, 1.1


@dataclass(frozen=True)
class KLLUCB(Algorithm):
    """One agent pulls the two arms on which the answer depends, until their intervals separate.

    Args:
        confidence: the required probability that the answer is right (1 - delta).
        tolerance: arms that are at most this much worse than the m-th best also count as right (epsilon).

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.4, 0.1])
    >>> ct.identify(arms, m=1, agents=1, confidence=0.95, algorithm="kl-lucb", seed=1).top
    [0]
    """

    name: ClassVar[str] = "kl-lucb"
    summary: ClassVar[str] = "One agent pulls the two arms on which the answer depends, until their intervals separate."
    messages: ClassVar[tuple[type[Message], ...]] = (Pull,)
    stops_early: ClassVar[bool] = True
    needs_bounds: ClassVar[bool] = True
    confidence: float = 0.95
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        check_confidence(self.confidence, self.tolerance)

    def check(self, problem: Problem) -> None:
        """Raise `SettingError` unless there is one agent."""
        one_agent_only(self, problem)

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm."""
        return problem.n

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Pull the weakest of the best m and the strongest of the others, until their intervals separate."""
        agents, board = AllAgents(coordinator), coordinator.scoreboard
        arms = np.arange(problem.n)
        coordinator.begin_round("shared", live=problem.n)
        board.add(arms, *agents.pull(arms, 1, all_live=True))
        pulls, tie_breakers = np.ones(problem.n), rng.random(problem.n)
        while True:
            means, evidence = board.means(arms), self._evidence(int(pulls.sum()), problem.n)
            order = np.lexsort((tie_breakers, -means))
            best, others = order[: problem.m], order[problem.m :]
            towards = np.ones(problem.n)
            towards[best] = 0.0  # of the best only the lower ends are needed, of the others only the upper ends
            ends = interval_end(means, pulls, evidence, towards)
            used_up = pulls == problem.pull_limit
            if problem.population is not None:
                ends[used_up] = means[used_up]
            low, high = ends[best], ends[others]
            weakest, strongest = best[low.argmin()], others[high.argmax()]  # l, u
            if high.max() <= low.min() + self.tolerance:
                board.accept(best, 0, "shared")
                board.reject(others, 0, "shared")
                return
            pair = np.array([weakest, strongest])
            pair = pair[~used_up[pair]]
            if not len(pair) or pulls.sum() + 2 > problem.horizon:
                guess_rest(board, arms, problem.m, 0, rng)
                return
            board.add(pair, *agents.pull(pair, 1))
            pulls[pair] += 1

    def _evidence(self, time: int, n: int) -> float:
        rate = math.log(_RATE * n * time**_POWER / (1 - self.confidence))
        return rate + math.log(rate)
