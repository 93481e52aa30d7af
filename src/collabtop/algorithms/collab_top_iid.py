"""Collab-Top-m-IID (algorithms 1 to 5 of the paper), with the corrections of the errata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import pull_balanced
from collabtop.algorithms.shared.collab_search import collab_search
from collabtop.algorithms.shared.elimination import eliminate, settle_rest
from collabtop.algorithms.shared.recovery import reclaim_hands, scheduled_pulls
from collabtop.algorithms.shared.schedules import SCHEDULES, Schedule, ScheduleName
from collabtop.coordination.coordinator import Coordinator
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.errors import AgentsGoneError, InputError
from collabtop.problem import Problem, error_bound
from collabtop.protocol import hashing
from collabtop.protocol.hashing import draw_coefficients
from collabtop.protocol.messages import (
    Accepted,
    Border,
    Cut,
    Deal,
    Hand,
    HandOver,
    Held,
    Ints,
    PullHand,
)


@dataclass(frozen=True)
class CollabTopIID(Algorithm):
    """The paper's algorithm for IID arms: agents prune hands of their own, then finish together.

    Args:
        schedule: how often arms are pulled. `"paper"` is T_r as printed, which leaves most of the horizon
            unspent; `"full"` divides the time that is left equally over the rounds that are left.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9] + [0.4] * 99)
    >>> ct.identify(arms, m=1, agents=4, horizon=2_000, algorithm=ct.CollabTopIID(schedule="full"), seed=1).top
    [0]
    """

    name: ClassVar[str] = "collab-top-iid"
    summary: ClassVar[str] = "The paper's algorithm for IID arms: agents prune arms of their own, then finish together."
    iid_only: ClassVar[bool] = True
    survives_loss: ClassVar[bool] = True
    schedule: ScheduleName = "paper"

    def __post_init__(self) -> None:
        if self.schedule not in tuple(SCHEDULES):  # compared, not hashed, whatever it is
            raise InputError(f"schedule is {self.schedule!r}, but {sorted(SCHEDULES)} are known", argument="schedule")

    def smallest_horizon(self, problem: Problem) -> int:
        """Every arm is pulled once before the first elimination, whatever the hash deals."""
        return SCHEDULES[self.schedule].smallest_horizon(problem)

    def most_pulls(self, problem: Problem) -> list[tuple[int, int]]:
        """What the schedule allows, if the dearest arms stay open longest."""
        return SCHEDULES[self.schedule].most_pulls(problem)

    def error_bound(self, means: ArrayLike, problem: Problem) -> float | None:
        """The bound of the paper, which is proved for its own schedule."""
        return error_bound(means, problem.m, problem.agents, problem.horizon) if self.schedule == "paper" else None

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Algorithm 1: local rounds while the hands are balanced, then shared rounds."""
        schedule = SCHEDULES[self.schedule](problem)
        sizes = schedule.sizes  # n_0, ..., n_R
        board, live = coordinator.scoreboard, np.arange(problem.n)  # I_0

        coefficients = draw_coefficients(problem.n, rng)
        r, to_accept, phase = 0, problem.m, "local"  # m_0
        try:
            hands = [held.size for held in coordinator.ask_all(Deal(coefficients), Held)]  # |I_0^k|
            while 0 < to_accept < sizes[r] and balanced(hands):
                coordinator.begin_round(phase, live=sizes[r])
                hands, accepted = local_elim(coordinator, schedule, r, hands, to_accept, rng)
                r, to_accept = r + 1, to_accept - accepted
            if r > 0:
                live = hand_over(coordinator, schedule, board, open_arms=to_accept > 0)
        except AgentsGoneError:
            live = reclaim_hands(
                coordinator,
                board,
                schedule.pulls_so_far,
                lambda: hand_over(coordinator, schedule, board, open_arms=True),
                lambda agent: hashing.hand(coefficients, problem.n, problem.agents, agent),
            )
            to_accept = problem.m - board.accepted
            r = next(q for q in range(r, len(sizes)) if sizes[q + 1] < len(live))

        while 0 < to_accept < len(live):
            phase = "shared"
            coordinator.begin_round(phase, live=len(live))
            live = global_elim(coordinator, schedule, board, r, live, to_accept, rng)
            r, to_accept = r + 1, problem.m - board.accepted
        settle_rest(board, live, to_accept, r - 1, phase)


def balanced(hands: list[int]) -> bool:
    """Whether no agent holds more than twice as many arms as another.

    >>> balanced([58, 60, 31]), balanced([4, 0])
    (True, False)
    """
    return max(hands) <= 2 * min(hands)


def local_elim(
    coordinator: Coordinator, schedule: Schedule, r: int, hands: list[int], to_accept: int, rng: np.random.Generator
) -> tuple[list[int], int]:
    """Algorithm 2, LocalElim(r): agents settle arms on their own; the coordinator learns numbers only."""
    free = ("times",) if schedule.known else ()
    coordinator.tell_all(PullHand(schedule.local(r, hands), free=free))
    # The value just below the border is that of sigma_r(m_r + 1), the next one that of sigma_r(m_r).
    border = collab_search(coordinator, hands, sum(hands) - to_accept, rng, rank_is_known=r == 0)
    coordinator.tell(
        {
            k: Border(upper=border.next, lower=border.last, top=held - below)
            for k, (held, below) in enumerate(zip(hands, border.below, strict=True))
        }
    )
    keep = schedule.sizes[r + 1]  # n_{r+1}
    if keep:
        hands = collab_search(coordinator, hands, keep, rng, rank_is_known=True).below  # |I_{r+1}^k|
    else:
        hands = [0] * len(hands)
    settled = coordinator.ask({k: Cut(held) for k, held in enumerate(hands)}, Accepted)
    return hands, sum(answer.count for answer in settled.values())  # |A_r|


def hand_over(coordinator: Coordinator, schedule: Schedule, board: Scoreboard, *, open_arms: bool) -> Ints:
    """Lines 9 and 10: agents hand over I_r^k, if anything is left to decide, and Q_r^k, with their means."""
    question = HandOver(open_arms, schedule.used, free=("used",) if schedule.known else ())
    hands = coordinator.ask_all(question, Hand)
    pulls = schedule.pulls_so_far
    live = np.concatenate([hand.arms for hand in hands])  # I_r
    board.add(live, np.concatenate([hand.means for hand in hands]) * pulls, pulls)
    accepted = np.concatenate([hand.accepted for hand in hands])  # Q_r
    board.accept_unseen(accepted, np.concatenate([hand.accepted_means for hand in hands]), "local")
    return live


def global_elim(
    coordinator: Coordinator,
    schedule: Schedule,
    board: Scoreboard,
    r: int,
    live: Ints,
    to_accept: int,
    rng: np.random.Generator,
) -> Ints:
    """Algorithm 3, GlobalElim(r): agents pull what they are dealt, the coordinator settles arms."""
    pulls = scheduled_pulls(coordinator, schedule, r, len(live))
    board.add(live, pull_balanced(coordinator, live, pulls, all_live=r == 0), pulls)
    return eliminate(board, live, to_accept, schedule.sizes[r + 1], r, "shared", rng)  # I_{r+1}
