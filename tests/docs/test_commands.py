"""Every command in README and docs is run as it is written, in a fresh folder, with the files that its page shows."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from collabtop.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

# What is not run here, and why.
EXCEPTIONS = {
    r"pip install": "sets up an environment: .ci/run does it, with the README's own command",
    r"^\.ci/run|\.venv/bin/(pytest|ruff|mypy)": "is what runs this test",
    r"^collabtop watch": "serves until Ctrl-C: tests/cli/test_watch_command.py and tests/watch",
    r"^collabtop reproduce": "takes minutes: tests/cli/test_reproduce.py",
    r"^collabtop demo": "takes a while: tests/cli/test_demo_command.py",
    r"^collabtop plan -n 588": "takes a minute: tests/cli/test_plan_command.py, and a smaller one in choosing.md",
    r"\bray start|--team ray --address": "needs a cluster: tests/teams/test_ray_team.py, tests/cli/test_ray_option.py",
    r"collabtop (coordinate|join)": "needs several processes: tests/sites has them",
}

# Files that pages speak of without showing them.
FILES = {
    "means.txt": "\n".join(f"{0.2 + place / 100:.2f}" for place in range(60)),
    "means.csv": "title,mean\n" + "\n".join(f"film {place},{0.2 + place / 100:.2f}" for place in range(60)),
    "rewards.csv": "candidate,reward\n" + "\n".join(f"{'abc'[n % 3]},{n % (n % 3 + 2) > 0:d}" for n in range(600)),
    "mymodule.py": "candidates = [f'prompt {n}' for n in range(12)]\n\n\n"
    "def score(candidate, rng):\n    return rng.random() < int(candidate.split()[1]) / 15\n\n\n"
    "def price(candidate):\n    return 0.01\n",
    "study.toml": 'algorithms = ["kzz"]\nagents = 2\nhorizon = 500\nruns = 4\n'
    'arms.small = {instance = "equal_gaps", n = 8, m = 1, gap = 0.2}\n',
}

_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page):
    """Commands of a page in order, and the files that it shows with a title."""
    commands, files = [], {}
    for language, options, body in _FENCE.findall(page.read_text(encoding="utf-8")):
        if title := re.search(r'title="([^"]+)"', options):
            files[title[1]] = body
        elif language in ("sh", "bash", "console", "shell"):
            lines = body.replace("\\\n", " ").splitlines()
            commands += [line.removeprefix("$ ") for line in lines if line.strip()]
    return commands, files


def reason(command):
    return next((why for pattern, why in EXCEPTIONS.items() if re.search(pattern, command)), None)


WITH_COMMANDS = [page for page in PAGES if any(not reason(command) for command in blocks(page)[0])]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A fresh folder that one is in, with modules of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):  # no browser opens
        monkeypatch.delenv(name, raising=False)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_the_commands_of_a_page_work_as_they_are_written(page, folder):
    commands, files = blocks(page)
    for name, text in (FILES | files).items():
        (folder / name).write_text(text)
    for command in commands:
        if reason(command):
            continue
        program, *arguments = shlex.split(command)
        assert program == "collabtop", f"{command!r} is neither run here nor an exception that says why"
        result = CliRunner().invoke(app, arguments, prog_name="collabtop")  # in this process: no start to wait for
        assert result.exit_code == 0, f"{command}\n{result.output}"


def test_there_are_commands_to_run():
    assert len(WITH_COMMANDS) >= 4
    assert sum(not reason(command) for page in PAGES for command in blocks(page)[0]) >= 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pictures_and_pages_that_are_linked_to_are_there(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target
