"""The check that extensions use passes for every algorithm of the package."""

from __future__ import annotations

import pytest

import collabtop as ct
from collabtop.testing import check_algorithm
from tests.laws.test_every_algorithm import EVERY


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", EVERY.values(), ids=EVERY.keys())
def test_every_algorithm_passes_check_algorithm(algorithm: ct.Algorithm) -> None:
    check_algorithm(algorithm, seed=3)
