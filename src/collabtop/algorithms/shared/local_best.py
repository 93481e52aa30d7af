"""An agent extension for algorithms in which each agent finds the best of some arms on its own, then tests it."""

import math
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from collabtop.algorithms.shared.batched_runs import prune_hands
from collabtop.errors import ProtocolError
from collabtop.problem import Problem
from collabtop.protocol import shuffling
from collabtop.protocol.extension import AgentExtension, register_extension
from collabtop.protocol.messages import Ints, Message, Reals
from collabtop.protocol.pruning import prune


class FindBest(Message, frozen=True, tag="local-best.FindBest"):
    """Find the best of your arms by halving, then pull it `fresh` times for an unbiased mean.

    The arms are `count` that you draw yourself or, if that is 0, your hand from the shuffle with this seed. In stage j,
    pull each remaining arm until it has `pulls[j]` pulls, then keep the best `sizes[j]`.
    """

    count: int
    seed: int
    sizes: Ints
    pulls: Ints
    fresh: int


class Best(Message, frozen=True, tag="local-best.Best"):
    """The arm that was left, and the mean of its fresh pulls."""

    arm: int
    mean: float


@register_extension
class LocalBest(AgentExtension):
    """What an agent does when it is asked for its best arm."""

    name: ClassVar[str] = "local-best"
    messages: ClassVar[Mapping[type[Message], type[Message] | None]] = {FindBest: Best}

    def handle(self, message: FindBest) -> Best:
        """Find the best arm, and test it."""
        n, agents = self.agent.problem.n, self.agent.problem.agents
        if message.count:
            arms = self.agent.rng.permutation(n)[: message.count]
        else:
            arms = shuffling.hand(message.seed, n, agents, self.agent.number)
        arms, _ = prune(arms, message.sizes.tolist(), message.pulls.tolist(), self.agent.pull)
        arm, fresh = arms[:1], message.fresh
        return Best(int(arm[0]), float(self.agent.pull(arm, np.array([fresh]))[0]) / fresh)

    # What sites check:

    @classmethod
    def check(cls, message: FindBest, problem: Problem) -> None:
        """Stages that shrink to one arm, and pulls that grow."""
        stages = len(message.sizes)
        if not 0 <= message.count <= problem.n or message.fresh < 1 or len(message.pulls) != stages:
            raise ProtocolError("a search for the best arm without arms, without pulls, or with uneven stages")
        if stages and (message.sizes.min() < 1 or np.diff(message.pulls, prepend=0).min() < 0):
            raise ProtocolError("a search for the best arm with an empty stage, or with fewer pulls than before")

    @classmethod
    def check_answer(cls, message: FindBest, answer: Best, problem: Problem) -> None:
        """An arm that exists, and a mean."""
        is_mean = 0 <= answer.mean <= 1 if problem.bounded else math.isfinite(answer.mean)
        if not 0 <= answer.arm < problem.n or not is_mean:
            raise ProtocolError("a best arm that does not exist, or a mean out of range")

    @classmethod
    def most_pulls(cls, message: FindBest, problem: Problem) -> int:
        """All stages, and the fresh pulls."""
        hand = message.count or -(-problem.n // problem.agents)
        held = np.array([hand, *message.sizes[:-1]])[: len(message.pulls)]
        return int(held @ np.diff(message.pulls, prepend=0)) + message.fresh

    @classmethod
    def smallest_batch(cls, message: FindBest) -> int:
        """The smallest stage: what survives it depends on its pulls."""
        stages = np.diff(message.pulls, prepend=0)
        return int(min([message.fresh, *stages[stages > 0]]))


class Stages(NamedTuple):
    """How an agent finds the best of `hand` arms: halving them in rounds that take the same time."""

    hand: int
    sizes: list[int]
    """Arms that are left after each stage."""
    pulls: list[int]
    """Pulls of an arm by the end of each stage."""

    @classmethod
    def within(cls, hand: int, time: int) -> "Stages":
        """The stages that fit into this time.

        >>> Stages.within(hand=7, time=100)
        Stages(hand=7, sizes=[4, 2, 1], pulls=[4, 12, 28])
        """
        sizes, pulls, rounds = [hand], [0], (hand - 1).bit_length()
        for _ in range(rounds):
            pulls.append(pulls[-1] + time // (sizes[-1] * rounds))
            sizes.append(sizes[-1] - sizes[-1] // 2)
        return cls(hand, sizes[1:], pulls[1:])

    @staticmethod
    def shortest(hand: int) -> int:
        """The time for one pull per arm in the first stage."""
        return hand * (hand - 1).bit_length()

    def question(self, fresh: int, seed: int | None = None) -> FindBest:
        """The question to agents that draw their arms themselves, or from the shuffle with a seed, the only word."""
        sizes, pulls, known = (
            np.array(self.sizes, np.int64),
            np.array(self.pulls, np.int64),
            ("sizes", "pulls", "fresh"),
        )
        if seed is None:
            return FindBest(self.hand, 0, sizes, pulls, fresh, free=("count", "seed", *known))
        return FindBest(0, seed, sizes, pulls, fresh, free=("count", *known))

    def most_pulls(self) -> list[tuple[int, int]]:
        """The number of arms that an agent holds in each stage, and the new pulls of each."""
        return list(zip([self.hand, *self.sizes], np.diff(self.pulls, prepend=0).tolist(), strict=False))

    def best_of(self, hands: Ints, means: Reals, rng: np.random.Generator) -> Ints:
        """The arm that is left of each of many hands, one row per hand; n stands for an arm that does not exist."""
        arms, _ = prune_hands(hands, means, self.sizes, self.pulls, rng)
        return arms[:, 0]
