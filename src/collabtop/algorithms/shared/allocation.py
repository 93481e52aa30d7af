"""How the pulls of a shared round are divided among the agents, and the sums of their rewards."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import SiteError
from collabtop.protocol.messages import CoarseMeans, Flags, Ints, Means, Message, Pull, PullOpen, Reals

# The same shares are needed in every run of a study; those of more arms than this are not worth the memory.
_CACHED_ARMS = 10_000


class AllAgents:
    """Pulls that every agent makes of every live arm, added up over the agents.

    An arm's value is the average over the agents that are still present: when an agent is lost, its earlier rewards
    are subtracted again. Rewards are stored per agent only if the team can lose agents.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._sums_by_agent: dict[int, Reals] = {}
        self._subtracted: frozenset[int] = coordinator.lost
        self._times_so_far = 0

    def pull(self, live: Ints, times: int, *, all_live: bool = False) -> tuple[Reals, int]:
        """Let every agent pull every live arm `times` times: what to add to the sums and to the pulls of each arm.

        `all_live` means that no arm has been settled yet, which every agent knows, so the list is not sent.
        """
        question = Pull(None if all_live else live, np.array([times]), free=("times",))
        answers = self._coordinator.ask_present(self._to_all(question), Means)
        return self._add_up(live, times, {agent: answer.means for agent, answer in answers.items()})

    def pull_open(self, live: Ints, survived: Flags | None, times: int, coarseness: float) -> tuple[Reals, int]:
        """The same, with the survivors sent as flags, and means rounded with this coarseness."""
        question = PullOpen(survived, times, coarseness, free=("times", "coarseness"))
        answers = self._coordinator.ask_present(self._to_all(question), CoarseMeans)
        return self._add_up(live, times, {agent: answer.means() for agent, answer in answers.items()})

    def _to_all(self, question: Message) -> dict[int, Message]:
        return dict.fromkeys(self._coordinator.present, question)

    def _add_up(self, live: Ints, times: int, means: Mapping[int, Reals]) -> tuple[Reals, int]:
        coordinator = self._coordinator
        if not means:
            raise SiteError("all agents are lost for good")
        sums, pulls = np.zeros(len(live)), times * len(means)
        for agent, local_means in means.items():
            sums += local_means * times
            if coordinator.tolerates_loss:
                self._sums_by_agent.setdefault(agent, np.zeros(coordinator.scoreboard.n))[live] += local_means * times
        for agent in coordinator.lost - self._subtracted:
            if agent in self._sums_by_agent:
                sums -= self._sums_by_agent.pop(agent)[live]
                pulls -= self._times_so_far
        self._subtracted = coordinator.lost
        self._times_so_far += times
        return sums, pulls


def pull_in_turn(coordinator: Coordinator, live: Ints, pulls: int, *, all_live: bool = False) -> Reals:
    """Pull every live arm `pulls` times, each agent its share of each arm; returns the sums.

    Pulls left over after an equal division go to the agents in turn, continuing from arm to arm. Every agent gets the
    list of live arms.
    """
    shares = round_robin_shares if len(live) * coordinator.agents <= _CACHED_ARMS else round_robin_shares.__wrapped__
    times_by_agent = shares(len(live), pulls, coordinator.agents)
    arms = None if all_live else live
    questions: dict[int, Message] = {
        agent: Pull(arms, times, free=("times",)) for agent, times in enumerate(times_by_agent) if times.any()
    }
    sums = np.zeros(len(live))
    for agent, answer in coordinator.ask(questions, Means).items():
        times = times_by_agent[agent]
        pulled = times > 0
        sums[pulled] += answer.means * times[pulled]
    return sums


@lru_cache(maxsize=256)
def round_robin_shares(arms: int, pulls: int, agents: int) -> list[Ints]:
    """How often each agent pulls each arm under `pull_in_turn`, agent 0 first.

    >>> round_robin_shares(arms=3, pulls=5, agents=2)
    [array([3, 2, 3]), array([2, 3, 2])]
    """
    each, left_over = divmod(pulls, agents)
    first = np.arange(arms) * left_over % agents  # the agent that gets the arm's first left-over pull
    return [each + ((agent - first) % agents < left_over) for agent in range(agents)]


