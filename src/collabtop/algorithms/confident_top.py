"""Confident-Top: stop as soon as the answer is right with a given probability, with few and ever larger rounds."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import AllAgents, balanced_time, pull_balanced
from collabtop.algorithms.shared.elimination import eliminate, guess_rest, settle_rest
from collabtop.coordination.coordinator import Coordinator
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Ints, Message, OpenArms, Pull, PullOpen, Reals
from collabtop.protocol.ties import perturbed, smallest
from collabtop.stats import bounds
from collabtop.validation import real_number, wrong_value

_FIRST_PULLS = 8
_GROWTH = 1.25


@dataclass(frozen=True)
class _Race(Algorithm):
    """What the IID and the non-IID algorithm share: pull all open arms, and settle those clear of the border."""

    stops_early: ClassVar[bool] = True
    needs_bounds: ClassVar[bool] = True
    confidence: float = 0.95
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        check_confidence(self.confidence, self.tolerance)

    @abstractmethod
    def _pull(
        self, coordinator: Coordinator, live: Ints, survived: Flags | None, times: int, *, cut_short: bool
    ) -> tuple[Reals, int]:
        """Pull each open arm `times` times: what to add to the sums and pulls of each.

        Agents know `times` unless the round is cut short.
        """

    @abstractmethod
    def _time(self, live: int, times: int, agents: int) -> int:
        """Time steps that these pulls take."""

    @abstractmethod
    def _pulls_per_arm(self, times: int, agents: int) -> int:
        """Pulls of each open arm, by all agents together."""

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Pull all open arms and settle those clear of the border, until none is open or the horizon is used up."""
        agents, board = coordinator.agents, coordinator.scoreboard
        rounds, live = 0, np.arange(problem.n)
        survived: Flags | None = None  # all arms are open at first, which every agent knows
        while len(live):
            per_time = self._pulls_per_arm(1, agents)
            planned = times_before(rounds + 1) - times_before(rounds)
            planned = -(-coordinator.affordable(live, planned * per_time) // per_time)
            times = self._affordable(planned, len(live), agents, coordinator.time_left)
            if not times:
                break
            coordinator.begin_round("shared", live=len(live))
            board.add(live, *self._pull(coordinator, live, survived, times, cut_short=times < planned))
            rounds += 1
            if times < planned:  # this number depends on the rewards, so the intervals do not hold: only guess
                break
            r, pulls = rounds - 1, int(board.pulls(live)[0])  # t_r
            if pulls == problem.population:  # the means are exact
                eliminate(board, live, problem.m, 0, r, "shared", rng)
                return
            accepted, rejected = self.verdicts(board.means(live), pulls, problem.m - board.accepted, r, problem.n, rng)
            board.accept(live[accepted], r, "shared")
            board.reject(live[rejected], r, "shared")
            survived = ~(accepted | rejected)
            live = settle_rest(board, live[survived], problem.m, r, "shared")
        guess_rest(board, live, problem.m, rounds - 1, rng)

    def verdicts(
        self, means: Reals, pulls: int, to_accept: int, r: int, n: int, rng: np.random.Generator
    ) -> tuple[Flags, Flags]:
        """Which open arms are surely among the best `to_accept` of them, and which are surely not."""
        # The probabilities of a wrong interval, over all arms, both sides and all rounds, add up to 1 - confidence.
        evidence = math.log(2 * n * (r + 1) * (r + 2) / (1 - self.confidence))
        distinct, index = np.unique(means, return_inverse=True)  # far fewer than arms, and a bound takes a search
        low, high = (ends[index] for ends in bounds(distinct, np.full(len(distinct), float(pulls)), evidence))
        top = ~smallest(perturbed(means, rng), len(means) - to_accept)
        if high[~top].max() <= low[top].min() + self.tolerance:
            return top, ~top
        accepted = top & (low > np.sort(high)[len(high) - to_accept - 1])
        rejected = ~top & (high < np.sort(low)[len(low) - to_accept])
        return accepted, rejected

    def _affordable(self, times: int, live: int, agents: int, time_left: int) -> int:
        """`times`, or the largest number below it for which the time suffices."""
        while times and self._time(live, times, agents) > time_left:
            times = min(times - 1, time_left * agents // live)
        return times


@dataclass(frozen=True)
class ConfidentTop(_Race):
    """Stop when the answer is right with the given probability; the horizon is only a limit.

    Args:
        confidence: the required probability that the answer is right (1 - delta).
        tolerance: arms that are at most this much worse than the m-th best also count as right (epsilon).

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.4, 0.1])
    >>> result = ct.identify(arms, m=1, agents=2, confidence=0.95, seed=1)
    >>> result.top, result.sure, result.algorithm
    ([0], True, 'confident-top')
    """

    name: ClassVar[str] = "confident-top"
    summary: ClassVar[str] = "Stops when the answer is right with the given probability."
    messages: ClassVar[tuple[type[Message], ...]] = (OpenArms, Pull)
    iid_only: ClassVar[bool] = True

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm."""
        return balanced_time(problem.n, 1, problem.agents)

    def _pull(
        self, coordinator: Coordinator, live: Ints, survived: Flags | None, times: int, *, cut_short: bool
    ) -> tuple[Reals, int]:
        # An agent computes its pulls from the number of open arms and the round; at first all arms are open.
        all_live = survived is None
        if not all_live or cut_short:
            free = (*(("count",) if all_live else ()), *(() if cut_short else ("times",)))
            share = balanced_time(len(live), times, coordinator.agents)
            pulling = -(-len(live) * times // share)  # the other agents are not asked
            coordinator.tell(dict.fromkeys(range(pulling), OpenArms(len(live), times, free=free)))
        return pull_balanced(coordinator, live, times, all_live=all_live)

    def _time(self, live: int, times: int, agents: int) -> int:
        return balanced_time(live, times, agents)

    def _pulls_per_arm(self, times: int, agents: int) -> int:
        return times


@dataclass(frozen=True)
class ConfidentTopNonIID(_Race):
    """`ConfidentTop`, with its options, for non-IID arms: all agents pull all open arms.

    >>> import collabtop as ct
    >>> arms = ct.HeterogeneousArms([[0.9, 0.1], [0.6, 0.9], [0.2, 0.2]])
    >>> ct.identify(arms, m=1, confidence=0.95, seed=1).top
    [1]
    """

    name: ClassVar[str] = "confident-top-noniid"
    summary: ClassVar[str] = "Stops when the answer is right with the given probability, for non-IID arms."
    messages: ClassVar[tuple[type[Message], ...]] = (PullOpen,)

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm by every agent."""
        return problem.n

    def _pull(
        self, coordinator: Coordinator, live: Ints, survived: Flags | None, times: int, *, cut_short: bool
    ) -> tuple[Reals, int]:
        # From the bitmap every agent knows how many arms are open, and so whether the round is cut short.
        return AllAgents(coordinator).pull_open(live, survived, times, coarseness=0.0)

    def _time(self, live: int, times: int, agents: int) -> int:
        return live * times

    def _pulls_per_arm(self, times: int, agents: int) -> int:
        return times * agents


def times_before(r: int) -> int:
    """Pulls of an open arm before round r, by each agent if non-IID: 8 in the first round, then a quarter more each.

    >>> [times_before(r) for r in range(6)]
    [0, 8, 10, 12, 15, 19]
    """
    return int(_FIRST_PULLS * _GROWTH ** (r - 1)) if r else 0


def check_confidence(confidence: float, tolerance: float) -> None:
    """Raise `InputError` if the confidence or the tolerance is invalid."""
    if not 0 < real_number("confidence", confidence) < 1:
        raise wrong_value("confidence", confidence, "a probability between 0 and 1 is needed, such as 0.95")
    if not 0 <= real_number("tolerance", tolerance) < 1:
        raise wrong_value("tolerance", tolerance, "a number of at least 0 and below 1 is needed")
