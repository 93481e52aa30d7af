"""The page on the algorithms is complete: all sections, pseudo-code that matches the source, and measured costs."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import collabtop as ct
from collabtop.algorithms.registry import make_algorithm

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
ELSEWHERE = {
    "confident-top-noniid": "confident-top",
    "kzz": "kzz and kzz-balanced",
    "kzz-balanced": "kzz and kzz-balanced",
}


def section(name):
    return SECTIONS[ELSEWHERE.get(name, name)]


@pytest.mark.parametrize("name", ct.available_algorithms())
def test_each_algorithm_has_its_idea_pseudo_code_code_costs_and_use(name):
    text = section(name)
    assert "**Idea" in text
    assert re.search(r"^\| (pseudo-code|paper \(algorithm \d.*\)) \| here \|$", text, re.MULTILINE)
    assert re.search(r"^::: collabtop\..*run$", text, re.MULTILINE)
    assert "**Costs.**" in text
    assert "**Use it**" in text


@pytest.mark.parametrize("name", ct.available_algorithms())
def test_the_code_next_to_the_pseudo_code_is_in_the_source(name):
    source = Path(inspect.getfile(type(make_algorithm(name)))).read_text(encoding="utf-8")
    steps = re.findall(r"^\| (?!pseudo-code|paper|---).* \| (.*) \|$", section(name), re.MULTILINE)
    quoted = [code for cell in steps for code in re.findall(r"`([^`]+)`", cell)]
    assert len(quoted) >= 4 or name == "uniform"
    assert [code for code in quoted if code not in source] == []


@pytest.mark.parametrize(
    ("authors", "number"),
    [
        ("Mitra", "2109.05700"),
        ("Chee", "2210.07780"),
        ("Karpov and Zhang 2024", "2207.08015"),
        ("Saday", "2205.04134"),
        ("DP-BAI", "2401.09073"),
        ("Koyamada", "2406.00424"),
        ("Opt-BBAI", "2310.14129"),
    ],
)
def test_follow_up_work_is_cited_with_its_arxiv_number(authors, number):
    (line,) = (line for line in SECTIONS["Related and follow-up work"].splitlines() if authors in line)
    assert f"[arXiv {number}](https://arxiv.org/abs/{number})" in line


def shown_rows():
    return re.search(r"<!-- costs -->\n(.*?)\n\n", PAGE, re.DOTALL)[1].splitlines()


def benchmark(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_some_rows_of_the_table_of_costs_match_the_benchmark():
    module, arms = benchmark("algorithm_costs"), ct.datasets.movielens_like()
    for name in ("frugal-top", "kzz", "kzz-balanced"):
        row = module.row(name, arms, 8, "same for all", agents=module.AGENTS, horizon=module.HORIZON)
        assert row in shown_rows()


@pytest.mark.slow
def test_the_table_of_costs_matches_the_benchmark():
    module = benchmark("algorithm_costs")
    assert shown_rows() == [*module.HEAD, *module.rows()]


def test_every_algorithm_is_in_the_table_of_costs():
    assert {row.split("`")[1] for row in shown_rows()[2:]} == set(ct.available_algorithms())


def test_every_algorithm_and_schedule_is_timed_by_the_benchmark_of_runs_per_second():
    timed = [
        (line.algorithm.title, line.algorithm.options.get("schedule")) for line in benchmark("runs_per_second").lines()
    ]
    assert {title for title, _ in timed} == set(ct.available_algorithms())
    assert {("collab-top-iid", "full"), ("collab-top-noniid", "paper")} < set(timed)
