"""The contract of arms, and arms without noise to check algorithms with."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from collabtop.arms import Arms, Draws
from collabtop.arms.base import Ints, Reals
from collabtop.arms.stand_ins import NoiselessArms
from collabtop.arms.unit import Unit
from collabtop.errors import InputError


class ConstantArms(NoiselessArms):
    """Arms without noise: every pull of arm i pays exactly `means[i]`, a multiple of 1/1024, so that sums are exact.

    A table of n x K means makes them non-IID.

    >>> import collabtop as ct
    >>> ct.identify(ConstantArms([0.5, 0.75, 0.25]), m=1, agents=2, horizon=20).top
    [1]
    """

    def __init__(
        self, means: ArrayLike, *, labels: Sequence[str] | None = None, weights: Sequence[float] | None = None
    ) -> None:
        super().__init__(means, labels=labels, weights=weights)
        if (self.means * 1024 % 1).any():
            raise InputError(
                "means of ConstantArms must be multiples of 1/1024, so that sums are exact", argument="means"
            )


class UnboundedArms(ConstantArms):
    """`ConstantArms` whose rewards are far outside [0, 1], in the same order.

    >>> UnboundedArms([0.5, 0.75]).pull(np.array([0, 1]), np.array([2]), Draws(seed=1, agent=0))
    array([224., 736.])
    """

    unit = Unit(bounds=None)

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """The sum of `times` pulls."""
        return 1024 * super().pull(arms, times, draws) - 400 * np.asarray(times, np.float64)


def check_arms(arms: Arms) -> None:
    """Check that arms keep their contract: sums in range, all chance from `draws`, arguments left alone."""
    chosen = np.arange(arms.n)[::2].copy()
    times = np.arange(1, len(chosen) + 1)
    given = chosen.copy(), times.copy()
    sums = arms.pull(chosen, times, Draws(seed=1, agent=0))
    assert sums.dtype == np.float64, f"pull gives {sums.dtype}, not float64"
    assert sums.shape == chosen.shape, f"pull of {len(chosen)} arms gives {sums.shape} sums"
    assert np.isfinite(sums).all(), "a sum of rewards is not a finite number"
    in_range = not arms.unit.bounded or ((sums >= 0) & (sums <= times)).all()
    assert in_range, "a sum of rewards, as internal values, lies outside [0, times]"
    assert np.array_equal(chosen, given[0]), "pull changes the list of arms it was given"
    assert np.array_equal(times, given[1]), "pull changes the numbers of pulls it was given"
    again = arms.pull(chosen, times, Draws(seed=1, agent=0))
    assert np.array_equal(sums, again), "the same draws give other rewards: pull takes chance from elsewhere"
    one_for_all = arms.pull(chosen, np.array([3]), Draws(seed=1, agent=0))
    one_each = arms.pull(chosen, np.full(len(chosen), 3), Draws(seed=1, agent=0))
    assert np.array_equal(one_for_all, one_each), "one number for all arms is not the same as one an arm"
    assert arms.labels is None or len(arms.labels) == arms.n, "there is not one label an arm"
