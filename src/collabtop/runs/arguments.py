"""The keyword arguments of `identify` and `start`, for type checkers."""

from os import PathLike
from typing import Any, TypedDict

from collabtop.algorithms.base import Algorithm
from collabtop.arms import PullPolicy
from collabtop.arms.rate import RateLimit
from collabtop.arms.unit import Bounds, Direction
from collabtop.coordination.team import Team
from collabtop.events import OnEvent
from collabtop.privacy import Privacy
from collabtop.runs.budget import Cost
from collabtop.runs.execute import OnInterrupt, Timeout
from collabtop.runs.spec import TeamName


class ArmsOptions(TypedDict, total=False):
    """What applies to all runs."""

    agents: int | None
    horizon: int | None
    budget: float | None
    cost: Cost | None
    confidence: float | None
    tolerance: float
    max_horizon: int | None
    workers: int | None
    rate: RateLimit | None
    robust: int
    privacy: Privacy | None
    algorithm: str | Algorithm
    options: dict[str, Any] | None
    seed: int | None
    team: TeamName | Team
    timeout: Timeout | None
    checkpoint: str | PathLike[str] | None
    name: str | None
    on_event: OnEvent | None
    on_interrupt: OnInterrupt
    progress: bool
    watch: bool


class PullOptions(ArmsOptions, total=False):
    """What applies to candidates with a function `pull`."""

    paired: bool
    direction: Direction
    bounds: Bounds
    policy: PullPolicy | None
