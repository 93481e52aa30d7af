"""For all tests and doctests: how hard Hypothesis tries, and a registry that every test finds as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from collabtop.algorithms import catalogue

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=200, suppress_health_check=_SLOW)
settings.register_profile("thorough", deadline=None, max_examples=5_000, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def _registry_as_it_was() -> Iterator[None]:
    """Take back what a test (or a doctest) registered."""
    before = dict(catalogue._catalogue)
    yield
    catalogue._catalogue.clear()
    catalogue._catalogue.update(before)
