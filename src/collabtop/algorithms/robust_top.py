"""Robust-Top: the answer does not depend on any few agents, so some of them may lie."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.frugal_top_noniid import FrugalTopNonIID
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.algorithms.shared.batched_runs import BatchedRuns
from collabtop.algorithms.shared.frugal_plan import noniid_plan, noniid_sizes
from collabtop.algorithms.shared.schedules import new_pulls
from collabtop.arms import SimulatedArms
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import SettingError
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Reals
from collabtop.protocol.ties import AMPLITUDE
from collabtop.stats import trimmed_mean
from collabtop.validation import whole_number

_FALSE_ALARM = 0.01
"""The probability that a run of honest agents calls any of them inconsistent."""


@dataclass(frozen=True)
class RobustTop(FrugalTopNonIID):
    """For agents of which a few may lie: all agents pull all open arms, and extreme means are left out.

    The value of an arm is the trimmed mean: without the smallest and the largest of the agents' means, as many at each
    end as may lie. What a liar reports is left out, or lies between the means of honest agents. `result.suspects`
    lists the agents whose means do not fit those of the others.

    Args:
        coarseness: as for `FrugalTopNonIID`; 0 sends means unrounded.
        liars: how many of the agents may lie (f); at least 2 f + 1 agents are needed.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.4, 0.1])
    >>> result = ct.identify(arms, m=1, agents=5, horizon=400, algorithm=ct.RobustTop(liars=1), seed=1)
    >>> result.top, result.suspects
    ([0], [])
    """

    name: ClassVar[str] = "robust-top"
    summary: ClassVar[str] = "For agents of which a few may lie: extreme means are left out."
    tops_up: ClassVar[bool] = False
    coarseness: float = 0.0
    liars: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("liars", self.liars, least=1)

    def check(self, problem: Problem) -> None:
        """Refuse too few agents, and examples that the agents share."""
        if problem.agents < 2 * self.liars + 1:
            raise SettingError(
                f"{self.liars} of {problem.agents} agents may lie, but then at least {2 * self.liars + 1} agents are "
                "needed: every decision rests on a majority of honest ones",
                argument="robust",
            )
        if problem.weights is not None:
            raise SettingError(
                f"these arms have weights, but {self.title} trusts no agent more than another: leave them out",
                argument="robust",
            )
        if problem.paired or problem.reuses or (problem.numbered and problem.pull_limit is not None):
            raise SettingError(
                f"{self.title} needs agents that draw independently, but these use examples in a common order; use "
                "DatasetArms(replace=True), or paired=False",
                argument="robust",
            )

    def values(self, arms: SimulatedArms) -> Reals:
        """The trimmed mean over the agents; for arms that differ between agents, that is not their average."""
        return arms.means if arms.iid else trimmed_mean(arms.means.T, self.liars)

    def error_bound(self, means: ArrayLike, problem: Problem) -> float | None:
        """No bound is proved."""
        return None

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """All agents pull all open arms; take trimmed means, and keep the arms nearest to the border."""
        agents = AllAgents(coordinator, trim=self.liars)
        self._run(agents, coordinator, problem, rng)
        coordinator.suspects = agents.inconsistent(_FALSE_ALARM, rounds=len(noniid_sizes(problem.n)))

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once, without liars and rounding."""
        plan = noniid_plan(problem)
        batch = BatchedRuns(problem, means, runs, rng)
        by_agent = np.zeros((problem.agents, runs * problem.n))
        for total, times, keep in zip(plan.pulls, new_pulls(plan.pulls), [*plan.sizes[1:], 0], strict=True):
            arms = batch.live + problem.n * batch.runs[:, np.newaxis]
            for agent in range(problem.agents):
                by_agent[agent, arms] += batch.successes(times, agent)
            batch.sums = problem.agents * trimmed_mean(by_agent[:, arms], self.liars)
            batch.perturbation = AMPLITUDE * total * problem.agents
            batch.eliminate(keep)
        return batch.answers
