"""Stop as soon as the answer is right with a given probability: racing with messages at growing times only."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import AllAgents, balanced_time, pull_balanced
from collabtop.algorithms.shared.elimination import smallest
from collabtop.coordination.coordinator import Coordinator
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.errors import InputError
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Ints, OpenArms, Reals
from collabtop.stats import bounds
from collabtop.validation import real_number

_FIRST_PULLS = 8
_GROWTH = 1.25


@dataclass(frozen=True)
class _Race(Algorithm):
    """What the two settings share: pull all open arms, settle those whose intervals are clear of the border."""

    stops_early: ClassVar[bool] = True
    confidence: float = 0.95
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        check_confidence(self.confidence, self.tolerance)

    @abstractmethod
    def _pull(
        self, coordinator: Coordinator, live: Ints, survived: Flags | None, times: int, *, cut_short: bool
    ) -> Reals:
        """Pull each open arm `times` times, and add up; only a round cut short has to say how many times that is."""

    @abstractmethod
    def _time(self, live: int, times: int, agents: int) -> int:
        """Time steps which that takes."""

    @abstractmethod
    def _per_arm(self, times: int, agents: int) -> int:
        """Pulls that an arm then gets in all."""

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Race until all is settled, or the horizon is used up."""
        board, live = coordinator.scoreboard, np.arange(problem.n)
        survived: Flags | None = None
        r, to_accept, left = 0, problem.m, problem.horizon
        while 0 < to_accept < len(live):
            planned = times_before(r + 1) - times_before(r)
            new = self._affordable(planned, len(live), coordinator.agents, left)
            if not new:
                break
            coordinator.begin_round("shared", live=len(live))
            sums = self._pull(coordinator, live, survived, new, cut_short=new < planned)
            board.add(live, sums, self._per_arm(new, coordinator.agents))
            r, left = r + 1, left - self._time(len(live), new, coordinator.agents)
            if new < planned:  # how many pulls it had depends on what was seen: good for a guess, not for a verdict
                break
            pulls = float(self._per_arm(times_before(r), coordinator.agents))
            good, bad = self.verdicts(board.means(live), pulls, to_accept, r - 1, problem.n, rng)
            board.accept(live[good], r - 1, "shared")
            board.reject(live[bad], r - 1, "shared")
            survived = ~(good | bad)
            live, to_accept = live[survived], problem.m - board.accepted
        guess(board, live, to_accept, r - 1, rng)

    def verdicts(
        self, means: Reals, pulls: float, to_accept: int, r: int, n: int, rng: np.random.Generator
    ) -> tuple[Flags, Flags]:
        """Which open arms are surely among the best `to_accept` of them, and which surely are not."""
        # Over all arms, both sides and all rounds the chances of a wrong interval add up to 1 - confidence.
        evidence = math.log(2 * n * (r + 1) * (r + 2) / (1 - self.confidence))
        low, high = bounds(means, np.full(len(means), pulls), evidence)
        top = ~smallest(means, len(means) - to_accept, rng)
        if high[~top].max() <= low[top].min() + self.tolerance:
            return top, ~top
        good = top & (low > np.sort(high)[len(high) - to_accept - 1])
        bad = ~top & (high < np.sort(low)[len(low) - to_accept])
        return good, bad

    def _affordable(self, times: int, live: int, agents: int, left: int) -> int:
        while times and self._time(live, times, agents) > left:
            times = min(times - 1, left * agents // live)
        return times


@dataclass(frozen=True)
class ConfidentTop(_Race):
    """Stop when the best m are known with the given probability; the horizon is only a limit.

    Args:
        confidence: the probability with which the answer must be right (1 - delta).
        tolerance: an arm this little worse than the m-th best is right as well (epsilon).

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.4, 0.1])
    >>> result = ct.identify(arms, m=1, agents=2, confidence=0.95, seed=1)
    >>> result.top, result.sure, result.algorithm
    ([0], True, 'confident-top')
    """

    name: ClassVar[str] = "confident-top"
    summary: ClassVar[str] = "Stops when the best m are known with the given probability."
    iid_only: ClassVar[bool] = True

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull an arm."""
        return balanced_time(problem.n, 1, problem.agents)

    def _pull(
        self, coordinator: Coordinator, live: Ints, survived: Flags | None, times: int, *, cut_short: bool
    ) -> Reals:
        # From the number of open arms and the round an agent knows its pulls, and at first all arms are open.
        if survived is not None or cut_short:
            free = (*(("count",) if survived is None else ()), *(() if cut_short else ("times",)))
            busy = -(
                -len(live) * times // balanced_time(len(live), times, coordinator.agents)
            )  # the others are not asked
            coordinator.tell(dict.fromkeys(range(busy), OpenArms(len(live), times, free=free)))
        return pull_balanced(coordinator, live, times, all_live=survived is None)

    def _time(self, live: int, times: int, agents: int) -> int:
        return balanced_time(live, times, agents)

    def _per_arm(self, times: int, agents: int) -> int:
        return times


@dataclass(frozen=True)
class ConfidentTopNonIID(_Race):
    """The same for arms that look different to each agent: all agents pull all open arms.

    Args:
        confidence: the probability with which the answer must be right (1 - delta).
        tolerance: an arm this little worse than the m-th best is right as well (epsilon).

    >>> import collabtop as ct
    >>> arms = ct.HeterogeneousArms([[0.9, 0.1], [0.6, 0.9], [0.2, 0.2]])
    >>> ct.identify(arms, m=1, confidence=0.95, seed=1).top
    [1]
    """

    name: ClassVar[str] = "confident-top-noniid"
    summary: ClassVar[str] = "Stops when the best m are known with the given probability, for non-IID arms."

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull an arm by every agent."""
        return problem.n

    def _pull(
        self, coordinator: Coordinator, live: Ints, survived: Flags | None, times: int, *, cut_short: bool
    ) -> Reals:
        # A bitmap tells every agent how many arms are open, so all know when the time runs out.
        sums, _ = AllAgents(coordinator).pull_open(live, survived, times, coarseness=0.0)
        return sums

    def _time(self, live: int, times: int, agents: int) -> int:
        return live * times

    def _per_arm(self, times: int, agents: int) -> int:
        return times * agents


def times_before(round_: int) -> int:
    """Pulls of an open arm before round r: a few at first, then a quarter more each time.

    >>> [times_before(r) for r in range(6)]
    [0, 8, 10, 12, 15, 19]
    """
    return int(_FIRST_PULLS * _GROWTH ** (round_ - 1)) if round_ else 0


def guess(board: Scoreboard, live: Ints, to_accept: int, r: int, rng: np.random.Generator) -> None:
    """Complete the answer with the best of the open arms, and say that they are not settled."""
    if not 0 < to_accept < len(live):  # nothing is left to decide
        (board.accept if to_accept else board.reject)(live, r, "shared")
        return
    best = np.lexsort((rng.random(len(live)), -board.means(live)))  # which of equal arms is chance
    board.accept(live[best[:to_accept]], r, "shared")
    board.reject(live[best[to_accept:]], r, "shared")
    board.leave_open(live)


def check_confidence(confidence: float, tolerance: float) -> None:
    """Refuse a confidence or a tolerance that cannot be."""
    if not 0 < real_number("confidence", confidence) < 1:
        raise InputError(
            f"confidence is {confidence}, but a probability between 0 and 1 is needed, such as 0.95",
            argument="confidence",
        )
    if not 0 <= real_number("tolerance", tolerance) < 1:
        raise InputError(
            f"tolerance is {tolerance}, but a number of at least 0 and below 1 is needed", argument="tolerance"
        )
