"""How many arms stay live after each round, and how often a live arm is pulled in it."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np

from collabtop.algorithms.shared.allocation import balanced_time
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Ints
from collabtop.validation import wrong_value

ScheduleName = Literal["paper", "full"]


def halving(n: int) -> list[int]:
    """The paper's n_0, ..., n_R: half as many each round, and none after the last.

    >>> halving(588)
    [588, 294, 147, 73, 36, 18, 9, 4, 2, 1, 0]
    >>> halving(8)
    [8, 4, 2, 0]
    """
    rounds = (n - 1).bit_length()
    return [n >> r for r in range(rounds)] + [0]


def decisive(sizes: Sequence[int]) -> list[int]:
    """The sizes of the rounds that have something to decide: those with at least two live arms.

    >>> decisive(halving(9))
    [9, 4, 2]
    """
    return [size for size in sizes if size >= 2]


def new_pulls(totals: Sequence[int]) -> list[int]:
    """The pulls of each round, from the total at the end of each round.

    >>> new_pulls([3, 5, 9])
    [3, 2, 4]
    """
    return [after - before for before, after in pairwise([0, *totals])]


def envelope(plans: Sequence[Sequence[tuple[int, int]]]) -> list[tuple[int, int]]:
    """The open arms and the new pulls of each, round by round, that cover each of several plans.

    In each plan the numbers of open arms fall. For every number of arms, so many of them have together at least as many
    pulls as in any plan, whichever they are.

    >>> envelope([[(4, 10), (2, 30)], [(4, 10), (3, 10), (1, 40)]])
    [(4, 10), (3, 10), (2, 20), (1, 20)]
    """
    if len(plans) == 1:
        return list(plans[0])
    sizes = sorted({size for plan in plans for size, _ in plan}, reverse=True)
    totals = [max(sum(new for open_arms, new in plan if open_arms >= size) for plan in plans) for size in sizes]
    return list(zip(sizes, new_pulls(totals), strict=True))


def capped(new: Iterable[int], limit: int | None) -> list[int]:
    """The pulls of each round, cut where an arm would get more than `limit` in all.

    >>> capped([3, 2, 4], limit=6)
    [3, 2, 1]
    """
    if limit is None:
        return list(new)
    return new_pulls([min(total, limit) for total in accumulate(new)])


def stretched(problem: Problem, time: Callable[[Problem], int]) -> Problem:
    """The problem with the longest horizon whose plan, cut at the pull limit, takes no more time than `problem` has.

    So pulls that exact arms do not need go to the other rounds. `time` is the time that the plan takes, cut. Without a
    pull limit, this is `problem` itself.
    """
    if problem.pull_limit is None:
        return problem
    longest = problem.horizon + problem.n * problem.n * problem.pull_limit  # with it, every arm is exact from the start
    horizons = range(problem.horizon, longest + 1)
    beyond = bisect_left(horizons, True, lo=1, key=lambda horizon: time(problem.at_horizon(horizon)) > problem.horizon)
    return problem.at_horizon(horizons[beyond - 1])


def smallest_that(works: Callable[[int], bool], start: int) -> int:
    """The smallest horizon that works, not below `start`."""
    horizon = max(1, start)
    while not works(horizon):
        horizon += 1
    return horizon


def largest_hand(live: int, agents: int) -> int:
    """The most arms an agent can hold while the partition is balanced: no hand is more than twice as large as another.

    >>> largest_hand(live=588, agents=10)
    106
    """
    # One agent holds h arms, the others at least h / 2 each: together h + (K - 1) ceil(h / 2).
    hand = 2 * live // (agents + 1)
    while hand and hand + (agents - 1) * -(-hand // 2) > live:
        hand -= 1
    return hand


class Schedule(ABC):
    """Pulls per live arm in each round of collab-top-iid; it records the time used and the pulls made.

    A local round takes as long as its largest hand; a shared round is divided evenly over the agents.
    """

    predetermined: bool
    """Whether agents can compute the pulls of a local round themselves, so that they need not be sent."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.sizes = halving(problem.n)
        self.used: Any = 0
        """Time steps so far: a number, or one per run in `mixed`."""
        self.pulls_so_far = 0
        """Pulls of each live arm so far."""

    def local(self, r: int, hands: list[int]) -> int:
        """Pulls of each arm in a local round in which the agents hold hands of these sizes."""
        pulls: int = self._within_limit(self._local(r, max(hands)))
        self.used += pulls * max(hands)
        self.pulls_so_far += pulls
        return pulls

    def shared(self, r: int) -> int:
        """Pulls of each arm in a shared round."""
        pulls: int = self._within_limit(self._shared(r))
        self.used += balanced_time(self.sizes[r], pulls, self._problem.agents)
        self.pulls_so_far += pulls
        return pulls

    def _within_limit(self, pulls: int) -> int:
        limit = self._problem.pull_limit
        return pulls if limit is None else min(pulls, limit - self.pulls_so_far)

    def mixed(self, r: int, largest: Ints, local: Flags) -> Ints:
        """Pulls of each arm in a round of many runs; in some it is `local`, with these largest hands, else shared."""
        pulls: Any = np.where(local, self._local(r, largest), self._shared(r))
        time = np.where(local, pulls * largest, balanced_time(self.sizes[r], pulls, self._problem.agents))
        self.used = self.used + time
        return np.asarray(pulls)

    def shared_at_most(self, r: int, live: int, agents: int, time: int) -> int:
        """Pulls of each of `live` arms in a shared round, with fewer agents and `time` for it and all later rounds."""
        self.used = max(self.used, self._problem.horizon - time)
        rounds = len(decisive([live, *self.sizes[r + 1 :]]))
        affordable = max(0, time // max(1, rounds)) * agents // live
        return affordable if not self.predetermined else min(self._shared(r), affordable)

    @abstractmethod
    def _local(self, r: int, largest: Any) -> Any: ...

    @abstractmethod
    def _shared(self, r: int) -> Any: ...


class PaperSchedule(Schedule):
    """T_r = floor(T K 2^r / (4 n R)) pulls per arm before round r, as printed."""

    predetermined = True

    def pulls_before(self, r: int) -> int:
        """The paper's T_r."""
        p = self._problem
        return p.horizon * p.agents * 2**r // (4 * p.n * p.rounds) if r else 0

    def _shared(self, r: int) -> int:
        return self.pulls_before(r + 1) - self.pulls_before(r)

    def _local(self, r: int, largest: Any) -> int:
        return self._shared(r)

    @classmethod
    def smallest_horizon(cls, problem: Problem) -> int:
        """One pull per arm before the first elimination, and no round past the horizon, with any hash."""

        def works(horizon: int) -> bool:
            schedule = cls(problem.at_horizon(horizon))
            for r, live in enumerate(schedule.sizes[:-1]):
                pulls = schedule._shared(r)
                hand = largest_hand(live, problem.agents)
                schedule.used += max(balanced_time(live, pulls, problem.agents), pulls * hand)
            return schedule.pulls_before(1) >= 1 and schedule.used <= horizon

        return smallest_that(works, -(-2 * problem.n * problem.rounds // problem.agents))

    @classmethod
    def most_pulls(cls, problem: Problem) -> list[tuple[int, int]]:
        """The live arms of every round equally often; the pulls depend only on the horizon."""
        schedule = cls(problem)
        return [(live, schedule._shared(r)) for r, live in enumerate(decisive(schedule.sizes))]


class FullSchedule(Schedule):
    """The remaining time, divided equally over the remaining rounds in which something is decided."""

    predetermined = False

    def _share(self, r: int) -> Any:
        return (self._problem.horizon - self.used) // len(decisive(self.sizes[r:]))

    def _local(self, r: int, largest: Any) -> Any:
        return self._share(r) // largest

    def _shared(self, r: int) -> Any:
        return self._share(r) * self._problem.agents // self.sizes[r]

    @classmethod
    def smallest_horizon(cls, problem: Problem) -> int:
        """One pull per arm before the first elimination, with any hash."""
        hand = max(largest_hand(problem.n, problem.agents), -(-problem.n // problem.agents))
        return len(decisive(halving(problem.n))) * hand

    @classmethod
    def most_pulls(cls, problem: Problem) -> list[tuple[int, int]]:
        """As few as possible in each early round (one hand is as large as balance allows), the rest in the last."""
        schedule, time = cls(problem), problem.horizon * problem.agents
        steps = []
        for r, live in enumerate(decisive(schedule.sizes)):
            last = schedule.sizes[r + 1] < 2
            # One pull fewer than that, because rounding elsewhere may leave a real run with less time here.
            least = max(0, schedule._share(r) // max(1, largest_hand(live, problem.agents)) - 1)
            pulls = -(-time // live) if last else min(least, time // live)
            steps.append((live, pulls))
            time -= live * pulls
            schedule.used += -(-live * pulls // problem.agents)
        return steps


SCHEDULES: dict[ScheduleName, type[PaperSchedule] | type[FullSchedule]] = {
    "paper": PaperSchedule,
    "full": FullSchedule,
}


def check_schedule(name: object) -> None:
    """Raise `InputError` if there is no schedule of this name."""
    if name not in tuple(SCHEDULES):  # a tuple, because the name may not be hashable
        raise wrong_value("schedule", name, "'paper' or 'full' is needed")
