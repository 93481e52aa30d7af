"""A stand-in for the paper's MovieLens instances, built only from a dozen published numbers.

The licence of MovieLens does not permit redistribution of its ratings or of tables derived from them. What is
published are the top means, the lowest mean, the average and the complexities. A smooth curve with two parameters
fills in the rest; the parameters are solved for so that the average and H<1> match.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from collabtop.arms import BernoulliArms, HeterogeneousArms
from collabtop.datasets.instances import mixed_keys, scrambled_order
from collabtop.problem import complexity

Reals = NDArray[np.float64]

_TOP = (
    0.882715, 0.864867, 0.856871, 0.852352, 0.850954, 0.849516,
    0.848603, 0.847590, 0.845662, 0.843732, 0.843161, 0.842453,
)  # fmt: skip
_LOWEST = 0.463934
_AVERAGE = 0.728
_BEND = 10  # how late the curve bends down to the lowest mean: with 10, H<8> matches as well
_DECIMALS = 6  # as published; also hides the last bits, in which platforms differ

_MOVIES, _H1 = 588, 61_520.0

_GROUP_MOVIES, _GROUPS, _GROUP_H1 = 547, 10, 59_224.0
_GROUP_GAPS = (0.01785, 0.00190)  # between ranks 1 and 2, and 8 and 9
_DEVIATION = 0.004  # median over arms of the standard deviation over columns


def movielens_like() -> BernoulliArms:
    """A stand-in, equally hard, for the 588 movies of the paper's IID experiments.

    It has the same number of arms, twelve best means, lowest mean, average, H<1> and (within 5%) H<8>; the other
    means lie on a smooth curve. The numbers are always the same, and their order does not reveal the ranking. To
    build the real instance from a MovieLens release, use `movielens`.

    >>> import collabtop as ct
    >>> arms = ct.datasets.movielens_like()
    >>> arms.n, float(max(arms.means))
    (588, 0.882715)
    >>> print(f"{ct.complexity(arms, m=1):,.0f} {ct.complexity(arms, m=8):.2e}")
    61,520 1.19e+06
    """
    return BernoulliArms(_means(), labels=_labels(_MOVIES))


def movielens_like_groups() -> HeterogeneousArms:
    """A stand-in for the paper's non-IID experiments: 547 movies as rated by 10 groups of users.

    It has the same shape, the same gaps, H<1> and (within 5%) H<8> of the row averages, and a median standard
    deviation of .004 over the columns. To build the real instance from a MovieLens release, use `movielens_groups`.

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
    return ranked[scrambled_order(_MOVIES)]


@cache
def _group_means() -> Reals:
    top = np.array(_TOP)
    top[1] = top[0] - _GROUP_GAPS[0]
    top[8] = top[7] - _GROUP_GAPS[1]
    ranked = _ranked_means(_GROUP_MOVIES, top, _GROUP_H1)
    table = ranked[scrambled_order(_GROUP_MOVIES), np.newaxis] + _offsets(_GROUP_MOVIES, _GROUPS)
    return np.round(table, _DECIMALS)


def _ranked_means(n: int, top: Reals, target: float) -> Reals:
    """The given top means followed by the curve whose steepness makes H<1> equal to the target, best first."""
    steep, flat = 0.3, 1.0
    for _ in range(50):
        power = (steep + flat) / 2
        # A flatter start puts more arms near the top, which makes H<1> larger.
        if complexity(_with_tail(n, top, power), 1) > target:
            flat = power
        else:
            steep = power
    return np.round(_with_tail(n, top, steep), _DECIMALS)


def _with_tail(n: int, top: Reals, power: float) -> Reals:
    """The top means followed by an even descent that bends down at its end, mixed to give the published average."""
    along = np.arange(1, n - len(top) + 1) / (n - len(top))
    even, bent = along**power, along**_BEND
    drop = top[-1] - _LOWEST
    depth = (float(np.sum(top)) + (n - len(top)) * top[-1] - n * _AVERAGE) / drop  # the sum of the tail
    share = (depth - float(bent.sum())) / float((even - bent).sum())
    return np.concatenate([top, top[-1] - drop * (share * even + (1 - share) * bent)])


def _offsets(n: int, columns: int) -> Reals:
    """The offset of each group of users from each arm's mean: waves that sum to zero, with a known deviation."""
    fraction = mixed_keys(2 * n).reshape(2, n) / 2.0**64
    spread = _DEVIATION * 2.0 ** (2 * (np.argsort(np.argsort(fraction[0])) + 0.5) / n - 1)
    waves = 1 + np.arange(n) % (columns // 2 - 1)
    turns = np.outer(waves, np.arange(columns)) / columns + fraction[1][:, np.newaxis]
    offsets: Reals = np.sqrt(2) * spread[:, np.newaxis] * np.cos(2 * np.pi * turns)
    return offsets


def _labels(n: int) -> list[str]:
    return [f"movie {number:03d}" for number in range(1, n + 1)]
