"""Bounds on the error, the words and the round trips of frugal-top, computed from its plan (docs/frugal-top.md)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.shared.frugal_choice import possible_plans, sizes_to_choose_from, smallest_adaptive_horizon
from collabtop.algorithms.shared.frugal_plan import (
    FrugalPlan,
    most_in_a_hand,
    noniid_plan,
    smallest_frugal_horizon,
    smallest_noniid_horizon,
)
from collabtop.errors import InputError, SettingError
from collabtop.problem import Problem, arm_values, as_means, as_weights, effective_agents, gaps
from collabtop.protocol.messages import Ints, Reals
from collabtop.stats import hypergeometric_tail
from collabtop.validation import whole_number, wrong_value


def frugal_error_bound(
    means: ArrayLike,
    m: int,
    agents: int,
    horizon: int,
    risk: float = 0.001,
    round_trips: int | None = None,
    *,
    adaptive: bool = False,
) -> float:
    """The proven bound on the probability that frugal-top is wrong, at most 1.

    Args:
        means: the true means, one per arm.
        m: number of arms to find (the paper's m).
        agents: number of agents (K).
        horizon: time steps per agent (T).
        risk: the option `risk` of frugal-top; the probability of an unlucky deal is part of the bound.
        round_trips: the option `round_trips` of frugal-top.
        adaptive: the option `adaptive` of frugal-top, for m = 1; the errors of all its plans are added.

    >>> means = [0.9] + [0.5] * 63
    >>> [f"{frugal_error_bound(means, m=1, agents=4, horizon=horizon):.2g}" for horizon in (1_000, 2_000, 4_000)]
    ['0.36', '0.0072', '7.5e-06']
    """
    values = as_means(means)
    if values.ndim != 1:
        raise InputError(
            f"means has {values.ndim} dimensions, but the bound of frugal-top needs one mean per arm", argument="means"
        )
    n = len(values)
    gaps(values, m)  # validates m
    whole_number("agents", agents, least=1)
    if not 0 < risk < 1:
        raise wrong_value("risk", risk, "a probability between 0 and 1 is needed")
    if round_trips is not None:
        whole_number("round_trips", round_trips, least=1)
    problem = Problem(n, m, agents, horizon)
    if problem.mirrored:
        values, problem = 1 - values, problem.inner
    if adaptive and (problem.m > 1 or round_trips is not None):
        raise SettingError("adaptive=True needs m = 1 and no limit on round trips")
    if horizon < (
        smallest_adaptive_horizon(n, agents, risk)
        if adaptive
        else smallest_frugal_horizon(n, problem.m, agents, risk, round_trips)
    ):
        return 1.0
    plans = possible_plans(problem, risk, round_trips, adaptive=adaptive)
    terms = [error_terms(values, problem, plan, risk) for plan in plans]
    return terms[0]._replace(shared=tuple(term for each in terms for term in each.shared)).bound


class ErrorTerms(NamedTuple):
    """The terms of the bound, each a bound on the probability of an event; a term can be above 1."""

    deal: float
    """(a): an agent is dealt more than u of the best arms."""
    local: tuple[float, ...]
    """(b): each local stage drops a best arm."""
    shared: tuple[float, ...]
    """(c): each shared round settles an arm wrongly."""

    @property
    def bound(self) -> float:
        """The sum, at most 1."""
        return min(1.0, self.deal + sum(self.local) + sum(self.shared))


def error_terms(values: Reals, problem: Problem, plan: FrugalPlan, risk: float) -> ErrorTerms:
    """The terms of the bound for any plan, for m <= n / 2; the time that the plan takes is not checked.

    The plan below shares 2,000 arms, keeps 2 of them after 400 pulls and decides after one pull more. For its last
    round, nothing is proved: any of 1,999 arms may be the one that is left.

    >>> plan = FrugalPlan(local_sizes=(2_000,), local_pulls=(), shared_sizes=(2_000, 2), shared_pulls=(400, 401))
    >>> means = np.array([0.6] + [0.5] * 1_999)
    >>> terms = error_terms(means, Problem(n=2_000, m=1, agents=1, horizon=800_002), plan, risk=0.001)
    >>> [round(term, 1) for term in terms.shared]
    [18.3, 36.2]
    """
    instance = _Instance.of(values, problem.m)
    shared = _shared_terms(instance, plan.shared_sizes, plan.shared_pulls)
    if not plan.local_pulls:
        return ErrorTerms(0.0, (), tuple(shared))
    n, m, agents = problem.n, problem.m, problem.agents
    most, hand = most_in_a_hand(n, m, agents, risk), plan.local_sizes[0]  # u, h
    deal = agents * hypergeometric_tail(n, m, hand, most)
    local = []
    for pulls, keep in zip(plan.local_pulls, plan.local_sizes[1:], strict=True):
        room = keep - most + 1  # a best arm is dropped only if so many others in its hand beat it
        local.append(_stage(instance, pulls, room, problem, hand))
    return ErrorTerms(deal, tuple(local), tuple(shared))


def frugal_noniid_error_bound(
    means: ArrayLike,
    m: int,
    agents: int,
    horizon: int,
    coarseness: float = 0.05,
    *,
    weights: Sequence[float] | None = None,
) -> float:
    """The proven bound on the probability that frugal-top-noniid is wrong, at most 1.

    Args:
        means: the true means, one per arm and agent (n x K), or one per arm if all agents see the same.
        m: number of arms to find (the paper's m).
        agents: number of agents (K).
        horizon: time steps per agent (T).
        coarseness: the option `coarseness` of frugal-top-noniid.
        weights: how much each agent counts in the value of an arm; equally, if omitted.

    >>> means = [[0.9, 0.7], *[[0.3, 0.5]] * 15]
    >>> [f"{frugal_noniid_error_bound(means, m=1, agents=2, horizon=horizon):.2g}" for horizon in (500, 2_000)]
    ['0.026', '5.3e-08']
    """
    n = len(gaps(means, m, weights=weights))  # validates means, m and weights
    whole_number("agents", agents, least=1)
    if not 0 <= coarseness < 1:
        raise wrong_value("coarseness", coarseness, "a share of at least 0 and below 1 is needed")
    problem = Problem(n, m, agents, horizon, weights=as_weights(weights, agents))
    if horizon < smallest_noniid_horizon(n, problem.inner.m):
        return 1.0
    plan = noniid_plan(problem.inner)
    counted = effective_agents(weights, agents)
    pulls = [total * counted / (1 + coarseness) for total in plan.pulls]  # rounding makes them count less
    return rounds_error_bound(means, problem, plan.sizes, pulls)


def rounds_error_bound(means: ArrayLike, problem: Problem, sizes: Sequence[int], totals: Sequence[float]) -> float:
    """Part (c) of the bound for any rounds that keep the arms nearest to the border, at most 1.

    Args:
        means: the true means, one per arm, or n x K.
        problem: n and m.
        sizes: open arms at the start of each round.
        totals: pulls of an open arm by the end of each round, by all agents together.

    >>> problem = Problem(n=4, m=1, agents=2, horizon=800)
    >>> round(rounds_error_bound([0.9, 0.5, 0.5, 0.5], problem, sizes=[4, 2], totals=[40, 80]), 6)
    0.002501
    """
    values = arm_values(means, problem.weights)
    if problem.mirrored:
        values, problem = 1 - values, problem.inner
    return min(1.0, sum(_shared_terms(_Instance.of(values, problem.m), sizes, totals)))


def frugal_words_bound(
    problem: Problem, risk: float = 0.001, round_trips: int | None = None, *, adaptive: bool = False
) -> int:
    """The most words that frugal-top can take, for any arms.

    K for the seed, 2 per arm handed over, and in each round 2 per arm and pulling agent, where each agent shares at
    most one arm with the next. While all arms are open, their list is not sent. An adaptive run takes K for the choice.

    >>> frugal_words_bound(Problem(n=588, m=8, agents=10, horizon=30_000))
    834
    """
    plan, *_ = possible_plans(problem, risk, round_trips, adaptive=adaptive)
    sizes = sizes_to_choose_from(plan) if adaptive else [plan.shared_sizes]
    choice = problem.agents if len(sizes) > 1 else 0
    after_first = choice + max(sum(2 * (size + problem.agents - 1) for size in later) for _, *later in sizes)
    if plan.local_pulls:
        return problem.agents + 2 * plan.shared_sizes[0] + after_first
    return plan.shared_sizes[0] + problem.agents - 1 + after_first


def frugal_round_trips_bound(
    problem: Problem, risk: float = 0.001, round_trips: int | None = None, *, adaptive: bool = False
) -> int:
    """The most round trips: one to deal, prune and hand over (or for the first shared round), and one per later round.

    >>> frugal_round_trips_bound(Problem(n=588, m=8, agents=10, horizon=30_000))
    11
    """
    widest, *_ = possible_plans(problem, risk, round_trips, adaptive=adaptive)
    return len(widest.shared_pulls)


class _Instance(NamedTuple):
    """What the bounds need to know about the arms: their gaps, the smallest first."""

    best: Reals
    """x_i, the gaps of the best m arms."""
    others: Reals
    """y_b, the gaps of the others."""
    distinct: Reals
    """The different gaps of the others."""
    nearer: Ints
    """How many of the others have a smaller gap than each of these; and the number of the others."""

    @classmethod
    def of(cls, values: Reals, m: int) -> "_Instance":
        ranked = np.sort(values)[::-1]
        others = _Gaps.of(ranked[m - 1] - ranked[m:])
        return cls((ranked[:m] - ranked[m])[::-1], *others)

    @property
    def border(self) -> float:
        """beta, the smallest gap: that between the ranks m and m + 1."""
        return float(self.others[0])

    def pairs(self, pulls: float) -> tuple[Reals, Reals]:
        """A factor per best arm and one per other arm: products bound P(the other beats the best) after `pulls`.

        d^2 >= x^2 + y^2 - beta^2 for the difference d = x + y - beta of their means.
        """
        return self.best_factors(pulls), np.exp(-pulls * self.others**2)

    def best_factors(self, pulls: float) -> Reals:
        """The factor of each best arm in `pairs`."""
        return np.exp(-pulls * (self.best**2 - self.border**2))

    def beyond(self, pulls: float) -> Reals:
        """The sum of the factors of all others but the g nearest, for each g of `nearer`; in between it is linear.

        >>> instance = _Instance.of(np.array([0.9, 0.5, 0.5, 0.1]), m=1)
        >>> instance.nearer, instance.beyond(0.0)
        (array([0, 2, 3]), array([3., 1., 0.]))
        """
        sums = np.exp(-pulls * self.distinct**2) * np.diff(self.nearer)
        return np.append(np.cumsum(sums[::-1])[::-1], 0.0)


def _stage(instance: _Instance, pulls: int, room: int, problem: Problem, hand: int) -> float:
    """The probability that a local stage drops a best arm, with the best choice of g and of two counts.

    Either a hand holds more than room - count of the g nearest others, a hypergeometric tail that grows with g; or at
    least count of the rest of the hand beat a best arm, which is less likely the larger g is.
    """
    best, sums, others = instance.best_factors(pulls), instance.beyond(pulls), len(instance.others)
    hands = min(problem.m, problem.agents)  # that can hold a best arm

    def with_count(count: int) -> float:
        together = float(best.sum()) * (hand - 1) / (problem.n - 1) / count

        def crowded(g: int) -> float:
            return hands * hypergeometric_tail(problem.n, g, hand, room - count)

        def beaten(g: int) -> float:
            return together * float(np.interp(g, instance.nearer, sums))

        low, high = min(room - count, others), others  # the best g is about where the two terms are equal
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if crowded(middle) < beaten(middle) else (low, middle)
        return min(crowded(g) + beaten(g) for g in (low, high))

    return min(with_count(count) for count in {1, (room + 1) // 2})


def _shared_terms(instance: _Instance, sizes: Sequence[int], totals: Sequence[float]) -> list[float]:
    """(c) of the proof: each shared round settles an arm wrongly; `totals` are the pulls of an arm by the end of it."""
    terms = []
    for keep, pulls in zip([*sizes[1:], 0], totals, strict=True):
        if len(instance.best) == 1:
            terms.append(_best_dropped(instance, max(1, keep), pulls))
        elif keep:
            terms.append(_settled_wrongly(instance, keep, pulls))
        else:
            best, others = instance.pairs(pulls)
            terms.append(float(best.sum() * others.sum()))
    return terms


def _best_dropped(instance: _Instance, beaten_by: int, pulls: float) -> float:
    """(c1): for m = 1, at least `beaten_by` arms beat the best one; all but g of them are not among the g nearest."""
    sums, largest = instance.beyond(pulls), min(beaten_by, len(instance.others)) - 1
    nearest = np.append(instance.nearer[instance.nearer < largest], largest)  # g; between two of them it is monotone
    return float(np.min(np.interp(nearest, instance.nearer, sums) / (beaten_by - nearest)))


def _settled_wrongly(instance: _Instance, keep: int, pulls: float) -> float:
    """(c2): at least keep + 1 - g arms, none of them one of the g with the smallest gaps, are out of order."""
    best, others = _Gaps.of(instance.best), _Gaps(instance.others, instance.distinct, instance.nearer)
    g, border = np.arange(keep + 1), instance.border
    nearest = np.argsort(np.concatenate([best.each[:keep], others.each[:keep]]), kind="stable")[:keep]
    of_best = np.append(0, np.cumsum(nearest < len(best.each[:keep])))  # how many of the g nearest are among the best

    def in_best(gaps: Reals) -> Reals:
        return np.exp(-pulls * (gaps**2 - border**2))  # as in `pairs`

    def in_others(gaps: Reals) -> Reals:
        return np.exp(-pulls * gaps**2)

    def triple(gaps: Reals) -> Reals:
        return np.exp(-pulls / 3 * (gaps + border) ** 2)

    def middle(gaps: Reals) -> Reals:
        return np.exp(-pulls * 4 / 3 * (gaps**2 - border**2))

    def side(gaps: Reals) -> Reals:
        return np.exp(-pulls / 3 * ((gaps + border) ** 2 - 4 * border**2))

    sums = best.beyond(in_best, keep)[of_best] * others.total(in_others)
    sums += best.total(in_best) * others.beyond(in_others, keep)[g - of_best]
    sums += best.total(middle) * others.total(side) * others.beyond(triple, keep)[g - of_best]
    sums += others.total(middle) * best.total(side) * best.beyond(triple, keep)[of_best]
    return float(np.min(sums / (keep + 1 - g)))


class _Gaps(NamedTuple):
    """Gaps, the smallest first, for sums of functions of them; each different gap is evaluated once."""

    each: Reals
    distinct: Reals
    nearer: Ints
    """How many are smaller than each distinct one; and the number of all."""

    @classmethod
    def of(cls, gaps: Reals) -> "_Gaps":
        starts = np.flatnonzero(np.diff(gaps, prepend=-1.0))
        return cls(gaps, gaps[starts], np.append(starts, len(gaps)))

    def total(self, function: Callable[[Reals], Reals]) -> float:
        """The sum over all."""
        return float(function(self.distinct) @ np.diff(self.nearer))

    def beyond(self, function: Callable[[Reals], Reals], most: int) -> Reals:
        """The sums over all but the g nearest, for g up to `most`.

        >>> _Gaps.of(np.array([1.0, 2.0, 2.0, 5.0])).beyond(np.square, 2)
        array([34., 33., 29.])
        """
        near = function(self.each[:most])
        rest = function(self.distinct) @ np.diff(np.maximum(self.nearer, len(near)))
        return np.asarray(rest + np.append(np.cumsum(near[::-1])[::-1], 0.0))
