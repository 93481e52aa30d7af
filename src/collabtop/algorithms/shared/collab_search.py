"""CollabSearch, exact: which of the agents' values are the smallest `rank` of all, in O(K log n) words.

The paper's version drops the answer on some inputs and never ends on others (see docs/errata.md). Here each agent
shows a sample of its sorted values, at positions known to both sides. The coordinator bounds the rank of every value
shown from below and above. It asks again only about values between the last one that is surely below the rank and the
first one that is surely above it.

Values are ordered by (value, agent, position), so that no two are equal. Agents search perturbed means, in which ties
are already broken at random, so this order favours no agent.
"""

import math
from collections.abc import Sequence
from itertools import accumulate

import msgspec
import numpy as np

from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import ProtocolError
from collabtop.protocol import messages as msg
from collabtop.protocol import sampling
from collabtop.protocol.messages import Ints, Message, Reals


class Selection(msgspec.Struct, frozen=True):
    """The border between the smallest `rank` values and the others."""

    below: list[int]
    """How many of each agent's values are among the smallest `rank`."""
    last: float
    """The value of that rank."""
    next: float
    """The value of the next rank."""
    chosen_from: tuple[str, ...]
    """What the message after the search was chosen from: the search might have needed another exchange instead."""


def collab_search(
    coordinator: Coordinator, held: Sequence[int], rank: int, *, then: type[Message], rank_is_known: bool = False
) -> Selection:
    """Find the smallest `rank` of the sorted values that the agents hold, 1 <= rank < sum(held).

    `held` is the number of values of each agent; agents without values are not asked. `then` is the message that
    agents get after the search. Its kind tells them that the search is over, so it has to declare
    `Selection.chosen_from`. `rank_is_known` means that the agents can compute the rank themselves, so that it is not
    counted as a word.
    """
    total = sum(held)
    if not 1 <= rank < total:
        raise ProtocolError(f"rank {rank} of {total} values has no value on both sides")
    holders = [agent for agent, count in enumerate(held) if count]
    question = msg.Sample(rank, total, free=("rank", "total") if rank_is_known else ("total",))
    answers = coordinator.ask(dict.fromkeys(holders, question), msg.Values)
    starts, stops = [0] * len(holders), [held[agent] for agent in holders]
    positions = [sampling.around(rank, total, count) for count in stops]
    shown = _ShownValues(rank, starts, stops, positions, [answer.values for answer in answers.values()])
    chosen_from = msg.kinds_of(msg.Narrow, then)
    while not shown.is_complete:
        windows = coordinator.ask(dict(zip(holders, shown.narrower_windows(chosen_from), strict=True)), msg.Window)
        starts, stops = [w.start for w in windows.values()], [w.stop for w in windows.values()]
        positions = [sampling.between(start, stop) for start, stop in zip(starts, stops, strict=True)]
        shown = _ShownValues(rank, starts, stops, positions, [window.values for window in windows.values()])
    cuts, last, next_value = shown.border()
    below = [0] * len(held)
    for agent, cut in zip(holders, cuts, strict=True):
        below[agent] = cut
    return Selection(below, last, next_value, chosen_from)


class _ShownValues:
    """The values that the holders showed in one pass, in order, with bounds on the rank of each.

    Holder h has `starts[h]` values below its window, and `stops[h]` up to its end. It showed `values[h]`, which are at
    `positions[h]` of its sorted values.
    """

    def __init__(
        self, rank: int, starts: list[int], stops: list[int], positions: list[Ints], values: list[Reals]
    ) -> None:
        self._rank = rank
        self._starts, self._stops = np.array(starts), np.array(stops)
        self._below, self._up_to = sum(starts), sum(stops)
        self._put_in_order(positions, values)
        # Indices of the last value that is surely below the rank, and of the first that is surely above it; either may
        # not have been shown, and is then outside the range.
        self._low = int(self._at_most.searchsorted(rank)) - 1
        self._high = int(self._at_least.searchsorted(rank + 1))
        self._up_to_low = int(self._at_least[self._low]) if self._low >= 0 else self._below

    def _put_in_order(self, positions: list[Ints], values: list[Reals]) -> None:
        counts = [len(shown) for shown in positions]
        if counts != [len(shown) for shown in values]:
            raise ProtocolError("an agent showed more or fewer values than it was asked for")
        position, value = np.concatenate(positions), np.concatenate(values)
        showing = [holder for holder, count in enumerate(counts) if count]
        last = np.array([end - 1 for end, count in zip(accumulate(counts), counts, strict=True) if count])
        first = np.zeros_like(last)
        first[1:] = last[:-1] + 1
        # Up to a value shown at position p its holder has p + 1 values; up to its next one shown, at q, at most q.
        # Added up in order these are the bounds on the rank of each value shown.
        least, most = np.empty_like(position), np.empty_like(position)
        least[1:] = most[:-1] = position[1:] - position[:-1]
        stops = self._stops[showing]
        least[first] = position[first] + 1 - self._starts[showing]
        most[last] = stops - position[last]
        hidden = self._up_to - sum(stops.tolist())  # values of holders that showed none
        order = value.argsort(kind="stable")
        self._at_least = self._below + least[order].cumsum()
        self._at_most = hidden + sum(position[first].tolist()) + most[order].cumsum()
        self._holder = np.arange(len(positions)).repeat(counts)[order]
        self._position, self._value = position[order], value[order]

    @property
    def is_complete(self) -> bool:
        """Whether all values that could have this rank or the next one were shown."""
        if self._high < len(self._value):
            return int(self._at_most[self._high]) - self._up_to_low == self._high - self._low
        return self._up_to - self._up_to_low == len(self._value) - 1 - self._low

    def narrower_windows(self, chosen_from: tuple[str, ...]) -> list[Message]:
        """For each holder, the question for its values after the one at `low` and up to the one at `high`."""
        lows = self._bounds(self._low, -math.inf, self._starts)
        highs = self._bounds(self._high, math.inf, self._stops)
        return [msg.Narrow(*low, *high, chosen_from=chosen_from) for low, high in zip(lows, highs, strict=True)]

    def _bounds(self, index: int, open_end: float, window_ends: Ints) -> list[tuple[float, int]]:
        """The value shown at `index` as a bound for each holder, and where the holder's own equal values belong."""
        if not 0 <= index < len(self._value):
            return [(open_end, end) for end in window_ends.tolist()]
        owner, value = int(self._holder[index]), float(self._value[index])
        bounds = [(value, msg.TIES_BEFORE)] * owner + [(value, msg.TIES_AFTER)] * (len(window_ends) - owner)
        bounds[owner] = value, int(self._position[index]) + 1
        return bounds

    def border(self) -> tuple[list[int], float, float]:
        """How many values of each holder are among the smallest `rank`, and the values of this rank and the next."""
        last = self._low + self._rank - self._up_to_low
        cuts = self._starts.copy()
        cuts[self._holder[: last + 1]] = self._position[: last + 1] + 1  # in order: a holder's last assignment stays
        return cuts.tolist(), float(self._value[last]), float(self._value[last + 1])
