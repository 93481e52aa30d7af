"""How the pulls of a shared round are dealt to the agents, and what they add up to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import SiteError
from collabtop.protocol.messages import CoarseMeans, Flags, Ints, Means, Message, Pull, PullOpen, Reals

_MANY = 10_000


class AllAgents:
    """Pulls that every agent makes of every live arm, added up.

    An arm's value is the average over the agents that remain: what an agent added before it was lost is taken out
    again. What each agent added is kept only where a team may lose agents.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._by_agent: dict[int, Reals] = {}
        self._taken_out: frozenset[int] = coordinator.lost
        self._times = 0

    def pull(self, live: Ints, times: int, *, all_live: bool = False) -> tuple[Reals, int]:
        """Let every agent pull every live arm `times` times: by how much the sums and the pulls of an arm grow.

        `all_live` says that no arm has been settled yet, which every agent knows: the list is not sent.
        """
        question = Pull(None if all_live else live, np.array([times]), free=("times",))
        answers = self._coordinator.ask_present(self._to_all(question), Means)
        return self._growth(live, times, {agent: answer.means for agent, answer in answers.items()})

    def pull_open(self, live: Ints, survived: Flags | None, times: int, coarseness: float) -> tuple[Reals, int]:
        """The same with survivors as flags and coarse means."""
        question = PullOpen(survived, times, coarseness, free=("times", "coarseness"))
        answers = self._coordinator.ask_present(self._to_all(question), CoarseMeans)
        return self._growth(live, times, {agent: answer.means() for agent, answer in answers.items()})

    def _to_all(self, question: Message) -> dict[int, Message]:
        return dict.fromkeys(self._coordinator.present, question)

    def _growth(self, live: Ints, times: int, means: Mapping[int, Reals]) -> tuple[Reals, int]:
        coordinator = self._coordinator
        if not means:
            raise SiteError("all agents are lost for good")
        sums, pulls = np.zeros(len(live)), times * len(means)
        for agent, local_means in means.items():
            sums += local_means * times
            if coordinator.tolerates_loss:
                self._by_agent.setdefault(agent, np.zeros(coordinator.scoreboard.n))[live] += local_means * times
        for agent in coordinator.lost - self._taken_out:
            if agent in self._by_agent:
                sums -= self._by_agent.pop(agent)[live]
                pulls -= self._times
        self._taken_out = coordinator.lost
        self._times += times
        return sums, pulls


def pull_in_turn(coordinator: Coordinator, live: Ints, pulls: int, *, all_live: bool = False) -> Reals:
    """Every live arm is pulled `pulls` times by all agents together, each agent its share of each arm.

    What is left over is dealt round-robin over the agents, from arm to arm. All get the list of arms.
    """
    deal = all_turns if len(live) * coordinator.agents <= _MANY else all_turns.__wrapped__
    shares = deal(len(live), pulls, coordinator.agents)
    arms = None if all_live else live
    questions: dict[int, Message] = {
        agent: Pull(arms, times, free=("times",)) for agent, times in enumerate(shares) if times.any()
    }
    sums = np.zeros(len(live))
    for agent, answer in coordinator.ask(questions, Means).items():
        pulled = shares[agent] > 0
        sums[pulled] += answer.means * shares[agent][pulled]
    return sums


# The same shares come back in every run of a study; those of very many arms are not worth the memory.
@lru_cache(maxsize=256)
def all_turns(arms: int, pulls: int, agents: int) -> list[Ints]:
    """The turns of all agents.

    >>> all_turns(arms=3, pulls=5, agents=2)
    [array([3, 2, 3]), array([2, 3, 2])]
    """
    return [turns(arms, pulls, agents, agent) for agent in range(agents)]


