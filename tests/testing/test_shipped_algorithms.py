"""The check that extensions use passes for every algorithm of the package."""

from __future__ import annotations

import pytest

import collabtop as ct
from collabtop.testing import check_algorithm
from tests.laws.test_every_algorithm import EVERY

FAST = "uniform"
"""The check takes seconds: the others are slow tests."""


@pytest.mark.parametrize(
    "algorithm", [pytest.param(EVERY[name], id=name, marks=[] if name == FAST else pytest.mark.slow) for name in EVERY]
)
def test_every_algorithm_passes_check_algorithm(algorithm: ct.Algorithm) -> None:
    check_algorithm(algorithm, seed=3)
