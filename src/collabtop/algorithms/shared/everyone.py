"""Pulls that every agent makes of every open arm, added up over the agents that are still there."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from collabtop.coordination.team import Team
from collabtop.errors import SiteError
from collabtop.protocol.messages import CoarseMeans, Flags, Ints, Means, Message, Pull, PullOpen, Reals


class Everyone:
    """Asks all agents for all open arms; what a lost agent had added before is taken out again.

    An arm's value is then the average over the agents that remain. What each agent added is kept only where a team
    may lose agents.
    """

    def __init__(self, team: Team, n: int) -> None:
        self._team, self._n = team, n
        self._by_agent: dict[int, Reals] = {}
        self._taken_out: frozenset[int] = team.lost
        self._times = 0

    def pull_each(self, live: Ints, times: int, *, all_live: bool = False) -> tuple[Reals, int]:
        """Every agent pulls every live arm `times` times: what the sums and the pulls of an arm grow by.

        `all_live` says that no arm has been settled yet, which everybody knows: the list is not sent.
        """
        question = Pull(None if all_live else live, np.array([times]), free=("times",))
        answers = self._team.ask_present(self._to_all(question), Means)
        return self._grown(live, times, {agent: answer.means for agent, answer in answers.items()})

    def pull_open(self, live: Ints, survived: Flags | None, times: int, coarseness: float) -> tuple[Reals, int]:
        """The same with survivors as flags and coarse means."""
        question = PullOpen(survived, times, coarseness, free=("times", "coarseness"))
        answers = self._team.ask_present(self._to_all(question), CoarseMeans)
        return self._grown(live, times, {agent: answer.means() for agent, answer in answers.items()})

    def _to_all(self, question: Message) -> dict[int, Message]:
        return dict.fromkeys(self._team.present, question)

    def _grown(self, live: Ints, times: int, means: Mapping[int, Reals]) -> tuple[Reals, int]:
        if not means:
            raise SiteError("all agents are gone for good")
        sums, pulls = np.zeros(len(live)), times * len(means)
        for agent, their in means.items():
            sums += their * times
            if self._team.tolerates_loss:
                self._by_agent.setdefault(agent, np.zeros(self._n))[live] += their * times
        for agent in self._team.lost - self._taken_out:
            if agent in self._by_agent:
                sums -= self._by_agent.pop(agent)[live]
                pulls -= self._times
        self._taken_out = self._team.lost
        self._times += times
        return sums, pulls
