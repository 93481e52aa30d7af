"""An example of an algorithm whose agents do something new: each agent votes for its best arms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collabtop.extending import (
    AgentExtension,
    Algorithm,
    Coordinator,
    Ints,
    Message,
    Problem,
    ProtocolError,
    Reals,
    register_extension,
)


class CallVote(Message, frozen=True, tag="voting.CallVote"):
    """Pull every arm `times` times, and vote for the best m."""

    times: int


class Vote(Message, frozen=True, tag="voting.Vote"):
    """The m arms with the best means, and these means."""

    arms: Ints
    means: Reals


@register_extension
class Voting(AgentExtension):
    """What an agent does when a vote is called."""

    name: ClassVar[str] = "voting"
    messages: ClassVar[Mapping[type[Message], type[Message] | None]] = {CallVote: Vote}

    def handle(self, message: CallVote) -> Vote:
        """Pull all arms, and name the best; ties are broken at random."""
        problem, arms = self.agent.problem, np.arange(self.agent.problem.n)
        means = self.agent.pull(arms, np.array([message.times])) / message.times
        best = np.lexsort((self.agent.rng.random(problem.n), -means))[: problem.m]
        return Vote(best, means[best])

    # What sites check:

    @classmethod
    def check(cls, message: CallVote, problem: Problem) -> None:
        if message.times < 1:
            raise ProtocolError("a vote without pulls")

    @classmethod
    def check_answer(cls, message: CallVote, answer: Vote, problem: Problem) -> None:
        named = set(answer.arms.tolist())
        if len(named) != len(answer.arms) or len(named) != problem.m or not named <= set(range(problem.n)):
            raise ProtocolError("a vote for unknown arms, or not for m of them")
        if len(answer.means) != problem.m or not ((answer.means >= 0) & (answer.means <= 1)).all():
            raise ProtocolError("a vote with means outside [0, 1], or not one per arm")

    @classmethod
    def most_pulls(cls, message: CallVote, problem: Problem) -> int:
        return message.times * problem.n

    @classmethod
    def smallest_batch(cls, message: CallVote) -> int:
        return message.times


@dataclass(frozen=True)
class Majority(Algorithm):
    """Every agent pulls every arm, and votes for the best m: 2 m K words and one round trip."""

    name: ClassVar[str] = "majority"
    summary: ClassVar[str] = "Every agent pulls every arm, and votes for the best m."
    iid_only: ClassVar[bool] = True
    extension: ClassVar[type[AgentExtension] | None] = Voting

    def smallest_horizon(self, problem: Problem) -> int:
        return problem.n

    def most_words(self, problem: Problem) -> int:
        return 2 * problem.m * problem.agents

    def most_round_trips(self, problem: Problem) -> int:
        return 1

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        times = problem.horizon // problem.n  # every agent can compute this, so it is free
        coordinator.begin_round("shared", live=problem.n)
        votes = coordinator.ask_all(CallVote(times, free=("times",)), Vote)
        score = np.zeros(problem.n)
        for vote in votes:
            score[vote.arms] += vote.means
        ranked = np.lexsort((rng.random(problem.n), -score))
        coordinator.scoreboard.accept(ranked[: problem.m], round=0, phase="shared")
