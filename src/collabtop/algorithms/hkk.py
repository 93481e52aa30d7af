"""One-round best arm (Hillel, Karnin, Koren, Lempel and Somekh 2013): each agent votes for an arm, once."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.sequential_halving import best_arm_only
from collabtop.algorithms.shared.local_best import Best, FindBest, LocalBest, Stages
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import SettingError
from collabtop.problem import Problem
from collabtop.protocol.extension import AgentExtension
from collabtop.protocol.messages import Flags, Ints, Message, Reals
from collabtop.protocol.ties import perturbed


@dataclass(frozen=True)
class HKK(Algorithm):
    """The best arm with a single message from each agent: its choice from a random part of the arms, and a mean.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9] + [0.4] * 99)
    >>> result = ct.identify(arms, m=1, agents=49, horizon=4_000, algorithm="hkk", seed=1)
    >>> result.top, result.words, result.round_trips
    ([0], 98, 1)
    """

    name: ClassVar[str] = "hkk"
    summary: ClassVar[str] = "Each agent names the best of a random part of the arms: one message from each, m = 1."
    tops_up: ClassVar[bool] = False
    simulation_work: ClassVar[float] = 15.0  # each agent has most of the arms
    iid_only: ClassVar[bool] = True
    messages: ClassVar[tuple[type[Message], ...]] = (FindBest,)
    extension: ClassVar[type[AgentExtension] | None] = LocalBest

    def check(self, problem: Problem) -> None:
        """Raise `SettingError` unless m = 1 and arms are not paired."""
        best_arm_only(self, problem)
        unpaired_only(self, problem)

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm of an agent in half of the time, and one for its choice in the other half."""
        return max(1, 2 * Stages.shortest(_part(problem)))

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """All agents have the same arms, and name the same one."""
        stages, fresh = _stages(problem)
        return [(arms, new * problem.agents) for arms, new in [*stages.most_pulls(), (1, fresh)]]

    def most_words(self, problem: Problem) -> int:
        """An arm and a mean from each agent."""
        return 2 * problem.agents

    def most_round_trips(self, problem: Problem) -> int:
        """One."""
        return 1

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Ask every agent for its choice; of the arms that enough agents name, the best mean wins."""
        board, (stages, fresh) = coordinator.scoreboard, _stages(problem)
        coordinator.begin_round("local", live=problem.n)
        answers = coordinator.ask_all(stages.question(fresh), Best)
        votes, sums = np.zeros(problem.n, np.int64), np.zeros(problem.n)  # k_i
        for answer in answers:
            votes[answer.arm] += 1
            sums[answer.arm] += answer.mean
        named = np.flatnonzero(votes)
        means = sums[named] / votes[named]
        board.note_means(named, means)
        candidates = trusted(votes[named], problem.agents)  # A
        best = named[candidates][np.argmax(perturbed(means[candidates], rng, bounded=problem.bounded))]
        board.accept(np.array([best]), 0, "local")
        board.reject(np.setdiff1d(named, best), 0, "local")

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once."""
        stages, fresh = _stages(problem)
        everything = np.broadcast_to(np.arange(problem.n), (runs * problem.agents, problem.n))
        hands = rng.permuted(everything, axis=1)[:, : stages.hand]
        choices = stages.best_of(hands, means, rng).reshape(runs, -1)
        votes, sums = np.zeros((runs, problem.n), np.int64), np.zeros((runs, problem.n))
        rows = np.arange(runs)[:, np.newaxis]
        np.add.at(votes, (rows, choices), 1)
        np.add.at(sums, (rows, choices), rng.binomial(fresh, means[choices]) / fresh)
        answers = np.zeros((runs, problem.n), np.bool_)
        for run in range(runs):
            named = np.flatnonzero(votes[run])
            named = named[trusted(votes[run, named], problem.agents)]
            answers[run, named[np.argmax(perturbed(sums[run, named] / votes[run, named], rng))]] = True
        return answers


def trusted(votes: Ints, agents: int) -> Flags:
    """The arms that more than sqrt(K) agents name; if there is none, all that are named.

    >>> trusted(np.array([1, 5, 3]), agents=9), trusted(np.array([2, 1, 1]), agents=4)
    (array([False,  True, False]), array([ True,  True,  True]))
    """
    enough: Flags = votes > math.sqrt(agents)
    return enough if enough.any() else np.ones(len(votes), np.bool_)


def _part(problem: Problem) -> int:
    """How many arms an agent tries: 6 n / sqrt(K), or all."""
    return min(problem.n, math.ceil(6 * problem.n / math.sqrt(problem.agents)))


def _stages(problem: Problem) -> tuple[Stages, int]:
    """How an agent chooses an arm in half of the time, and how often it pulls that arm in the other half."""
    half = problem.horizon // 2
    return Stages.within(_part(problem), half), problem.horizon - half


def unpaired_only(algorithm: Algorithm, problem: Problem) -> None:
    """Raise `SettingError` if agents would have to number their pulls of the same arm together."""
    if problem.paired or problem.reuses or (problem.numbered and problem.pull_limit is not None):
        raise SettingError(
            f"these arms use each example or logged reward once, or are paired, or the run uses earlier rewards, but "
            f"agents of {algorithm.name} pull the same arm without knowing of each other; use replace=True, "
            "paired=False, or a new run",
            argument="algorithm",
        )
