"""Arms that stand in for real ones: without noise, or without rewards for runs that pull nothing."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from collabtop.arms.base import Arms, Ints, Reals
from collabtop.arms.draws import Draws
from collabtop.arms.simulated import SimulatedArms
from collabtop.errors import ProtocolError
from collabtop.problem import as_means


class NoiselessArms(SimulatedArms):
    """Arms without noise: every pull of arm i returns exactly `means[i]`, or `means[i, k]` for agent k.

    With `agents`, arms with one mean each count as non-IID.

    >>> arms = NoiselessArms([0.5, 0.75])
    >>> arms.pull(np.array([1, 0]), np.array([4, 2]), Draws(seed=1, agent=0))
    array([3., 1.])
    """

    def __init__(
        self,
        means: ArrayLike,
        *,
        labels: Sequence[str] | None = None,
        agents: int | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        values = as_means(means).copy()
        agents = values.shape[1] if values.ndim == 2 else agents
        super().__init__(values, labels, dimensions=values.ndim, agents=agents, weights=weights)

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """The sum of `times` pulls: the mean times `times`."""
        means = self.means[arms] if self.means.ndim == 1 else self.means[arms, draws.agent]
        draws.squares = np.asarray(means**2 * times, np.float64)
        return np.asarray(means * times, np.float64)


class UnpullableArms(Arms):
    """Arms that cannot be pulled here: only their number and labels are known."""

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Raise `ProtocolError`."""
        raise ProtocolError("these arms cannot be pulled here (remote arms are pulled by their sites: use a SitesTeam)")
