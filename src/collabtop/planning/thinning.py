"""A smaller instance of the same kind: where to look for the crossing of many arms, and how fast the error falls."""

import msgspec
import numpy as np

from collabtop.arms import BernoulliArms, HeterogeneousArms, SimulatedArms
from collabtop.problem import Problem
from collabtop.protocol.messages import Ints

FEWEST = 200
"""Arms that a thinned instance has at least."""


def thinned(arms: SimulatedArms, problem: Problem, size: int) -> tuple[SimulatedArms, Problem]:
    """An instance with about so many arms: those next to the border, and every so many of the others.

    If all of the best fit into a quarter, all stay; otherwise, as large a part of them as of the others.

    >>> arms = BernoulliArms(np.linspace(1, 0, 1_001))
    >>> small, problem = thinned(arms, Problem(n=1_001, m=3, agents=4, horizon=1), size=21)
    >>> small.n, problem.m, float(small.means[2] - small.means[3]).__round__(3)
    (21, 3, 0.001)
    """
    n, m = problem.n, problem.m
    best = m if 4 * m <= size else min(size - 1, max(1, round(m * size / n)))
    if 4 * (n - m) <= size:
        best = size - (n - m)
    ranked = np.argsort(-arms.values, kind="stable")
    chosen = np.concatenate([ranked[m - 1 - _places(m, best)][::-1], ranked[m + _places(n - m, size - best)]])
    means = arms.means[chosen]
    small: SimulatedArms = HeterogeneousArms(means, weights=arms.weights) if means.ndim == 2 else BernoulliArms(means)
    return small, msgspec.structs.replace(problem, n=size, m=best)


def _places(count: int, wanted: int) -> Ints:
    """So many of `count` places, counted from the border: all of the nearest half, then at equal distances."""
    near = wanted // 2
    far = np.linspace(near, count - 1, wanted - near)
    return np.concatenate([np.arange(near), np.round(far).astype(np.int64)])
