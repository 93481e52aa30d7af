"""What every agent gets before a run."""

from __future__ import annotations

from typing import Any

import msgspec

from collabtop.problem import Problem


class Setup(msgspec.Struct, frozen=True):
    """What an agent gets before the run: the problem, the seed, and whether rewards are mirrored."""

    problem: Problem
    seed: int
    mirrored: bool = False
    """Search for the worst arms instead: a reward x counts as 1 - x."""
    algorithm: str = ""
    options: dict[str, Any] = {}
    """What runs, so that a site can tell beforehand what it will be asked."""
