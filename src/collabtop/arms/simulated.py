"""Arms with known means, for simulation: Bernoulli, heterogeneous (non-IID) Bernoulli, and Beta."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.arms.base import Arms, Ints, PullTogether, Reals
from collabtop.arms.division import Division
from collabtop.arms.draws import Draws
from collabtop.errors import InputError
from collabtop.problem import arm_values, as_means
from collabtop.validation import positive_number

_CHUNK = 1 << 20
_FEW_ARMS = 11


def _successes(times: Ints, means: Reals, draws: Draws) -> Reals:
    binomial = draws.bulk.binomial
    if len(means) <= _FEW_ARMS:  # NumPy's per-call overhead on arrays exceeds the cost of a few scalar draws
        counts = times.tolist() * (len(means) if len(times) == 1 else 1)
        return np.array([binomial(count, mean) for count, mean in zip(counts, means.tolist(), strict=True)], np.float64)
    return binomial(times, means).astype(np.float64)


def _successes_together(means: Reals, division: Division, draws: Sequence[Draws]) -> Reals:
    """The successes of each position of a division, drawn by its own agent: the same as with `_successes`."""
    if len(draws) == 1:
        return _successes(division.times, means, draws[0])
    generators = [agent.bulk.binomial for agent in draws]
    if len(means) > _FEW_ARMS * len(generators):
        parts = zip(generators, division.parts_of(division.times), division.parts_of(means), strict=True)
        return np.concatenate([draw(times, part) for draw, times, part in parts], dtype=np.float64)
    positions = zip(division.owners, division.counts, means.tolist(), strict=True)
    return np.array([generators[agent](count, mean) for agent, count, mean in positions], np.float64)


class SimulatedArms(Arms):
    """Arms with known means; NumPy accepts them in place of the array of means."""

    repeatable: ClassVar[bool] = True
    bernoulli: ClassVar[bool] = False
    """Whether rewards are 0 or 1, so that sums of rewards are binomial."""

    def __init__(
        self,
        means: Reals,
        labels: Sequence[str] | None,
        *,
        dimensions: int,
        agents: int | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        if means.ndim != dimensions:
            shape = "one mean per arm" if dimensions == 1 else "one row per arm and one column per agent"
            raise InputError(
                f"{type(self).__name__} needs {shape}, but the array has {means.ndim} dimensions",
                argument="means" if dimensions == 1 else "local_means",
            )
        super().__init__(len(means), labels=labels, agents=agents, weights=weights)
        self.means = means
        """The true means (the paper's mu_i, or mu_{i,k} in n x K), which no agent or algorithm reads."""
        self.means.setflags(write=False)
        self.values: Reals = self.means if dimensions == 1 else arm_values(self.means, self.weights)

    def identity(self) -> list[Any]:
        """The means belong to the identity."""
        return [*super().identity(), self.means.tobytes()]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of `means`."""
        return self.means.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Reals:
        return np.array(self.means, dtype=dtype)

    def __getitem__(self, index: Any) -> Any:
        return self.means[index]


class BernoulliArms(SimulatedArms):
    """Arms whose reward is 1 with probability `means[i]`, otherwise 0.

    >>> arms = BernoulliArms([0.9, 0.5], labels=["good", "fair"])
    >>> arms.n, arms.label(0)
    (2, 'good')
    """

    bernoulli: ClassVar[bool] = True

    def __init__(self, means: ArrayLike, *, labels: Sequence[str] | None = None) -> None:
        super().__init__(as_means(means).copy(), labels, dimensions=1)

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Draw each arm's number of successes."""
        return _successes(times, self.means[arms], draws)

    @property
    def pull_together(self) -> PullTogether | None:
        """A loop over the agents, unless a subclass pulls in its own way."""
        return self._pull_together if type(self).pull is BernoulliArms.pull else None

    def _pull_together(self, arms: Ints, division: Division, draws: Sequence[Draws]) -> Reals:
        return _successes_together(self.means[arms], division, draws)


class HeterogeneousArms(SimulatedArms):
    """Bernoulli arms with different means for each agent (non-IID): `local_means[i, k]` for arm i and agent k.

    An arm's value is the average of its row; the number of agents is the number of columns.

    Args:
        local_means: one row per arm, one column per agent.
        labels: the names of the arms.
        weights: how much each agent counts in an arm's value, such as the number of people behind it; equally, if
            omitted.

    >>> HeterogeneousArms([[0.9, 0.7], [0.5, 0.6]]).agents
    2
    >>> HeterogeneousArms([[0.9, 0.1], [0.4, 0.4]], weights=[1, 3]).values
    array([0.3, 0.4])
    """

    bernoulli: ClassVar[bool] = True

    def __init__(
        self,
        local_means: ArrayLike,
        *,
        labels: Sequence[str] | None = None,
        weights: Sequence[float] | None = None,
    ) -> None:
        table = as_means(local_means, "local_means").copy(order="F")  # an agent reads only its own column
        agents = table.shape[-1] if table.ndim else None
        super().__init__(table, labels, dimensions=2, agents=agents, weights=weights)

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Draw each arm's number of successes at this agent."""
        return _successes(times, self.means[:, draws.agent][arms], draws)

    @property
    def pull_together(self) -> PullTogether | None:
        """A loop over the agents, unless a subclass pulls in its own way."""
        return self._pull_together if type(self).pull is HeterogeneousArms.pull else None

    def _pull_together(self, arms: Ints, division: Division, draws: Sequence[Draws]) -> Reals:
        return _successes_together(division.look_up(self.means.T, arms), division, draws)


class BetaArms(SimulatedArms):
    """Arms whose rewards follow a Beta distribution with the given means: any value in [0, 1], not only 0 and 1.

    `concentration` is the sum of the two Beta parameters: the larger it is, the less noise.

    >>> BetaArms([0.9, 0.5], concentration=4.0).n
    2
    """

    def __init__(self, means: ArrayLike, concentration: float = 4.0, *, labels: Sequence[str] | None = None) -> None:
        super().__init__(as_means(means).copy(), labels, dimensions=1)
        self.concentration = positive_number("concentration", concentration)

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Draw the rewards in chunks, and add them up by arm."""
        sums, squares = np.zeros(len(arms)), np.zeros(len(arms))
        ends = np.cumsum(np.broadcast_to(times, arms.shape))
        total = int(ends[-1]) if len(ends) else 0
        for start in range(0, total, _CHUNK):
            index = np.searchsorted(ends, np.arange(start, min(start + _CHUNK, total)), side="right")
            rewards = self._rewards(self.means[arms][index], draws)
            sums += np.bincount(index, rewards, minlength=len(arms))
            squares += np.bincount(index, rewards**2, minlength=len(arms))
        draws.squares = squares
        return sums

    def _rewards(self, means: Reals, draws: Draws) -> Reals:
        rewards = means.copy()
        noisy = (means > 0) & (means < 1)  # a mean of exactly 0 or 1 has no noise
        alpha = means[noisy] * self.concentration
        rewards[noisy] = draws.bulk.beta(alpha, self.concentration - alpha)
        return rewards
