"""Paired-Top: all agents share all open candidates, and reject them in many small steps on the same examples."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import balanced_time, pull_balanced
from collabtop.algorithms.shared.batched_runs import BatchedRuns
from collabtop.algorithms.shared.elimination import eliminate
from collabtop.algorithms.shared.schedules import new_pulls
from collabtop.coordination.coordinator import Coordinator
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Reals

_SHRINK = 1.25
"""From one round to the next, the number of open arms shrinks by about this factor."""
_POWER = 1.1
"""An arm has been pulled in proportion to s^-_POWER by the time that s arms are open, unless the horizon is short."""
_GRID = 1024
"""Steps in which the pulls of the first round are tried, and powers; later rounds have fractions of a pull more."""


@dataclass(frozen=True)
class PairedTop(Algorithm):
    """The default for candidates scored on the same examples, where messages cost nothing.

    At any time, all open arms have been pulled equally often: paired arms are compared on the same examples.
    There are about ten rounds for every factor of ten in the number of arms. This takes more words and round trips than
    `FrugalTop`; on a single machine neither matters.

    >>> import collabtop as ct
    >>> answers = {"good": 0.8, "fair": 0.6, "poor": 0.5}
    >>> def score(prompt, question):
    ...     return question / 100 < answers[prompt]
    >>> arms = ct.DatasetArms(list(answers), range(100), score)
    >>> result = ct.identify(arms, m=1, agents=1, horizon=200, algorithm="paired-top", seed=1)
    >>> result.top, result.pulls
    (['good'], 200)
    """

    name: ClassVar[str] = "paired-top"
    summary: ClassVar[str] = "The default for candidates scored on the same examples: rejects them in many small steps."
    fixed_schedule: ClassVar[bool] = True
    private: ClassVar[bool] = True
    iid_only: ClassVar[bool] = True

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm."""
        return balanced_time(problem.n, 1, problem.agents)

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The open arms of every round equally often."""
        return list(zip(sizes_of(problem.n), new_pulls(paired_plan(problem)), strict=True))

    def most_words(self, problem: Problem) -> int:
        """In each round an arm's number and mean per arm and agent that pulls it; the first list of arms is free."""
        pulled = [size + problem.agents - 1 for size in sizes_of(problem.n)]
        return 2 * sum(pulled) - pulled[0]

    def most_round_trips(self, problem: Problem) -> int:
        """One per round."""
        return len(sizes_of(problem.n))

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Pull all open arms equally often, and keep those nearest to the border."""
        sizes, pulls = [*sizes_of(problem.n), 0], new_pulls(paired_plan(problem))
        board, r, live = coordinator.scoreboard, 0, np.arange(problem.n)
        while len(live):
            coordinator.begin_round("shared", live=len(live))
            board.add(live, *pull_balanced(coordinator, live, pulls[r], all_live=r == 0))
            live = eliminate(board, live, problem.m, sizes[r + 1], r, "shared", rng)
            r += 1

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once; who pulls an arm makes no difference to them."""
        batch = BatchedRuns(problem, means, runs, rng)
        for new, keep in zip(new_pulls(paired_plan(problem)), [*sizes_of(problem.n)[1:], 0], strict=True):
            batch.pull(new)
            batch.eliminate(keep)
        return batch.answers


@lru_cache(maxsize=256)
def sizes_of(n: int) -> list[int]:
    """Open arms at the start of each round.

    >>> sizes_of(20)
    [20, 16, 12, 9, 7, 5, 4, 3, 2]
    """
    sizes = [n]
    while sizes[-1] > 2:
        sizes.append(max(2, min(sizes[-1] - 1, int(sizes[-1] / _SHRINK))))
    return sizes


@lru_cache(maxsize=256)
def paired_plan(problem: Problem) -> list[int]:
    """Pulls of an open arm by the end of each round: as many as the horizon allows, up to the pull limit.

    A horizon too short for the growth of all rounds gets the largest power that fits, from one pull in the first round.

    >>> paired_plan(Problem(n=20, m=1, agents=2, horizon=100, pull_limit=50))
    [3, 3, 5, 7, 9, 13, 17, 24, 37]
    >>> paired_plan(Problem(n=20, m=1, agents=2, horizon=20, pull_limit=50))
    [1, 1, 1, 1, 2, 2, 3, 4, 6]
    """

    def fits(totals: list[int]) -> bool:
        return _time(problem, totals) <= problem.horizon

    if not fits(_totals(problem, _GRID)):
        tried = [_totals(problem, _GRID, _POWER * step / _GRID) for step in range(_GRID)]
        return tried[bisect_left(tried, True, lo=1, key=lambda totals: not fits(totals)) - 1]
    scales = range(problem.horizon * problem.agents * _GRID)
    beyond = bisect_left(scales, True, lo=_GRID + 1, key=lambda scale: not fits(_totals(problem, scale)))
    return _totals(problem, beyond - 1)


def _totals(problem: Problem, scale: int, power: float = _POWER) -> list[int]:
    shares = (scale / _GRID * (problem.n / size) ** power for size in sizes_of(problem.n))
    return [min(int(share + 1e-9), problem.pull_limit or int(share + 1e-9)) for share in shares]


def _time(problem: Problem, totals: list[int]) -> int:
    rounds = zip(sizes_of(problem.n), new_pulls(totals), strict=True)
    return sum(balanced_time(size, new, problem.agents) for size, new in rounds)
