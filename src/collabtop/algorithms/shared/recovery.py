"""How a run continues when an agent is lost for good. The paper does not cover this."""

from collections.abc import Callable

import numpy as np

from collabtop.algorithms.shared.allocation import balanced_time, check_time, pull_balanced
from collabtop.algorithms.shared.schedules import Schedule
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import AgentsGoneError
from collabtop.protocol.messages import Ints


def reclaim_hands(
    coordinator: Coordinator, pulls: int, hand_over: Callable[[], Ints], dealt_to: Callable[[int], Ints]
) -> Ints:
    """End a local phase in which an agent was lost: the others hand over, and the lost agent's arms are reopened.

    Args:
        coordinator: has lost the agent.
        pulls: how often each open arm has been pulled.
        hand_over: lets the agents hand over, and returns their open arms.
        dealt_to: the arms that an agent was dealt.

    Returns:
        All open arms.
    """
    if not pulls:
        return np.arange(coordinator.scoreboard.n)
    while True:
        try:
            handed_over = hand_over()
            break
        except AgentsGoneError:  # another agent is lost: the rest hand over the same again
            check_time(coordinator, 1)
    return np.concatenate([handed_over, reopen_arms(coordinator, pulls, dealt_to)])


def reopen_arms(coordinator: Coordinator, pulls: int, dealt_to: Callable[[int], Ints]) -> Ints:
    """Let the present agents pull the arms of lost agents as often as the open arms have been pulled; returns them.

    The verdicts of a lost agent are unknown, so all of its arms are open again, including those that it accepted.
    """
    arms = np.concatenate([np.empty(0, np.int64), *(dealt_to(agent) for agent in sorted(coordinator.lost))])
    if len(arms):
        check_time(coordinator, balanced_time(len(arms), pulls, max(1, len(coordinator.present))))
        coordinator.scoreboard.add(arms, *pull_balanced(coordinator, arms, pulls))
    return arms


def scheduled_pulls(coordinator: Coordinator, schedule: Schedule, r: int, live: int) -> int:
    """Pulls of each live arm in shared round r, or as many of them as the remaining agents have time for."""
    if not coordinator.lost:
        return schedule.shared(r)
    present, time_left = len(coordinator.present), coordinator.time_left
    return _at_least_one(coordinator, live, schedule.shared_at_most(r, live, present, time_left))


def planned_pulls(coordinator: Coordinator, planned: list[tuple[int, int]], live: int) -> int:
    """Pulls of each live arm in the next round of a plan, or as many of them as the remaining agents have time for.

    `planned` has the number of live arms and the new pulls of each, for this round and all later ones.
    """
    if not coordinator.lost:
        return planned[0][1]
    times = [balanced_time(size, pulls, coordinator.agents) for size, pulls in planned]
    # Rounding up costs at most one time step per round.
    share = times[0] * min(1.0, max(0, coordinator.time_left - len(times)) / max(1, sum(times)))
    return _at_least_one(coordinator, live, int(share) * len(coordinator.present) // live)


def _at_least_one(coordinator: Coordinator, live: int, pulls: int) -> int:
    """These pulls, or `SiteError` if there are none."""
    if pulls < 1:
        needed = balanced_time(live, 1, max(1, len(coordinator.present)))
        check_time(coordinator, max(coordinator.time_left + 1, needed))
    return pulls
