"""The error bound of frugal-top, term by term, against the errors of simulated runs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from collabtop.algorithms.shared.frugal_bound import ErrorTerms, error_terms, rounds_error_bound
from collabtop.algorithms.shared.frugal_plan import FrugalPlan, frugal_plan, smallest_frugal_horizon
from collabtop.problem import Problem
from tests.support.frugal_simulation import first_errors, spaced_plan

FALSE_ALARM = 1e-7  # of one comparison; there are about 250
RISK = 0.01


class Setting(NamedTuple):
    """Arms, the best first, and a plan."""

    means: NDArray[np.float64]
    m: int
    agents: int
    plan: FrugalPlan


def shared(groups: list[tuple[int, float]], m: int, sizes: list[int], pulls: list[int]) -> Setting:
    """A plan without local stages."""
    return Setting(arms(groups), m, 1, spaced_plan(sizes, pulls))


def local(groups: list[tuple[int, float]], m: int, agents: int, sizes: tuple[list[int], list[int]], pulls: list[int]):
    """A plan with local stages: sizes of hands, then sizes of shared rounds."""
    hands, rounds = sizes
    alone = len(hands) - 1
    return Setting(
        arms(groups), m, agents, FrugalPlan(tuple(hands), tuple(pulls[:alone]), tuple(rounds), tuple(pulls[alone:]))
    )


def usual(means: NDArray[np.float64], m: int, agents: int, horizon: int, round_trips: int | None = None) -> Setting:
    """The plan of frugal-top itself."""
    return Setting(means, m, agents, frugal_plan(Problem(len(means), m, agents, horizon), RISK, round_trips))


def arms(groups: list[tuple[int, float]]) -> NDArray[np.float64]:
    return np.repeat([mean for _, mean in groups], [count for count, _ in groups])


LADDER = np.linspace(0.9, 0.1, 24)
EVEN = [(1, 0.75), (63, 0.45)]
EIGHT = [(8, 0.8), (56, 0.4)]
SETTINGS = {
    # The last round of this plan is wrong in a tenth of the runs. A union over the two arms that are left gives .018.
    "two of 2,000 left": shared([(1, 0.6), (1_999, 0.5)], 1, [2_000, 2], [400, 401]),
    "two of 200 left": shared([(1, 0.7), (199, 0.5)], 1, [200, 2], [120, 121]),
    "three of 60 left": shared([(1, 0.8), (59, 0.5)], 1, [60, 3], [60, 61]),
    "one decision": shared([(1, 0.7), (1, 0.5)], 1, [2], [60]),
    "one decision of many": shared([(1, 0.8), (30, 0.5)], 1, [31], [70]),
    "halving": shared([(1, 0.8), (31, 0.5)], 1, [32, 16, 8, 4, 2], [12, 24, 48, 96, 192]),
    "halving, few pulls": shared([(1, 0.9), (31, 0.4)], 1, [32, 16, 8, 4, 2], [3, 6, 12, 24, 48]),
    "half of 200 at once": shared([(1, 0.7), (199, 0.4)], 1, [200, 100], [20, 120]),
    "a near rival": shared([(1, 0.7), (1, 0.6), (20, 0.3)], 1, [22, 4], [30, 400]),
    "near rivals kept": shared([(1, 0.7), (5, 0.65), (30, 0.3)], 1, [36, 8, 6], [25, 100, 3_000]),
    "ladder, one": shared([(1, mean) for mean in LADDER], 1, [24, 8, 3], [60, 300, 4_000]),
    "ladder, four": shared([(1, mean) for mean in LADDER], 4, [24, 12, 6, 3], [100, 400, 2_000, 5_000]),
    "two of two groups": shared([(2, 0.7), (2, 0.4)], 2, [4], [60]),
    "two groups, two rounds": shared([(4, 0.8), (8, 0.4)], 4, [12, 6], [30, 60]),
    "two groups, all at once": shared([(6, 0.75), (18, 0.45)], 6, [24], [120]),
    "best arms apart": shared([(1, 0.95), (1, 0.85), (1, 0.7), (9, 0.4)], 3, [12, 6, 3], [40, 80, 160]),
    "others apart": shared([(3, 0.8), (1, 0.55), (8, 0.2)], 3, [12, 4, 2], [30, 100, 250]),
    "half are wanted": shared([(10, 0.8), (10, 0.5)], 10, [20, 10, 4], [80, 160, 300]),
    "triples matter": shared([(2, 0.9), (2, 0.7), (4, 0.5), (12, 0.3)], 2, [20, 5, 2], [50, 200, 500]),
    "one trip": local(EVEN, 1, 4, ([16, 8, 4, 1], [4]), [20, 60, 120, 240]),
    "hands of 16": local(EVEN, 1, 4, ([16, 12, 9, 7], [28, 7, 2]), [15, 25, 40, 70, 120, 240]),
    "hands of 16, few pulls": local([(1, 0.95), (63, 0.4)], 1, 4, ([16, 8, 4], [16, 4]), [4, 8, 16, 32]),
    "eight best in hands": local(EIGHT, 8, 4, ([16, 12, 9], [36, 12, 4]), [20, 40, 80, 150, 250]),
    "a large hand": local([(1, 0.8), (399, 0.5)], 1, 2, ([200, 100, 30, 5], [10, 3]), [15, 30, 80, 200, 300]),
    "hands that differ": local([(2, 0.9), (48, 0.5)], 2, 7, ([8, 5], [35, 5]), [40, 60, 120]),
    "usual plan, one": usual(arms(EVEN), 1, 4, 1_600),
    "usual plan, three": usual(arms([(3, 0.8), (117, 0.4)]), 3, 4, 3_000),
    "usual plan, ladder": usual(LADDER, 2, 3, 60_000),
    "two round trips": usual(arms(EVEN), 1, 4, 2_000, round_trips=2),
    "three round trips, eight": usual(arms(EIGHT), 8, 4, 4_000, round_trips=3),
}


def test_there_are_thirty_settings_and_the_bound_says_something_in_most():
    bounds = [terms_of(setting).bound for setting in SETTINGS.values()]
    assert len(bounds) == 30
    assert sum(bound < 0.9 for bound in bounds) >= 20


def terms_of(setting: Setting) -> ErrorTerms:
    problem = Problem(len(setting.means), setting.m, setting.agents, horizon=10**9)
    return error_terms(setting.means, problem, setting.plan, RISK)


@pytest.mark.parametrize("name", SETTINGS)
def test_no_term_of_the_bound_is_below_the_measured_error(name):
    setting = SETTINGS[name]
    terms, runs = terms_of(setting), 500 if len(setting.means) > 150 else 4_000
    rng = np.random.default_rng(len(name))
    errors = first_errors(setting.means, setting.m, setting.agents, setting.plan, runs, rng)
    for stage, term in enumerate([*(term + terms.deal for term in terms.local), *terms.shared]):
        wrong = int(np.count_nonzero(errors == stage))
        assert at_least(wrong, runs, term) > FALSE_ALARM, f"stage {stage}: {wrong} of {runs}, at most {term:.4f}"
    wrong = int(np.count_nonzero(errors >= 0))
    assert at_least(wrong, runs, terms.bound) > FALSE_ALARM


def at_least(wrong: int, runs: int, chance: float) -> float:
    """P(at least `wrong` of `runs` are wrong) if each is with this chance, from Chernoff's bound: never too small."""
    share = wrong / runs
    if chance >= share:
        return 1.0
    if chance <= 0:
        return 0.0
    away = share * math.log(share / chance) + (1 - share) * (math.log((1 - share) / (1 - chance)) if share < 1 else 0)
    return math.exp(-runs * away)


