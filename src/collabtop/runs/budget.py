"""The maximum cost of a run, and the horizon that a budget pays for."""

import numbers
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Literal

import msgspec
import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.arms import Arms
from collabtop.arms.base import Ints
from collabtop.errors import BudgetError, InputError
from collabtop.problem import Problem
from collabtop.validation import counted, positive_number, wrong_value

Cost = Callable[[Any], float] | Sequence[float] | float | Literal["seconds"]
_FAR = 1 << 40


class Spending(msgspec.Struct, frozen=True):
    """The cost of a run with a budget, in pulls or in the user's unit."""

    budget: float
    worst_case: float
    """What the plan costs if the most expensive candidates stay open longest; never above the budget. Top-up rounds
    spend what it leaves over."""
    spent: float | None
    """What the pulls were charged, with failed attempts that reported a cost; None if unknown."""


class SpendingLimit:
    """Stops a run before it costs more than its budget: while the pulls under way still fit into it.

    >>> stops = []
    >>> limit = SpendingLimit(budget=10, costs=[1.0, 2.0], spent=3, under_way=1, stop=lambda: stops.append("stop"))
    >>> limit.charge(np.array([0]), np.array([4])), stops
    (True, [])
    >>> limit.charge(np.array([1]), np.array([1])), stops
    (False, ['stop'])
    """

    def __init__(
        self, budget: float, costs: Sequence[float], spent: float, under_way: int, stop: Callable[[], None]
    ) -> None:
        self._costs, self._stop = np.asarray(costs), stop
        self._left = budget - spent - under_way * float(self._costs.max())

    def charge(self, arms: Ints, times: Ints) -> bool:
        """Count pulls that were made or are about to be made: False, and the run is stopped, if they are too many."""
        self._left -= float(self._costs[arms] @ times)
        if self._left < 0:
            self._stop()
        return self._left >= 0


def costs_of(arms: Arms, cost: Cost | None) -> tuple[float, ...]:
    """The price of one pull of each candidate: 1, a number for all, one number each, or a function of the candidate.

    Pulls that are charged by the second cost at most their time limit.
    """
    if cost is None:
        return (1.0,) * arms.n
    if isinstance(cost, str):
        return (_time_limit(arms, cost),) * arms.n
    if callable(cost):
        if arms.candidates is None:
            raise InputError(
                "cost is a function of a candidate, but these arms have none: pass one price per arm", argument="cost"
            )
        prices: list[Any] = [cost(candidate) for candidate in arms.candidates]
    elif isinstance(cost, numbers.Real):
        prices = [cost] * arms.n
    else:
        prices = list(cost)  # type: ignore[arg-type]  # not a list: list() raises
        if len(prices) != arms.n:
            raise InputError(f"cost has {len(prices)} entries, but there are {arms.n} candidates", argument="cost")
    return tuple(
        positive_number(f"cost of candidate {arms.label(arm)!r}", price, argument="cost")
        for arm, price in enumerate(prices)
    )


def _time_limit(arms: Arms, cost: str) -> float:
    if cost != "seconds":
        raise wrong_value("cost", cost, "a number, one number per candidate, a function or 'seconds' is needed")
    policy = getattr(arms, "policy", None)
    if policy is None or policy.time_limit is None:
        raise InputError(
            "cost is 'seconds', but a budget of seconds needs the most that a pull can take: pass "
            "policy=PullPolicy(time_limit=...)",
            argument="cost",
        )
    return float(policy.time_limit)


def worst_case(algorithm: Algorithm, problem: Problem, costs: Sequence[float]) -> float:
    """The maximum cost of a run, whichever candidates stay open.

    >>> from collabtop import Uniform
    >>> worst_case(Uniform(), Problem(n=2, m=1, agents=3, horizon=10), costs=[1.0, 4.0])
    75.0
    """
    if problem.m in (0, problem.n):
        return 0.0
    most_expensive = [0.0, *accumulate(sorted(costs, reverse=True))]  # one pull of each of the s most expensive
    return sum(pulls * most_expensive[min(live, problem.n)] for live, pulls in algorithm.most_pulls(problem))


def horizon_for(algorithm: Algorithm, problem: Problem, budget: float, costs: Sequence[float]) -> int:
    """The largest horizon whose worst case the budget pays for.

    >>> from collabtop import Uniform
    >>> horizon_for(Uniform(), Problem(n=2, m=1, agents=3, horizon=1), budget=100, costs=[1.0, 4.0])
    13
    """

    def most(horizon: int) -> float:
        return worst_case(algorithm, problem.inner.at_horizon(horizon), costs)

    if problem.m == problem.n:
        return 1
    smallest = algorithm.smallest_horizon(problem)
    if most(smallest) > budget:
        raise BudgetError(
            f"budget is {budget:g}, but {counted(problem.n, 'candidate')} and {counted(problem.agents, 'agent')} "
            f"may need {most(smallest):g} with {algorithm.title}, even at its smallest horizon, {smallest}",
            most(smallest),
        )
    low, high = smallest, 2 * smallest
    while most(high) <= budget and high < _FAR:
        low, high = high, 2 * high
    return bisect_left(range(high), True, lo=low + 1, key=lambda horizon: most(horizon) > budget) - 1
