"""How agents prune their hands on their own: in stages, each of which keeps the arms with the best means."""

from collections.abc import Callable, Sequence

import numpy as np

from collabtop.protocol.messages import Ints, Reals
from collabtop.protocol.row_layout import RowLayout
from collabtop.protocol.ties import smallest_in_rows


def prune(
    hand: Ints, sizes: Sequence[int], pulls: Sequence[int], pull: Callable[[Ints, Ints, int], Reals]
) -> tuple[Ints, Reals]:
    """Pull each arm until it has `pulls[j]` pulls and keep the best `sizes[j]`, for j = 0, 1, ...: arms left, and sums.

    The first of equal arms stays, so a hand in random order breaks ties at random. `pull` takes arms, times and the
    number of pulls before.

    >>> prune(np.array([4, 7, 2]), sizes=[2, 1], pulls=[10, 30], pull=lambda arms, times, before: arms * times / 10)
    (array([7]), array([21.]))
    """
    pruned = prune_all([hand], sizes, pulls, lambda arms, times, before, held: pull(arms, np.array([times]), before))
    return pruned[0]


def prune_all(
    hands: Sequence[Ints],
    sizes: Sequence[int],
    pulls: Sequence[int],
    pull: Callable[[Ints, int, int, Sequence[int]], Reals],
) -> list[tuple[Ints, Reals]]:
    """`prune` several hands at once. `pull` gets the arms of all hands, and last of all how many are in each."""
    rows, arms = RowLayout(list(map(len, hands))), np.concatenate(hands)
    sums, before = np.zeros(len(arms)), 0
    for size, total in zip(sizes, pulls, strict=True):
        if total > before:
            sums += pull(arms, total - before, before, rows.lengths)
        before = total
        if size < rows.width:
            best = rows.flat(smallest_in_rows(rows.of(-sums, np.inf), size)).nonzero()[0]
            arms, sums = arms[best], sums[best]
            rows = RowLayout([min(size, held) for held in rows.lengths])
    ends = np.cumsum(rows.lengths)[:-1]
    return list(zip(np.split(arms, ends), np.split(sums, ends), strict=True))
