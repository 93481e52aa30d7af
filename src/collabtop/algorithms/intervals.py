"""Confidence intervals for means of rewards in [0, 1], by Chernoff's bound in its Kullback-Leibler form.

They hold for any independent rewards in [0, 1], also when these do not all have the same distribution
(Hoeffding 1963), and so for the average of an arm's local means when all agents pull it equally often.
"""

from __future__ import annotations

import numpy as np

from collabtop.protocol.messages import Reals

_HALVINGS = 24


def divergence(p: Reals, q: Reals) -> Reals:
    """kl(p, q) of two coins that show heads with these probabilities.

    >>> divergence(np.array([0.5, 0.0]), np.array([0.5, 0.5])).round(4)
    array([0.    , 0.6931])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(p > 0, p * np.log(p / q), 0.0)
        tails = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return np.asarray(heads + tails, np.float64)


def bounds(means: Reals, pulls: Reals, evidence: float) -> tuple[Reals, Reals]:
    """The smallest and largest true means q with pulls * kl(mean, q) <= evidence.

    A true mean lies below (above) them with probability at most exp(-evidence) each.

    >>> low, high = bounds(np.array([0.5]), np.array([100.0]), evidence=3.0)
    >>> float(low[0]).__round__(3), float(high[0]).__round__(3)
    (0.379, 0.621)
    """
    ends = np.repeat([0.0, 1.0], len(means))  # both sides in one go, which takes half the time
    low, high = np.split(edge(np.tile(means, 2), np.tile(pulls, 2), evidence, ends), 2)
    return low, high


def edge(means: Reals, pulls: Reals, evidence: float, end: float | Reals) -> Reals:
    """One side of `bounds`: the one towards 0 or the one towards 1, for all means or for each its own.

    >>> edge(np.array([0.5]), np.array([100.0]), evidence=3.0, end=1.0).round(3)
    array([0.621])
    """
    inside, outside = means.copy(), np.full(len(means), end)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        fits = pulls * divergence(means, middle) <= evidence
        inside, outside = np.where(fits, middle, inside), np.where(fits, outside, middle)
    return outside  # just outside, so that rounding never makes an interval too short
