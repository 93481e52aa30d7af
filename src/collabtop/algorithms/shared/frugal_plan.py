"""How frugal-top spends its horizon: sizes and pulls of every stage, worked out before the first pull.

An arm's pulls grow as the number s of arms still open falls: before a stage that begins with s arms ends, each of
them has had a times `pulls_share(s)` pulls, with the largest a that the horizon can pay for. Stages inside an agent
cost no message, so there are many of them; shared rounds cost a round trip each, so they are few.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import msgspec
import numpy as np

from collabtop.algorithms.shared.allocation import balanced_time
from collabtop.problem import Problem
from collabtop.stats import hypergeometric

_LOCAL_SHRINK = 1.08
_SHARED_SHRINK, _BORDER_SHRINK, _BORDER = 1.75, 1.4, 24
_NONIID_SHRINK = 1.5
_SPARE, _FEWEST = 3, 7
_FIRST_POWER, _LAST_POWER, _MANY = 0.85, 1.5, 512


class FrugalPlan(msgspec.Struct, frozen=True):
    """Every stage of a run."""

    local_sizes: tuple[int, ...]
    """Arms in the largest hand when each local stage begins, and when the last one has ended."""
    local_pulls: tuple[int, ...]
    """Pulls that each arm in hand has had when each local stage ends."""
    shared_sizes: tuple[int, ...]
    """Arms still open when each shared round begins; after the last one there are none."""
    shared_pulls: tuple[int, ...]
    """Pulls that each open arm has had when each shared round ends.

    After local stages, agents make the pulls of the first round before they hand over: each has as many of its arms in
    hand as it would be dealt, so that takes no more time, and saves a round trip.
    """


def pulls_share(size: int, m: int) -> float:
    """How many pulls an arm is given by the time `size` arms are open, up to a factor for all sizes.

    It is size^-p with a p that rises as arms go: p is 0.85 while 512 or more are open, and reaches 0.85 (m = 1) to
    1.5 (m >= 8) at two, in even steps of log(size). Where many are open there are many that can go wrong, whatever the
    instance. Where few are open they lie around the border, and the spacing of ordered means falls with their rank:
    the larger m, the narrower it is there. One p for all sizes is good at one of the two only.
    `benchmarks/frugal_standard.py` shows both.

    >>> [round(pulls_share(size, m=1) / pulls_share(512, m=1), 1) for size in (512, 64, 8, 2)]
    [1.0, 5.9, 34.3, 111.4]
    >>> [round(pulls_share(size, m=8) / pulls_share(512, m=8), 1) for size in (512, 64, 8, 2)]
    [1.0, 7.5, 94.5, 675.6]
    """
    last = min(_LAST_POWER, _FIRST_POWER + (_LAST_POWER - _FIRST_POWER) * math.log2(m) / 3)
    gone = math.log2(_MANY / size)
    return 2 ** (_FIRST_POWER * gone + (last - _FIRST_POWER) / (2 * math.log2(_MANY / 2)) * max(0.0, gone) ** 2)


def most_in_a_hand(n: int, m: int, agents: int, risk: float) -> int:
    """The number u of the best m arms that no agent's hand exceeds, but for a chance of `risk`.

    Hands are dealt by a shuffle, so the number in one hand is hypergeometric; the exact tails of all hands
    are added up.

    >>> most_in_a_hand(n=588, m=1, agents=10, risk=0.001), most_in_a_hand(n=588, m=8, agents=10, risk=0.001)
    (1, 5)
    """
    hand = -(-n // agents)
    counts = np.arange(min(m, hand), max(0, hand + m - n) - 1, -1)
    tails = np.cumsum(hypergeometric(n, m, hand, counts) * agents)  # P(some hand holds at least so many), at most
    return int(counts[np.argmax(tails > risk)])


def arms_to_hand_over(problem: Problem, risk: float) -> int:
    """How many arms an agent keeps: twice as many as it may hold of the best m and a few to spare, and at least 7.

    >>> arms_to_hand_over(Problem(n=588, m=8, agents=10, horizon=1), risk=0.001)
    13
    """
    return max(_FEWEST, 2 * most_in_a_hand(problem.n, problem.m, problem.agents, risk) + _SPARE)


@lru_cache(maxsize=256)
def frugal_plan(problem: Problem, risk: float) -> FrugalPlan:
    """The plan of `frugal-top` that spends the whole horizon.

    >>> plan = frugal_plan(Problem(n=588, m=1, agents=10, horizon=12_000), risk=0.001)
    >>> plan.local_sizes[0], plan.local_sizes[-1], plan.shared_sizes
    (59, 7, (70, 39, 21, 12, 7, 4, 2))
    """
    stages = _Stages(problem, risk)
    most = problem.horizon * problem.agents  # pulls that an arm can get if there are more agents than arms
    pulls = _spend(stages.open, problem.m, stages.time, problem.horizon, most)
    # What rounding left over goes to the last round.
    pulls[-1] += (problem.horizon - stages.time(pulls)) * problem.agents // stages.shared[-1]
    cut = len(stages.local) - 1
    return FrugalPlan(tuple(stages.local), tuple(pulls[:cut]), tuple(stages.shared), tuple(pulls[cut:]))


@lru_cache(maxsize=256)
def smallest_frugal_horizon(n: int, m: int, agents: int, risk: float) -> int:
    """One pull an arm in the first stage, and what the later ones then cost."""
    stages = _Stages(Problem(n, m, agents, 1), risk)
    return stages.time(_pulls(stages.open, m, scale=1))


class NonIIDPlan(msgspec.Struct, frozen=True):
    """Every round of a run of `frugal-top-noniid`."""

    sizes: tuple[int, ...]
    """Arms still open when each round begins."""
    pulls: tuple[int, ...]
    """Pulls that each open arm has had from each agent when the round ends."""


@lru_cache(maxsize=256)
def noniid_plan(problem: Problem) -> NonIIDPlan:
    """The plan of `frugal-top-noniid`: every agent pulls every open arm, and the whole horizon is spent.

    >>> noniid_plan(Problem(n=10, m=1, agents=3, horizon=1_000))
    NonIIDPlan(sizes=(10, 6, 3, 2), pulls=(52, 80, 144, 204))
    """
    sizes = noniid_sizes(problem.n)
    pulls = _spend(sizes, problem.m, partial(_everyone_time, sizes), problem.horizon, problem.horizon)
    pulls[-1] += (problem.horizon - _everyone_time(sizes, pulls)) // sizes[-1]
    return NonIIDPlan(*_without_idle(sizes, pulls))


def noniid_sizes(n: int) -> list[int]:
    """Arms open in each round of `frugal-top-noniid`; a short horizon skips some rounds.

    >>> noniid_sizes(10)
    [10, 6, 3, 2]
    """
    return _falling(n, 2, _NONIID_SHRINK)


def smallest_noniid_horizon(n: int, m: int) -> int:
    """One pull an arm by every agent in the first round, and what the later ones then cost."""
    sizes = noniid_sizes(n)
    return _everyone_time(sizes, _pulls(sizes, m, scale=1))


def _everyone_time(sizes: list[int], pulls: list[int]) -> int:
    return sum(size * more for size, more in zip(sizes, _new(pulls), strict=True))


class _Stages:
    """Sizes of the stages of `frugal-top`, and the time that pulls take in them."""

    def __init__(self, problem: Problem, risk: float) -> None:
        self._agents = agents = problem.agents
        keep = arms_to_hand_over(problem, risk)
        small, large = divmod(problem.n, agents)  # `large` agents hold one arm more than the others
        handed_over = large * min(keep, small + 1) + (agents - large) * min(keep, small)
        if handed_over > problem.n / 2:  # to hand over most of the arms takes more words than to share them at once
            keep, handed_over = problem.n, problem.n
        self.local = _shrinking(-(-problem.n // agents), keep, _LOCAL_SHRINK)
        self.shared = _shared_sizes(handed_over, problem.m)
        self.open = [agents * size for size in self.local[:-1]] + self.shared

    def time(self, pulls: list[int]) -> int:
        alone = len(self.local) if len(self.local) > 1 else 0  # stages that an agent goes through on its own
        new = _new(pulls)
        local = sum(size * more for size, more in zip(self.local, new[:alone], strict=False))
        shared = zip(self.shared[-len(new[alone:]) :], new[alone:], strict=True)
        return local + sum(balanced_time(size, more, self._agents) for size, more in shared)


def _spend(sizes: list[int], m: int, time: Callable[[list[int]], int], horizon: int, most: int) -> list[int]:
    """The most pulls in proportion to `pulls_share` that fit into the horizon; `most` is the most an arm could get."""
    low, high = 1.0, float(most + 1)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if time(_pulls(sizes, m, middle)) <= horizon else (low, middle)
    return _pulls(sizes, m, low)


def _pulls(sizes: list[int], m: int, scale: float) -> list[int]:
    """Pulls an arm has had when each stage ends: `scale` in the first, never fewer than in the stage before."""
    first = pulls_share(sizes[0], m)
    return [math.floor(scale * pulls_share(size, m) / first + 1e-9) for size in sizes]


def _without_idle(sizes: list[int], pulls: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The rounds in which something is pulled; what an idle one would settle, the one before it does."""
    busy = [r for r, more in enumerate(_new(pulls)) if more]
    return tuple(sizes[r] for r in busy), tuple(pulls[r] for r in busy)


