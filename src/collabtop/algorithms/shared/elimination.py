"""What the coordinator does at the end of a round: keep the arms nearest to the border, settle the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from collabtop.coordination.scoreboard import Scoreboard
from collabtop.protocol.messages import Ints, Reals

Mask = NDArray[np.bool_]


class Settled(NamedTuple):
    """The live arms of a round, divided."""

    accepted: Ints
    rejected: Ints
    live: Ints


def settle(live: Ints, means: Reals, to_accept: int, keep: int, rng: np.random.Generator) -> Settled:
    """Keep exactly `keep` arms with the smallest gaps; accept those of the others that rank `to_accept` or better.

    `to_accept` is the paper's m_r, with 0 < m_r < |I_r|; ties are broken by `rng`.

    >>> rng = np.random.default_rng(0)
    >>> settle(np.array([4, 5, 6, 7]), np.array([0.9, 0.5, 0.6, 0.1]), to_accept=2, keep=2, rng=rng)
    Settled(accepted=array([4]), rejected=array([7]), live=array([5, 6]))
    """
    below = len(live) - to_accept
    lower, upper = np.partition(means, (below - 1, below))[below - 1 : below + 1]
    rest = smallest(means, below, rng)  # the others are sigma_r(1), ..., sigma_r(m_r)
    gaps = np.where(rest, upper - means, means - lower)
    kept = smallest(gaps, keep, rng)  # pi_r(1), ..., pi_r(n_{r+1})
    settled = ~kept
    return Settled(live[settled & ~rest], live[settled & rest], live[kept])


def eliminate(
    board: Scoreboard, live: Ints, to_accept: int, keep: int, round: int, phase: str, rng: np.random.Generator
) -> Ints:
    """End a round: `settle` the live arms by their means, write the verdicts down, and return the arms still live.

    >>> board = Scoreboard(3)
    >>> board.add(np.arange(3), sums=np.array([9.0, 5.0, 1.0]), pulls=10)
    >>> eliminate(board, np.arange(3), to_accept=1, keep=2, round=0, phase="shared", rng=np.random.default_rng(0))
    array([0, 1])
    """
    settled = settle(live, board.means(live), to_accept, keep, rng)
    board.accept(settled.accepted, round, phase)
    board.reject(settled.rejected, round, phase)
    return settled.live


def settle_rest(board: Scoreboard, live: Ints, to_accept: int, round: int, phase: str) -> None:
    """Nothing is left to decide after this round: accept all that is still open (m_r = |I_r|), or none (m_r = 0).

    >>> board = Scoreboard(2)
    >>> settle_rest(board, np.array([1]), to_accept=1, round=3, phase="shared")
    >>> board.verdict()[1].round
    3
    """
    verdict = board.accept if to_accept else board.reject
    verdict(live, round, phase)


def smallest(values: Reals, count: int, rng: np.random.Generator) -> Mask:
    """Mark exactly `count` smallest values, 0 <= count <= len(values); which of equal ones is chance.

    >>> smallest(np.array([3.0, 1.0, 2.0]), 2, np.random.default_rng(0))
    array([False,  True,  True])
    """
    if count == 0:
        return np.zeros(len(values), np.bool_)
    last = np.partition(values, count - 1)[count - 1]
    chosen: Mask = values <= last
    surplus = np.count_nonzero(chosen) - count
    if surplus:
        ties = np.flatnonzero(values == last)
        chosen[rng.permutation(ties)[:surplus]] = False
    return chosen