def turns(arms: int, pulls: int, agents: int, agent: int) -> Ints:
    """How often one agent pulls each of `arms` arms when their pulls are dealt in turn.

    >>> [turns(arms=3, pulls=5, agents=2, agent=k).tolist() for k in (0, 1)]
    [[3, 2, 3], [2, 3, 2]]
    """
    each, over = divmod(pulls, agents)
    first = np.arange(arms) * over % agents  # the agent that the arm's left-over pulls start with
    return each + ((agent - first) % agents < over)


def pull_balanced(coordinator: Coordinator, live: Ints, pulls: int, *, all_live: bool = False) -> Reals:
    """Every live arm is pulled `pulls` times, by as few agents as an equal load allows (BalancedPullDist)."""
    if pulls == 0:
        return np.zeros(len(live))
    free = ("arms", "times") if all_live else ("times",)
    deal = loads if len(live) <= _MANY else loads.__wrapped__
    present = coordinator.present
    shares = dict(zip(present, deal(len(live), pulls, len(present)), strict=False))
    questions: dict[int, Message] = {
        agent: Pull(live[first : first + len(times)], times, free=free) for agent, (first, times) in shares.items()
    }
    sums = np.zeros(len(live))
    answers = coordinator.ask_present(questions, Means)
    for agent, (first, times) in shares.items():
        if agent in answers:
            sums[first : first + len(times)] += answers[agent].means * times
        else:
            sums[first : first + len(times)] += _pull_instead(coordinator, live[first : first + len(times)], times)
    return sums


def _pull_instead(coordinator: Coordinator, arms: Ints, times: Ints) -> Reals:
    """Agents that are still there pull what a lost one was dealt: the sums."""
    sums, owed = np.zeros(len(arms)), times.copy()
    while owed.any():
        check_time(coordinator, balanced_time(1, int(owed.sum()), len(coordinator.present)))
        ends = np.cumsum(owed)
        length = -(-int(ends[-1]) // len(coordinator.present))
        shares = {
            agent: np.clip(ends, place * length, (place + 1) * length)
            - np.clip(ends - owed, place * length, (place + 1) * length)
            for place, agent in enumerate(coordinator.present)
        }
        questions: dict[int, Message] = {
            agent: Pull(arms[share > 0], share[share > 0]) for agent, share in shares.items() if share.any()
        }
        for agent, answer in coordinator.ask_present(questions, Means).items():
            share = shares[agent]
            sums[share > 0] += answer.means * share[share > 0]
            owed -= share
    return sums


def check_time(coordinator: Coordinator, needed: int) -> None:
    """See that the horizon can pay for what a lost agent left undone."""
    if not coordinator.present:
        raise SiteError("all agents are gone for good")
    if needed > coordinator.time_left:
        raise SiteError(
            f"an agent is gone for good, and what it left undone takes {needed:,} time steps of those that remain: "
            f"only {max(0, coordinator.time_left):,} are left until the horizon"
        )


@lru_cache(maxsize=256)
def loads(arms: int, pulls: int, agents: int) -> list[tuple[int, Ints]]:
    """The shares of all agents that get any, agent 0's first.

    >>> loads(arms=3, pulls=5, agents=2)
    [(0, array([5, 3])), (1, array([2, 5]))]
    """
    shares = [load(arms, pulls, agents, agent) for agent in range(agents)]
    return [(first, times) for first, times in shares if len(times)]


def load(arms: int, pulls: int, agents: int, agent: int) -> tuple[int, Ints]:
    """One agent's share under BalancedPullDist: its first arm, and how often to pull it and the ones after it.

    All pulls of arm 0, then of arm 1 and so on, are laid in a row and cut into equal lengths.

    >>> load(arms=3, pulls=5, agents=2, agent=0)
    (0, array([5, 3]))
    >>> load(arms=3, pulls=5, agents=2, agent=1)
    (1, array([2, 5]))
    """
    length = -(-arms * pulls // agents)
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
    """Time steps that `pulls` of each of `arms` arms take when no agent has more than its share.

    >>> balanced_time(arms=3, pulls=5, agents=2)
    8
    """
    return -(-arms * pulls // agents)
