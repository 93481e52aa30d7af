"""Rewards of an agent that are not added up yet."""

import math
from collections import deque
from collections.abc import Sequence

import numpy as np

from collabtop.arms.base import Drawn, Ints, Reals
from collabtop.arms.calls import PullAttempt
from collabtop.runlog.tally import Tally

_Part = tuple[PullAttempt, float | Drawn, float]
"""What an attempt gave, and how long it took; a number if it is one reward without cost and note."""


class RewardBuffer:
    """Pulls of one agent that are not added up yet."""

    def __init__(self) -> None:
        self.added_up = -math.inf
        """When pulls of this agent were last added up."""
        self.parts: deque[_Part] = deque()
        """What each attempt gave. Any thread may append to it, without a lock."""

    def take(self) -> "BufferedPulls | None":
        """All that was added, which is no longer in the buffer then; None if there is nothing."""
        parts = [self.parts.popleft() for _ in range(len(self.parts))]
        return BufferedPulls(parts) if parts else None


class BufferedPulls:
    """Pulls of one agent; those made at the same time may come in any order."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        attempts = [attempt for attempt, _, _ in parts]
        self._arms: Ints = np.array([attempt.arm for attempt in attempts])
        self._numbers = [attempt.number for attempt in attempts]
        self._given = [given for _, given, _ in parts]
        self._seconds = [seconds for _, _, seconds in parts]
        self._plain: Reals | None = None  # the rewards, if each pull gave only a number
        if all(isinstance(given, float) for given in self._given):
            self._plain = np.array(self._given)

    @property
    def pulls(self) -> int:
        """The number of pulls."""
        return int(self._counts().sum())

    def pairs(self) -> list[tuple[int, Drawn]]:
        """The arms and what was drawn of them."""
        return list(zip(self._arms.tolist(), self._drawn(), strict=True))

    def add_to(self, tally: Tally, agent: int, failure_mode: str) -> None:
        """Add them up, in the order in which they were made."""
        if self._plain is not None:
            tally.add_rewards(agent, self._arms, self._plain)
            return
        for arm, drawn in self.pairs():
            tally.add_pulls(agent, arm, drawn.rewards, failure_mode)

    def plain_calls(self) -> tuple[list[int], float]:
        """The numbers of the pulls that gave only a reward, and how long their calls took together."""
        calls = zip(self._given, self._numbers, self._seconds, strict=True)
        plain = [(number, seconds) for given, number, seconds in calls if not isinstance(given, Drawn)]
        return [number for number, _ in plain], math.fsum(seconds for _, seconds in plain)

    def _counts(self) -> Ints:
        """The pulls of each attempt."""
        if self._plain is not None:
            return np.ones(len(self._plain), np.int64)
        return np.array([len(given.rewards) if isinstance(given, Drawn) else 1 for given in self._given])

    def _drawn(self) -> list[Drawn]:
        given = zip(self._given, self._seconds, strict=True)
        return [part if isinstance(part, Drawn) else Drawn(np.array([part]), seconds=took) for part, took in given]
