"""Batched simulations have the same law as runs. For each test, a correct one fails for 1 seed in 10,000 at most."""

import inspect
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

import collabtop as ct
from collabtop.algorithms.kzz import largest_alpha, sizes_of
from collabtop.algorithms.shared.batched_runs import BatchedRuns
from collabtop.testing import SimulationCase, check_algorithm, check_simulation
from collabtop.testing.simulations import means_of_kind, same_shares
from tests.laws.test_every_algorithm import EVERY
from tests.support.accepted import accepted_setting

BATCHED = {name: algorithm for name, algorithm in EVERY.items() if algorithm.batched}
every_batched_algorithm = pytest.mark.parametrize("algorithm", BATCHED.values(), ids=BATCHED.keys())
CASES = 40


def cases(algorithm, count=CASES):
    """Random n, m, K and horizons, with equal, tiny and different means; some have more agents than arms."""
    rng = np.random.default_rng(18)
    found = []
    while len(found) < count:
        n, agents = int(rng.choice([2, 3, 5, 8, 13, 21, 40])), int(rng.choice([1, 2, 3, 6, 25]))
        m, factor = int(rng.integers(1, n)), float(rng.choice([1, 1.5, 3, 10]))
        kind = str(rng.choice(["equal", "levels", "tiny", "spread", "non-IID"]))
        m, agents = accepted_setting(algorithm, m, agents)
        if kind == "non-IID" and algorithm.iid_only:
            kind = "spread"
        horizon = int(factor * algorithm.smallest_horizon(ct.Problem(n, m, agents, 1)))
        found.append(SimulationCase(means_of_kind(kind, n, m, agents, rng), m, agents, horizon))
    return found


def test_the_cases_have_ties_tiny_means_large_m_and_more_agents_than_arms():
    found = cases(ct.Uniform())
    assert sum(len(np.unique(case.means, axis=0)) < len(case.means) for case in found) >= 8
    assert sum(case.means.max() < 0.01 for case in found) >= 4
    assert sum(2 * case.m > len(case.means) for case in found) >= 8
    assert sum(case.agents > len(case.means) for case in found) >= 6
    assert sum(case.means.ndim == 2 for case in found) >= 4


@pytest.mark.slow
@every_batched_algorithm
def test_a_batched_simulation_has_the_law_of_its_runs(algorithm):
    check_simulation(algorithm, cases(algorithm)[::3], runs=60)


@pytest.mark.long
@every_batched_algorithm
def test_a_batched_simulation_has_the_law_of_its_runs_at_40_settings(algorithm):
    check_simulation(algorithm, cases(algorithm), runs=400, batched_runs=8_000)


@every_batched_algorithm
def test_a_batched_simulation_is_short(algorithm):
    assert len(inspect.getsource(type(algorithm).simulate).splitlines()) <= 40


@dataclass(frozen=True)
class Mutant(ct.KZZ):
    """kzz with a fault in its batched simulation."""

    fault: str = ""

    def simulate(self, problem, means, runs, rng):
        """Halve with the fault."""
        batch, alpha = BatchedRuns(problem, means, runs, rng), largest_alpha(problem)
        for size, keep in pairwise(sizes_of(problem.n)):
            if self.fault == "forgets earlier rounds":
                batch.sums = np.zeros_like(batch.sums)
            batch.pull(alpha // size if self.fault != "pulls too little" else max(1, alpha // size // 2))
            if self.fault == "prefers arms with small numbers":
                batch.perturbation = 0.0
            batch.eliminate(keep)
        return batch.answers


TWO_LEVELS = SimulationCase(np.where(np.arange(16) < 1, 0.6, 0.4), 1, 2, 100)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["pulls too little", "prefers arms with small numbers"])
def test_a_gross_fault_in_a_batched_simulation_is_found(fault):
    with pytest.raises(AssertionError, match="by simulate: such a difference has a probability of"):
        check_simulation(Mutant(fault=fault), runs=100)


@pytest.mark.slow
def test_check_algorithm_compares_the_batched_simulation_with_runs():
    with pytest.raises(AssertionError, match="by simulate: such a difference has a probability of"):
        check_algorithm(Mutant(fault="pulls too little"))


@pytest.mark.slow
def test_a_small_fault_in_a_batched_simulation_is_found_with_more_runs():
    with pytest.raises(AssertionError, match="the answer is right in"):
        check_simulation(Mutant(fault="forgets earlier rounds"), [TWO_LEVELS], runs=3_000, batched_runs=20_000)


def test_a_simulation_that_accepts_too_many_arms_is_refused():
    @dataclass(frozen=True)
    class Greedy(ct.Uniform):
        def simulate(self, problem, means, runs, rng):
            return np.ones((runs, problem.n), bool)

    with pytest.raises(ct.CollabtopError, match="did not accept exactly 1 of 4 arms"):
        Greedy().answers(ct.Problem(4, 1, 2, 100), np.full(4, 0.5), 3, np.random.default_rng(0))


def test_the_exact_test_rejects_as_often_as_it_says():
    rng = np.random.default_rng(3)
    counts = zip(rng.binomial(40, 0.3, 4_000), rng.binomial(400, 0.3, 4_000), strict=True)
    share = np.mean([same_shares([(int(a), 40, int(b), 400)]) <= 0.05 for a, b in counts])
    assert 0.02 < share < 0.06  # it is exact, so at most .05; .06 is exceeded for 1 seed in 500
