"""A second implementation of the algorithms, to compare error rates with: plain loops, and no code of the package.

It is written from the paper, its corrections (docs/errata.md) and docs/frugal-top.md, to be read and not to be fast.
There are no agents and no messages, only what decides the answer: how often an arm is pulled before which decision.
Rewards are 0 or 1. Successes are whole numbers, and a tie is broken by a random number that an arm gets in each round:
a value is the pair (successes, random number), and so is the difference of two values. Pairs are compared exactly. If
agents have weights, each success counts as much as its agent, and sums are compared to nine digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

Table = Sequence[Sequence[float]]
"""One row per arm with its mean at each agent; all means of a row are equal for IID arms."""
Value = tuple[float, float]
Weights = Sequence[float] | None
"""How much each agent counts in the value of an arm; None: all count the same."""


def answer(
    algorithm: str, table: Table, m: int, horizon: int, rng: np.random.Generator, weights: Weights = None
) -> set[int]:
    """The m arms that the algorithm returns in one run."""
    n = len(table)
    if m == n:
        return set(range(n))
    if n < 2 * m:  # look for the worst n - m arms, with mirrored rewards
        mirrored = [[1 - mean for mean in row] for row in table]
        return set(range(n)) - answer(algorithm, mirrored, n - m, horizon, rng, weights)
    result = ALGORITHMS[algorithm](table, m, horizon, rng, *([] if weights is None else [weights]))
    assert len(result) == m
    return result


class Run:
    """The successes of each arm, the arms still open, and those accepted."""

    def __init__(self, table: Table, m: int, rng: np.random.Generator, weights: Weights = None) -> None:
        self.table, self.m, self.rng = table, m, rng
        self.weights = weights or [1] * len(table[0])
        self.successes = [0.0] * len(table)
        self.open = list(range(len(table)))
        self.accepted: set[int] = set()

    def pull(self, arm: int, times: int) -> None:
        """One agent pulls an arm; for IID arms it does not matter which."""
        self.successes[arm] += int(self.rng.binomial(times, self.table[arm][0]))

    def pull_at_every_agent(self, arm: int, times: int) -> None:
        for mean, weight in zip(self.table[arm], self.weights, strict=True):
            self.successes[arm] += weight * int(self.rng.binomial(times, mean))

    def decide(self, keep: int) -> None:
        """Keep the open arms with the smallest gaps; of the others, accept those that rank m_r or better."""
        left = self.m - len(self.accepted)  # m_r
        value = {arm: (round(self.successes[arm], 9), self.rng.random()) for arm in self.open}
        ranked = sorted(self.open, key=lambda arm: value[arm], reverse=True)  # sigma_r
        best, others = ranked[:left], ranked[left:]
        gap: dict[int, Value] = {}
        for arm in best:
            gap[arm] = difference(value[arm], value[others[0]])
        for arm in others:
            gap[arm] = difference(value[best[-1]], value[arm])
        nearest = sorted(self.open, key=lambda arm: gap[arm])  # pi_r
        self.accepted |= {arm for arm in nearest[keep:] if arm in best}
        self.open = nearest[:keep]
        self.stop_if_nothing_is_left_to_decide()

    def stop_if_nothing_is_left_to_decide(self) -> None:
        left = self.m - len(self.accepted)
        if left == len(self.open):
            self.accepted |= set(self.open)
        if left in (0, len(self.open)):
            self.open = []


def difference(larger: Value, smaller: Value) -> Value:
    return round(larger[0] - smaller[0], 9), larger[1] - smaller[1]


def halved(n: int) -> list[int]:
    """n_0, ..., n_R with R = ceil(log2 n), and n_R = 0."""
    rounds = math.ceil(math.log2(n))
    return [n // 2**r for r in range(rounds)] + [0]


def largest(works: Callable[[int], bool], start: int) -> int:
    """The largest integer that works, if `start` does and all above some limit do not."""
    step = 1
    while works(start + step):
        step *= 2
    while step:
        while works(start + step):
            start += step
        step //= 2
    return start


# -- the paper's algorithms and its baselines


def uniform(table: Table, m: int, horizon: int, rng: np.random.Generator, weights: Weights = None) -> set[int]:
    run = Run(table, m, rng, weights)
    for arm in run.open:
        run.pull_at_every_agent(arm, horizon // len(table))
    run.decide(keep=0)
    return run.accepted


def kzz(table: Table, m: int, horizon: int, rng: np.random.Generator) -> set[int]:
    n, agents = len(table), len(table[0])
    sizes = [size for size in halved(n) if size > 1] + [0]

    def fits(alpha: int) -> bool:
        return sum(math.ceil(size * (alpha // size) / agents) for size in sizes[:-1]) <= horizon

    alpha = largest(fits, n)
    run = Run(table, m, rng)
    for size, keep in pairwise(sizes):
        for arm in run.open:
            run.pull(arm, alpha // size)
        if run.open:
            run.decide(keep)
    return run.accepted


def collab_top_iid(table: Table, m: int, horizon: int, rng: np.random.Generator) -> set[int]:
    """Algorithms 1 to 3 with the printed T_r: it does not matter to the answer where an arm is pulled."""
    n, agents, sizes = len(table), len(table[0]), halved(len(table))
    totals = [0] + [horizon * agents * 2**r // (4 * n * (len(sizes) - 1)) for r in range(1, len(sizes))]
    run = Run(table, m, rng)
    for r in range(len(sizes) - 1):
        for arm in run.open:
            run.pull(arm, totals[r + 1] - totals[r])
        if run.open:
            run.decide(sizes[r + 1])
    return run.accepted


def collab_top_iid_full(table: Table, m: int, horizon: int, rng: np.random.Generator) -> set[int]:
    """The same, but the time left is divided over the rounds left; in a local round the largest hand takes longest."""
    agents, sizes = len(table[0]), halved(len(table))
    owner = [int(rng.integers(agents)) for _ in table]
    run, local, time_left = Run(table, m, rng), True, horizon
    for r in range(len(sizes) - 1):
        if not run.open:
            break
        share = time_left // sum(size >= 2 for size in sizes[r:])
        hands = [sum(owner[arm] == agent for arm in run.open) for agent in range(agents)]
        local = local and max(hands) <= 2 * min(hands)
        pulls = share // max(hands) if local else share * agents // len(run.open)
        time_left -= pulls * max(hands) if local else math.ceil(len(run.open) * pulls / agents)
        for arm in run.open:
            run.pull(arm, pulls)
        run.decide(sizes[r + 1])
    return run.accepted


def collab_top_noniid(
    table: Table, m: int, horizon: int, rng: np.random.Generator, weights: Weights = None
) -> set[int]:
    n, agents, sizes = len(table), len(table[0]), halved(len(table))
    totals = [0] + [horizon * agents * 2**r // (2 * n * (len(sizes) - 1)) // agents for r in range(1, len(sizes))]
    run = Run(table, m, rng, weights)
    for r in range(len(sizes) - 1):
        for arm in run.open:
            run.pull_at_every_agent(arm, totals[r + 1] - totals[r])
        if run.open:
            run.decide(sizes[r + 1])
    return run.accepted


def collab_top_noniid_full(
    table: Table, m: int, horizon: int, rng: np.random.Generator, weights: Weights = None
) -> set[int]:
    sizes, time_left = halved(len(table)), horizon
    run = Run(table, m, rng, weights)
    for r in range(len(sizes) - 1):
        if not run.open:
            break
        pulls = time_left // sum(size >= 2 for size in sizes[r:]) // len(run.open)
        time_left -= pulls * len(run.open)
        for arm in run.open:
            run.pull_at_every_agent(arm, pulls)
        run.decide(sizes[r + 1])
    return run.accepted


def sar(table: Table, m: int, horizon: int, rng: np.random.Generator) -> set[int]:
    n = len(table)
    log_bar = 0.5 + sum(1 / i for i in range(2, n + 1))
    run, before = Run(table, m, rng), 0
    for phase in range(1, n):
        total = math.ceil((horizon - n) / (log_bar * (n + 1 - phase)))
        for arm in run.open:
            run.pull(arm, total - before)
        before = total
        if run.open:
            run.decide(keep=len(run.open) - 1 if phase < n - 1 else 0)
    return run.accepted


def sequential_halving(table: Table, m: int, horizon: int, rng: np.random.Generator) -> set[int]:
    rounds = math.ceil(math.log2(len(table)))
    best = list(range(len(table)))
    for _ in range(rounds):
        run = Run(table, m, rng)  # every round starts from nothing
        for arm in best:
            run.pull(arm, horizon // (len(best) * rounds))
        value = {arm: (run.successes[arm], rng.random()) for arm in best}
        best = sorted(best, key=lambda arm: value[arm], reverse=True)[: math.ceil(len(best) / 2)]
    return set(best)


# -- baselines of the literature


def nsar(table: Table, m: int, horizon: int, rng: np.random.Generator, power: float = 0.85) -> set[int]:
    n = len(table)
    scale = 2**-power + sum(i**-power for i in range(2, n + 1))
    run, before = Run(table, m, rng), 0
    for phase in range(1, n):
        total = math.ceil((horizon - n) / (scale * (n + 1 - phase) ** power))
        for arm in run.open:
            run.pull(arm, total - before)
        before = total
        if run.open:
            run.decide(keep=len(run.open) - 1 if phase < n - 1 else 0)
    return run.accepted


def batched_sar(table: Table, m: int, horizon: int, rng: np.random.Generator, rounds: int = 3) -> set[int]:
    n, agents = len(table), len(table[0])
    sizes = [n]  # the largest s with s^R <= n^(R - r), but at least 2
    for r in range(1, rounds):
        size = max(2, largest(lambda s, power=n ** (rounds - r): s**rounds <= power, 1))  # type: ignore[misc]
        if size < sizes[-1]:
            sizes.append(size)

    def fits(alpha: int) -> bool:
        totals = [alpha // size for size in sizes]
        new = [after - before for before, after in pairwise([0, *totals])]
        return sum(math.ceil(size * pulls / agents) for size, pulls in zip(sizes, new, strict=True)) <= horizon

    alpha, before = largest(fits, n), 0
    run = Run(table, m, rng)
    for size, keep in pairwise([*sizes, 0]):
        for arm in run.open:
            run.pull(arm, alpha // size - before)
        before = alpha // size
        if run.open:
            run.decide(keep)
    return run.accepted


def best_by_halving(arms: list[int], sizes: list[int], time: int, table: Table, rng: np.random.Generator) -> int:
    """Stages that take equal time; `sizes` are those of the largest hand. Arms are in random order, the first stays."""
    run, rounds = Run(table, 1, rng), len(sizes) - 1
    for size, after in pairwise(sizes):
        for arm in arms:
            run.pull(arm, time // (size * rounds))
        arms = sorted(arms, key=lambda arm: run.successes[arm], reverse=True)[:after]
        arms.sort(key=lambda arm: rng.random())
    return arms[0]


def down_to_one(hand: int) -> list[int]:
    sizes = [hand]
    while sizes[-1] > 1:
        sizes.append(math.ceil(sizes[-1] / 2))
    return sizes


def hkk(table: Table, m: int, horizon: int, rng: np.random.Generator) -> set[int]:
    n, agents = len(table), len(table[0])
    part, half = min(n, math.ceil(6 * n / math.sqrt(agents))), horizon // 2
    named: dict[int, list[float]] = {}
    for _ in range(agents):
        arms = [int(arm) for arm in rng.permutation(n)[:part]]
        arm = best_by_halving(arms, down_to_one(part), half, table, rng)
        named.setdefault(arm, []).append(rng.binomial(horizon - half, table[arm][0]) / (horizon - half))
    often = [arm for arm, means in named.items() if len(means) ** 2 > agents] or list(named)
    return {max(often, key=lambda arm: (round(sum(named[arm]) / len(named[arm]), 9), rng.random()))}


def tzz(table: Table, m: int, horizon: int, rng: np.random.Generator, rounds: int = 3) -> set[int]:
    n, agents = len(table), len(table[0])
    half = horizon // 2
    fresh = (horizon - half) // rounds
    dealt = [int(arm) for arm in rng.permutation(n)]
    hands = [dealt[agent::agents] for agent in range(agents) if dealt[agent::agents]]
    sizes = down_to_one(len(hands[0]))
    testers = [best_by_halving(hand, sizes, half, table, rng) for hand in hands]
    successes, pulls = dict.fromkeys(testers, 0), dict.fromkeys(testers, 0)
    for _ in range(rounds):
        for arm in testers:
            successes[arm] += int(rng.binomial(fresh, table[arm][0]))
            pulls[arm] += fresh
        mean = {arm: successes[arm] / pulls[arm] for arm in successes}
        radius = {arm: math.sqrt(math.log(200 * agents * rounds) / 2 / pulls[arm]) for arm in pulls}
        lowest = max(mean[arm] - radius[arm] for arm in mean)
        successes = {arm: count for arm, count in successes.items() if mean[arm] + radius[arm] >= lowest}
        pulls = {arm: pulls[arm] for arm in successes}
        if len(successes) == 1:
            break
        order = [int(arm) for arm in rng.permutation(list(successes))]
        testers = [order[agent % len(order)] for agent in range(agents)]
    return {max(successes, key=lambda arm: (round(successes[arm] / pulls[arm], 9), rng.random()))}


FED_ELIM_DELTA = 0.9
"""Large, so that fed-elim drops arms early and errs often enough to be compared."""


class OpenArms:
    """The arms that are open for all agents together, or for one agent, with fed-elim's rule for settling them."""

    def __init__(self, n: int, m: int) -> None:
        self.open, self.accepted, self.m = list(range(n)), set[int](), m

    def settle(self, mean: dict[int, float], radius: float, rng: np.random.Generator) -> None:
        ranked = self.ranked(mean, rng)
        left = self.m - len(self.accepted)
        best, others = ranked[:left], ranked[left:]
        lowest, highest = mean[best[-1]], mean[others[0]]
        accepted = [arm for arm in best if mean[arm] > highest + 2 * radius]
        rejected = [arm for arm in others if mean[arm] < lowest - 2 * radius]
        self.accepted |= set(accepted)
        self.open = [arm for arm in self.open if arm not in accepted and arm not in rejected]
        left = self.m - len(self.accepted)
        if left == len(self.open):
            self.accepted |= set(self.open)
        if left in (0, len(self.open)):
            self.open = []

    def guess(self, mean: dict[int, float], rng: np.random.Generator) -> set[int]:
        return self.accepted | set(self.ranked(mean, rng)[: self.m - len(self.accepted)])

    def ranked(self, mean: dict[int, float], rng: np.random.Generator) -> list[int]:
        chance = {arm: rng.random() for arm in self.open}
        return sorted(self.open, key=lambda arm: (round(mean[arm], 9), chance[arm]), reverse=True)


