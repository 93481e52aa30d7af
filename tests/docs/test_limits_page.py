"""The table of limits has the numbers of the code, and each of its rows is a test."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "limits.md"
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LIMIT = re.compile(r"([\d,]+)(?: (KiB|MiB|GiB|s|per minute|bytes per arm))?")


class Row(NamedTuple):
    """A row of the table."""

    what: str
    limit: str
    beyond: str
    constant: str
    test: str


def rows() -> list[Row]:
    """All rows of all tables on the page."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [Row(*row) for row in cells if row[0] not in ("what", "---")]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.constant)
def test_the_number_is_that_of_the_code(row):
    number, unit = _LIMIT.fullmatch(row.limit).groups()
    module, _, name = row.constant.strip("`").rpartition(".")
    assert int(number.replace(",", "")) * _UNITS.get(unit, 1) == getattr(import_module(f"collabtop.{module}"), name)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.constant)
def test_each_row_has_a_test(row):
    file, _, name = row.test.strip("`").partition("::")
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_table_has_rows():
    assert len(rows()) > 25
