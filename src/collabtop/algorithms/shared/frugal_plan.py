"""How frugal-top spends its horizon: sizes and pulls of every stage, computed before the first pull.

The fewer arms are open, the more pulls each of them has had: a * `pulls_share(s)` by the end of a stage that begins
with s open arms, with the largest factor a that fits into the horizon. Stages inside an agent cost no message, so there
are many of them; each shared round costs a round trip, so there are few.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise

import msgspec
import numpy as np

from collabtop.algorithms.shared.allocation import balanced_time
from collabtop.algorithms.shared.schedules import new_pulls
from collabtop.problem import Problem
from collabtop.stats import hypergeometric

# From one stage to the next, the number of open arms shrinks by about these factors.
_SHARED_SHRINK, _NONIID_SHRINK = 1.75, 1.5
_LOCAL_SHRINK, _MOST_LOCAL_SHRINK = 1.08, 1.5  # small hands, large hands
_BORDER_SHRINK, _BORDER_SIZE = 1.4, 24  # for m > 1, the last 24 arms go in smaller steps
_SPARE_ARMS, FEWEST_ARMS, _MOST_SPARE_IF_FEW_TRIPS = 3, 7, 3  # handed over by each agent
POWER, _NONIID_POWER = 0.92, 0.85  # for m = 1
_FIRST_POWER, _LAST_POWER, _MANY_ARMS = 0.85, 1.5, 512  # for m >= 8


class FrugalPlan(msgspec.Struct, frozen=True):
    """Every stage of a run of `frugal-top`."""

    local_sizes: tuple[int, ...]
    """Arms in the largest hand at the start of each local stage, and after the last one."""
    local_pulls: tuple[int, ...]
    """Total pulls of each arm in hand at the end of each local stage."""
    shared_sizes: tuple[int, ...]
    """Open arms at the start of each shared round; after the last one there are none."""
    shared_pulls: tuple[int, ...]
    """Total pulls of each open arm at the end of each shared round.

    After local stages, agents make the pulls of the first round before they hand over. Each then holds as many arms as
    it would be assigned, so this takes no more time, and it saves a round trip.
    """

    @property
    def sizes(self) -> tuple[int, ...]:
        """The paper's n_0, n_1, ...: the arms open at the start of each shared round, and none after the last one."""
        return (*self.shared_sizes, 0)

    @property
    def rounds(self) -> list[tuple[int, int]]:
        """For each shared round, the open arms and the new pulls of each."""
        return list(zip(self.shared_sizes, new_pulls(self.shared_pulls), strict=True))

    def pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """For each stage, the open arms in all hands together and the new pulls of each."""
        hands = [min(problem.n, size * problem.agents) for size in self.local_sizes[: len(self.local_pulls)]]
        new = new_pulls([*self.local_pulls, *self.shared_pulls])
        return list(zip([*hands, *self.shared_sizes], new, strict=True))

    def time(self, agents: int) -> int:
        """Time steps for all stages.

        >>> FrugalPlan(local_sizes=(5,), local_pulls=(), shared_sizes=(10, 2), shared_pulls=(4, 9)).time(agents=2)
        25
        """
        return _time(self.local_sizes, self.shared_sizes, [*self.local_pulls, *self.shared_pulls], agents)


def pulls_share(size: float, m: int, power: float = POWER) -> float:
    """Total pulls of an arm by the time `size` arms are open, up to a factor that is the same for all sizes.

    The local exponent -d log(pulls) / d log(size) is `power` for m = 1. For m >= 8 it rises as the number of open arms
    falls: it is 0.85 while 512 or more are open, and reaches 1.5 at two, in even steps of log(size). In between, both
    ends move in even steps of log(m). While many arms are open, many can be settled wrongly, on every instance. The
    last few arms lie around the border, and the larger m is, the more closely ordered means are spaced there. A
    constant exponent suits only one of the two cases (`benchmarks/frugal_standard.py` shows both).

    >>> [round(pulls_share(size, m=1) / pulls_share(512, m=1), 1) for size in (512, 64, 8, 2)]
    [1.0, 6.8, 45.9, 164.3]
    >>> [round(pulls_share(size, m=8) / pulls_share(512, m=8), 1) for size in (512, 64, 8, 2)]
    [1.0, 7.5, 94.5, 675.6]
    """
    several = min(1.0, math.log2(m) / 3)  # from 0 for m = 1 to 1 for m >= 8
    first = power + (_FIRST_POWER - power) * several
    last = power + (_LAST_POWER - power) * several
    halvings = math.log2(_MANY_ARMS / size)
    rise = (last - first) / (2 * math.log2(_MANY_ARMS / 2))
    return 2 ** (first * halvings + rise * max(0.0, halvings) ** 2)


