"""Collab-Top-m-IID (algorithms 1 to 5 of the paper), with the corrections of docs/errata.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import pull_balanced
from collabtop.algorithms.shared.batched_runs import BatchedRuns
from collabtop.algorithms.shared.collab_search import collab_search
from collabtop.algorithms.shared.elimination import eliminate, settle_rest
from collabtop.algorithms.shared.recovery import reclaim_hands, scheduled_pulls
from collabtop.algorithms.shared.schedules import SCHEDULES, Schedule, ScheduleName, check_schedule, decisive
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import AgentsGoneError
from collabtop.problem import Problem, error_bound
from collabtop.protocol import hashing
from collabtop.protocol import messages as msg
from collabtop.protocol.hashing import draw_coefficients
from collabtop.protocol.messages import Flags, Ints, Message, Reals


@dataclass(frozen=True)
class CollabTopIID(Algorithm):
    """The paper's algorithm for IID arms: each agent prunes its own hand, then all finish together.

    Args:
        schedule: how often arms are pulled. `"paper"` is T_r as printed, which leaves most of the horizon
            unspent; `"full"` divides the remaining time equally over the remaining rounds.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9] + [0.4] * 99)
    >>> ct.identify(arms, m=1, agents=4, horizon=2_000, algorithm=ct.CollabTopIID(schedule="full"), seed=1).top
    [0]
    """

    name: ClassVar[str] = "collab-top-iid"
    summary: ClassVar[str] = (
        "The paper's algorithm for IID arms: each agent prunes its own arms, then all finish together."
    )
    messages: ClassVar[tuple[type[Message], ...]] = (
        *(msg.Deal, msg.PullHand, msg.Sample, msg.Narrow, msg.Border, msg.Cut, msg.HandOver),
        msg.Pull,
    )
    iid_only: ClassVar[bool] = True
    survives_loss: ClassVar[bool] = True
    schedule: ScheduleName = "paper"

    def __post_init__(self) -> None:
        check_schedule(self.schedule)

    def smallest_horizon(self, problem: Problem) -> int:
        """Every arm is pulled once before the first elimination, with any hash."""
        return SCHEDULES[self.schedule].smallest_horizon(problem)

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """The pulls of the schedule, if the most expensive arms stay open longest."""
        return SCHEDULES[self.schedule].most_pulls(problem)

    def error_bound(self, means: ArrayLike, problem: Problem) -> float | None:
        """The paper's bound, which is proved for the paper's schedule."""
        return error_bound(means, problem.m, problem.agents, problem.horizon) if self.schedule == "paper" else None

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Algorithm 1: local rounds while the hands are balanced, then shared rounds."""
        schedule = SCHEDULES[self.schedule](problem)
        sizes = schedule.sizes  # n_0, ..., n_R
        live, r, to_accept = np.arange(problem.n), 0, problem.m  # I_0, m_0
        coefficients = draw_coefficients(problem.n, rng)  # of the hash h
        try:
            hands = [held.size for held in coordinator.ask_all(msg.Deal(coefficients), msg.Held)]  # |I_0^k|
            while 0 < to_accept < sizes[r] and balanced(hands):
                coordinator.begin_round("local", live=sizes[r])
                hands, accepted = local_elim(coordinator, schedule, r, hands, to_accept)
                r, to_accept = r + 1, to_accept - accepted  # m_{r+1}
            if r > 0:
                live = hand_over(coordinator, schedule, r, open_arms=to_accept > 0)  # I_r
        except AgentsGoneError:
            live = reclaim_hands(
                coordinator,
                schedule.pulls_so_far,
                lambda: hand_over(coordinator, schedule, r, open_arms=True),
                lambda agent: hashing.hand(coefficients, problem.n, problem.agents, agent),
            )
            r = next(q for q in range(r, len(sizes)) if sizes[q + 1] < len(live))  # the next round that settles arms

        live = settle_rest(coordinator.scoreboard, live, problem.m, r - 1, "local")
        while len(live):
            coordinator.begin_round("shared", live=len(live))
            live = global_elim(coordinator, schedule, r, live, problem.m, rng)  # I_{r+1}
            r += 1

    def simulate(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> Flags:
        """Simulate the answers of many runs at once.

        Local and shared rounds settle arms alike; only their pulls may differ. Each arm's agent is drawn independently,
        while the hash of a run is (10 ln n)-wise independent.
        """
        schedule, batch = SCHEDULES[self.schedule](problem), BatchedRuns(problem, means, runs, rng)
        if not schedule.predetermined:
            largest, local = _deal(schedule.sizes, problem.agents, runs, rng)
        for r in range(len(decisive(schedule.sizes))):
            if schedule.predetermined:
                batch.pull(schedule.shared(r))
            else:
                batch.pull(schedule.mixed(r, largest[r], local[r])[batch.runs])
            batch.eliminate(schedule.sizes[r + 1])
        return batch.answers


def _deal(sizes: Sequence[int], agents: int, runs: int, rng: np.random.Generator) -> tuple[Ints, Flags]:
    """The largest hand in each round of many runs, and whether the round is local: one row per round.

    Rewards do not depend on who holds an arm, so the arms that a round settles are a random part of the hands. It is
    enough to draw how many of them each agent holds.
    """
    rounds = sum(size >= agents for size in sizes)  # in a later one, an agent has no arm
    settled = np.array([before - after for before, after in pairwise([*sizes[:rounds], 0])], np.int64)
    hands = rng.multinomial(settled[::-1], np.full(agents, 1 / agents), (runs, rounds)).cumsum(axis=1)[:, ::-1]
    largest, local = np.ones((len(sizes), runs), np.int64), np.zeros((len(sizes), runs), np.bool_)
    largest[:rounds] = hands.max(axis=2).T
    local[:rounds] = np.logical_and.accumulate(largest[:rounds] <= 2 * hands.min(axis=2).T)  # `balanced` so far
    return largest, local


def balanced(hands: list[int]) -> bool:
    """Whether no agent holds more than twice as many arms as another.

    >>> balanced([58, 60, 31]), balanced([4, 0])
    (True, False)
    """
    return max(hands) <= 2 * min(hands)


def local_elim(
    coordinator: Coordinator, schedule: Schedule, r: int, hands: list[int], to_accept: int
) -> tuple[list[int], int]:
    """Algorithm 2, LocalElim(r): agents settle arms on their own, and the coordinator learns only how many.

    Returns the sizes of the hands after the round, |I_{r+1}^k|, and the number of arms accepted in it, |A_r|.
    """
    pulls = schedule.local(r, hands)  # T_{r+1} - T_r
    free = ("times",) if schedule.predetermined else ()
    coordinator.tell_all(msg.PullHand(pulls, free=free, chosen_from=_next_round_or_end(schedule, r)))
    # Of the two values at the border, the lower is the mean of sigma_r(m_r + 1), the upper that of sigma_r(m_r).
    border = collab_search(coordinator, hands, sum(hands) - to_accept, then=msg.Border, rank_is_known=r == 0)
    coordinator.tell(
        {
            agent: msg.Border(border.next, border.last, top=held - below, chosen_from=border.chosen_from)
            for agent, (held, below) in enumerate(zip(hands, border.below, strict=True))
        }
    )
    keep = schedule.sizes[r + 1]  # n_{r+1}
    chosen_from: tuple[str, ...] = ()
    if keep:
        search = collab_search(coordinator, hands, keep, then=msg.Cut, rank_is_known=True)
        hands, chosen_from = search.below, search.chosen_from
    else:
        hands = [0] * len(hands)
    cuts = {agent: msg.Cut(size, chosen_from=chosen_from) for agent, size in enumerate(hands)}
    answers = coordinator.ask(cuts, msg.Accepted)
    return hands, sum(answer.count for answer in answers.values())


def _next_round_or_end(schedule: Schedule, r: int) -> tuple[str, ...]:
    """What the first message after local round r - 1 is chosen from; nothing if all agents know which one it is.

    In round 0 they know all hands from the hash. With fewer than two open arms there is no further local round.
    """
    if r == 0 or schedule.sizes[r] < 2:
        return ()
    return msg.kinds_of(msg.PullHand, msg.HandOver if schedule.predetermined else msg.TimeUsed)


def hand_over(coordinator: Coordinator, schedule: Schedule, r: int, *, open_arms: bool) -> Ints:
    """Lines 9 and 10 of algorithm 1: agents send Q_r^k and, if `open_arms`, I_r^k, with their means; returns I_r."""
    chosen_from = _next_round_or_end(schedule, r)
    if not schedule.predetermined:  # the pulls of shared rounds depend on the time that is left
        coordinator.tell_all(msg.TimeUsed(schedule.used, chosen_from=chosen_from))
        chosen_from = ()
    hands = coordinator.ask_all(msg.HandOver(open_arms, chosen_from=chosen_from), msg.Hand)
    board, pulls = coordinator.scoreboard, schedule.pulls_so_far
    live = np.concatenate([hand.arms for hand in hands])
    board.add(live, np.concatenate([hand.means for hand in hands]) * pulls, pulls)
    accepted = np.concatenate([hand.accepted for hand in hands])  # Q_r
    board.accept_unseen(accepted, np.concatenate([hand.accepted_means for hand in hands]), "local")
    return live


def global_elim(
    coordinator: Coordinator, schedule: Schedule, r: int, live: Ints, m: int, rng: np.random.Generator
) -> Ints:
    """Algorithm 3, GlobalElim(r): agents make the pulls that they are assigned, and the coordinator settles arms."""
    board = coordinator.scoreboard
    pulls = scheduled_pulls(coordinator, schedule, r, len(live))  # T_{r+1} - T_r
    board.add(live, *pull_balanced(coordinator, live, pulls, all_live=r == 0))
    return eliminate(board, live, m, schedule.sizes[r + 1], r, "shared", rng)  # I_{r+1}
