"""The setup of a run, which every agent gets before it."""

from typing import Any

import msgspec

from collabtop.arms.unit import DEFAULT_UNIT, Unit
from collabtop.privacy import NoiseScale, Privacy
from collabtop.problem import Problem

MOST_EXTRA_PULLS = 10**12
"""The most pulls of an agent in top-up rounds."""


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
    budget: float | None = None
    """What the pulls of all agents may cost, if what the plan leaves of it is to be spent in top-up rounds."""
    prices: tuple[float, ...] = ()
    """With a budget: the most that a pull of each arm costs, and what it costs unless it reports something else."""
    iid: bool = True
    """Whether all agents see the same distributions."""
    unit: Unit = DEFAULT_UNIT
    """The direction and bounds of the rewards: a site whose arms have different ones declines the run."""

    privacy: Privacy | None = None
    """The differential privacy of the run: agents add noise to every sum of rewards."""

    @property
    def noise_scale(self) -> NoiseScale | None:
        """The noise that the privacy of the run asks for, if it has any."""
        return None if self.privacy is None else NoiseScale.of(self.privacy, self.problem.n, self.problem.horizon)

    @property
    def noise_margin(self) -> float:
        """By how much noise may move a sum of rewards out of its range: further away, it is cut off."""
        return 0.0 if self.noise_scale is None else self.noise_scale.margin

    @property
    def extra_pulls(self) -> int:
        """How many pulls an agent may make after the horizon, in top-up rounds: pulls may cost next to nothing."""
        return 0 if self.budget is None else MOST_EXTRA_PULLS
