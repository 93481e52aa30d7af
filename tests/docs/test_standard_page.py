"""The table of frugal-top on the standard instances counts a win or a loss only where chance does not explain it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("frugal_standard", ROOT / "benchmarks" / "frugal_standard.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["frugal_standard"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rows(benchmark):
    """For each row of the page the p-value and the direction of the difference, and the outcome that it states."""
    found = []
    for line in (ROOT / "docs" / "frugal-standard.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > 9 and cells[2].replace(",", "").isdecimal():
            runs = benchmark.RUNS[int(cells[1].replace(",", ""))]
            errors = [None if error == "-" else round(float(error) * runs) for error in cells[5:9]]
            ours, *others = [(wrong, runs) for wrong in errors if wrong is not None]
            found.append((*benchmark.compare(ours, others), cells[-1]))
    return found


def test_every_outcome_on_the_page_is_corrected_for_all_cells(benchmark, rows):
    assert len(rows) == 117
    assert benchmark.outcomes([(p, direction) for p, direction, _ in rows]) == [stated for _, _, stated in rows]


def test_without_the_correction_chance_would_be_counted_too(benchmark, rows):
    uncorrected = sum(p <= benchmark.LEVEL for p, _, _ in rows)
    assert uncorrected > sum(stated != "even" for _, _, stated in rows)


def test_a_difference_that_is_expected_among_many_cells_is_even(benchmark):
    alone, among_many = [(0.01, "wins")], [(0.01, "wins")] + [(0.5, "loses")] * 116
    assert benchmark.outcomes(alone) == ["wins"]
    assert benchmark.outcomes(among_many) == ["even"] * 117
    assert benchmark.outcomes([(1e-6, "loses"), *among_many[1:]])[0] == "loses"


def test_a_loss_to_one_of_three_others_is_corrected_for_the_three(benchmark):
    ours, better, as_good = (30, 200), (15, 200), (30, 200)
    alone, of_three = (benchmark.compare(ours, others) for others in ([better], [better, as_good, as_good]))
    assert alone[1] == of_three[1] == "loses"
    assert of_three[0] == pytest.approx(3 * alone[0])
    assert benchmark.outcomes([alone]) == ["loses"]
    assert benchmark.outcomes([of_three]) == ["even"]
