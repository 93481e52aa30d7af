"""What every algorithm is: a class with options and one method that matters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.arms.draws import coordinator_rng
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import ProtocolError
from collabtop.problem import Problem
from collabtop.protocol.setup import Setup


@dataclass(frozen=True)
class Algorithm(ABC):
    """A way to find the best m of n arms with a coordinator; its dataclass fields are its options.

    A subclass writes `run`, and where the defaults do not fit `smallest_horizon` and `check`.
    `collabtop.testing.check_algorithm` tells whether it keeps the laws.

    >>> import numpy as np, collabtop as ct
    >>> from dataclasses import dataclass
    >>> from collabtop.algorithms.shared.allocation import AllAgents
    >>> @dataclass(frozen=True)
    ... class OnePullEach(ct.Algorithm):
    ...     name = "one-pull-each"
    ...     def smallest_horizon(self, problem):
    ...         return problem.n
    ...     def run(self, coordinator, problem, rng):
    ...         board, arms = coordinator.scoreboard, np.arange(problem.n)
    ...         coordinator.begin_round("shared", live=problem.n)
    ...         board.add(arms, *AllAgents(coordinator).pull(arms, times=1, all_live=True))
    ...         board.accept(np.argsort(-board.means(arms))[:problem.m], round=0, phase="shared")
    >>> ct.identify(ct.BernoulliArms([1.0, 0.0, 0.0]), m=1, agents=2, horizon=3, algorithm=OnePullEach()).top
    [0]
    """

    name: ClassVar[str]
    """What the algorithm is called in results."""
    summary: ClassVar[str] = ""
    """What it does, in one line: `collabtop algorithms` prints it."""
    iid_only: ClassVar[bool] = False
    """Whether it relies on all agents seeing the same distributions."""
    stops_early: ClassVar[bool] = False
    """Whether it stops as soon as the answer is right with its option `confidence`, and the horizon is only a limit."""
    survives_loss: ClassVar[bool] = False
    """Whether it can continue when agents are lost for good during a run."""

    @abstractmethod
    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Accept the best `problem.m` arms (0 < m <= n / 2) on the scoreboard; all chance comes from `rng`."""

    def solve(self, coordinator: Coordinator, setup: Setup) -> None:
        """Run, reject the arms that are left, and check that exactly m arms were accepted."""
        board, problem = coordinator.scoreboard, setup.problem
        if problem.m:  # else all arms are wanted, and there is nothing to find out
            self.run(coordinator, problem, coordinator_rng(setup.seed))
        board.reject_rest()
        if board.accepted != problem.m:
            raise ProtocolError(f"{self.title} accepted {board.accepted} arms instead of {problem.m}")

    def smallest_horizon(self, problem: Problem) -> int:
        """The smallest horizon that works for these n, m and agents, whatever chance does."""
        return 1

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The costliest run: (arms that are open, pulls that each of them gets), step by step.

        A budget is turned into a horizon by it. Where nothing better is known, all pulls go to one arm.
        """
        return [(1, problem.horizon * problem.agents)]

    def most_words(self, problem: Problem) -> int | None:
        """The most words that a run can take, at any horizon, while no agent is lost; None where none is proved."""
        return None

    def most_round_trips(self, problem: Problem) -> int | None:
        """The most round trips that a run can take, at any horizon, while no agent is lost."""
        return None

    def error_bound(self, means: ArrayLike, problem: Problem) -> float | None:
        """The proven bound on the probability of a wrong answer at `problem.horizon`; None where nothing is proved."""
        return None

    def check(self, problem: Problem) -> None:  # noqa: B027  (most algorithms are for all of them)
        """Raise `SettingError` if the algorithm is not for this many arms, agents or this m."""

    @property
    def title(self) -> str:
        """The name under which results report it; options that make it another algorithm may change it."""
        return self.name

    @property
    def options(self) -> dict[str, Any]:
        """The options it has, with their values."""
        return asdict(self)
