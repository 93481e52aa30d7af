"""Frugal-Top: agents prune their hands without messages, hand over the few arms left, and finish together."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import pull_balanced, pulling_agents
from collabtop.algorithms.shared.batched_runs import BatchedRuns, deal_hands, prune_hands
from collabtop.algorithms.shared.elimination import eliminate
from collabtop.algorithms.shared.frugal_bound import frugal_error_bound, frugal_round_trips_bound, frugal_words_bound
from collabtop.algorithms.shared.frugal_choice import choose_plans, possible_plans, smallest_adaptive_horizon
from collabtop.algorithms.shared.frugal_plan import FrugalPlan, smallest_frugal_horizon
from collabtop.algorithms.shared.recovery import planned_pulls, reopen_arms
from collabtop.algorithms.shared.schedules import envelope
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import SettingError
from collabtop.problem import Problem
from collabtop.protocol import shuffling
from collabtop.protocol.messages import Flags, Hand, Ints, Message, OpenArms, Prune, Pull, Reals
from collabtop.validation import real_number, whole_number, wrong_value


@dataclass(frozen=True)
class FrugalTop(Algorithm):
    """The default for IID arms: few words, few round trips, and the whole horizon is spent.

    Args:
        risk: an upper limit on the probability that the shuffle deals some agent more of the best m than it
            keeps room for. It is part of the error bound; a smaller risk means that more arms are handed over.
        round_trips: the most round trips that a run may take, at least 1. None leaves the number to the plan, which
            takes about 7 for m = 1 and 11 for m = 8 with 10 agents; more are of little use.
        adaptive: for m = 1, choose one of several plans after the first ranking: the more arms are clearly worse than
            the best one by then, the fewer stay open. It suits means that are spaced evenly near the best one, costs a
            word per agent, and sites cannot compare its questions with a plan, or add noise.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9] + [0.4] * 99)
    >>> result = ct.identify(arms, m=1, agents=4, horizon=2_000, algorithm=ct.FrugalTop(), seed=1)
    >>> result.top, result.words, result.round_trips
    ([0], 128, 5)
    >>> result = ct.identify(arms, m=1, agents=4, horizon=2_000, algorithm=ct.FrugalTop(round_trips=2), seed=1)
    >>> result.top, result.words, result.round_trips
    ([0], 32, 2)
    """

    name: ClassVar[str] = "frugal-top"
    summary: ClassVar[str] = "The default for IID arms: few words, few round trips, and the whole horizon is spent."
    fixed_schedule: ClassVar[bool] = True
    messages: ClassVar[tuple[type[Message], ...]] = (Prune, Pull, OpenArms)
    private: ClassVar[bool] = True
    iid_only: ClassVar[bool] = True
    survives_loss: ClassVar[bool] = True
    risk: float = 0.001
    round_trips: int | None = None
    adaptive: bool = False

    def __post_init__(self) -> None:
        if self.adaptive:
            if self.round_trips is not None:
                raise SettingError("adaptive=True has no limit on round trips: leave round_trips out")
            for name in ("fixed_schedule", "private"):  # of the class, where an option decides
                object.__setattr__(self, name, False)
        if self.round_trips is not None:
            whole_number("round_trips", self.round_trips, least=1)
        if not 0 < real_number("risk", self.risk) < 1:
            raise wrong_value("risk", self.risk, "a probability between 0 and 1 is needed")

    def check(self, problem: Problem) -> None:
        """The adaptive run needs m = 1."""
        if self.adaptive and problem.inner.m > 1:
            raise SettingError(f"adaptive=True needs m = 1, but m is {problem.m}: leave adaptive out")

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm before the first elimination."""
        if self.adaptive:
            return smallest_adaptive_horizon(problem.n, problem.agents, self.risk)
        return smallest_frugal_horizon(problem.n, problem.inner.m, problem.agents, self.risk, self.round_trips)

    def plans(self, problem: Problem) -> tuple[FrugalPlan, ...]:
        """The stages of a run, with m <= n / 2; several plans only if `adaptive`, the same up to the first ranking."""
        return possible_plans(problem, self.risk, self.round_trips, adaptive=self.adaptive)

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The pulls of the plan: all hands in each local stage, then the open arms of each shared round."""
        return envelope([plan.pulls(problem) for plan in self.plans(problem)])

    def most_words(self, problem: Problem) -> int:
        """The words of the plan, which has the same sizes at every horizon."""
        return frugal_words_bound(self._shortest(problem), self.risk, self.round_trips, adaptive=self.adaptive)

    def most_round_trips(self, problem: Problem) -> int:
        """One to deal, prune and hand over, and one per shared round after that."""
        return frugal_round_trips_bound(self._shortest(problem), self.risk, self.round_trips, adaptive=self.adaptive)

    def error_bound(self, means: ArrayLike, problem: Problem) -> float:
        """The bound of docs/frugal-top.md."""
        return frugal_error_bound(
            means, problem.m, problem.agents, problem.horizon, self.risk, self.round_trips, adaptive=self.adaptive
        )

    def _shortest(self, problem: Problem) -> Problem:
        return problem.at_horizon(self.smallest_horizon(problem))

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """All local stages in one exchange, then shared rounds."""
        plan, *others = plans = self.plans(problem)
        board, r, live = coordinator.scoreboard, 0, np.arange(problem.n)  # I_0
        while len(live):
            phase = "local" if r == 0 and plan.local_pulls else "shared"
            coordinator.begin_round(phase, live=len(live))
            if phase == "local":
                live = prune(coordinator, problem.n, plan, rng)
            else:
                pulls = planned_pulls(coordinator, plan.rounds[r:], len(live))
                board.add(live, *pull_balanced(coordinator, live, pulls, all_live=len(live) == problem.n))
            if r == 0 and others:
                plan = choose(coordinator, live, plans)
            live = eliminate(board, live, problem.m, plan.sizes[r + 1], r, phase, rng)  # I_{r+1}
            r += 1

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once; who pulls an arm in a shared round matters for noise only."""
        plan, *others = plans = self.plans(problem)
        batch = BatchedRuns(problem, means, runs, rng)
        if plan.local_pulls:
            prune_batch(batch, problem.agents, plan, problem.noise)
        else:
            batch.pull(plan.shared_pulls[0])
        if not others:
            share_batch(batch, plan)
            return batch.answers
        chosen = choose_plans(batch.sums / plan.shared_pulls[0], plan.shared_pulls[0], problem.n, plans)
        for number in np.unique(chosen):
            share_batch(batch.part(chosen == number), plans[number])
        return batch.answers


