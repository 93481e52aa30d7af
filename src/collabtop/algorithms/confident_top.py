"""Confident-Top: stop as soon as the answer is right with a given probability, with few and ever larger rounds."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import AllAgents, balanced_time, pull_balanced_squares, pulling_agents
from collabtop.algorithms.shared.elimination import eliminate, guess_rest, settle_rest
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import SettingError
from collabtop.intervals import Evidence, drift_bounds
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Ints, Message, OpenArms, Pull, PullOpen, Reals, SendSquares
from collabtop.protocol.ties import perturbed, smallest
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
    ) -> tuple[Reals, int, Reals]:
        """Pull each open arm `times` times: what to add to the sums, pulls and sums of squares of each.

        Agents know `times` unless the round is cut short.
        """

    @abstractmethod
    def _time(self, live: int, times: int, problem: Problem) -> int:
        """Time steps that these pulls take."""

    @abstractmethod
    def _pulls_per_arm(self, times: int, agents: int) -> int:
        """Pulls of each open arm, by all agents together."""

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Pull all open arms and settle those clear of the border, until none is open or the horizon is used up."""
        agents, board = coordinator.agents, coordinator.scoreboard
        rounds, live = 0, np.arange(problem.n)
        survived: Flags | None = None  # all arms are open at first, which every agent knows
        coordinator.tell_all(SendSquares())
        paired = PairedEvidence(problem) if problem.paired else None
        while len(live):
            per_time = self._pulls_per_arm(1, agents)
            planned = times_before(rounds + 1) - times_before(rounds)
            planned = -(-coordinator.affordable(live, planned * per_time) // per_time)
            times = self._affordable(planned, len(live), problem, coordinator.time_left)
            if not times:
                break
            coordinator.begin_round("shared", live=len(live))
            sums, made, squares = self._pull(coordinator, live, survived, times, cut_short=times < planned)
            if paired is not None:
                paired.add(live, sums, made, squares)
            board.add(live, sums, made, None if problem.paired else squares)
            rounds += 1
            r, pulls = rounds - 1, int(board.pulls(live)[0])  # t_r
            if pulls == problem.population:  # the means are exact
                eliminate(board, live, problem.m, 0, r, "shared", rng)
                return
            error, to_accept = (1 - self.confidence) / problem.n, problem.m - board.accepted
            ends, tolerance = board.bounds(live, error), self.tolerance
            if paired is not None:  # of half the differences from the average arm
                ends, tolerance = paired.bounds(live, error), self.tolerance / 2
            accepted, rejected = verdicts(board.means(live), *ends, to_accept, tolerance, rng)
            board.accept(live[accepted], r, "shared")
            board.reject(live[rejected], r, "shared")
            survived = ~(accepted | rejected)
            live = settle_rest(board, live[survived], problem.m, r, "shared")
        guess_rest(board, live, problem.m, rounds - 1, rng)

    def _affordable(self, times: int, live: int, problem: Problem, time_left: int) -> int:
        """`times`, or the largest number below it for which the time suffices."""
        while times and self._time(live, times, problem) > time_left:
            times = min(times - 1, time_left * problem.agents // live)
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
    messages: ClassVar[tuple[type[Message], ...]] = (SendSquares, OpenArms, Pull)
    iid_only: ClassVar[bool] = True

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm."""
        return self._time(problem.n, 1, problem)

    def _pull(
        self, coordinator: Coordinator, live: Ints, survived: Flags | None, times: int, *, cut_short: bool
    ) -> tuple[Reals, int, Reals]:
        all_live = survived is None
        if coordinator.problem.paired:  # every agent pulls all open arms on its own examples
            agents = AllAgents(coordinator)
            return *agents.pull_divided(live, times, all_live=all_live, cut_short=cut_short), agents.squares
        # An agent computes its pulls from the number of open arms and the round; at first all arms are open.
        if not all_live or cut_short:
            free = (*(("count",) if all_live else ()), *(() if cut_short else ("times",)))
            pulling = pulling_agents(len(live), times, coordinator.agents)  # the other agents are not asked
            coordinator.tell(dict.fromkeys(range(pulling), OpenArms(len(live), times, free=free)))
        return pull_balanced_squares(coordinator, live, times, all_live=all_live)

    def _time(self, live: int, times: int, problem: Problem) -> int:
        if problem.paired:
            return live * -(-times // problem.agents)
        return balanced_time(live, times, problem.agents)

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
    messages: ClassVar[tuple[type[Message], ...]] = (SendSquares, PullOpen)

    def check(self, problem: Problem) -> None:
        """Refuse weights together with examples or logged rewards that are used once: nothing is proved for these."""
        if problem.weights is not None and problem.pull_limit is not None:
            raise SettingError(
                "these arms have weights and use each example or logged reward once, but a confidence needs one or the "
                "other: use replace=True, a horizon, or equal weights",
                argument="weights",
            )

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm by every agent."""
        return problem.n

    def _pull(
        self, coordinator: Coordinator, live: Ints, survived: Flags | None, times: int, *, cut_short: bool
    ) -> tuple[Reals, int, Reals]:
        # From the bitmap every agent knows how many arms are open, and so whether the round is cut short.
        agents = AllAgents(coordinator)
        return *agents.pull_open(live, survived, times, coarseness=0.0), agents.squares

    def _time(self, live: int, times: int, problem: Problem) -> int:
        return live * times

    def _pulls_per_arm(self, times: int, agents: int) -> int:
        return times * agents


def verdicts(
    means: Reals, low: Reals, high: Reals, to_accept: int, tolerance: float, rng: np.random.Generator
) -> tuple[Flags, Flags]:
    """Which open arms are surely among the best `to_accept` of them, and which are surely not, by their intervals."""
    top = ~smallest(perturbed(means, rng), len(means) - to_accept)
    if high[~top].max() <= low[top].min() + tolerance:
        return top, ~top
    accepted = top & (low > np.sort(high)[len(high) - to_accept - 1])
    rejected = ~top & (high < np.sort(low)[len(low) - to_accept])
    return accepted, rejected


class PairedEvidence:
    """What rewards on the same examples say about the differences between open arms.

    On each example, let y = (1 + x - average) / 2, with the average over all open arms. The mean of an arm's y is half
    its own mean plus something that all open arms share: they have the order and half the differences of the means.
    And y varies much less than x if arms find the same examples hard (docs/intervals.md, theorem 3).
    """

    def __init__(self, problem: Problem) -> None:
        self._population, self._used = problem.population, 0
        self._sums = np.zeros(problem.n)
        self._columns = np.zeros((3, problem.n))

    def add(self, live: Ints, sums: Reals, pulls: int, squares: Reals) -> None:
        """Add a round of pulls of all open arms; `squares` are sums of (y - 1/2)^2."""
        unused = math.inf if self._population is None else self._population - self._used
        factor = 1.0 if self._population is None else self._population / unused
        before = (self._used + self._sums[live] - self._sums[live].mean()) / 2
        self._columns[0, live] += (pulls + sums - sums.mean()) / 2 + pulls * before / unused
        self._columns[1, live] += pulls * factor
        self._columns[2, live] += squares
        self._sums[live] += sums
        self._used += pulls

    def bounds(self, live: Ints, error: float) -> tuple[Reals, Reals]:
        """Intervals of the means of y, up to what they all share."""
        total, weight, square = self._columns[:, live]
        nothing = np.zeros(len(live))
        return drift_bounds(Evidence(total, weight, square, nothing, nothing), error)


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
