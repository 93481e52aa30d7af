"""The setup of a run, which every agent gets before it."""

from typing import Any

import msgspec

from collabtop.arms.unit import DEFAULT_UNIT, Unit
from collabtop.problem import Problem


class Setup(msgspec.Struct, frozen=True):
    """The data an agent needs before the run: the problem, the seed, and what rewards mean."""

    problem: Problem
    seed: int
    mirrored: bool = False
    """Search for the worst arms: rewards count as their `opposite`."""
    algorithm: str = ""
    options: dict[str, Any] = {}
    """Options of the algorithm, so that a site can check the requests in advance."""
    extension: str = ""
    """The agent extension that the algorithm needs, or "": a site that does not have it declines the run."""
    unit: Unit = DEFAULT_UNIT
    """The direction and bounds of the rewards: a site whose arms have different ones declines the run."""