def most_in_a_hand(n: int, m: int, agents: int, risk: float) -> int:
    """The number u such that some agent's hand holds more than u of the best m arms with probability at most `risk`.

    Hands are dealt by a shuffle, so the number in one hand is hypergeometric; the exact tails of all hands are added.

    >>> most_in_a_hand(n=588, m=1, agents=10, risk=0.001), most_in_a_hand(n=588, m=8, agents=10, risk=0.001)
    (1, 5)
    """
    hand = -(-n // agents)
    counts = np.arange(min(m, hand), max(0, hand + m - n) - 1, -1)
    tails = np.cumsum(hypergeometric(n, m, hand, counts) * agents)  # bounds P(some hand holds at least so many)
    return int(counts[np.argmax(tails > risk)])


def arms_to_hand_over(problem: Problem, risk: float, round_trips: int | None = None, fewest: int = FEWEST_ARMS) -> int:
    """How many arms an agent hands over: twice the number of the best m that it may hold plus 3, and at least 7.

    With few round trips it hands over fewer, since each shared round then has to settle most of the open arms: no more
    than the best m that it may hold if there is only one, and one more for each further round trip, up to three.

    >>> problem = Problem(n=588, m=8, agents=10, horizon=1)
    >>> [arms_to_hand_over(problem, 0.001, round_trips) for round_trips in (1, 2, 3, None)]
    [5, 6, 7, 13]
    """
    most = most_in_a_hand(problem.n, problem.m, problem.agents, risk)
    usual = max(fewest, 2 * most + _SPARE_ARMS)
    if round_trips is None:
        return usual
    more_than_m = problem.m // problem.agents + 1  # from each agent, so that there is something left to decide
    return min(usual, max(most + min(round_trips - 1, _MOST_SPARE_IF_FEW_TRIPS), more_than_m))


@lru_cache(maxsize=256)
def frugal_plan(
    problem: Problem,
    risk: float,
    round_trips: int | None = None,
    *,
    power: float = POWER,
    fewest: int = FEWEST_ARMS,
) -> FrugalPlan:
    """The plan of `frugal-top`, which spends the whole horizon.

    With `round_trips` it takes at most that many, and hands over fewer arms if that is fewer than usual. `power` is the
    exponent for m = 1, and `fewest` the smallest number of arms that an agent hands over.

    >>> plan = frugal_plan(Problem(n=588, m=1, agents=10, horizon=12_000), risk=0.001)
    >>> plan.local_sizes[0], plan.local_sizes[-1], plan.shared_sizes
    (59, 7, (70, 39, 21, 12, 7, 4, 2))
    >>> plan = frugal_plan(Problem(n=588, m=1, agents=10, horizon=12_000), risk=0.001, round_trips=3)
    >>> plan.local_sizes[-1], plan.shared_sizes
    (3, (30, 10, 3))
    """
    stages = _Stages(problem, risk, round_trips, power, fewest)
    most = problem.pull_limit or problem.horizon * problem.agents  # all agents can pull the same arm
    pulls = spend(stages.shares, stages.time, problem.horizon, most)
    # The time that rounding leaves over goes to the last round.
    spare = (problem.horizon - stages.time(pulls)) * problem.agents // stages.shared[-1]
    pulls[-1] = min(most, pulls[-1] + spare)
    local = len(stages.local) - 1
    return FrugalPlan(tuple(stages.local), tuple(pulls[:local]), tuple(stages.shared), tuple(pulls[local:]))


@lru_cache(maxsize=256)
def smallest_frugal_horizon(
    n: int,
    m: int,
    agents: int,
    risk: float,
    round_trips: int | None = None,
    *,
    power: float = POWER,
    fewest: int = FEWEST_ARMS,
) -> int:
    """One pull per arm in the first stage, and the time that the later ones then take."""
    stages = _Stages(Problem(n, m, agents, 1), risk, round_trips, power, fewest)
    return stages.time(_pulls(stages.shares, scale=1))


class NonIIDPlan(msgspec.Struct, frozen=True):
    """Every round of a run of `frugal-top-noniid`."""

    sizes: tuple[int, ...]
    """Open arms at the start of each round."""
    pulls: tuple[int, ...]
    """Total pulls of each open arm by each agent at the end of each round."""


@lru_cache(maxsize=256)
def noniid_plan(problem: Problem) -> NonIIDPlan:
    """The plan of `frugal-top-noniid`: every agent pulls every open arm, and the whole horizon is spent.

    >>> noniid_plan(Problem(n=10, m=1, agents=3, horizon=1_000))
    NonIIDPlan(sizes=(10, 6, 3, 2), pulls=(52, 80, 144, 204))
    """
    sizes = noniid_sizes(problem.n)
    most = -(-problem.pull_limit // problem.agents) if problem.pull_limit else problem.horizon
    pulls = spend(_noniid_shares(sizes, problem.m), partial(_all_agents_time, sizes), problem.horizon, most)
    pulls[-1] = min(most, pulls[-1] + (problem.horizon - _all_agents_time(sizes, pulls)) // sizes[-1])
    return NonIIDPlan(*without_idle(sizes, pulls))


def noniid_sizes(n: int) -> list[int]:
    """Arms open in each round of `frugal-top-noniid`; a short horizon skips some rounds.

    >>> noniid_sizes(10)
    [10, 6, 3, 2]
    """
    return _falling(n, 2, _NONIID_SHRINK)


def smallest_noniid_horizon(n: int, m: int) -> int:
    """One pull per arm by every agent in the first round, and the time that the later ones then take."""
    sizes = noniid_sizes(n)
    return _all_agents_time(sizes, _pulls(_noniid_shares(sizes, m), scale=1))


def _noniid_shares(sizes: list[int], m: int) -> list[float]:
    return [pulls_share(size, m, _NONIID_POWER) for size in sizes]


def _all_agents_time(sizes: list[int], pulls: list[int]) -> int:
    return sum(size * new for size, new in zip(sizes, new_pulls(pulls), strict=True))


class _Stages:
    """The sizes of the stages of `frugal-top`, and the time that given pulls take in them."""

    def __init__(self, problem: Problem, risk: float, round_trips: int | None, power: float, fewest: int) -> None:
        self._agents = agents = problem.agents
        keep = arms_to_hand_over(problem, risk, fewest=fewest)
        if _handed_over(problem, keep) > problem.n / 2:  # sharing all arms at once takes fewer words
            keep = problem.n
        self.shared = shared_sizes(_handed_over(problem, keep), problem.m)
        if round_trips is not None and round_trips < len(self.shared):
            keep = arms_to_hand_over(problem, risk, round_trips)
            self.shared = _even_sizes(_handed_over(problem, keep), round_trips)
        self.local = _local_sizes(-(-problem.n // agents), keep)
        # A local stage gets the pulls for the middle of its step, so that large steps take as much time as small ones.
        middles = [agents * math.sqrt(size * after) for size, after in pairwise(self.local)]
        self.shares = [pulls_share(size, problem.m, power) for size in [*middles, *self.shared]]

    def time(self, pulls: list[int]) -> int:
        """Time steps, from the total pulls at the end of each stage."""
        return _time(self.local, self.shared, pulls, self._agents)


def _time(local: Sequence[int], shared: Sequence[int], pulls: Sequence[int], agents: int) -> int:
    """Time steps, from the sizes of all stages and the total pulls at the end of each."""
    # After local stages, the first shared round is also made by each agent on its own hand.
    alone = len(local) if len(local) > 1 else 0
    new = new_pulls(pulls)
    by_hand = sum(size * more for size, more in zip(local, new[:alone], strict=False))
    together = zip(shared[1:] if alone else shared, new[alone:], strict=True)
    return by_hand + sum(balanced_time(size, more, agents) for size, more in together)


def _handed_over(problem: Problem, keep: int) -> int:
    """The arms that all agents together hand over if each keeps at most `keep`."""
    small, large = divmod(problem.n, problem.agents)  # `large` agents hold one arm more than the others
    return large * min(keep, small + 1) + (problem.agents - large) * min(keep, small)


def spend(shares: list[float], time: Callable[[list[int]], int], horizon: int, most: int) -> list[int]:
    """The most pulls in proportion to `shares` that fit into the horizon; no arm gets more than `most`."""
    low, high = 1.0, float(most + 1)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if time(_pulls(shares, middle, most)) <= horizon else (low, middle)
    return _pulls(shares, low, most)


def _pulls(shares: list[float], scale: float, most: int | None = None) -> list[int]:
    """Total pulls of an arm at the end of each stage: `scale` in the first, never fewer than in the stage before."""
    pulls = [math.floor(scale * share / shares[0] + 1e-9) for share in shares]
    return pulls if most is None else [min(most, total) for total in pulls]


def without_idle(sizes: list[int], pulls: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Leave out rounds without new pulls; the round before settles their arms."""
    busy = [r for r, new in enumerate(new_pulls(pulls)) if new]
    return tuple(sizes[r] for r in busy), tuple(pulls[r] for r in busy)


def shared_sizes(start: int, m: int) -> list[int]:
    """Sizes of shared rounds; for m > 1 they fall in smaller steps around the border.

    >>> shared_sizes(130, m=8)
    [130, 74, 42, 24, 17, 12, 8, 6, 4, 3, 2]
    """
    if m == 1:  # then the last rounds cause hardly any errors
        return _falling(start, 2, _SHARED_SHRINK)
    if start < _BORDER_SIZE * _SHARED_SHRINK:
        return _falling(start, 2, _BORDER_SHRINK)
    steps = round(math.log(start / _BORDER_SIZE, _SHARED_SHRINK))  # the factor is then between 1.5 and 2.3
    return _in_steps(start, _BORDER_SIZE, steps)[:-1] + _falling(_BORDER_SIZE, 2, _BORDER_SHRINK)


def _falling(start: int, end: int, factor: float) -> list[int]:
    """Sizes from `start` to `end`, each smaller than the one before by the same factor: `factor` or slightly more.

    >>> _falling(40, 2, 1.7)
    [40, 22, 12, 7, 4, 2]
    """
    return _in_steps(start, end, int(math.log(start / end) / math.log(factor)) if start > end else 0)


def _in_steps(start: int, end: int, steps: int) -> list[int]:
    ratio = (end / start) ** (1 / steps) if steps else 0.0
    return list(dict.fromkeys([start, *(max(end, round(start * ratio**step)) for step in range(1, steps + 1))]))


def _even_sizes(start: int, rounds: int) -> list[int]:
    """Sizes of a given number of shared rounds: each divides the number of open arms by the same factor, down to 1.

    >>> _even_sizes(70, 3), _even_sizes(70, 1)
    ([70, 17, 4], [70])
    """
    return list(dict.fromkeys(max(2, round(start ** (1 - r / rounds))) for r in range(rounds)))


def _local_sizes(start: int, end: int) -> list[int]:
    """Sizes of the largest hand, from `start` down to `end`: in steps of 8% if it is small, of a third if it is large.

    A stage takes a draw per arm, so most draws are made while hands are large. There, large steps cost no accuracy.

    >>> _local_sizes(10_000, 7)[:5], _local_sizes(59, 7)[:5]
    ([10000, 6666, 4444, 2962, 1974], [59, 51, 44, 38, 33])
    """
    sizes = [start]
    while (size := sizes[-1]) > end:
        factor = min(_MOST_LOCAL_SHRINK, max(_LOCAL_SHRINK, 1 + math.sqrt(size) / 50))
        sizes.append(max(end, min(size - 1, int(size / factor))))
    return sizes
