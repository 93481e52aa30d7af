"""The mathematics of the problem: gaps, complexity, speed-up and the paper's bound."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from collabtop.errors import InputError
from collabtop.validation import whole_number, wrong_value


class Problem(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The numbers that every agent and the coordinator know before the first pull.

    >>> Problem(n=588, m=8, agents=10, horizon=30_000).rounds
    10
    """

    n: int
    """Number of arms (the paper's n)."""
    m: int
    """How many of the best are wanted (m); an algorithm gets `inner`, in which it is at most n / 2."""
    agents: int
    """Number of agents (K)."""
    horizon: int
    """Time steps per agent (T)."""
    pull_limit: int | None = None
    """The most pulls of an arm by all agents together. None: no limit."""
    numbered: bool = False
    """Whether the pulls of an arm are numbered over all agents, because each example or logged reward is used once."""
    bounded: bool = True
    """Whether rewards have bounds, so that their internal values lie in [0, 1]."""
    sample_size: int | None = None
    """The number of distinct rewards of an arm, if they are only a sample of what it would return."""
    reuses: bool = False
    """Whether pulls are numbered because the run uses earlier rewards, although its arms are not paired."""
    weights: tuple[float, ...] | None = None
    """How much each agent counts in the value of a non-IID arm, 1 on average; None: all count the same."""
    noise: float = 0.0
    """The standard deviation of the noise in the sum of each batch of an arm. Only `Algorithm.simulate` uses it: in a
    run, agents add the noise that `Setup.privacy` asks for."""

    @property
    def population(self) -> int | None:
        """The number of pulls after which the mean of an arm is exact; None if it never is.

        >>> examples = Problem(n=2, m=1, agents=1, horizon=50, pull_limit=20)
        >>> log = Problem(n=2, m=1, agents=1, horizon=50, pull_limit=20, sample_size=20)
        >>> examples.population, log.population
        (20, None)
        """
        return self.pull_limit if self.sample_size is None else None

    @property
    def paired(self) -> bool:
        """Whether pull number t of every arm is made on the same example, so that arms can be compared pair by pair."""
        return self.numbered and self.sample_size is None and not self.reuses

    @property
    def rounds(self) -> int:
        """R = ceil(log2 n), the paper's number of rounds."""
        return (self.n - 1).bit_length()

    @property
    def mirrored(self) -> bool:
        """Whether the n - m worst arms are searched for instead of the m best, because they are fewer.

        >>> [Problem(n=10, m=m, agents=2, horizon=100).mirrored for m in (5, 6)]
        [False, True]
        """
        return 2 * self.m > self.n

    @property
    def inner(self) -> "Problem":
        """The problem that an algorithm solves: the n - m worst arms if mirrored, else the m best.

        >>> Problem(n=10, m=7, agents=2, horizon=100).inner.m
        3
        """
        return msgspec.structs.replace(self, m=min(self.m, self.n - self.m))

    def at_horizon(self, horizon: int) -> "Problem":
        """The same problem with a different horizon.

        >>> Problem(n=10, m=7, agents=2, horizon=100).at_horizon(50)
        Problem(n=10, m=7, agents=2, horizon=50)
        """
        return msgspec.structs.replace(self, horizon=horizon)

    def weight(self, agent: int) -> float:
        """How much an agent counts in the value of an arm.

        >>> Problem(n=3, m=1, agents=2, horizon=9, weights=(1.5, 0.5)).weight(0)
        1.5
        """
        return 1.0 if self.weights is None else self.weights[agent]

    @property
    def largest_weight(self) -> float:
        """The weight of the agent that counts most: rewards times weights are no larger than this."""
        return 1.0 if self.weights is None else max(self.weights)

    @property
    def mean_squared_weight(self) -> float:
        """How much larger weights make the variance of a mean, if the rewards of all agents vary alike.

        >>> Problem(n=3, m=1, agents=2, horizon=9, weights=(1.5, 0.5)).mean_squared_weight
        1.25
        """
        return 1.0 if self.weights is None else math.fsum(weight**2 for weight in self.weights) / self.agents

    def share(self, agent: int, times: int, pulls_before: int) -> tuple[int, int]:
        """An agent's part if all agents pull an arm `times` times: the number of its first pull, and how many it makes.

        Pulls of an arm are numbered over all agents. Close to the `pull_limit`, agents make fewer than `times`.

        >>> problem = Problem(n=10, m=1, agents=3, horizon=100, pull_limit=20)
        >>> [problem.share(agent, times=4, pulls_before=12) for agent in range(3)]
        [(12, 3), (15, 3), (18, 2)]
        """
        total = times * self.agents
        if self.pull_limit is not None:
            total = max(0, min(total, self.pull_limit - pulls_before))
        each, left_over = divmod(total, self.agents)
        return pulls_before + agent * each + min(agent, left_over), each + (agent < left_over)


