"""The recorded runs on a Ray cluster: one of each algorithm, and all of them in the long tests."""

from __future__ import annotations

from typing import Any

import pytest

import collabtop as ct
from tests.recorded.test_recorded_runs import name, outcome, recorded, run

CASES = recorded()
LARGEST = {
    case["algorithm"]: name(case) for case, _ in sorted(CASES, key=lambda pair: (pair[0]["agents"], pair[0]["n"]))
}  # of each algorithm


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        pytest.param(
            case,
            expected,
            id=name(case),
            marks=pytest.mark.slow if name(case) == LARGEST[case["algorithm"]] else pytest.mark.long,
        )
        for case, expected in CASES
    ],
)
@pytest.mark.usefixtures("three_nodes")
def test_the_recorded_run_comes_out_on_ray(case: dict[str, Any], expected: dict[str, Any]) -> None:
    assert outcome(run(case, ct.RayTeam(hosts=2))) == expected
