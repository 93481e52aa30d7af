"""How many arms a round leaves, and how often an arm is pulled before it ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal

from collabtop.algorithms.shared.allocation import balanced_time
from collabtop.problem import Problem

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


def smallest_that(works: Callable[[int], bool], start: int) -> int:
    """The first horizon from `start` on that works."""
    horizon = max(1, start)
    while not works(horizon):
        horizon += 1
    return horizon


def largest_hand(live: int, agents: int) -> int:
    """The most arms an agent can hold while the partition is balanced: no hand above twice another.

    >>> largest_hand(live=588, agents=10)
    106
    """
    # One agent holds h, every other at least h / 2: h + (K - 1) ceil(h / 2) arms must be there.
    hand = 2 * live // (agents + 1)
    while hand and hand + (agents - 1) * -(-hand // 2) > live:
        hand -= 1
    return hand


class Schedule(ABC):
    """Pulls an arm gets in round r of collab-top-iid, while agents hold hands and afterwards."""

    known: bool
    """Whether the pulls of a local round follow from what all know (then nobody has to be told)."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.sizes = halving(problem.n)
        self.used = 0
        """Time gone by."""
        self.pulls_so_far = 0
        """Pulls that each live arm has had."""

    def local(self, round_: int, hands: list[int]) -> int:
        """Pulls of each arm in a local round, when the agents hold that many arms."""
        pulls = self._local(round_, max(hands))
        self.used += pulls * max(hands)
        self.pulls_so_far += pulls
        return pulls

    def shared(self, round_: int) -> int:
        """Pulls of each arm in a shared round."""
        pulls = self._shared(round_)
        self.used += balanced_time(self.sizes[round_], pulls, self._problem.agents)
        self.pulls_so_far += pulls
        return pulls

    def shared_at_most(self, round_: int, live: int, agents: int, time: int) -> int:
        """Pulls of each of `live` arms in a shared round, with fewer agents and `time` left for all that follows."""
        self.used = max(self.used, self._problem.horizon - time)
        rounds = sum(size >= 2 for size in [live, *self.sizes[round_ + 1 :]])
        affordable = max(0, time // max(1, rounds)) * agents // live
        return affordable if not self.known else min(self._shared(round_), affordable)

    @abstractmethod
    def _local(self, round_: int, largest: int) -> int: ...

    @abstractmethod
    def _shared(self, round_: int) -> int: ...


class PaperSchedule(Schedule):
    """T_r = floor(T K 2^r / (4 n R)) pulls an arm before round r, as printed."""

    known = True

    def pulls_before(self, round_: int) -> int:
        """The paper's T_r."""
        p = self._problem
        return p.horizon * p.agents * 2**round_ // (4 * p.n * p.rounds) if round_ else 0

    def _shared(self, round_: int) -> int:
        return self.pulls_before(round_ + 1) - self.pulls_before(round_)

    def _local(self, round_: int, largest: int) -> int:
        return self._shared(round_)

    @classmethod
    def smallest_horizon(cls, problem: Problem) -> int:
        """One pull an arm before the first elimination, and no round past the horizon, whatever the hash."""

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
        """Every round's live arms equally often; the pulls follow from the horizon alone."""
        schedule = cls(problem)
        return [(live, schedule._shared(r)) for r, live in enumerate(schedule.sizes) if live >= 2]


class FullSchedule(Schedule):
    """The time that is left, divided equally over the rounds that are left and have something to decide."""

    known = False

    def _share(self, round_: int) -> int:
        return (self._problem.horizon - self.used) // _rounds_to_pay(self.sizes[round_:])

    def _local(self, round_: int, largest: int) -> int:
        return self._share(round_) // largest

    def _shared(self, round_: int) -> int:
        return self._share(round_) * self._problem.agents // self.sizes[round_]

    @classmethod
    def smallest_horizon(cls, problem: Problem) -> int:
        """One pull an arm before the first elimination, whatever the hash."""
        hand = max(largest_hand(problem.n, problem.agents), -(-problem.n // problem.agents))
        return _rounds_to_pay(halving(problem.n)) * hand

    @classmethod
    def most_pulls(cls, problem: Problem) -> list[tuple[int, int]]:
        """Early rounds spend least, when one agent's hand is as large as it may be; the last has all that is left."""
        schedule, time = cls(problem), problem.horizon * problem.agents
        steps = []
        for r, live in enumerate(schedule.sizes):
            if live < 2:
                break
            last = schedule.sizes[r + 1] < 2
            # One pull less than the least, so that rounding elsewhere cannot make it more.
            least = max(0, schedule._share(r) // max(1, largest_hand(live, problem.agents)) - 1)
            pulls = -(-time // live) if last else min(least, time // live)
            steps.append((live, pulls))
            time -= live * pulls
            schedule.used += -(-live * pulls // problem.agents)
        return steps


def _rounds_to_pay(sizes: list[int]) -> int:
    return sum(size >= 2 for size in sizes)


SCHEDULES: dict[ScheduleName, type[PaperSchedule] | type[FullSchedule]] = {
    "paper": PaperSchedule,
    "full": FullSchedule,
}