def opposite(
    sums: NDArray[np.float64], pulls: NDArray[np.int64] | int = 1, *, bounded: bool = True
) -> NDArray[np.float64]:
    """Sums (or means) of opposite rewards, of which the best arms have the smallest: 1 - x for x in [0, 1], else -x.

    >>> opposite(np.array([0.25, 1.0])), opposite(np.array([0.25, 1.0]), bounded=False)
    (array([0.75, 0.  ]), array([-0.25, -1.  ]))
    """
    return pulls - sums if bounded else -sums


def squares_of_opposite(
    squares: NDArray[np.float64], sums: NDArray[np.float64], pulls: NDArray[np.int64] | int, *, bounded: bool
) -> NDArray[np.float64]:
    """Sums of the squares of opposite rewards, from the sums of squares and the sums of rewards.

    >>> squares_of_opposite(np.array([0.25]), np.array([0.5]), 1, bounded=True)
    array([0.25])
    """
    return pulls - 2 * sums + squares if bounded else squares


def as_means(means: ArrayLike, name: str = "means") -> NDArray[np.float64]:
    """Means as an array of floats in [0, 1]; `name` is what an error calls them, such as `means` or `rewards[3]`.

    >>> as_means([0.5, 0.25])
    array([0.5 , 0.25])
    """
    argument = name.partition("[")[0]
    try:
        values = np.asarray(means, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {means!r:.80}, but numbers are needed", argument=argument) from None
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        shown = f"[{', '.join(map(str, index))}]" if index else ""
        raise InputError(f"{name}{shown} is {values[index]}, but a mean lies in [0, 1]", argument=argument)
    return values


def as_weights(weights: Sequence[float] | None, agents: int | None) -> tuple[float, ...] | None:
    """The weights of the agents, with an average of 1; None if all count the same.

    >>> as_weights([3, 1], agents=2), as_weights([0.1] * 10, agents=10)
    ((1.5, 0.5), None)
    """
    if weights is None:
        return None
    if agents is None:
        raise InputError(
            "weights only applies to arms that differ between agents (non-IID); these are the same for all",
            argument="weights",
        )
    try:
        values = [float(weight) for weight in weights]
    except (TypeError, ValueError):
        raise wrong_value("weights", weights, "one number per agent is needed") from None
    if len(values) != agents:
        raise InputError(f"weights has {len(values)} entries, but there are {agents} agents", argument="weights")
    for agent, weight in enumerate(values):
        if not 0 < weight < math.inf:
            raise InputError(f"weights[{agent}] is {weight}, but a number above 0 is needed", argument="weights")
    if len(set(values)) == 1:
        return None
    total = math.fsum(values)
    if math.isclose(total, agents, rel_tol=1e-12):  # these were normalized before, and have to stay the same
        return tuple(values)
    return tuple(weight * agents / total for weight in values)


def arm_values(means: ArrayLike, weights: Sequence[float] | None = None) -> NDArray[np.float64]:
    """The value of each arm: its mean or, for a table of n x K local means (non-IID), their weighted average.

    >>> arm_values([[0.9, 0.1], [0.4, 0.4]]), arm_values([[0.9, 0.1], [0.4, 0.4]], weights=[1, 3])
    (array([0.5, 0.4]), array([0.3, 0.4]))
    """
    values = as_means(means)
    if values.ndim != 2:
        as_weights(weights, None)  # refuses weights
        return values
    normalized = as_weights(weights, values.shape[1])
    average: NDArray[np.float64] = (
        values.mean(axis=1) if normalized is None else values @ np.array(normalized) / values.shape[1]
    )
    return average


def effective_agents(weights: Sequence[float] | None, agents: int) -> float:
    """How many agents with equal weights would give a mean as accurate as these: (sum w)^2 / sum w^2.

    >>> effective_agents([2, 1, 1], agents=3), effective_agents(None, agents=3)
    (2.6666666666666665, 3.0)
    """
    normalized = as_weights(weights, agents)
    return float(agents) if normalized is None else agents**2 / math.fsum(weight**2 for weight in normalized)


def _ranked(
    means: ArrayLike, m: int, weights: Sequence[float] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values = arm_values(means, weights)
    if values.ndim != 1:
        raise InputError(
            f"means has {values.ndim} dimensions, but 1 is needed (or 2 for non-IID arms: n x K)", argument="means"
        )
    if not 1 <= m < len(values):
        raise wrong_value("m", m, f"gaps of {len(values)} arms are defined for 1 <= m <= {len(values) - 1}")
    return values, np.sort(values)[::-1]


_SAME_MEAN = 1e-12  # averages of the same numbers in a different order differ by rounding


def misplaced(
    means: ArrayLike, answer: ArrayLike, tolerance: float = 0.0, *, weights: Sequence[float] | None = None
) -> NDArray[np.int64]:
    """The arms that an answer places wrongly: those of the answer below the m-th best, and the others above it.

    An arm that is within `tolerance` of the m-th best may be in the answer or not. A table of n x K local means
    (non-IID) is averaged over its columns first, with `weights` if agents count differently.

    >>> misplaced([0.7, 0.6, 0.6, 0.5], answer=[1, 3])
    array([0, 3])
    """
    values = arm_values(means, weights)
    chosen = np.zeros(len(values), bool)
    chosen[np.asarray(answer, np.int64)] = True
    border = np.sort(values)[len(values) - int(chosen.sum())]
    allowed = tolerance + _SAME_MEAN
    wrong = np.where(chosen, values < border - allowed, values > border + allowed)
    return np.flatnonzero(wrong).astype(np.int64)


def right_answers(
    means: ArrayLike, answers: NDArray[np.bool_], *, weights: Sequence[float] | None = None
) -> NDArray[np.bool_]:
    """Which of many answers are right: a row of flags per answer, one flag per arm.

    >>> right_answers([0.7, 0.6, 0.6, 0.5], np.array([[1, 0, 1, 0], [0, 1, 1, 0]], bool))
    array([ True, False])
    """
    values = arm_values(means, weights)
    border = np.sort(values)[len(values) - int(np.count_nonzero(answers[0]))]
    needed, allowed = values > border + _SAME_MEAN, values >= border - _SAME_MEAN
    return np.asarray(answers[:, needed].all(axis=1) & ~answers[:, ~allowed].any(axis=1))


def is_best(means: ArrayLike, answer: ArrayLike, *, weights: Sequence[float] | None = None) -> bool:
    """Whether an answer is a set of best arms: the sorted means of its arms are those of the best m.

    >>> means = [0.7, 0.6, 0.6, 0.5]
    >>> is_best(means, [0, 2]), is_best(means, [1, 2]), is_best(means, [0, 3])
    (True, False, False)
    """
    return not len(misplaced(means, answer, weights=weights))


def gaps(means: ArrayLike, m: int, *, weights: Sequence[float] | None = None) -> NDArray[np.float64]:
    """The distance of each arm from the border between the best m and the rest (the paper's Delta_i).

    A table of n x K local means (non-IID) is averaged over its columns first, with `weights` if agents count
    differently.

    >>> gaps([0.5, 0.9, 0.25], m=1)
    array([0.4 , 0.4 , 0.65])
    """
    values, ranked = _ranked(means, m, weights)
    delta: NDArray[np.float64] = np.maximum(values - ranked[m], ranked[m - 1] - values)
    return delta


def complexity(means: ArrayLike, m: int, *, weights: Sequence[float] | None = None) -> float:
    """The difficulty of the instance: the sum of 1 / gap^2 (the paper's H<m>); infinite if ranks m and m + 1 tie.

    >>> round(complexity([0.5, 0.9, 0.25], m=1), 2)
    14.87
    """
    delta = gaps(means, m, weights=weights)
    if not delta.all():
        return math.inf
    return float(np.sum(delta**-2.0))


def speedup(means: ArrayLike, m: int, time: int) -> float:
    """How many times faster a run of that time was than the H<m> steps of one agent (the paper's beta).

    >>> speedup([0.5, 0.9, 0.25], m=1, time=5) > 2
    True
    """
    if time < 1:
        raise wrong_value("time", time, "a run takes at least 1 time step")
    return complexity(means, m) / time


def error_bound(
    means: ArrayLike, m: int, agents: int, horizon: int, *, weights: Sequence[float] | None = None
) -> float:
    """The paper's bound on the probability of a wrong answer (theorem 1), at most 1.

    2 n log2(2n) exp(-T K / (128 H log2(2n))): it is 1 until the horizon is large. With `weights`, K is the number of
    agents with equal weights that would be as accurate.

    >>> error_bound([0.5, 0.9, 0.25], m=1, agents=10, horizon=100)
    1.0
    >>> error_bound([0.5, 0.9, 0.25], m=1, agents=10, horizon=10_000)
    2.3...e-08
    """
    whole_number("agents", agents, least=1)
    whole_number("horizon", horizon, least=1)
    n = int(np.shape(means)[0])
    log = math.log2(2 * n)
    counted, difficulty = effective_agents(weights, agents), complexity(means, m, weights=weights)
    return min(1.0, 2 * n * log * math.exp(-horizon * counted / (128 * difficulty * log)))
