"""Standard hard instances from the best-arm literature.

Their complexity H<m> is `collabtop.complexity(arms, m)`. Where an arm's index would reveal its rank, for example
through ties broken by index, the arms are in a fixed order without a pattern.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collabtop.arms import BernoulliArms, HeterogeneousArms
from collabtop.errors import InputError
from collabtop.validation import real_number, whole_number, wrong_value

Reals = NDArray[np.float64]

# Constants of splitmix64 (Steele, Lea, Flood 2014): integers only, so every platform gives the same order.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIXES = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))
_LEAST_GAP = 1e-9  # below this, the rounding of the means themselves affects H

_MOST_ARMS = 10**7


def equal_gaps(n: int, m: int, gap: float) -> BernoulliArms:
    """Each of the m best arms beats each of the others by the same gap, around 1/2: H<m> = n / gap^2.

    This is the instance of most lower bounds: no arm can be settled early.

    >>> import collabtop as ct
    >>> arms = ct.datasets.equal_gaps(n=6, m=2, gap=0.25)
    >>> arms.means
    array([0.375, 0.375, 0.375, 0.625, 0.625, 0.375])
    >>> ct.complexity(arms, m=2)
    96.0
    """
    _check_arms(n)
    if not 1 <= whole_number("m", m, 1) < n:
        raise wrong_value("m", m, f"1 <= m <= {n - 1} is needed to divide {n} arms into two groups")
    _check_gap("gap", gap, 1)
    return _shuffled(np.where(np.arange(n) < m, 0.5 + gap / 2, 0.5 - gap / 2))


def one_good_arm(n: int, gap: float) -> BernoulliArms:
    """One arm has mean 1/2 + gap, all others are fair coins: H<1> = n / gap^2.

    >>> import collabtop as ct
    >>> arms = ct.datasets.one_good_arm(n=4, gap=0.25)
    >>> arms.means
    array([0.5 , 0.5 , 0.75, 0.5 ])
    >>> ct.complexity(arms, m=1)
    64.0
    """
    _check_arms(n)
    _check_gap("gap", gap, 0.5)
    return _shuffled(np.where(np.arange(n) < 1, 0.5 + gap, 0.5))


def arithmetic(n: int, best: float = 0.9, worst: float = 0.1) -> BernoulliArms:
    """Means fall in even steps from the best to the worst, so the gaps grow arithmetically for every m.

    >>> import collabtop as ct
    >>> arms = ct.datasets.arithmetic(n=5)
    >>> arms.means
    array([0.5, 0.1, 0.7, 0.9, 0.3])
    >>> round(ct.complexity(arms, m=1), 2)
    60.59
    """
    _check_arms(n)
    if not 0 <= real_number("worst", worst) < real_number("best", best) <= 1:
        raise InputError(f"best is {best} and worst is {worst}, but 0 <= worst < best <= 1 is needed")
    return _shuffled(np.linspace(best, worst, n))


def geometric(n: int, smallest: float = 0.01, largest: float = 0.8, best: float = 0.9) -> BernoulliArms:
    """Gaps to the best arm grow by a constant factor from `smallest` to `largest`: a few arms dominate H<1>.

    >>> import collabtop as ct
    >>> arms = ct.datasets.geometric(n=5, smallest=0.1, largest=0.8)
    >>> arms.means
    array([0.7, 0.1, 0.8, 0.9, 0.5])
    >>> round(ct.complexity(arms, m=1), 2)
    232.81
    """
    _check_arms(n)
    if not 0 < real_number("best", best) <= 1:
        raise wrong_value("best", best, "a mean above 0 and at most 1 is needed")
    _check_gap("largest", largest, best)
    _check_gap("smallest", smallest, largest)
    # Rounded because platforms differ in the last bits of a power.
    steps = np.round(np.geomspace(smallest, largest, n - 1), 15)
    return _shuffled(np.concatenate([[best], np.clip(best - steps, 0, 1)]))


def uniform_means(n: int, seed: int) -> BernoulliArms:
    """Means drawn uniformly at random from [0, 1]: an instance without any structure.

    >>> import collabtop as ct
    >>> arms = ct.datasets.uniform_means(n=4, seed=7)
    >>> arms.means.round(3)
    array([0.625, 0.897, 0.776, 0.225])
    >>> round(ct.complexity(arms, m=1))
    151
    """
    _check_arms(n, least=1)
    whole_number("seed", seed, 0)
    return BernoulliArms(np.random.default_rng(seed).random(n))


def set_disjointness(X: ArrayLike, delta: float | None = None) -> HeterogeneousArms:  # noqa: N803
    """Set disjointness ("do K sets have a common element?") as arms: the basis of the paper's non-IID lower bound.

    `X[i, k]` is 1 if agent k's set contains element i. Arm i has the local mean (1 + X[i, k]) / 3 + i * delta,
    with i counted from 1. The last arm is special: its mean is 2/3 - 1/(6K) for every agent, and it is the best
    arm exactly if no element is in all sets. (The paper prints 1 - 1/(2n) for this mean, which beats every other
    arm for n >= 5.) `delta` only prevents ties between common elements; n * delta must be below 1/(6K), and is half
    of that by default.

    >>> import collabtop as ct
    >>> arms = ct.datasets.set_disjointness([[1, 0], [1, 1], [0, 0]])
    >>> arms.n, arms.agents, arms.label(1), arms.label(3)
    (4, 2, 'element 1', 'no element')
    >>> round(ct.complexity(arms, m=1))
    202
    >>> ct.datasets.says_disjoint(arms, [1])      # element 1 is the best arm: it is in all sets
    False
    """
    bits = _bits(X)
    n, agents = bits.shape
    limit = 1 / (6 * agents * n)
    step = limit / 2 if delta is None else delta
    if not 0 < real_number("delta", step) < limit:
        raise wrong_value("delta", step, f"{n} elements and {agents} agents need 0 < delta < {limit:.3g}")
    elements = (1 + bits) / 3 + step * np.arange(1, n + 1)[:, np.newaxis]
    special = np.full((1, agents), 2 / 3 - 1 / (6 * agents))
    labels = [*(f"element {i}" for i in range(n)), "no element"]
    return HeterogeneousArms(np.concatenate([elements, special]), labels=labels)


def says_disjoint(arms: HeterogeneousArms, top_indices: Sequence[int]) -> bool:
    """Whether a top-1 answer means that the sets have no element in common.

    Judge runs by this alone: it does not matter which of several common elements a run returned.

    >>> import collabtop as ct
    >>> arms = ct.datasets.set_disjointness([[1, 0], [0, 1]])
    >>> says_disjoint(arms, top_indices=[2])      # `result.top_indices` of a run with m=1
    True
    """
    if len(top_indices) != 1:
        raise wrong_value("top_indices", list(top_indices), "one arm is needed: set disjointness uses m = 1")
    if not 0 <= top_indices[0] < arms.n:
        raise wrong_value("top_indices", list(top_indices), f"an arm from 0 to {arms.n - 1} is needed")
    return top_indices[0] == arms.n - 1


def _shuffled(means: Reals) -> BernoulliArms:
    return BernoulliArms(means[scrambled_order(len(means))])


def _bits(table: ArrayLike) -> Reals:
    try:
        bits = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise wrong_value("X", table, "a table of 0 and 1 is needed") from None
    if bits.ndim != 2 or bits.size == 0:
        raise InputError(
            f"X has shape {bits.shape}, but one row per element and one column per agent are needed", argument="X"
        )
    bad = np.argwhere((bits != 0) & (bits != 1))
    if len(bad):
        row, column = (int(index) for index in bad[0])
        raise InputError(f"X[{row}, {column}] is {bits[row, column]:g}, but 0 or 1 is needed", argument="X")
    return bits


def _check_arms(n: int, least: int = 2) -> None:
    whole_number("n", n, least, most=_MOST_ARMS)


def _check_gap(name: str, value: float, most: float) -> None:
    if not _LEAST_GAP <= real_number(name, value) <= most:
        raise wrong_value(name, value, f"a gap from {_LEAST_GAP:g} to {most:g} is needed")


def scrambled_order(n: int) -> NDArray[np.int64]:
    """The numbers 0 ... n - 1 in an order that looks random and is always the same.

    >>> scrambled_order(6)
    array([2, 4, 5, 1, 0, 3])
    """
    return np.argsort(mixed_keys(n)).astype(np.int64)


def mixed_keys(n: int) -> NDArray[np.uint64]:
    """Return n distinct 64-bit numbers, evenly spread and without a pattern.

    >>> len(set(mixed_keys(1000).tolist()))
    1000
    """
    keys = np.arange(1, n + 1, dtype=np.uint64) * _STEP  # overflow is intended
    for shift, factor in _MIXES:
        keys = (keys ^ (keys >> np.uint64(shift))) * factor
    return keys ^ (keys >> np.uint64(31))