def fed_elim_both(
    table: Table, m: int, horizon: int, rng: np.random.Generator, weights: Weights
) -> tuple[set[int], set[int]]:
    """The best arms of all agents together, and those of the first agent; of the others, only the pulls matter."""
    n, agents = len(table), len(table[0])
    shares = [weight / sum(weights) for weight in weights] if weights else [1 / agents] * agents
    everyone, own = OpenArms(n, m), [OpenArms(n, m) for _ in range(agents)]
    successes, pulls = np.zeros((agents, n), np.int64), np.zeros((agents, n), np.int64)

    def pull(agent: int, arm: int, total: int) -> None:
        successes[agent, arm] += rng.binomial(total - pulls[agent, arm], table[arm][agent])
        pulls[agent, arm] = total

    def local_mean(agent: int) -> dict[int, float]:
        return {arm: successes[agent, arm] / max(1, pulls[agent, arm]) for arm in range(n)}

    def settle_own(agent: int, total: int) -> None:
        if own[agent].open:
            evidence = math.log(8 * n * agents * total**2 / FED_ELIM_DELTA)
            own[agent].settle(local_mean(agent), math.sqrt(evidence / (2 * total)), rng)

    t, time_left, mean = 0, horizon, dict[int, float]()
    while everyone.open and n * max(1, 2 * t) <= horizon:
        t = max(1, 2 * t)
        for agent in range(agents):
            for arm in {*everyone.open, *own[agent].open}:
                pull(agent, arm, t)
            settle_own(agent, t)
        mean = {
            arm: sum(share * successes[agent, arm] for agent, share in enumerate(shares)) / t for arm in everyone.open
        }
        # The variance of the mean of all agents is 1 / 4 t times the sum of squared shares, at most.
        squared = sum(share**2 for share in shares)
        everyone.settle(mean, math.sqrt(squared * math.log(8 * n * t**2 / FED_ELIM_DELTA) / (2 * t)), rng)
    time_left = horizon - n * t
    while own[0].open and len(own[0].open) * t <= time_left:
        time_left -= len(own[0].open) * t
        t *= 2
        for arm in own[0].open:
            pull(0, arm, t)
        settle_own(0, t)
    return everyone.guess(mean, rng), own[0].guess(local_mean(0), rng)


