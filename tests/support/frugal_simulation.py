"""Many runs of a plan of frugal-top at once, on 0/1 rewards, without messages.

It shares no code with the package, except the class that holds a plan.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from collabtop.algorithms.shared.frugal_plan import FrugalPlan

_TIE_BREAK = 1e-6  # far below the distance of two sums


def first_errors(
    means: NDArray[np.float64], m: int, agents: int, plan: FrugalPlan, runs: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """For each run, the stage that first settled an arm wrongly; -1 if none did.

    Stages are numbered through: the local ones first, then the shared rounds. The first m arms must be the best.
    """
    open_arms = _deal(len(means), agents if plan.local_pulls else 1, runs, rng)
    missing = open_arms == len(means)  # hands with one arm fewer are filled up with an arm that always loses
    chances = np.append(means, 0.0)
    sums = np.where(missing, -1.0, _TIE_BREAK * rng.random(open_arms.shape))
    error = np.full(runs, -1)
    before = 0
    for stage, (pulls, keep) in enumerate(zip(plan.local_pulls, plan.local_sizes[1:], strict=True)):
        sums += rng.binomial(pulls - before, chances[open_arms])
        before = pulls
        order = np.argsort(-sums, axis=2)
        dropped = np.take_along_axis(open_arms, order[:, :, keep:], 2)
        error[(error < 0) & (dropped < m).any(axis=(1, 2))] = stage
        open_arms, sums = (np.take_along_axis(values, order[:, :, :keep], 2) for values in (open_arms, sums))
    arms, sums = open_arms.reshape(runs, -1), sums.reshape(runs, -1)
    to_accept = np.full(runs, m)
    for r, (keep, pulls) in enumerate(zip([*plan.shared_sizes[1:], 0], plan.shared_pulls, strict=True)):
        sums = sums + rng.binomial(pulls - before, chances[arms])
        before = pulls
        kept, wrong, accepted = _settle(arms, sums, m, to_accept, keep)
        error[(error < 0) & wrong] = len(plan.local_pulls) + r
        arms, sums = (np.take_along_axis(values, kept, 1) for values in (arms, sums))
        to_accept = to_accept - accepted
    return error


def _deal(n: int, agents: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Hands (run, agent, position); n stands for no arm."""
    hand = -(-n // agents)
    order = rng.permuted(np.tile(np.arange(n), (runs, 1)), axis=1)
    filled = np.concatenate([order, np.full((runs, hand * agents - n), n)], axis=1)
    return filled.reshape(runs, hand, agents).transpose(0, 2, 1)


def _settle(
    arms: NDArray[np.int64], sums: NDArray[np.float64], m: int, to_accept: NDArray[np.int64], keep: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """The positions of the arms that stay open, whether an arm was settled wrongly, and how many were accepted."""
    ranks = np.argsort(np.argsort(-sums, axis=1), axis=1)
    ordered = np.append(-np.sort(-sums, axis=1), np.full((len(sums), 1), -np.inf), axis=1)
    top = ranks < to_accept[:, np.newaxis]
    upper = np.take_along_axis(ordered, np.maximum(to_accept - 1, 0)[:, np.newaxis], 1)
    lower = np.take_along_axis(ordered, to_accept[:, np.newaxis], 1)
    by_gap = np.argsort(np.where(top, sums - lower, upper - sums), axis=1)
    settled = np.zeros(arms.shape, bool)
    np.put_along_axis(settled, by_gap[:, keep:], True, 1)
    wrong = (settled & (top != (arms < m))).any(axis=1)
    return by_gap[:, :keep], wrong, (settled & top).sum(axis=1)


def spaced_plan(sizes: list[int], pulls: list[int]) -> FrugalPlan:
    """A plan without local stages."""
    assert all(before > after for before, after in pairwise(sizes))
    return FrugalPlan((sizes[0],), (), tuple(sizes), tuple(pulls))
