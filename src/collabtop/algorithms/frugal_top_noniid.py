"""Frugal-Top for non-IID arms: survivors are sent as bitmaps, and means with only as many bits as are significant."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import AllAgents
from collabtop.algorithms.shared.batched_runs import BatchedRuns
from collabtop.algorithms.shared.elimination import eliminate
from collabtop.algorithms.shared.frugal_bound import frugal_noniid_error_bound
from collabtop.algorithms.shared.frugal_plan import noniid_plan, noniid_sizes, smallest_noniid_horizon
from collabtop.algorithms.shared.schedules import new_pulls
from collabtop.coordination.coordinator import Coordinator
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Reals
from collabtop.protocol.rounding import coarse_counts
from collabtop.protocol.ties import AMPLITUDE
from collabtop.validation import real_number, wrong_value


@dataclass(frozen=True)
class FrugalTopNonIID(Algorithm):
    """The default for non-IID arms: all agents pull all open arms, and send few bits per mean.

    Args:
        coarseness: how much rounding may add to the sampling variance of a mean, as a share of that variance.

    >>> import collabtop as ct
    >>> arms = ct.HeterogeneousArms([[0.9, 0.1], [0.6, 0.7], [0.2, 0.2]])
    >>> result = ct.identify(arms, m=1, horizon=4_000, algorithm=ct.FrugalTopNonIID(), seed=1)
    >>> result.top, result.bits
    ([1], 232)
    """

    name: ClassVar[str] = "frugal-top-noniid"
    summary: ClassVar[str] = "The default for non-IID arms: all agents pull all open arms, and send few bits per mean."
    fixed_schedule: ClassVar[bool] = True
    survives_loss: ClassVar[bool] = True
    coarseness: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= real_number("coarseness", self.coarseness) < 1:
            raise wrong_value("coarseness", self.coarseness, "a share of at least 0 and below 1 is needed")

    def smallest_horizon(self, problem: Problem) -> int:
        """Every agent pulls every arm once before the first elimination."""
        return smallest_noniid_horizon(problem.n, problem.inner.m)

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The pulls of the plan, by every agent."""
        plan = noniid_plan(problem)
        return [(size, new * problem.agents) for size, new in zip(plan.sizes, new_pulls(plan.pulls), strict=True)]

    def most_words(self, problem: Problem) -> int:
        """From every agent one mean per open arm and their scale (2); to it one flag per arm of the round before."""
        sizes = noniid_sizes(problem.n)
        return problem.agents * (sum(size + 2 for size in sizes) + sum(sizes[:-1]))

    def most_round_trips(self, problem: Problem) -> int:
        """One per round."""
        return len(noniid_sizes(problem.n))

    def error_bound(self, means: ArrayLike, problem: Problem) -> float | None:
        """The bound of docs/frugal-top.md."""
        return frugal_noniid_error_bound(
            means, problem.m, problem.agents, problem.horizon, self.coarseness, weights=problem.weights
        )

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """All agents pull all open arms; average, and keep the arms nearest to the border."""
        self._run(AllAgents(coordinator), coordinator, problem, rng)

    def _run(self, agents: AllAgents, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        plan, board = noniid_plan(problem), coordinator.scoreboard
        sizes, pulls = [*plan.sizes, 0], new_pulls(plan.pulls)
        r, live = 0, np.arange(problem.n)  # I_0
        survived: Flags | None = None  # all arms are open at first, which every agent knows
        while len(live):
            coordinator.begin_round("shared", live=len(live))
            board.add(live, *agents.pull_open(live, survived, pulls[r], self.coarseness))
            still_live = eliminate(board, live, problem.m, sizes[r + 1], r, "shared", rng)  # I_{r+1}
            survived = np.zeros(problem.n, np.bool_)
            survived[still_live] = True
            survived = survived[live]
            r, live = r + 1, still_live

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once."""
        plan, agents = noniid_plan(problem), problem.agents
        batch = BatchedRuns(problem, means, runs, rng)
        batch.attached = np.zeros((2 * agents, runs, problem.n))  # as in `NoiseGauge`: variances, then limits
        for total, times, keep in zip(plan.pulls, new_pulls(plan.pulls), [*plan.sizes[1:], 0], strict=True):
            for block in batch.agent_blocks():
                counts = self._coarse_counts(batch, block, times, batch.attached[:agents], batch.attached[agents:])
                for agent, of_agent in zip(range(agents)[block], counts, strict=True):
                    batch.sums = batch.sums + problem.weight(agent) * of_agent
            batch.perturbation = AMPLITUDE * total * agents
            batch.eliminate(keep)
        return batch.answers

    def _coarse_counts(self, batch: BatchedRuns, agents: slice, times: int, variances: Reals, limits: Reals) -> Reals:
        """The rounded successes of these agents in a round, a table per agent; it adds to what their gauges hold."""
        half = times // 2
        sums = batch.successes_of(agents, times - half)
        if half:
            second_sums = batch.successes_of(agents, half)
            differences = sums / (times - half) - second_sums / half
            sums += second_sums
            differences *= differences
            differences /= 1 / (times - half) + 1 / half
            variances[agents] += differences
            limits[agents] += sums * (times - sums) / times**2
        # 0 without any noise, or estimate
        noise = np.minimum(1.0, variances[agents].sum(axis=2) / np.maximum(limits[agents].sum(axis=2), 1e-300))
        rows = sums.reshape(-1, sums.shape[2])
        return coarse_counts(rows, times, noise.ravel(), self.coarseness, batch.rng).reshape(sums.shape)
