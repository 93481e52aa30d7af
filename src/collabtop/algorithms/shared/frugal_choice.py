"""How the adaptive frugal-top for m = 1 spends its horizon: one of several plans, chosen after the first ranking.

All plans are computed before the first pull and have the same stages up to the first ranking. They differ in how many
arms then stay open, and in how many of the remaining pulls are left to the last few.
"""

import math
from functools import lru_cache

import numpy as np

from collabtop.algorithms.shared.allocation import balanced_time
from collabtop.algorithms.shared.frugal_plan import (
    FEWEST_ARMS,
    POWER,
    FrugalPlan,
    frugal_plan,
    pulls_share,
    shared_sizes,
    smallest_frugal_horizon,
    spend,
    without_idle,
)
from collabtop.algorithms.shared.schedules import new_pulls
from collabtop.problem import Problem
from collabtop.protocol.messages import Ints, Reals

_NARROWER = ((0.75, 1.25), (0.5, 1.35), (0.25, 1.5))
"""Of the arms that the widest plan leaves open after the first ranking, the share that stays open; and the exponent."""
_POWER_IF_FEW, _FEW, _MANY = 1.1, 32, 128  # the first exponent, by pulls per arm
_ARMS_TO_COMPARE = 64  # that all agents together hand over at least, so that there is something to choose from
_EVIDENCE_BELOW_LOG_N = 1.0


def possible_plans(
    problem: Problem, risk: float, round_trips: int | None = None, *, adaptive: bool = False
) -> tuple[FrugalPlan, ...]:
    """The plans of a run of frugal-top: one, or if `adaptive` those to choose from."""
    return adaptive_plans(problem, risk) if adaptive else (frugal_plan(problem, risk, round_trips),)


@lru_cache(maxsize=256)
def adaptive_plans(problem: Problem, risk: float) -> tuple[FrugalPlan, ...]:
    """The plans of a run with m = 1, the widest first; each leaves fewer arms open after the first ranking.

    >>> [plan.shared_sizes for plan in adaptive_plans(Problem(n=588, m=1, agents=10, horizon=12_000), risk=0.001)]
    [(70, 39, 21, 12, 7, 4, 2), (70, 29, 15, 8, 4, 2), (70, 19, 11, 6, 4, 2), (70, 9, 4, 2)]
    """
    fewest = _fewest(problem.agents)
    widest = frugal_plan(problem, risk, power=_first_power(problem.horizon * problem.agents / problem.n), fewest=fewest)
    if len(widest.shared_sizes) == 1:  # it settles all arms
        return (widest,)
    plans = {widest.shared_sizes[1]: widest}
    for share, power in _NARROWER:
        plan = _narrower(problem, widest, _left_open(widest.shared_sizes[1], share), power)
        if len(plan.shared_sizes) > 1:  # there are pulls left for it
            plans.setdefault(plan.shared_sizes[1], plan)
    return tuple(plans[keep] for keep in sorted(plans, reverse=True))


def sizes_to_choose_from(widest: FrugalPlan) -> list[tuple[int, ...]]:
    """The arms open in each shared round of each plan, at any horizon; a short one leaves out some of the rounds.

    >>> sizes_to_choose_from(adaptive_plans(Problem(n=100, m=1, agents=10, horizon=100), risk=0.001)[0])
    [(100, 52, 27, 14, 7, 4, 2), (100, 39, 22, 12, 7, 4, 2), (100, 26, 14, 7, 4, 2), (100, 13, 7, 4, 2)]
    """
    if len(widest.shared_sizes) == 1:
        return [widest.shared_sizes]
    first, second, *_ = widest.shared_sizes
    narrower = [(first, *shared_sizes(_left_open(second, share), 1)) for share, _ in _NARROWER]
    return [widest.shared_sizes, *narrower]


def smallest_adaptive_horizon(n: int, agents: int, risk: float) -> int:
    """One pull per arm before the first elimination; the narrower plans take no more time than the widest."""
    return smallest_frugal_horizon(n, 1, agents, risk, power=_POWER_IF_FEW, fewest=_fewest(agents))


