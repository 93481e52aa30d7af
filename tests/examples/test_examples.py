"""The examples run as they are written, find what is there to find, and draw their pictures."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.slow) for name in ("pipelines", "prompts")), "regions"]
)
def test_an_example_runs_and_draws_its_picture(name, tmp_path):
    picture = tmp_path / "picture.png"
    ended = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py", "--out", picture],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert "accepted" in ended.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_there_are_60_pipelines_and_100_prompts():
    assert len(load("pipelines").CANDIDATES) == 60
    assert len(set(load("prompts").PROMPTS)) == 100


@pytest.mark.slow
def test_the_prompts_found_are_among_the_good_ones():
    example = load("prompts")
    worth = {
        prompt: np.mean([example.chance_of_a_right_answer(prompt, question) for question in example.QUESTIONS])
        for prompt in example.PROMPTS
    }
    best = sorted(worth.values(), reverse=True)
    result = example.search()
    assert min(worth[prompt] for prompt in result.top) > best[4] - 0.05
    assert result.spending.spent <= 400
    assert result.retries > 0


@pytest.mark.slow
def test_the_regions_agree_on_the_two_best_versions_over_all():
    example = load("regions")
    best = np.argsort(-example.APPEAL.mean(axis=1))[:2]
    assert set(example.search().top_indices) == set(best.tolist())
