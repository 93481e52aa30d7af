"""How an agent prunes a hand on its own: in stages, each of which keeps the arms with the best means."""

from collections.abc import Callable, Sequence

import numpy as np

from collabtop.protocol.messages import Ints, Reals
from collabtop.protocol.ties import smallest


def prune(
    hand: Ints, sizes: Sequence[int], pulls: Sequence[int], pull: Callable[[Ints, Ints, int], Reals]
) -> tuple[Ints, Reals]:
    """Pull each arm until it has `pulls[j]` pulls and keep the best `sizes[j]`, for j = 0, 1, ...: arms left, and sums.

    The first of equal arms stays, so a hand in random order breaks ties at random. `pull` takes arms, times and the
    number of pulls before.

    >>> prune(np.array([4, 7, 2]), sizes=[2, 1], pulls=[10, 30], pull=lambda arms, times, before: arms * times / 10)
    (array([7]), array([21.]))
    """
    sums, before = np.zeros(len(hand)), 0
    for size, total in zip(sizes, pulls, strict=True):
        if total > before:
            sums += pull(hand, np.array([total - before]), before)
        before = total
        if size < len(hand):
            best = smallest(-sums, size)
            hand, sums = hand[best], sums[best]
    return hand, sums