def fed_elim(table: Table, m: int, horizon: int, rng: np.random.Generator, weights: Weights = None) -> set[int]:
    return fed_elim_both(table, m, horizon, rng, weights)[0]


def fed_elim_local(table: Table, m: int, horizon: int, rng: np.random.Generator, weights: Weights = None) -> set[int]:
    return fed_elim_both(table, m, horizon, rng, weights)[1]


# -- frugal-top


def weight(size: float, m: int, single: float) -> float:
    """Pulls of an arm by the time `size` arms are open, up to a factor.

    For m = 1 the exponent is `single`. For m >= 8 it is .85 at 512 arms and above, and rises to 1.5 at 2 in even steps
    of log(size). In between, both ends move from `single` in even steps of log(m).
    """
    moved = min(math.log(m) / math.log(8), 1.0)
    first, last = (1 - moved) * single + moved * 0.85, (1 - moved) * single + moved * 1.5
    # The integral of the exponent over log2(size), from 512 down to `size`.
    down = math.log2(512 / size)
    return float(2 ** (first * down + (last - first) / 8 / 2 * max(0.0, down) ** 2))


def even_ratio(start: int, end: int, steps: int) -> list[int]:
    """Sizes from `start` to `end` in so many steps of the same ratio, each once."""
    sizes = [start]
    for step in range(1, steps + 1):
        size = max(end, round(start * (end / start) ** (step / steps)))
        if size != sizes[-1]:
            sizes.append(size)
    return sizes


