"""Pulls that were written one by one, put together to rows of consecutive pulls as readers expect them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from collabtop.arms.base import Drawn
from collabtop.runlog.format import Rewards, SingleReward

Item = TypeVar("Item")


def gathered(items: Iterable[Item | SingleReward]) -> Iterator[Item | Rewards]:
    """The same items, with `Rewards` instead of single rewards; nothing is moved past an item of a different kind.

    >>> pulls = [SingleReward(agent=0, number=number, arm=3, reward=0.5, seconds=0.25) for number in (7, 4, 6)]
    >>> [(row.first, row.pulls, row.seconds) for row in gathered(pulls)]
    [(4, 1, 0.25), (6, 2, 0.5)]
    """
    singles: list[SingleReward] = []
    for item in items:
        if isinstance(item, SingleReward):
            singles.append(item)
            continue
        yield from _rows(singles)
        singles = []
        yield item
    yield from _rows(singles)


def _rows(singles: Sequence[SingleReward]) -> Iterator[Rewards]:
    """A record per row of consecutive pulls of an agent; those made at the same time may come in any order."""
    if not singles:
        return
    agents, numbers, arms = np.array([(pull.agent, pull.number, pull.arm) for pull in singles]).T
    rewards, seconds = np.array([(pull.reward, pull.seconds) for pull in singles]).T
    order = np.lexsort((numbers, agents))
    agents, numbers, arms, rewards, seconds = (field[order] for field in (agents, numbers, arms, rewards, seconds))
    breaks = np.flatnonzero((agents[1:] != agents[:-1]) | (numbers[1:] != numbers[:-1] + 1)) + 1
    for start, end in pairwise([0, *breaks.tolist(), len(singles)]):
        row = slice(start, end)
        drawn = Drawn(rewards[row], seconds=math.fsum(seconds[row]))
        yield Rewards.pack(int(agents[start]), int(numbers[start]), arms[row], np.ones_like(arms[row]), drawn, "")