def pull_balanced(coordinator: Coordinator, live: Ints, pulls: int, *, all_live: bool = False) -> Reals:
    """Pull every live arm `pulls` times, with BalancedPullDist; returns the sums.

    Each arm is pulled by as few agents as an equal load allows.
    """
    if pulls == 0:
        return np.zeros(len(live))
    free = ("arms", "times") if all_live else ("times",)
    shares = balanced_shares if len(live) <= _CACHED_ARMS else balanced_shares.__wrapped__
    present = coordinator.present
    share_by_agent = dict(zip(present, shares(len(live), pulls, len(present)), strict=False))
    questions: dict[int, Message] = {
        agent: Pull(live[first : first + len(times)], times, free=free)
        for agent, (first, times) in share_by_agent.items()
    }
    sums = np.zeros(len(live))
    answers = coordinator.ask_present(questions, Means)
    for agent, (first, times) in share_by_agent.items():
        span = slice(first, first + len(times))
        if agent in answers:
            sums[span] += answers[agent].means * times
        else:
            sums[span] += _pull_for_lost(coordinator, live[span], times)
    return sums


@lru_cache(maxsize=256)
def balanced_shares(arms: int, pulls: int, agents: int) -> list[tuple[int, Ints]]:
    """The `balanced_share` of every agent that has one, agent 0 first.

    >>> balanced_shares(arms=3, pulls=5, agents=2)
    [(0, array([5, 3])), (1, array([2, 5]))]
    """
    shares = [balanced_share(arms, pulls, agents, agent) for agent in range(agents)]
    return [(first, times) for first, times in shares if len(times)]


def balanced_share(arms: int, pulls: int, agents: int, agent: int) -> tuple[int, Ints]:
    """One agent's share under BalancedPullDist: its first arm, and how often to pull it and those after it.

    All pulls of arm 0, then those of arm 1 and so on, are laid in a row, which is cut into equal lengths.

    >>> balanced_share(arms=3, pulls=5, agents=2, agent=0)
    (0, array([5, 3]))
    >>> balanced_share(arms=3, pulls=5, agents=2, agent=1)
    (1, array([2, 5]))
    """
    length = balanced_time(arms, pulls, agents)
    start = min(agent * length, arms * pulls)
    stop = min(start + length, arms * pulls)
    if start == stop:
        return 0, np.empty(0, np.int64)
    first, last = start // pulls, (stop - 1) // pulls
    times = [pulls] * (last - first + 1)
    times[0] -= start - first * pulls
    times[-1] -= (last + 1) * pulls - stop
    return first, np.array(times)


def balanced_time(arms: int, pulls: int, agents: int) -> int:
    """Time steps for `pulls` pulls of each of `arms` arms, divided evenly over the agents.

    >>> balanced_time(arms=3, pulls=5, agents=2)
    8
    """
    return -(-arms * pulls // agents)


def _pull_for_lost(coordinator: Coordinator, arms: Ints, times: Ints) -> Reals:
    """The agents that are still present make the pulls of a lost one; returns the sums."""
    sums, missing = np.zeros(len(arms)), times.copy()
    while missing.any():
        present = coordinator.present
        length = balanced_time(1, int(missing.sum()), max(1, len(present)))
        check_time(coordinator, length)
        ends = np.cumsum(missing)
        shares: dict[int, Ints] = {}
        for i, agent in enumerate(present):
            low, high = i * length, (i + 1) * length
            shares[agent] = np.clip(ends, low, high) - np.clip(ends - missing, low, high)
        questions: dict[int, Message] = {
            agent: Pull(arms[share > 0], share[share > 0]) for agent, share in shares.items() if share.any()
        }
        for agent, answer in coordinator.ask_present(questions, Means).items():
            share = shares[agent]
            sums[share > 0] += answer.means * share[share > 0]
            missing -= share
    return sums


def check_time(coordinator: Coordinator, needed: int) -> None:
    """Raise `SiteError` if the time left does not suffice to replace the pulls of a lost agent."""
    if not coordinator.present:
        raise SiteError("all agents are lost for good")
    if needed > coordinator.time_left:
        raise SiteError(
            f"an agent is lost for good, and replacing its pulls takes {needed:,} time steps, "
            f"but only {max(0, coordinator.time_left):,} are left until the horizon"
        )