def steps_of(start: int, factor: float) -> int:
    """As many steps from `start` to 2 as have a ratio of at least `factor`."""
    return int(math.log(start / 2) / math.log(factor)) if start > 2 else 0


def proportional(weights: list[float], time: Callable[[list[int]], int], horizon: int, most: int) -> list[int]:
    """Total pulls by the end of each stage, in proportion to the weights: by bisection, the most that time allows."""

    def totals(scale: float) -> list[int]:
        return [math.floor(scale * each / weights[0] + 1e-9) for each in weights]

    low, high = 1.0, most + 1.0
    while high - low > 1e-13 * low:
        middle = (low + high) / 2
        if time(totals(middle)) <= horizon:
            low = middle
        else:
            high = middle
    return totals(low)


class FrugalStages(NamedTuple):
    """The stages of frugal-top, as docs/frugal-top.md describes them."""

    local: list[int]
    """Arms in the largest hand at the start of each local stage, and after the last one."""
    shared: list[int]
    """Open arms at the start of each shared round."""
    totals: list[int]
    """Total pulls of an arm by the end of each stage: the local ones, then the shared ones."""


def frugal_stages(n: int, m: int, agents: int, horizon: int) -> FrugalStages:
    hands = [len(range(agent, n, agents)) for agent in range(agents)]
    room = max(7, 2 * most_of_the_best(n, m, agents) + 3)
    kept = sum(min(room, hand) for hand in hands)
    local = local_sizes(hands[0], room) if kept <= n / 2 else hands[:1]
    alone = len(local) > 1
    shared = shared_sizes(kept if alone else n, m)
    middles = [agents * math.sqrt(before * after) for before, after in pairwise(local)]

    def time(totals: list[int]) -> int:
        needed, before = 0, 0
        for stage, total in enumerate(totals):
            if alone and stage < len(local):  # each agent pulls its own hand, and the last time before it hands over
                needed += local[stage] * (total - before)
            else:
                needed += math.ceil(shared[stage - len(local) + 1] * (total - before) / agents)
            before = total
        return needed

    totals = proportional([weight(size, m, 0.92) for size in [*middles, *shared]], time, horizon, horizon * agents)
    totals[-1] += (horizon - time(totals)) * agents // shared[-1]
    return FrugalStages(local, shared, totals)


