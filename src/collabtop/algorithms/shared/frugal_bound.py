"""Bounds on the error, the words and the round trips of frugal-top, computed from its plan (docs/frugal-top.md)."""

import math
from collections.abc import Sequence

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
from collabtop.validation import whole_number, wrong_value


def frugal_error_bound(means: ArrayLike, m: int, agents: int, horizon: int, risk: float = 0.001) -> float:
    """The proven bound on the probability that frugal-top is wrong, at most 1.

    Args:
        means: the true means, one per arm.
        m: number of arms to find (the paper's m).
        agents: number of agents (K).
        horizon: time steps per agent (T).
        risk: the option `risk` of frugal-top; the probability of an unlucky deal is part of the bound.

    >>> means = [0.9] + [0.5] * 63
    >>> [f"{frugal_error_bound(means, m=1, agents=4, horizon=horizon):.2g}" for horizon in (2_000, 4_000, 6_000)]
    ['1', '0.05', '0.00041']
    """
    values = as_means(means)
    if values.ndim != 1:
        raise InputError(
            f"means has {values.ndim} dimensions, but the bound of frugal-top needs one mean per arm", argument="means"
        )
    n = len(values)
    delta = np.sort(gaps(values, m))  # validates m
    whole_number("agents", agents, least=1)
    if not 0 < risk < 1:
        raise wrong_value("risk", risk, "a probability between 0 and 1 is needed")
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
        means: the true means, one per arm and agent (n x K), or one per arm if all agents see the same.
        m: number of arms to find (the paper's m).
        agents: number of agents (K).
        horizon: time steps per agent (T).
        coarseness: the option `coarseness` of frugal-top-noniid.

    >>> means = [[0.9, 0.7], *[[0.3, 0.5]] * 15]
    >>> [f"{frugal_noniid_error_bound(means, m=1, agents=2, horizon=horizon):.2g}" for horizon in (2_000, 8_000)]
    ['0.75', '3e-08']
    """
    delta = np.sort(gaps(means, m))  # validates means and m
    n = len(delta)
    whole_number("agents", agents, least=1)
    if not 0 <= coarseness < 1:
        raise wrong_value("coarseness", coarseness, "a share of at least 0 and below 1 is needed")
    problem = Problem(n, m, agents, horizon).inner
    if horizon < smallest_noniid_horizon(n, problem.m) or not delta[0]:
        return 1.0
    plan = noniid_plan(problem)
    pulls = [total * agents / (1 + coarseness) for total in plan.pulls]  # rounding makes them count less
    return min(1.0, _shared_part(delta, problem.m, plan.sizes, pulls))


def frugal_words_bound(problem: Problem, risk: float = 0.001) -> int:
    """The most words that frugal-top can take, for any arms.

    K for the seed, 2 per arm handed over, and in each round 2 per arm and pulling agent, where each agent shares at
    most one arm with the next. While all arms are open, their list is not sent.

    >>> frugal_words_bound(Problem(n=588, m=8, agents=10, horizon=30_000))
    834
    """
    plan = frugal_plan(problem, risk)
    shared = sum(2 * (size + problem.agents - 1) for size in plan.shared_sizes[1:])
    if plan.local_pulls:
        return problem.agents + 2 * plan.shared_sizes[0] + shared
    return plan.shared_sizes[0] + problem.agents - 1 + shared


def frugal_round_trips_bound(problem: Problem, risk: float = 0.001) -> int:
    """The most round trips: one to deal, prune and hand over (or for the first shared round), and one per later round.

    >>> frugal_round_trips_bound(Problem(n=588, m=8, agents=10, horizon=30_000))
    11
    """
    plan = frugal_plan(problem, risk)
    return len(plan.shared_pulls)


def _local_part(values: Reals, problem: Problem, plan: FrugalPlan, risk: float) -> float:
    """(a) and (b) of the proof: an unlucky deal, or a best arm that its agent drops."""
    if not plan.local_pulls:
        return 0.0
    n, m, agents = problem.n, problem.m, problem.agents
    most = most_in_a_hand(n, m, agents, risk)  # u
    ranked = np.sort(values)[::-1]
    distances = ranked[m - 1] - ranked[m:]  # d_b: the distances of the others from the m-th best, nearest first
    hand = plan.local_sizes[0]  # h
    bound = agents * hypergeometric_tail(n, m, hand, most)
    for pulls, keep in zip(plan.local_pulls, plan.local_sizes[1:], strict=True):
        bound += _stage(distances, pulls, keep - most, problem, hand)
    return bound


def _stage(distances: Reals, pulls: int, nearest: int, problem: Problem, hand: int) -> float:
    """The probability that a local stage goes wrong, with the best choice of g.

    Either a hand holds more than `nearest` of the g nearest others, a hypergeometric tail that grows with g; or an
    other arm in the hand beats a best one, which is less likely the larger g is.
    """
    beats = np.append(np.cumsum(np.exp(-pulls * distances[::-1] ** 2))[::-1], 0.0)  # [g]: all but the g nearest
    together = problem.m * (hand - 1) / (problem.n - 1)

    def crowded(g: int) -> float:
        return problem.agents * hypergeometric_tail(problem.n, g, hand, nearest)

    low, high = min(nearest, len(distances)), len(distances)  # the best g is about where the two terms are equal
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if crowded(middle) < together * beats[middle] else (low, middle)
    return min(crowded(g) + together * float(beats[g]) for g in (low, high))


def _shared_part(delta: Reals, m: int, sizes: Sequence[int], totals: Sequence[float]) -> float:
    """(c) of the proof: a shared round settles an arm wrongly; `totals` are the pulls of an arm by the end of each."""
    bound = 0.0
    for size, keep, pulls in zip(sizes, [*sizes[1:], 0], totals, strict=True):
        gap = float(delta[keep])  # D_r: the smallest gap among the arms that must be settled
        best = min(m, size // 2)  # q
        pairs = best * (size - best)  # P_r
        if keep == 0:
            bound += pairs * math.exp(-pulls * gap**2)
            continue
        three_arms = pairs * ((size - 2) * math.exp(-pulls * gap**2 / 3) + math.exp(-pulls * gap**2))
        bound += min(three_arms, 2 * size * math.exp(-pulls * gap**2 / 8))
    return bound
