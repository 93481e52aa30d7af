"""What the paper does not have: how a run goes on when an agent is gone for good."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from collabtop.algorithms.shared.allocation import balanced_time, check_time, pull_balanced
from collabtop.algorithms.shared.schedules import Schedule
from collabtop.coordination.coordinator import Coordinator
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.errors import AgentsGoneError
from collabtop.protocol.messages import Ints


def reclaim_hands(
    coordinator: Coordinator, board: Scoreboard, pulls: int, hand_over: Callable[[], Ints], dealt: Callable[[int], Ints]
) -> Ints:
    """An agent is lost while all hold hands of their own: the others hand over, and its arms are open again.

    `pulls` is what every open arm has had, `dealt` tells the arms that an agent was dealt. Returns the open arms.
    """
    if not pulls:
        return np.arange(len(board))
    while True:
        try:
            handed_over = hand_over()
            break
        except AgentsGoneError:  # one more: the others hand over the same again
            check_time(coordinator, 1)
    return np.concatenate([handed_over, reopen_arms(coordinator, board, pulls, dealt)])


def reopen_arms(coordinator: Coordinator, board: Scoreboard, pulls: int, dealt: Callable[[int], Ints]) -> Ints:
    """The arms that lost agents were dealt, pulled by the others as often as the open ones have been.

    What a lost agent had settled nobody knows, so all of its arms are open, and what it had accepted is still
    to be accepted.
    """
    arms = np.concatenate([np.empty(0, np.int64), *(dealt(agent) for agent in sorted(coordinator.lost))])
    if len(arms):
        check_time(coordinator, balanced_time(len(arms), pulls, max(1, len(coordinator.present))))
        board.add(arms, pull_balanced(coordinator, arms, pulls), pulls)
    return arms


def scheduled_pulls(coordinator: Coordinator, schedule: Schedule, r: int, live: int) -> int:
    """Pulls of each live arm in shared round r, or what the agents that remain can pay of them."""
    if not coordinator.lost:
        return schedule.shared(r)
    return _at_least_one(
        coordinator, live, schedule.shared_at_most(r, live, len(coordinator.present), coordinator.time_left)
    )


def planned_pulls(coordinator: Coordinator, planned: list[tuple[int, int]], live: int) -> int:
    """Pulls of each live arm in the next round of a plan, or what the agents that remain can pay of them.

    `planned` has the arms and the new pulls of each for this round and the later ones.
    """
    if not coordinator.lost:
        return planned[0][1]
    times = [balanced_time(size, pulls, coordinator.agents) for size, pulls in planned]
    # Rounding up costs at most one time step a round.
    share = times[0] * min(1.0, max(0, coordinator.time_left - len(times)) / max(1, sum(times)))
    return _at_least_one(coordinator, live, int(share) * len(coordinator.present) // live)


def _at_least_one(coordinator: Coordinator, live: int, pulls: int) -> int:
    if pulls < 1:
        check_time(coordinator, max(coordinator.time_left + 1, balanced_time(live, 1, len(coordinator.present))))
    return pulls