def choose(coordinator: Coordinator, live: Ints, plans: tuple[FrugalPlan, ...]) -> FrugalPlan:
    """Choose a plan by the first ranking. The number of arms that it leaves open tells the agents which one it is."""
    board = coordinator.scoreboard
    chosen = plans[int(choose_plans(board.means(live)[np.newaxis], board.pulls(live), board.n, plans)[0])]
    (size, pulls), *_ = rounds = chosen.rounds[1:]
    pulling = max(pulling_agents(*each, coordinator.agents) for each in rounds)  # the others are not asked again
    coordinator.tell(dict.fromkeys(coordinator.present[:pulling], OpenArms(size, pulls, free=("times",))))
    return chosen


def share_batch(batch: BatchedRuns, plan: FrugalPlan) -> None:
    """End the first round of many runs at once, and make the shared rounds after it."""
    batch.eliminate(plan.sizes[1])
    for (_, pulls), keep in zip(plan.rounds[1:], plan.sizes[2:], strict=True):
        batch.pull(pulls)
        batch.eliminate(keep)


def prune(coordinator: Coordinator, n: int, plan: FrugalPlan, rng: np.random.Generator) -> Ints:
    """Agents prune their hands, pull the arms left for the first comparison, and hand them over; returns the arms."""
    sizes = np.array([*plan.local_sizes[1:], plan.local_sizes[-1]])
    pulls = np.array([*plan.local_pulls, plan.shared_pulls[0]])
    question = Prune(int(rng.integers(2**31)), sizes, pulls, free=("sizes", "pulls"))
    hands = coordinator.ask_present(dict.fromkeys(coordinator.present, question), Hand)
    total = plan.shared_pulls[0]
    for hand in hands.values():
        coordinator.scoreboard.add(hand.arms, hand.means * total, total)
    reopened = reopen_arms(
        coordinator, total, lambda agent: shuffling.hand(question.seed, n, coordinator.agents, agent)
    )
    return np.concatenate([*(hand.arms for hand in hands.values()), reopened])


def prune_batch(batch: BatchedRuns, agents: int, plan: FrugalPlan, noise: float = 0.0) -> None:
    """Prune the hands of many runs at once, as `Agent` does: hands are in random order, the first of equals stays."""
    runs, hands = len(batch.live), deal_hands(batch.live, agents, batch.rng)
    sizes, pulls = [*plan.local_sizes[1:], 0], [*plan.local_pulls, plan.shared_pulls[0]]
    hands, sums = prune_hands(hands, batch.means, sizes, pulls, batch.rng, noise)
    batch.live, batch.sums = hands.reshape(runs, -1), sums.reshape(runs, -1).astype(np.float64)
