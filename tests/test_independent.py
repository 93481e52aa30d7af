"""Error rates agree with those of a second, naive implementation that shares no code with the package.

`benchmarks/independent.py` compares 60 settings with 1,000 runs each. Here are fewer, with fixed seeds; with other
seeds a correct program would fail with the probability that each test states. The plans of frugal-top are compared
exactly, in tests/algorithms/shared/test_frugal_plan.py.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collabtop as ct
from collabtop.algorithms.paired_top import paired_plan
from collabtop.algorithms.shared import elimination
from collabtop.problem import Problem

ROOT = Path(__file__).parents[1]


def load_benchmark():
    spec = importlib.util.spec_from_file_location("independent", ROOT / "benchmarks" / "independent.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["independent"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


independent = load_benchmark()


def with_ties(algorithm):
    """Means that tie, few pulls, and arms in random order: where breaking ties wrongly shows most."""
    means = np.random.default_rng(1).permutation([0.7] * 4 + [0.6] * 6 + [0.4] * 40)
    table = np.repeat(means[:, np.newaxis], 6, axis=1)
    return independent.Setting(algorithm, "ties", table, m=5, horizon=168, lenient=True)


def p_value(setting, runs):
    return independent.fisher(setting.package_errors(runs, seed=1), setting.naive_errors(runs, seed=2), runs)


@pytest.mark.parametrize("algorithm", ["kzz", pytest.param("frugal-top", marks=pytest.mark.slow)])
def test_with_many_ties_the_error_is_that_of_the_naive_implementation(algorithm):
    assert p_value(with_ties(algorithm), runs=400) > 1e-4  # false alarm 1e-4


@pytest.mark.slow
def test_the_comparison_finds_a_ranking_by_gap_that_breaks_ties_by_rounding(monkeypatch):
    def two_tie_breaks(live, means, to_accept, keep, rng, *, bounded=True):
        order = np.lexsort((rng.random(len(live)), -means))
        best = np.isin(np.arange(len(live)), order[:to_accept])
        gaps = np.where(best, means - means[~best].max(), means[best].min() - means)
        kept = np.isin(np.arange(len(live)), np.lexsort((rng.random(len(live)), gaps))[:keep])
        return elimination.Settled(live[~kept & best], live[~kept & ~best], live[kept])

    monkeypatch.setattr(elimination, "settle", two_tie_breaks)
    assert p_value(with_ties("frugal-top"), runs=400) < 1e-6


NEWER = ["robust-top", "paired-top"]
"""Compared on their own, so that the settings of the others stay as they were."""
OLDER = [name for name in independent.naive.ALGORITHMS if name not in NEWER]


@pytest.mark.slow
def test_at_settings_drawn_at_random_all_error_rates_are_within_chance():
    assert independent.compare(settings=3 * len(OLDER), runs=200, seed=3, algorithms=OLDER) == []  # false alarm 2%


@pytest.mark.long
def test_the_error_rates_of_robust_top_and_paired_top_are_within_chance():
    assert independent.compare(settings=12, runs=300, seed=1, algorithms=NEWER) == []  # false alarm 2%


@settings(max_examples=15)
@given(n=st.integers(2, 300), agents=st.sampled_from([1, 2, 7, 40]), spare=st.integers(0, 1_000))
def test_the_plan_of_paired_top_is_the_naive_one_up_to_the_grid_on_which_it_is_sought(n, agents, spare):
    problem = Problem(n, 1, agents, horizon=-(-n // agents) + spare)
    rounds = independent.naive.paired_rounds(n, agents, problem.horizon)
    for (size, total), planned in zip(rounds, paired_plan(problem), strict=True):
        assert abs(planned - total) <= 1 + (n / size) ** 1.1 / 1_024


def test_every_algorithm_for_iid_arms_that_runs_to_a_horizon_has_a_naive_implementation():
    names = [name for name in ct.available_algorithms() if not ct.make_algorithm(name).stops_early]
    assert set(names) <= set(independent.naive.ALGORITHMS)


def test_the_naive_implementation_imports_nothing_of_the_package():
    source = ast.parse((ROOT / "tests" / "support" / "naive.py").read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(source) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(source) if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "collections.abc", "itertools", "math", "numpy", "typing"}
