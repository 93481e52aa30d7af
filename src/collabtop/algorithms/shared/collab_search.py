"""CollabSearch, exact: which of the agents' values are the smallest `rank` of all, in O(K log n) words.

The paper's version drops the answer on some inputs and never ends on others (see the errata in the
documentation). Here agents show a sample of their sorted values at places known to both sides. The
coordinator bounds the rank of every value shown from below and above, and asks again only about what
lies between the last value that is surely below the rank and the first that is surely above it.
Values are ordered by (value, agent, place) on the way, so that no two are equal. If the border then runs
through equal values, it is moved among them at random, so that no agent is favoured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import msgspec
import numpy as np

from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import ProtocolError
from collabtop.protocol import sampling
from collabtop.protocol.messages import (
    TIES_AFTER,
    TIES_BEFORE,
    CountTies,
    Ints,
    Message,
    Narrow,
    Reals,
    Sample,
    Tied,
    Values,
    Window,
)


class Selection(msgspec.Struct, frozen=True):
    """Where the border between the smallest `rank` values and the others lies."""

    below: list[int]
    """How many of each agent's values are among the smallest `rank`."""
    last: float
    """The value of that rank."""
    next: float
    """The value of the rank after it."""


def collab_search(
    coordinator: Coordinator, held: Sequence[int], rank: int, rng: np.random.Generator, *, rank_is_known: bool = False
) -> Selection:
    """Find the smallest `rank` of the values that the agents hold in order, 1 <= rank < sum(held).

    `held` says how many values each agent has; agents without any are not asked. `rank_is_known` says
    that the agents can work out the rank themselves, so that it need not be paid for.
    """
    total = sum(held)
    if not 1 <= rank < total:
        raise ProtocolError(f"rank {rank} of {total} values has no value on both sides")
    holders = [agent for agent, count in enumerate(held) if count]
    question = Sample(rank, total, free=("rank", "total") if rank_is_known else ("total",))
    shown = _Shown(holders, [0] * len(holders), [held[agent] for agent in holders])
    answers = coordinator.ask(dict.fromkeys(holders, question), Values)
    shown.take(
        [sampling.around(rank, total, held[agent]) for agent in holders],
        [answer.values for answer in answers.values()],
    )
    while not shown.decides(rank):
        windows = coordinator.ask(shown.narrower(), Window)
        starts, stops = [w.start for w in windows.values()], [w.stop for w in windows.values()]
        shown = _Shown(holders, starts, stops)
        shown.take(
            [sampling.between(start, stop) for start, stop in zip(starts, stops, strict=True)],
            [window.values for window in windows.values()],
        )
    found = shown.selection(rank, len(held))
    return found if found.last < found.next else _share_ties(coordinator, holders, found, rank, rng)


def _share_ties(
    coordinator: Coordinator, holders: list[int], found: Selection, rank: int, rng: np.random.Generator
) -> Selection:
    """Choose at random which of the equal values at the border belong to the smallest `rank`."""
    ties = coordinator.ask(dict.fromkeys(holders, CountTies(found.last)), Tied)
    below = [tied.below for tied in ties.values()]
    chosen = rng.multivariate_hypergeometric([tied.equal for tied in ties.values()], rank - sum(below))
    cuts = [0] * len(found.below)
    for agent, smaller, more in zip(ties, below, chosen.tolist(), strict=True):
        cuts[agent] = smaller + more
    return Selection(cuts, found.last, found.next)


class _Shown:
    """The values shown in one pass, in order, with bounds on how many of all values lie up to each."""

    def __init__(self, holders: list[int], starts: list[int], stops: list[int]) -> None:
        self._holders = holders
        self._starts = np.array(starts)
        """Values of each agent known to lie below the window looked at."""
        self._stops = np.array(stops)
        self._below, self._up_to = sum(starts), sum(stops)

    def take(self, places: list[Ints], values: list[Reals]) -> None:
        counts = [len(some) for some in places]
        if counts != [len(some) for some in values]:
            raise ProtocolError("an agent showed more or fewer values than it was asked for")
        place, value = np.concatenate(places), np.concatenate(values)
        shows = [holder for holder, count in enumerate(counts) if count]
        ends = list(accumulate(counts))
        first = np.array([ends[holder] - counts[holder] for holder in shows])
        last = np.array([ends[holder] - 1 for holder in shows])
        # Up to a value shown at place p an agent has p + 1 values; up to the next one shown, at q, at
        # most q. Added up in order these are the bounds on the rank of each value shown.
        least, most = np.empty_like(place), np.empty_like(place)
        least[1:] = most[:-1] = place[1:] - place[:-1]
        least[first] = place[first] + 1 - self._starts[shows]
        most[last] = self._stops[shows] - place[last]
        hidden = self._up_to - int(self._stops[shows].sum())  # values of agents that show none
        order = value.argsort(kind="stable")
        self._at_least = self._below + least[order].cumsum()
        self._at_most = hidden + int(place[first].sum()) + most[order].cumsum()
        self._holder = np.arange(len(places)).repeat(counts)[order]
        self._place, self._value = place[order], value[order]

    def decides(self, rank: int) -> bool:
        """Whether all values that could have this rank or the next were shown; else what to look at."""
        # A value surely below the rank, and one surely above it, may not have been shown.
        self._low = int(self._at_most.searchsorted(rank)) - 1
        self._high = int(self._at_least.searchsorted(rank + 1))
        up_to_low = int(self._at_least[self._low]) if self._low >= 0 else self._below
        if self._high < len(self._value):
            between = int(self._at_most[self._high]) - up_to_low
            return between == self._high - self._low
        return self._up_to - up_to_low == len(self._value) - 1 - self._low

    def narrower(self) -> dict[int, Message]:
        """Ask each agent for what lies after the value at `low` and up to the value at `high`."""
        lows = self._bounds(self._low, -math.inf, self._starts)
        highs = self._bounds(self._high, math.inf, self._stops)
        return {agent: Narrow(*low, *high) for agent, low, high in zip(self._holders, lows, highs, strict=True)}

    def _bounds(self, at: int, open_end: float, edges: Ints) -> list[tuple[float, int]]:
        """The value shown at `at` as a bound for each agent, with the place of the agent's own equal values."""
        if not 0 <= at < len(self._value):
            return [(open_end, edge) for edge in edges.tolist()]
        owner, value = int(self._holder[at]), float(self._value[at])
        bounds = [(value, TIES_BEFORE)] * owner + [(value, TIES_AFTER)] * (len(edges) - owner)
        bounds[owner] = value, int(self._place[at]) + 1
        return bounds

    def selection(self, rank: int, agents: int) -> Selection:
        up_to_low = int(self._at_least[self._low]) if self._low >= 0 else self._below
        last = self._low + rank - up_to_low
        cuts = self._starts.copy()
        cuts[self._holder[: last + 1]] = self._place[: last + 1] + 1  # in order, so the last one stays
        below = [0] * agents
        for agent, cut in zip(self._holders, cuts.tolist(), strict=True):
            below[agent] = cut
        return Selection(below, float(self._value[last]), float(self._value[last + 1]))