def choose_plans(means: Reals, pulls: Ints | int, n: int, plans: tuple[FrugalPlan, ...]) -> Ints:
    """Which plan each run chooses: the narrowest that drops no arm unless it is clearly worse than the best one.

    Args:
        means: of the open arms after the first ranking, one row per run.
        pulls: of each of these arms.
        n: the number of arms at the start.
        plans: the plans to choose from.

    >>> plans = adaptive_plans(Problem(n=8, m=1, agents=1, horizon=100_000), risk=0.001)
    >>> [plan.shared_sizes for plan in plans]
    [(8, 4, 2), (8, 3), (8, 2)]
    >>> means = np.array([[0.9, 0.8, 0.8, 0.8, 0.1, 0.1, 0.1, 0.1], [0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]])
    >>> choose_plans(means, 20, 8, plans)
    array([0, 2])
    """
    unclear = np.count_nonzero(evidence(means, pulls) <= math.log(n) - _EVIDENCE_BELOW_LOG_N, axis=1)
    if len(plans) == 1:
        return np.zeros(len(means), np.int64)
    room = np.array([plan.shared_sizes[1] for plan in plans])
    return np.asarray(np.maximum(np.count_nonzero(unclear[:, np.newaxis] <= room, axis=1) - 1, 0), np.int64)


def evidence(means: Reals, pulls: Reals | Ints | int) -> Reals:
    """The log likelihood ratio for "the best arm of the row is better" against "both are equal", for 0/1 rewards.

    >>> evidence(np.array([[1.0, 0.5, 1.0]]), 10).round(2)
    array([[0.  , 4.32, 0.  ]])
    """
    best = means.max(axis=1, keepdims=True)
    apart = _negative_entropy(means) + _negative_entropy(best)
    return np.asarray(pulls * (apart - 2 * _negative_entropy((means + best) / 2)))


def _negative_entropy(chances: Reals) -> Reals:
    inside = np.clip(chances, 1e-12, 1 - 1e-12)
    return np.asarray(inside * np.log(inside) + (1 - inside) * np.log1p(-inside))


def _left_open(size: int, share: float) -> int:
    return max(2, int(share * size))


def _fewest(agents: int) -> int:
    return max(FEWEST_ARMS, -(-_ARMS_TO_COMPARE // agents))


def _first_power(pulls_per_arm: float) -> float:
    few = math.log(_MANY / pulls_per_arm) / math.log(_MANY / _FEW)
    return POWER + (_POWER_IF_FEW - POWER) * min(1.0, max(0.0, few))


def _narrower(problem: Problem, widest: FrugalPlan, keep: int, power: float) -> FrugalPlan:
    """The widest plan up to the first ranking; then only `keep` arms, with pulls that grow with this exponent."""
    first, agents = widest.shared_pulls[0], problem.agents
    sizes, most = shared_sizes(keep, 1), problem.pull_limit or problem.horizon * agents
    before = widest.shared_sizes[:1]
    until_then = FrugalPlan(widest.local_sizes, widest.local_pulls, before, widest.shared_pulls[:1])
    left = problem.horizon - until_then.time(agents)

    def after_first(pulls: list[int]) -> list[int]:
        return [max(first, total) for total in pulls[1:]]

    def time(pulls: list[int]) -> int:
        new = new_pulls([first, *after_first(pulls)])[1:]
        return sum(balanced_time(size, more, agents) for size, more in zip(sizes, new, strict=True))

    shares = [pulls_share(size, 1, power) for size in sizes]
    spent = spend([shares[-1], *shares], time, left, most)  # relative to the largest share, so from no new pulls on
    pulls = after_first(spent)
    pulls[-1] = min(most, pulls[-1] + (left - time(spent)) * agents // sizes[-1])
    shared = without_idle([*before, *sizes], [first, *pulls])
    return FrugalPlan(widest.local_sizes, widest.local_pulls, *shared)
