"""The recorded runs on a Ray cluster."""

from __future__ import annotations

from typing import Any

import pytest

import collabtop as ct
from tests.recorded.test_recorded_runs import each_case, outcome, run


@each_case
@pytest.mark.slow
@pytest.mark.usefixtures("three_nodes")
def test_the_recorded_run_comes_out_on_ray(case: dict[str, Any], expected: dict[str, Any]) -> None:
    assert outcome(run(case, ct.RayTeam(hosts=2))) == expected