def frugal_top(table: Table, m: int, horizon: int, rng: np.random.Generator) -> set[int]:
    n, agents = len(table), len(table[0])
    dealt = [int(arm) for arm in rng.permutation(n)]
    hands = [dealt[agent::agents] for agent in range(agents)]
    local, shared, totals = frugal_stages(n, m, agents, horizon)
    run, before = Run(table, m, rng), 0
    for size, total in zip(local[1:], totals, strict=False):
        for k, hand in enumerate(hands):
            for arm in hand:
                run.pull(arm, total - before)
            hands[k] = sorted(hand, key=lambda arm: (run.successes[arm], rng.random()), reverse=True)[:size]
        before = total
    run.open = [arm for hand in hands for arm in hand]
    for total, keep in zip(totals[len(local) - 1 :], [*shared[1:], 0], strict=True):
        for arm in run.open:
            run.pull(arm, total - before)
        before = total
        if run.open:
            run.decide(keep)
    return run.accepted


def most_of_the_best(n: int, m: int, agents: int) -> int:
    """The smallest u for which some hand holds more than u of the best m with probability at most .001, by a union."""
    hand = math.ceil(n / agents)

    def more_than(u: int) -> float:
        ways = (math.comb(m, x) * math.comb(n - m, hand - x) for x in range(u + 1, min(m, hand) + 1))
        return agents * sum(ways) / math.comb(n, hand)

    return next(u for u in range(m + 1) if more_than(u) <= 0.001)


