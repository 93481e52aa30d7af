"""The paper's error bound and the sizes from which its corollary and its lower-bound instance work as printed."""

import math
from bisect import bisect_left

from collabtop.arms import SimulatedArms
from collabtop.datasets import equal_gaps
from collabtop.problem import complexity, error_bound


def bound_horizon(arms: SimulatedArms, m: int, agents: int, level: float) -> int:
    """The smallest horizon at which the paper's bound on the error is below `level`.

    >>> import collabtop as ct
    >>> bound_horizon(ct.BernoulliArms([0.9, 0.5, 0.25]), m=1, agents=10, level=1)
    1349
    """
    low, high = 0, 1
    while error_bound(arms, m, agents, high) >= level:
        low, high = high, 2 * high
    return bisect_left(range(high), True, lo=low + 1, key=lambda horizon: error_bound(arms, m, agents, horizon) < level)


def corollary_bound(n: int) -> float:
    """The bound at T = 500 H log^2 n / K, where the paper states an error of .01; H and K cancel out.

    >>> corollary_bound(4) > 0.01 > corollary_bound(8)
    True
    """
    arms = equal_gaps(n, m=1, gap=0.1)
    return error_bound(arms, 1, 1, math.ceil(500 * complexity(arms, 1) * math.log2(n) ** 2))


def corollary_holds_from(most: int = 64) -> int:
    """The smallest n from which on the corollary holds.

    >>> corollary_holds_from()
    8
    """
    return max(n for n in range(2, most) if corollary_bound(n) > 0.01) + 1


def printed_special_arm_wins_from(most: int = 64) -> int:
    """The smallest n from which on the special arm, as printed, beats an element that is in all sets.

    >>> printed_special_arm_wins_from()
    5
    """
    # A common element's mean is 2/3 + i / n^2, at most 2/3 + 1/n; the special arm's is 1 - 1/(2n).
    return max(n for n in range(1, most) if 2 / 3 + 1 / n >= 1 - 1 / (2 * n)) + 1
