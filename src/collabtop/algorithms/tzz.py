"""The algorithm of Tao, Zhang and Zhou (2019) for the best arm in few rounds."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.hkk import unpaired_only
from collabtop.algorithms.sequential_halving import best_arm_only
from collabtop.algorithms.shared.batched_runs import deal_hands
from collabtop.algorithms.shared.local_best import Best, FindBest, LocalBest, Stages
from collabtop.coordination.coordinator import Coordinator
from collabtop.problem import Problem
from collabtop.protocol.extension import AgentExtension
from collabtop.protocol.messages import Flags, Ints, Means, Message, Pull, Reals
from collabtop.protocol.ties import perturbed
from collabtop.validation import whole_number


@dataclass(frozen=True)
class TZZ(Algorithm):
    """Each agent finds the best of its own share of the arms; then all agents test these few arms, in few rounds.

    Args:
        rounds: the number of rounds (R), each with one round trip; the run ends earlier if one arm is left.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9] + [0.4] * 99)
    >>> result = ct.identify(arms, m=1, agents=10, horizon=2_000, algorithm=ct.TZZ(rounds=2), seed=1)
    >>> result.top, result.words, result.round_trips
    ([0], 30, 1)
    """

    name: ClassVar[str] = "tzz"
    summary: ClassVar[str] = "Agents find the best of their shares on their own, then test these together, m = 1."
    tops_up: ClassVar[bool] = False
    iid_only: ClassVar[bool] = True
    needs_bounds: ClassVar[bool] = True
    messages: ClassVar[tuple[type[Message], ...]] = (FindBest, Pull)
    extension: ClassVar[type[AgentExtension] | None] = LocalBest
    rounds: int = 3

    def __post_init__(self) -> None:
        whole_number("rounds", self.rounds, least=1, most=1_000)

    def check(self, problem: Problem) -> None:
        """Raise `SettingError` unless m = 1 and arms are not paired."""
        best_arm_only(self, problem)
        unpaired_only(self, problem)

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm in half of the time, and one per round in the other half."""
        return max(2 * Stages.shortest(_share(problem)), 2 * self.rounds - 1)

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The hands of all agents in each stage, then their arms, which may all be the same after the first round."""
        stages, fresh = self._stages(problem)
        holders = min(problem.agents, problem.n)
        local = [(min(problem.n, holders * arms), new) for arms, new in stages.most_pulls()]
        return [*local, (holders, fresh), *[(1, problem.agents * fresh)] * (self.rounds - 1)]

    def most_words(self, problem: Problem) -> int:
        """The seed, an arm and a mean; in each later round an arm to each agent, and a mean from it."""
        return 3 * min(problem.agents, problem.n) + 2 * problem.agents * (self.rounds - 1)

    def most_round_trips(self, problem: Problem) -> int:
        """One per round."""
        return self.rounds

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Find the best arm of every hand, and drop those that are clearly worse than another, round by round."""
        board, (stages, fresh) = coordinator.scoreboard, self._stages(problem)
        coordinator.begin_round("local", live=problem.n)
        question, holders = stages.question(fresh, seed=int(rng.integers(2**31))), range(min(problem.agents, problem.n))
        found = coordinator.ask(dict.fromkeys(holders, question), Best).values()
        arms, means = np.array([answer.arm for answer in found]), np.array([answer.mean for answer in found])
        live, sums, pulls = arms, np.zeros(problem.n), np.zeros(problem.n, np.int64)  # S; of fresh pulls
        for r in range(self.rounds):
            phase = "shared" if r else "local"
            if r:
                coordinator.begin_round(phase, live=len(live))
                arms, means = _test(coordinator, live, fresh, rng)
            np.add.at(sums, arms, means * fresh)
            np.add.at(pulls, arms, fresh)
            board.note_means(live, sums[live] / pulls[live])
            kept = self.kept(sums[live] / pulls[live], pulls[live], problem.agents)
            board.reject(live[~kept], r, phase)
            live = live[kept]
            if len(live) == 1:
                break
        best = np.argmax(perturbed(sums[live] / pulls[live], rng))
        board.reject(np.delete(live, best), r, phase)
        board.accept(live[[best]], r, phase)

    def kept(self, means: Reals, pulls: Ints, agents: int) -> Flags:
        """The arms whose interval reaches the best lower end of an interval; one row per run, if there are several.

        >>> TZZ(rounds=2).kept(np.array([0.9, 0.8, 0.2]), np.array([100, 100, 100]), agents=10)
        array([ True,  True, False])
        """
        radius = np.sqrt(math.log(200 * agents * self.rounds) / (2 * np.maximum(pulls, 1)))
        best = np.max(means - radius, axis=-1, keepdims=True)
        return np.asarray(means + radius >= best)

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once."""
        (stages, fresh), n, agents = self._stages(problem), problem.n, problem.agents
        hands = deal_hands(np.broadcast_to(np.arange(n), (runs, n)), agents, rng)
        arms = stages.best_of(hands, means, rng).reshape(runs, agents)[:, : min(agents, n)]
        sums, pulls, rows = np.zeros((runs, n)), np.zeros((runs, n), np.int64), np.arange(runs)
        for r in range(self.rounds):
            if r:
                live = pulls[rows] > 0
                order = np.where(live, rng.random(live.shape), 2.0).argsort(axis=1)  # live arms first
                places = np.arange(agents) % np.count_nonzero(live, axis=1)[:, np.newaxis]
                arms = np.take_along_axis(order, places, axis=1)
            np.add.at(sums, (rows[:, np.newaxis], arms), rng.binomial(fresh, means[arms]))
            np.add.at(pulls, (rows[:, np.newaxis], arms), fresh)
            kept = self.kept(_averages(sums[rows], pulls[rows]), pulls[rows], agents) & (pulls[rows] > 0)
            pulls[rows] *= kept  # an arm that was dropped counts as not pulled
            rows = rows[np.count_nonzero(kept, axis=1) > 1]
        values = perturbed(_averages(sums, pulls).ravel(), rng).reshape(runs, n)
        return np.asarray(values == values.max(axis=1, keepdims=True))

    def _stages(self, problem: Problem) -> tuple[Stages, int]:
        """How an agent finds the best of its share in half of the time, and the fresh pulls of an agent per round."""
        half = problem.horizon // 2
        return Stages.within(_share(problem), half), (problem.horizon - half) // self.rounds


def _test(coordinator: Coordinator, live: Ints, fresh: int, rng: np.random.Generator) -> tuple[Ints, Reals]:
    """Deal the agents to the live arms; returns the arm of each agent, and the mean of its pulls."""
    arms = rng.permutation(live)[np.arange(coordinator.agents) % len(live)]
    questions: dict[int, Message] = {
        agent: Pull(arms[[agent]], np.array([fresh]), free=("times",)) for agent in range(coordinator.agents)
    }
    answers = coordinator.ask(questions, Means)
    return arms, np.array([answers[agent].means[0] for agent in questions])


def _share(problem: Problem) -> int:
    """The most arms that the shuffle deals to an agent."""
    return -(-problem.n // problem.agents)


def _averages(sums: Reals, pulls: Ints) -> Reals:
    """The means of the arms that were pulled, and -1 for the others."""
    averages: Reals = np.divide(sums, pulls, out=np.full(sums.shape, -1.0), where=pulls > 0)
    return averages
