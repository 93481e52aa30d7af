"""What README and docs show: blocks of code, each of a sort that something runs, and commands, each run somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

# Files that pages speak of without showing them.
FILES = {
    "means.txt": "\n".join(f"{0.2 + place / 100:.2f}" for place in range(60)),
    "means.csv": "title,mean\n" + "\n".join(f"film {place},{0.2 + place / 100:.2f}" for place in range(60)),
    "rewards.csv": "candidate,reward\n" + "\n".join(f"{'abc'[n % 3]},{n % (n % 3 + 2) > 0:d}" for n in range(600)),
    "mymodule.py": "import collabtop as ct\n\ncandidates = [f'prompt {n}' for n in range(12)]\n"
    "arms = ct.BernoulliArms([0.2, 0.4, 0.9])\n\n\n"
    "def score(candidate, rng):\n    return rng.random() < int(candidate.split()[1]) / 15\n\n\n"
    "def price(candidate):\n    return 0.01\n",
    "clinic.py": "treatments = [f'treatment {n}' for n in range(3)]\n\n\n"
    "def outcome(treatment, rng):\n    return rng.random() < int(treatment[-1]) / 3\n",
    "study.toml": 'algorithms = ["kzz"]\nagents = 2\nhorizon = 500\nruns = 4\n'
    'arms.small = {instance = "equal_gaps", n = 8, m = 1, gap = 0.2}\n',
}
FILES["token.txt"] = "long-and-secret\n"
FILES["grid.toml"] = FILES["study.toml"]

_FENCE = re.compile(r"(?:^<!-- file: (\S+) -->\n)?^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """Some lines between fences."""

    page: Path
    sort: str
    """`doctest`, `file`, `commands`, `excerpt`, `tree`, or what is not one of these: `unknown`."""
    name: str
    """Of a file."""
    text: str


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    found = []
    for marked, language, options, text in _FENCE.findall(page.read_text(encoding="utf-8")):
        title = re.search(r'title="([^"]+)"', options)
        name = title[1] if title else marked
        if name:
            sort = "file"
        elif language == "python":
            sort = "doctest" if re.search(r"^>>> ", text, re.MULTILINE) else "excerpt"
        elif language == "sh":
            sort = "commands"
        elif not language and text.startswith("collabtop/\n"):
            sort = "tree"
        else:
            sort = "unknown"
        found.append(Block(page, sort, name, text))
    return found


def commands(page: Path) -> list[str]:
    """The commands of a page, in order, each on one line."""
    lines = [line for it in blocks(page) if it.sort == "commands" for line in it.text.replace("\\\n", " ").splitlines()]
    return [" ".join(line.split()) for line in lines if line.strip()]


def files(page: Path) -> dict[str, str]:
    """The files that a page shows or speaks of."""
    return FILES | {it.name: it.text for it in blocks(page) if it.sort == "file"}


# Where commands are run that need more than a folder: by the first pattern that fits.
ELSEWHERE = {
    r"^(python3 -m venv|pip install) ": ["tests/docs/test_commands.py", ".ci/run"],
    r"\bray start |--team ray --address": ["tests/docs/test_documented_ray.py"],
    r"^collabtop coordinate .*&$|^for site in ": ["tests/teams/sites/test_documentation.py"],
    r"^collabtop (coordinate|join) ": ["tests/docs/test_documented_sites.py"],
}
SLOW = r"^collabtop (reproduce|plan -n 588)"
"""These take a minute each: `pytest -m slow tests/docs`, which .ci/run does."""


def runs_elsewhere(command: str) -> bool:
    return any(re.search(pattern, command) for pattern in ELSEWHERE)
