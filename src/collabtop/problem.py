"""The mathematics of the problem: gaps, complexity, speed-up and the paper's bound. No randomness, no agents."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collabtop.errors import InputError


class Problem(msgspec.Struct, frozen=True):
    """What every agent and the coordinator know before the first pull.

    >>> Problem(n=588, m=8, agents=10, horizon=30_000).rounds
    10
    """

    n: int
    """Number of arms (the paper's n)."""
    m: int
    """How many of them are wanted (m), at most n / 2 inside an algorithm."""
    agents: int
    """Number of agents (K)."""
    horizon: int
    """Time steps an agent has (T)."""

    @property
    def rounds(self) -> int:
        """R = ceil(log2 n), the paper's number of rounds."""
        return (self.n - 1).bit_length()


def as_means(means: ArrayLike, name: str = "means") -> NDArray[np.float64]:
    """Read means as an array of floats in [0, 1], one an arm, or say what is wrong with them.

    >>> as_means([0.5, 0.25])
    array([0.5 , 0.25])
    """
    try:
        values = np.asarray(means, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, got {means!r:.80}") from None
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        place = f"[{', '.join(map(str, where))}]" if where else ""
        raise InputError(f"{name}{place} is {values[where]}, but a mean lies in [0, 1]")
    return values


def _ranked(means: ArrayLike, m: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values = as_means(means)
    if values.ndim == 2:
        values = values.mean(axis=1)
    if values.ndim != 1:
        raise InputError(f"means must be a list (or n x K for non-IID arms), got {values.ndim} dimensions")
    if not 1 <= m < len(values):
        raise InputError(f"m is {m}, but gaps of {len(values)} arms are defined for 1 <= m <= {len(values) - 1}")
    return values, np.sort(values)[::-1]


def gaps(means: ArrayLike, m: int) -> NDArray[np.float64]:
    """How far each arm is from the border between the best m and the rest (the paper's Delta_i).

    A table of n x K local means (non-IID) is averaged over its columns first.

    >>> gaps([0.5, 0.9, 0.25], m=1)
    array([0.4 , 0.4 , 0.65])
    """
    values, ranked = _ranked(means, m)
    delta: NDArray[np.float64] = np.maximum(values - ranked[m], ranked[m - 1] - values)
    return delta


def complexity(means: ArrayLike, m: int) -> float:
    """How hard the instance is: the sum of 1 / gap^2 (the paper's H<m>); infinite when rank m and m + 1 tie.

    >>> round(complexity([0.5, 0.9, 0.25], m=1), 2)
    14.87
    """
    delta = gaps(means, m)
    if not delta.all():
        return math.inf
    return float(np.sum(delta**-2.0))


def speedup(means: ArrayLike, m: int, time: int) -> float:
    """How many times faster than one agent's H<m> steps a run of that time was (the paper's beta).

    >>> speedup([0.5, 0.9, 0.25], m=1, time=5) > 2
    True
    """
    if time < 1:
        raise InputError(f"time is {time}, but a run takes at least 1 time step")
    return complexity(means, m) / time


def error_bound(means: ArrayLike, m: int, agents: int, horizon: int) -> float:
    """The paper's bound on the probability of a wrong answer (theorem 1), at most 1.

    2 n log2(2n) exp(-T K / (128 H log2(2n))): it says nothing until the horizon is large.

    >>> error_bound([0.5, 0.9, 0.25], m=1, agents=10, horizon=100)
    1.0
    >>> error_bound([0.5, 0.9, 0.25], m=1, agents=10, horizon=10_000)
    2.3...e-08
    """
    if agents < 1:
        raise InputError(f"agents is {agents}, but at least 1 is needed")
    if horizon < 1:
        raise InputError(f"horizon is {horizon}, but at least 1 is needed")
    n = int(np.shape(means)[0])
    log = math.log2(2 * n)
    return min(1.0, 2 * n * log * math.exp(-horizon * agents / (128 * complexity(means, m) * log)))
