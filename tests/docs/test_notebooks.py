"""The guides: short examples, and notebooks that show pictures, tables and warnings when they run without a browser."""

from __future__ import annotations

import json
import re
from importlib import import_module

import pytest

from tests.support.doc_pages import ROOT, blocks

NOTEBOOKS = sorted((ROOT / "docs").glob("*.ipynb"))
_MOST_LINES = 12


def guides():
    """README and the pages of the navigation up to the algorithms, which explain and refer."""
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2].partition("- Algorithms:")[0]
    return [ROOT / "README.md", *(ROOT / "docs" / name for name in re.findall(r"(\S+\.md)$", navigation, re.MULTILINE))]


@pytest.mark.parametrize("page", guides(), ids=lambda page: page.name)
def test_the_examples_of_the_guides_are_short(page):
    for block in blocks(page):
        lines = [line for line in block.text.splitlines() if line.startswith((">>> ", "... "))]
        code = lines if block.sort == "doctest" else block.text.split("\n") if block.sort == "excerpt" else []
        assert len([line for line in code if line.strip()]) <= _MOST_LINES, block.text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_cells_of_notebooks_are_short_and_kept_without_outputs(path):
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell for cell in cells if cell["outputs"]] == []
    for cell in cells:
        assert len([line for line in cell["source"] if line.strip()]) <= _MOST_LINES


def executed(path, folder):
    """What the cells of a notebook display, as pairs of a type and its data, in a kernel without a browser."""
    nbformat, nbclient = import_module("nbformat"), import_module("nbclient")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [(kind, str(data)) for output in outputs for kind, data in output.get("data", {}).items()]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of Jupyter itself
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_show_pictures_tables_and_warnings_without_a_browser(path, tmp_path):
    shown = executed(path, tmp_path)
    html = [data for kind, data in shown if kind == "text/html"]
    assert any(kind == "image/png" for kind, _ in shown)
    assert any("<b>Warnings</b>" in data for data in html)
    expected = "<progress" if path.name == "live-run.ipynb" else "A dry run of"
    assert any(expected in data for data in html)