def local_sizes(hand: int, room: int) -> list[int]:
    """Each stage divides a hand of s arms by 1 + sqrt(s) / 50, but by 1.08 at least and 1.5 at most."""
    sizes = [hand]
    while sizes[-1] > room:
        factor = min(max(1 + math.sqrt(sizes[-1]) / 50, 1.08), 1.5)
        sizes.append(max(room, min(sizes[-1] - 1, math.floor(sizes[-1] / factor))))
    return sizes


def shared_sizes(start: int, m: int) -> list[int]:
    if m == 1:
        return even_ratio(start, 2, steps_of(start, 1.75))
    if start < 42:
        return even_ratio(start, 2, steps_of(start, 1.4))
    return even_ratio(start, 24, round(math.log(start / 24, 1.75)))[:-1] + even_ratio(24, 2, steps_of(24, 1.4))


def noniid_rounds(n: int, m: int, horizon: int) -> list[tuple[int, int]]:
    """Open arms at the start of each round of frugal-top-noniid, and their total pulls by each agent at its end."""
    sizes = even_ratio(n, 2, steps_of(n, 1.5))

    def time(totals: list[int]) -> int:
        return sum(size * (total - before) for size, total, before in zip(sizes, totals, [0, *totals], strict=False))

    totals = proportional([weight(size, m, 0.85) for size in sizes], time, horizon, horizon)
    totals[-1] += (horizon - time(totals)) // sizes[-1]
    return [(size, total) for size, total, before in zip(sizes, totals, [0, *totals], strict=False) if total > before]