def _new(pulls: list[int]) -> list[int]:
    return [after - before for before, after in zip([0, *pulls[:-1]], pulls, strict=True)]


def _shared_sizes(start: int, m: int) -> list[int]:
    """Sizes of shared rounds; around a border between many good arms, the last ones go in smaller steps.

    >>> _shared_sizes(130, m=8)
    [130, 74, 42, 24, 17, 12, 8, 6, 4, 3, 2]
    """
    if m == 1:  # hardly an error is left to be made there
        return _falling(start, 2, _SHARED_SHRINK)
    if start < _BORDER * _SHARED_SHRINK:
        return _falling(start, 2, _BORDER_SHRINK)
    steps = round(math.log(start / _BORDER, _SHARED_SHRINK))  # the nearest factor to it, between 1.5 and 2.3
    return _in_steps(start, _BORDER, steps)[:-1] + _falling(_BORDER, 2, _BORDER_SHRINK)


def _falling(start: int, end: int, factor: float) -> list[int]:
    """Sizes from `start` to `end`, each smaller than the one before by the same factor, `factor` or a little more.

    >>> _falling(40, 2, 1.7)
    [40, 22, 12, 7, 4, 2]
    """
    return _in_steps(start, end, int(math.log(start / end) / math.log(factor)) if start > end else 0)


def _in_steps(start: int, end: int, steps: int) -> list[int]:
    ratio = (end / start) ** (1 / steps) if steps else 0.0
    return list(dict.fromkeys([start, *(max(end, round(start * ratio**step)) for step in range(1, steps + 1))]))


def _shrinking(start: int, end: int, factor: float) -> list[int]:
    """Sizes from `start` down to `end`, each smaller than the one before by about `factor`."""
    sizes = [start]
    while sizes[-1] > end:
        sizes.append(max(end, min(sizes[-1] - 1, int(sizes[-1] / factor))))
    return sizes