def test_a_union_over_the_arms_left_would_be_caught():
    setting = SETTINGS["two of 2,000 left"]
    errors = first_errors(setting.means, 1, 1, setting.plan, 600, np.random.default_rng(1))
    wrong = int(np.count_nonzero(errors == 1))
    assert at_least(wrong, 600, math.exp(-401 * 0.1**2)) < 1e-9
    assert terms_of(setting).shared[1] == pytest.approx(1_999 * math.exp(-401 * 0.1**2))


@pytest.mark.parametrize("name", SETTINGS)
def test_the_bound_for_arms_that_differ_between_agents_has_the_same_terms(name):
    # So what is measured here holds for frugal_noniid_error_bound as well, and for what a plan states "by proof".
    setting = SETTINGS[name]
    problem = Problem(len(setting.means), setting.m, setting.agents, horizon=10**9)
    bound = rounds_error_bound(setting.means, problem, setting.plan.shared_sizes, setting.plan.shared_pulls)
    assert bound == pytest.approx(min(1.0, sum(terms_of(setting).shared)))


@given(
    values=st.lists(st.integers(0, 64), min_size=4, max_size=12),
    m=st.integers(2, 6),
    keep=st.integers(1, 11),
    pulls=st.integers(1, 300),
)
def test_products_of_sums_are_never_below_the_pairs_and_triples_of_the_proof(values, m, keep, pulls):
    means = np.sort(np.array(values) / 64)[::-1]
    n, m, keep = len(means), min(m, len(values) // 2), min(keep, len(values) - 1)
    terms = error_terms(means, Problem(n, m, 1, 10**9), spaced_plan([n, keep], [pulls, pulls]), RISK)
    by_gap = sorted([*reversed(range(m)), *range(m, n)], key=lambda arm: gap(means, m, arm))
    one_by_one = min(pairs_and_triples(means, m, by_gap[g:], pulls) / (keep + 1 - g) for g in range(keep + 1))
    assert terms.shared[0] >= one_by_one * (1 - 1e-9)
    pairs = sum(chance(means[i] - means[b], 2, pulls) for i in range(m) for b in range(m, n))
    assert terms.shared[1] >= pairs * (1 - 1e-9)


def gap(means: NDArray[np.float64], m: int, arm: int) -> float:
    return float(means[arm] - means[m] if arm < m else means[m - 1] - means[arm])


def pairs_and_triples(means: NDArray[np.float64], m: int, far: list[int], pulls: int) -> float:
    """The expected number of pairs and triples that are out of order, where one arm of each is far."""
    best, others = range(m), range(m, len(means))
    total = 0.0
    for a in far:
        same, opposite = (best, others) if a < m else (others, best)
        total += sum(chance(means[a] - means[c], 2, pulls) for c in opposite)
        total += sum(chance(means[a] + means[b] - 2 * means[c], 6, pulls) for c in opposite for b in same if b != a)
    return total


def chance(difference: float, squared_ranges: int, pulls: int) -> float:
    """Hoeffding: P(a sum of empirical means has the wrong sign)."""
    return math.exp(-2 * pulls * float(difference) ** 2 / squared_ranges)


def test_fewer_round_trips_leave_the_bound_valid_and_larger():
    means = arms(EVEN)
    problem = Problem(64, 1, 4, 3_000)
    assert smallest_frugal_horizon(64, 1, 4, RISK, 1) < 3_000
    bounds = [error_terms(means, problem, frugal_plan(problem, RISK, trips), RISK).bound for trips in (1, 2, 4, None)]
    assert all(0 < bound < 0.5 for bound in bounds)
