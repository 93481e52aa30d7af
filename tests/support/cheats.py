"""Algorithms that cheat: each finds the best arms with less than it should need, in a way that the count misses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from collabtop.errors import SettingError
from collabtop.extending import (
    AgentExtension,
    Algorithm,
    Coordinator,
    Ints,
    Means,
    Message,
    Problem,
    Pull,
    Reals,
    register_extension,
)


@dataclass(frozen=True)
class Cheat(Algorithm):
    """Accepts the best arms by the scores that a subclass gets in its own way."""

    iid_only: ClassVar[bool] = True
    needs_bounds: ClassVar[bool] = True

    def smallest_horizon(self, problem: Problem) -> int:
        return 4 * problem.n

    def scores(self, coordinator: Coordinator, problem: Problem) -> Any:
        raise NotImplementedError

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        coordinator.begin_round("shared", live=problem.n)
        ranked = np.lexsort((rng.random(problem.n), -self.scores(coordinator, problem)))
        coordinator.scoreboard.accept(ranked[: problem.m], round=0, phase="shared")


def pull_all(coordinator: Coordinator, times: int = 1) -> Any:
    """Honest: every agent pulls every arm, and the means are added up."""
    answers = coordinator.ask_all(Pull(None, np.array([times]), free=("times",)), Means)
    return sum(answer.means for answer in answers)


class ReadsRewards(Cheat):
    """Reads the agents' rewards through the team, and has them send nothing but one mean."""

    name: ClassVar[str] = "reads-rewards"

    def scores(self, coordinator, problem):
        arms = np.arange(problem.n)
        times = np.r_[np.ones(1, int), np.zeros(problem.n - 1, int)]
        coordinator.ask_all(Pull(None, times, free=("times",)), Means)
        for arm in arms[1:]:
            coordinator.ask({0: Pull(np.array([arm]), np.array([1]), free=("arms", "times"))}, Means)
        sums = np.zeros(problem.n)
        for batch_arms, _, batch_sums, *_ in coordinator.observed():
            sums[batch_arms] += batch_sums
        sums[0] /= coordinator.agents
        return sums


class ReadsRewardsIfItCan(Cheat):
    """Reads the agents' rewards where the team allows it, and guesses elsewhere."""

    name: ClassVar[str] = "reads-rewards-if-it-can"

    def scores(self, coordinator, problem):
        honest = pull_all(coordinator)
        batches = coordinator.observed()
        if batches is None:
            return -honest
        sums = np.zeros(problem.n)
        for arms, _, batch_sums, *_ in batches:
            sums[arms] += batch_sums
        return sums


class ReadsMeans(Cheat):
    """Reads the true means from the arms of the first agent of the team."""

    name: ClassVar[str] = "reads-means"

    def scores(self, coordinator, problem):
        pull_all(coordinator)
        agent = coordinator._team._members[0]
        values = agent._arms.values
        return -values if agent._mirrored else values


class AskTotals(Message, frozen=True, tag="totals.AskTotals"):
    times: int


class Totals(Message, frozen=True, tag="totals.Totals"):
    means: Reals
    hint: Ints | None


@register_extension
class SendsForNothing(AgentExtension):
    """Agents that declare what they send as free."""

    name: ClassVar[str] = "totals"
    messages: ClassVar[Mapping[type[Message], type[Message] | None]] = {AskTotals: Totals}

    def handle(self, message):
        arms = np.arange(self.agent.problem.n)
        means = self.agent.pull(arms, np.array([message.times])) / message.times
        return Totals(means, None, free=("means",))


class DataUpInAFreeField(Cheat):
    """Has its agents declare the means as free."""

    name: ClassVar[str] = "data-up"
    extension: ClassVar[type[AgentExtension] | None] = SendsForNothing

    def scores(self, coordinator, problem):
        return sum(answer.means for answer in coordinator.ask_all(AskTotals(4, free=("times",)), Totals))


class AskBit(Message, frozen=True, tag="bits.AskBit"):
    arm: int
    digit: int


class Bit(Message, frozen=True, tag="bits.Bit"):
    empty: Ints | None
    """None, or an array without numbers; which of them is a word of one bit."""


@register_extension
class SendsBits(AgentExtension):
    """Agents that send one bit by leaving a field out."""

    name: ClassVar[str] = "bits"
    messages: ClassVar[Mapping[type[Message], type[Message] | None]] = {AskBit: Bit}

    def handle(self, message):
        if message.digit == 0:
            self.eighths = round(8 * self.agent.pull(np.array([message.arm]), np.array([1]))[0])
        return Bit(np.empty(0, np.int64) if self.eighths >> message.digit & 1 else None)


class DataUpInAnEmptyField(Cheat):
    """Sends no number: an answer is None or empty, and four of them are a reward in eighths."""

    name: ClassVar[str] = "bits-up"
    extension: ClassVar[type[AgentExtension] | None] = SendsBits

    def check(self, problem):
        if problem.n > 8:
            raise SettingError("n is too large for so many exchanges", argument="arms")

    def scores(self, coordinator, problem):
        scores = np.zeros(problem.n)
        for arm in range(problem.n):
            for digit in range(4):
                answers = coordinator.ask_all(AskBit(arm, digit, free=("arm", "digit")), Bit)
                scores[arm] += sum(answer.empty is not None for answer in answers) << digit
        return scores


class AskHinted(Message, frozen=True, tag="hints.AskHinted"):
    hint: Ints | None


class Hinted(Message, frozen=True, tag="hints.Hinted"):
    means: Reals


@register_extension
class TakesHints(AgentExtension):
    """Agents that could act on a field that is there or not."""

    name: ClassVar[str] = "hints"
    messages: ClassVar[Mapping[type[Message], type[Message] | None]] = {AskHinted: Hinted}

    def handle(self, message):
        return Hinted(self.agent.pull(np.arange(self.agent.problem.n), np.array([1])))


@dataclass(frozen=True)
class DataDownInAMissingField(Cheat):
    """Tells agents which of two arms is better by leaving a field out, and declares that as free unless it pays."""

    pays: bool = False
    name: ClassVar[str] = "hints-down"
    extension: ClassVar[type[AgentExtension] | None] = TakesHints

    def scores(self, coordinator, problem):
        first = pull_all(coordinator)
        coordinator.begin_round("shared", live=problem.n)
        hint = np.empty(0, np.int64) if first[0] > first[-1] else None
        answers = coordinator.ask_all(AskHinted(hint, free=() if self.pays else ("hint",)), Hinted)
        return first + sum(answer.means for answer in answers)


class DataDownInAFreeMessage(Cheat):
    """Declares the list of arms that survived as free, though no agent can know it."""

    name: ClassVar[str] = "data-down"

    def scores(self, coordinator, problem):
        first = pull_all(coordinator)
        best = np.sort(np.argsort(-first, kind="stable")[: max(problem.m, problem.n // 2)])
        coordinator.begin_round("shared", live=len(best))
        answers = coordinator.ask_all(Pull(best, np.array([2]), free=("arms", "times")), Means)
        scores = np.full(problem.n, -1.0)
        scores[best] = sum(answer.means for answer in answers)
        return scores


class SerialWorkInOneRound(Cheat):
    """Lets one agent after the other pull, each after the answer of the one before, and calls it one round."""

    name: ClassVar[str] = "serial"

    def scores(self, coordinator, problem):
        scores = np.zeros(problem.n)
        for agent in coordinator.present:
            question = Pull(None, np.array([problem.horizon // problem.n]), free=("times",))
            scores += coordinator.ask({agent: question}, Means)[agent].means
        return scores
