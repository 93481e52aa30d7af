"""Algorithms by name: built-in ones, unknown ones, and your own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import collabtop as ct
from collabtop.algorithms.registry import algorithm_options
from collabtop.testing import check_algorithm

NAMES = ["collab-top-iid", "collab-top-noniid", "kzz", "kzz-balanced", "uniform", "sar", "sequential-halving"]
ALL = ct.available_algorithms()


def test_the_papers_algorithms_and_the_baselines_are_registered():
    assert set(NAMES) <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_an_algorithm_reports_the_name_it_was_made_by(name):
    assert ct.make_algorithm(name).title == name


@pytest.mark.parametrize("name", ALL)
def test_a_name_and_the_options_of_the_object_make_the_object_again(name):
    algorithm = ct.make_algorithm(name)
    assert ct.make_algorithm(algorithm.title, **algorithm.options) == algorithm


def test_an_unknown_name_is_an_error_that_lists_the_names():
    with pytest.raises(ct.UnknownAlgorithmError) as caught:
        ct.make_algorithm("kzzz")
    assert str(caught.value).startswith("algorithm is 'kzzz' (did you mean 'kzz'?), but one of these is needed: ")
    for name in ALL:
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("collab-top-iid", "speed is not an option of collab-top-iid: its options are schedule"),
        ("sar", "speed is not an option of sar: it has no options"),
        ("kzz-balanced", "speed is not an option of kzz-balanced: it has no options"),
    ],
)
def test_an_unknown_option_is_an_error_that_lists_the_options(name, message):
    with pytest.raises(ct.InputError, match=message) as caught:
        ct.make_algorithm(name, speed="fast")
    assert caught.value.argument == "speed"


@pytest.mark.parametrize("name", ALL)
def test_an_algorithm_declares_what_it_is(name):
    algorithm = ct.make_algorithm(name)
    assert algorithm.summary.endswith(".")
    assert "\n" not in algorithm.summary
    assert algorithm.stops_early == ("confidence" in algorithm.options)


def test_a_message_lists_the_algorithms_that_are_registered_now():
    ct.register_algorithm("sure", ct.ConfidentTop)
    with pytest.raises(ct.SettingError, match=r"one of confident-top, confident-top-noniid, kl-lucb, fed-elim, sure$"):
        ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, agents=2, confidence=0.9, algorithm="kzz")


def test_a_bound_on_the_error_is_the_one_proved_for_the_algorithm_and_its_options():
    means, problem = [0.9, *[0.5] * 63], ct.Problem(n=64, m=1, agents=4, horizon=6_000)
    bounds = {name: ct.make_algorithm(name).error_bound(means, problem) for name in ALL}
    proved = {"frugal-top", "frugal-top-noniid", "collab-top-iid", "collab-top-noniid", "batched-sar", "sar", "nsar"}
    assert {name for name, bound in bounds.items() if bound is not None} == proved
    assert bounds["frugal-top"] == ct.frugal_error_bound(means, 1, 4, 6_000)
    assert ct.FrugalTop(risk=0.1).error_bound(means, problem) == ct.frugal_error_bound(means, 1, 4, 6_000, risk=0.1)
    assert bounds["frugal-top-noniid"] == ct.frugal_noniid_error_bound(means, 1, 4, 6_000)
    coarser = ct.FrugalTopNonIID(coarseness=0.5).error_bound(means, problem)
    assert coarser == ct.frugal_noniid_error_bound(means, 1, 4, 6_000, coarseness=0.5)
    assert bounds["collab-top-iid"] == bounds["collab-top-noniid"] == ct.error_bound(means, 1, 4, 6_000)
    assert ct.CollabTopIID("full").error_bound(means, problem) is None
    assert ct.CollabTopNonIID("full").error_bound(means, problem) is None


def test_options_are_those_of_the_class():
    assert algorithm_options("collab-top-iid") == {"schedule": "paper"}
    assert ct.make_algorithm("kzz", balanced=True) == ct.KZZ(balanced=True) == ct.make_algorithm("kzz-balanced")


@dataclass(frozen=True)
class Patient(ct.Uniform):
    """A user's own algorithm: uniform, with a larger smallest horizon."""

    name: ClassVar[str] = "patient"
    least: int = 10

    def smallest_horizon(self, problem):
        return self.least * problem.n


@pytest.mark.slow
def test_a_users_own_class_works_as_an_object_and_once_registered_by_name():
    arms = ct.BernoulliArms([0.9, 0.1])
    by_object = ct.identify(arms, 1, agents=2, horizon=100, algorithm=Patient(least=5), seed=1)
    ct.register_algorithm("patient", Patient)
    by_name = ct.identify(arms, 1, agents=2, horizon=100, algorithm="patient", options={"least": 5}, seed=1)
    assert by_object == by_name
    assert by_name.algorithm == "patient"
    assert "patient" in ct.available_algorithms()
    with pytest.raises(ct.HorizonError, match="need at least 20 with patient"):
        ct.identify(arms, 1, agents=2, horizon=19, algorithm="patient")
    check_algorithm(Patient())


def test_what_a_test_registers_is_gone_in_the_next():
    assert ct.available_algorithms() == ALL


def test_an_algorithm_needs_nothing_but_run():
    class Guess(ct.Algorithm):
        name = "guess"

        def run(self, coordinator, problem, rng):
            coordinator.scoreboard.accept(rng.permutation(problem.n)[: problem.m], round=0, phase="guess")

    result = ct.identify(ct.BernoulliArms([0.1, 0.9, 0.5]), 1, agents=2, horizon=1, algorithm=Guess(), seed=1)
    assert (result.words, result.pulls, result.time) == (0, 0, 0)


def test_importing_the_package_does_not_import_matplotlib_or_polars():
    code = "import sys, collabtop; print('matplotlib' in sys.modules, 'polars' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["False", "False"]


def test_all_randomness_of_an_algorithm_comes_from_its_generator():
    seen = []

    class Looks(ct.Uniform):
        def run(self, coordinator, problem, rng):
            seen.append(rng.random())
            super().run(coordinator, problem, rng)

    for seed in (1, 1, 2):
        ct.identify(ct.BernoulliArms([0.1, 0.9]), 1, agents=2, horizon=10, algorithm=Looks(), seed=seed)
    assert seen[0] == seen[1] != seen[2]
    assert isinstance(seen[0], float | np.floating)
