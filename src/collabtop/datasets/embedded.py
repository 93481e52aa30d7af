"""A stand-in for the paper's MovieLens instances, made from a dozen published figures and nothing else.

The licence of MovieLens does not allow its ratings, or tables made of them, to be passed on. Published
are the top means, the lowest, the average and the complexities; between them runs a smooth curve with two
parameters, solved for so that the average and H<1> come out.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from collabtop.arms import BernoulliArms, HeterogeneousArms
from collabtop.datasets.order import mixed, scrambled
from collabtop.problem import complexity

Reals = NDArray[np.float64]

_TOP = (
    0.882715, 0.864867, 0.856871, 0.852352, 0.850954, 0.849516,
    0.848603, 0.847590, 0.845662, 0.843732, 0.843161, 0.842453,
)  # fmt: skip
_LOWEST = 0.463934
_AVERAGE = 0.728
_BEND = 10  # how late the curve turns down to the lowest mean: with 10, H<8> comes out as well
_DECIMALS = 6  # as published; it also hides the last bits in which platforms differ

_MOVIES, _H1 = 588, 61_520.0

_GROUP_MOVIES, _GROUPS, _GROUP_H1 = 547, 10, 59_224.0
_GROUP_GAPS = (0.01785, 0.00190)  # between ranks 1 and 2, and 8 and 9
_DEVIATION = 0.004  # median over the arms of the standard deviation over the columns


def movielens_like() -> BernoulliArms:
    """The 588 movies of the paper's IID experiments, or rather a stand-in just as hard.

    Same number of arms, same twelve best means, lowest mean, average, H<1> and (to 5%) H<8>; the rest is a
    smooth curve. Always the same numbers, in an order that tells nothing. The real instance comes from
    the release itself: `movielens`.

    >>> import collabtop as ct
    >>> arms = ct.datasets.movielens_like()
    >>> arms.n, float(max(arms.means))
    (588, 0.882715)
    >>> print(f"{ct.complexity(arms, m=1):,.0f} {ct.complexity(arms, m=8):.2e}")
    61,520 1.19e+06
    """
    return BernoulliArms(_means(), labels=_labels(_MOVIES))


def movielens_like_groups() -> HeterogeneousArms:
    """The 547 movies of the paper's non-IID experiments as 10 groups of users see them, or rather a stand-in.

    Same shape, gaps, H<1> and (to 5%) H<8> of the row averages, and a median standard deviation of .004 over
    the columns. The real instance comes from the release itself: `movielens_groups`.

    >>> import collabtop as ct
    >>> arms = ct.datasets.movielens_like_groups()
    >>> arms.n, arms.agents
    (547, 10)
    >>> print(f"{ct.complexity(arms, m=1):,.0f} {ct.complexity(arms, m=8):.2e}")
    59,224 1.21e+06
    """
    return HeterogeneousArms(_group_means(), labels=_labels(_GROUP_MOVIES))


@cache
def _means() -> Reals:
    ranked = _ranked_means(_MOVIES, np.array(_TOP), _H1)
    return ranked[scrambled(_MOVIES)]


@cache
def _group_means() -> Reals:
    top = np.array(_TOP)
    top[1] = top[0] - _GROUP_GAPS[0]
    top[8] = top[7] - _GROUP_GAPS[1]
    ranked = _ranked_means(_GROUP_MOVIES, top, _GROUP_H1)
    table = ranked[scrambled(_GROUP_MOVIES), np.newaxis] + _offsets(_GROUP_MOVIES, _GROUPS)
    return np.round(table, _DECIMALS)


def _ranked_means(n: int, top: Reals, target: float) -> Reals:
    """The top means as given, then the curve whose steepness makes H<1> hit the target, best first."""
    steep, flat = 0.3, 1.0
    for _ in range(50):
        power = (steep + flat) / 2
        # A flatter start crowds more arms near the top: a larger H<1>.
        if complexity(_with_tail(n, top, power), 1) > target:
            flat = power
        else:
            steep = power
    return np.round(_with_tail(n, top, steep), _DECIMALS)


def _with_tail(n: int, top: Reals, power: float) -> Reals:
    """Below the top an even descent that bends down at its end, mixed so that the average is as published."""
    along = np.arange(1, n - len(top) + 1) / (n - len(top))
    even, bent = along**power, along**_BEND
    drop = top[-1] - _LOWEST
    depth = (float(np.sum(top)) + (n - len(top)) * top[-1] - n * _AVERAGE) / drop  # what the tail adds up to
    share = (depth - float(bent.sum())) / float((even - bent).sum())
    return np.concatenate([top, top[-1] - drop * (share * even + (1 - share) * bent)])


def _offsets(n: int, columns: int) -> Reals:
    """What a group of users adds to an arm's mean: waves, which add up to zero with a known deviation."""
    fraction = mixed(2 * n).reshape(2, n) / 2.0**64
    spread = _DEVIATION * 2.0 ** (2 * (np.argsort(np.argsort(fraction[0])) + 0.5) / n - 1)
    waves = 1 + np.arange(n) % (columns // 2 - 1)
    turns = np.outer(waves, np.arange(columns)) / columns + fraction[1][:, np.newaxis]
    offsets: Reals = np.sqrt(2) * spread[:, np.newaxis] * np.cos(2 * np.pi * turns)
    return offsets


def _labels(n: int) -> list[str]:
    return [f"movie {number:03d}" for number in range(1, n + 1)]
