"""What frugal-top promises: a bound on its error, its words and its round trips, from its plan (docs/frugal-top.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.shared.frugal_plan import (
    FrugalPlan,
    frugal_plan,
    most_in_a_hand,
    noniid_plan,
    smallest_frugal_horizon,
    smallest_noniid_horizon,
)
from collabtop.errors import InputError
from collabtop.problem import Problem, as_means, gaps
from collabtop.protocol.messages import Reals
from collabtop.stats import hypergeometric_tail


def frugal_error_bound(means: ArrayLike, m: int, agents: int, horizon: int, risk: float = 0.001) -> float:
    """The proven bound on the probability that frugal-top is wrong, at most 1.

    Args:
        means: the true means, one an arm.
        m: how many arms are wanted (the paper's m).
        agents: number of agents (K).
        horizon: time steps an agent has (T).
        risk: frugal-top's option of that name; the bound never falls below what it allows for.

    >>> means = [0.9] + [0.5] * 63
    >>> [f"{frugal_error_bound(means, m=1, agents=4, horizon=horizon):.2g}" for horizon in (2_000, 4_000, 6_000)]
    ['1', '0.05', '0.00041']
    """
    values = as_means(means)
    if values.ndim != 1:
        raise InputError(
            f"means has {values.ndim} dimensions, but frugal-top's bound is for one mean an arm", argument="means"
        )
    n = len(values)
    delta = np.sort(gaps(values, m))  # says what is wrong with m
    if agents < 1:
        raise InputError(f"agents is {agents}, but at least 1 is needed", argument="agents")
    if not 0 < risk < 1:
        raise InputError(f"risk is {risk}, but a probability between 0 and 1 is needed", argument="risk")
    problem = Problem(n, m, agents, horizon)
    if problem.mirrored:
        values, problem = 1 - values, problem.inner
    if horizon < smallest_frugal_horizon(n, problem.m, agents, risk) or not delta[0]:
        return 1.0
    plan = frugal_plan(problem, risk)
    shared = _shared_part(delta, problem.m, plan.shared_sizes, plan.shared_pulls)
    return min(1.0, _local_part(values, problem, plan, risk) + shared)


def frugal_noniid_error_bound(means: ArrayLike, m: int, agents: int, horizon: int, coarseness: float = 0.05) -> float:
    """The proven bound on the probability that frugal-top-noniid is wrong, at most 1.

    Args:
        means: the true means, one an arm and agent (n x K), or one an arm if all agents see the same.
        m: how many arms are wanted (the paper's m).
        agents: number of agents (K).
        horizon: time steps an agent has (T).
        coarseness: frugal-top-noniid's option of that name.

    >>> means = [[0.9, 0.7], *[[0.3, 0.5]] * 15]
    >>> [f"{frugal_noniid_error_bound(means, m=1, agents=2, horizon=horizon):.2g}" for horizon in (2_000, 8_000)]
    ['0.75', '3e-08']
    """
    delta = np.sort(gaps(means, m))  # says what is wrong with means and m
    n = len(delta)
    if agents < 1:
        raise InputError(f"agents is {agents}, but at least 1 is needed", argument="agents")
    if not 0 <= coarseness < 1:
        raise InputError(
            f"coarseness is {coarseness}, but a share of at least 0 and below 1 is needed", argument="coarseness"
        )
    problem = Problem(n, m, agents, horizon).inner
    if horizon < smallest_noniid_horizon(n, problem.m) or not delta[0]:
        return 1.0
    plan = noniid_plan(problem)
    return min(
        1.0, _shared_part(delta, problem.m, plan.sizes, [pulls * agents / (1 + coarseness) for pulls in plan.pulls])
    )


def frugal_words_bound(problem: Problem, risk: float = 0.001) -> int:
    """The most words that frugal-top can take, whatever the arms are like.

    K for the seed, 2 an arm handed over, and in a round 2 for each arm that an agent pulls, of which at most
    one an agent is shared with the next agent. While all arms are open, their list is not sent.

    >>> frugal_words_bound(Problem(n=588, m=8, agents=10, horizon=30_000))
    834
    """
    plan = frugal_plan(problem, risk)
    shared = sum(2 * (size + problem.agents - 1) for size in plan.shared_sizes[1:])
    if plan.local_pulls:
        return problem.agents + 2 * plan.shared_sizes[0] + shared
    return plan.shared_sizes[0] + problem.agents - 1 + shared


def frugal_round_trips_bound(problem: Problem, risk: float = 0.001) -> int:
    """The most round trips: one to deal, prune and hand over, or the first shared round; and one a later round.

    >>> frugal_round_trips_bound(Problem(n=588, m=8, agents=10, horizon=30_000))
    11
    """
    plan = frugal_plan(problem, risk)
    return len(plan.shared_pulls)


def _local_part(values: Reals, problem: Problem, plan: FrugalPlan, risk: float) -> float:
    """(a) and (b) of the proof: an unlucky deal, or one of the best dropped by an agent on its own."""
    if not plan.local_pulls:
        return 0.0
    n, m, agents = problem.n, problem.m, problem.agents
    most = most_in_a_hand(n, m, agents, risk)  # u
    ranked = np.sort(values)[::-1]
    behind = ranked[m - 1] - ranked[m:]  # how far each of the others is behind the m-th best, nearest first
    total = agents * hypergeometric_tail(n, m, plan.local_sizes[0], most)
    for pulls, (_, keep) in zip(plan.local_pulls, pairwise(plan.local_sizes), strict=True):
        total += _stage(behind, pulls, keep - most, problem, plan.local_sizes[0])
    return total


def _stage(behind: Reals, pulls: int, nearest: int, problem: Problem, hand: int) -> float:
    """The chance that a local stage goes wrong, with the best choice of g for it.

    No hand holds more than `nearest` of the g nearest rivals, but for a hypergeometric tail that grows with g; then one
    of the others in hand beat one of the best, which is the less likely the larger g is.
    """
    beats = np.append(np.cumsum(np.exp(-pulls * behind[::-1] ** 2))[::-1], 0.0)  # sums over all but the g nearest
    together = problem.m * (hand - 1) / (problem.n - 1)

    def crowded(g: int) -> float:
        return problem.agents * hypergeometric_tail(problem.n, g, hand, nearest)

    low, high = min(nearest, len(behind)), len(behind)  # the best g is about where the two are equal
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if crowded(middle) < together * beats[middle] else (low, middle)
    return min(crowded(g) + together * float(beats[g]) for g in (low, high))


def _shared_part(delta: Reals, m: int, sizes: Sequence[int], pulls_had: Sequence[float]) -> float:
    """(c) of the proof: a shared round settles an arm wrongly."""
    total = 0.0
    for size, keep, pulls in zip(sizes, [*sizes[1:], 0], pulls_had, strict=True):
        gap = float(delta[keep])  # of the nearest arm to the border that must be settled
        best = min(m, size // 2)
        pairs = best * (size - best)
        if keep == 0:
            total += pairs * math.exp(-pulls * gap**2)
            continue
        three_arms = pairs * ((size - 2) * math.exp(-pulls * gap**2 / 3) + math.exp(-pulls * gap**2))
        total += min(three_arms, 2 * size * math.exp(-pulls * gap**2 / 8))
    return total