def frugal_top_noniid(
    table: Table, m: int, horizon: int, rng: np.random.Generator, weights: Weights = None
) -> set[int]:
    """With exact means: rounding is no part of the comparison."""
    rounds = noniid_rounds(len(table), m, horizon)
    run, before = Run(table, m, rng, weights), 0
    for (_, total), keep in zip(rounds, [*(size for size, _ in rounds[1:]), 0], strict=True):
        for arm in run.open:
            run.pull_at_every_agent(arm, total - before)
        before = total
        if run.open:
            run.decide(keep)
    return run.accepted


LIARS = 1


def robust_top(table: Table, m: int, horizon: int, rng: np.random.Generator) -> set[int]:
    """As frugal-top-noniid, with honest agents, but the smallest and the largest count of each arm are left out."""
    rounds = noniid_rounds(len(table), m, horizon)
    run, before = Run(table, m, rng), 0
    by_agent = [[0] * len(row) for row in table]
    for (_, total), keep in zip(rounds, [*(size for size, _ in rounds[1:]), 0], strict=True):
        for arm in run.open:
            for agent, mean in enumerate(table[arm]):
                by_agent[arm][agent] += int(rng.binomial(total - before, mean))
            run.successes[arm] = sum(sorted(by_agent[arm])[LIARS:-LIARS])
        before = total
        if run.open:
            run.decide(keep)
    return run.accepted


# -- paired-top, on candidates without examples


def paired_rounds(n: int, agents: int, horizon: int) -> list[tuple[int, int]]:
    """Open arms at the start of each round, and their total pulls at its end."""
    sizes = [n]
    while sizes[-1] > 2:
        sizes.append(max(2, min(sizes[-1] - 1, math.floor(sizes[-1] / 1.25))))

    def time(totals: list[int]) -> int:
        before = [0, *totals]
        return sum(
            math.ceil(size * (total - b) / agents) for size, total, b in zip(sizes, totals, before, strict=False)
        )

    def growing(power: float) -> list[int]:
        """From one pull on, as size^-power."""
        return [math.floor((n / size) ** power + 1e-9) for size in sizes]

    if time(growing(1.1)) <= horizon:
        totals = proportional([size**-1.1 for size in sizes], time, horizon, horizon * agents)
    else:  # a short horizon: the largest power that fits
        power = 1.1 * largest(lambda step: step < 1_024 and time(growing(1.1 * step / 1_024)) <= horizon, 0) / 1_024
        totals = growing(power)
    return list(zip(sizes, totals, strict=True))


def paired_top(table: Table, m: int, horizon: int, rng: np.random.Generator) -> set[int]:
    rounds = paired_rounds(len(table), len(table[0]), horizon)
    run, before = Run(table, m, rng), 0
    for (_, total), keep in zip(rounds, [*(size for size, _ in rounds[1:]), 0], strict=True):
        for arm in run.open:
            run.pull(arm, total - before)
        before = total
        if run.open:
            run.decide(keep)
    return run.accepted


ALGORITHMS: dict[str, Callable[..., set[int]]] = {
    "uniform": uniform,
    "kzz": kzz,
    "kzz-balanced": kzz,
    "collab-top-iid": collab_top_iid,
    "collab-top-iid full": collab_top_iid_full,
    "collab-top-noniid": collab_top_noniid,
    "collab-top-noniid full": collab_top_noniid_full,
    "sar": sar,
    "sequential-halving": sequential_halving,
    "nsar": nsar,
    "batched-sar": batched_sar,
    "hkk": hkk,
    "tzz": tzz,
    "fed-elim": fed_elim,
    "fed-elim local": fed_elim_local,
    "frugal-top": frugal_top,
    "frugal-top-noniid": frugal_top_noniid,
    "robust-top": robust_top,
    "paired-top": paired_top,
}
