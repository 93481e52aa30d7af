"""The end of a round: keep the arms nearest to the border open, and settle the others."""

from functools import partial
from typing import NamedTuple

import numpy as np

from collabtop.blocks import in_blocks
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.protocol.messages import Flags, Ints, Reals
from collabtop.protocol.ties import border_values, first_up_to, perturbed, smallest


class Settled(NamedTuple):
    """The live arms of a round, divided."""

    accepted: Ints
    rejected: Ints
    live: Ints


def settle(
    live: Ints, means: Reals, to_accept: int, keep: int, rng: np.random.Generator, *, bounded: bool = True
) -> Settled:
    """Keep exactly `keep` arms with the smallest gaps; accept those of the others that rank `to_accept` or better.

    `to_accept` is the paper's m_r, with 0 < m_r < |I_r|. Ties are broken by `rng`, in both rankings alike.

    >>> rng = np.random.default_rng(0)
    >>> settle(np.array([4, 5, 6, 7]), np.array([0.9, 0.5, 0.6, 0.1]), to_accept=2, keep=2, rng=rng)
    Settled(accepted=array([4]), rejected=array([7]), live=array([5, 6]))
    """
    values, below = perturbed(means, rng, bounded=bounded), len(live) - to_accept
    del means  # of many arms: their memory is used again below
    lower, upper = border_values(values, below)  # ranks m_r + 1 and m_r
    if keep == len(live) - 1:
        return _settle_one(live, values, lower, upper)
    worse = first_up_to(values, lower, below)  # the others are sigma_r(1), ..., sigma_r(m_r)
    in_blocks(partial(_turn_into_gaps, lower, upper), values)
    kept = smallest(values, keep)  # pi_r(1), ..., pi_r(n_{r+1})
    settled = ~kept  # E_r
    accepted, rejected = settled & ~worse, settled & worse  # A_r, E_r \ A_r
    return Settled(_chosen(live, accepted), _chosen(live, rejected), _chosen(live, kept))  # the last is I_{r+1}


def _turn_into_gaps(lower: float, upper: float, values: Reals) -> None:
    # In place: with many arms, new arrays take as long as what is computed.
    below_upper = upper - values
    values -= lower
    np.maximum(below_upper, values, out=values)


def _chosen(arms: Ints, flags: Flags) -> Ints:
    """The arms with a flag: of many arms, NumPy selects them faster by their indices than by the flags."""
    return arms[flags.nonzero()[0]]


def _settle_one(live: Ints, values: Reals, lower: float, upper: float) -> Settled:
    """Settle the arm with the largest gap, the last of equals: it is the worst of all arms, or the best."""
    end, backwards = len(live) - 1, values[::-1].copy()
    worst, best = end - int(backwards.argmin()), end - int(backwards.argmax())
    _, gone = max((upper - values.item(worst), worst), (values.item(best) - lower, best))
    settled, kept = live[gone : gone + 1], live[:end].copy()
    kept[gone:] = live[gone + 1 :]
    return Settled(settled, live[:0], kept) if gone == best else Settled(live[:0], settled, kept)


def eliminate(
    board: Scoreboard, live: Ints, m: int, keep: int, round: int, phase: str, rng: np.random.Generator
) -> Ints:
    """End a round: `settle` the live arms by their means, record the verdicts, and return the arms still live.

    If nothing is left to decide about those, they are settled as well, and none is returned. So a loop over rounds
    ends when no arm is live.

    Args:
        board: has the means, and gets the verdicts.
        live: the live arms (I_r).
        m: how many arms the run looks for; those on the board that are accepted already count.
        keep: how many arms may stay live (n_{r+1}).
        round: the number of this round (r).
        phase: its phase.
        rng: breaks ties.

    >>> board = Scoreboard(3)
    >>> board.add(np.arange(3), sums=np.array([9.0, 5.0, 1.0]), pulls=10)
    >>> eliminate(board, np.arange(3), m=1, keep=2, round=0, phase="shared", rng=np.random.default_rng(0))
    array([0, 1])
    """
    to_accept = m - board.accepted  # m_r
    settled = settle(live, board.means(live), to_accept, keep, rng, bounded=board.bounded)
    board.accept(settled.accepted, round, phase)
    board.reject(settled.rejected, round, phase)
    return settle_rest(board, settled.live, m, round, phase)


def settle_rest(board: Scoreboard, live: Ints, m: int, round: int, phase: str) -> Ints:
    """Settle the live arms if nothing is left to decide about them, and return those that are still live.

    All are accepted if all are needed (m_r = |I_r|), and rejected if none is (m_r = 0).

    >>> board = Scoreboard(3)
    >>> settle_rest(board, np.array([0, 1, 2]), m=2, round=3, phase="shared")
    array([0, 1, 2])
    >>> settle_rest(board, np.array([0, 1]), m=2, round=3, phase="shared")
    array([], dtype=int64)
    >>> board.accepted
    2
    """
    to_accept = m - board.accepted  # m_r
    if 0 < to_accept < len(live):
        return live
    verdict = board.accept if to_accept else board.reject
    verdict(live, round, phase)
    return live[:0]


def guess_rest(board: Scoreboard, live: Ints, m: int, round: int, rng: np.random.Generator) -> None:
    """Complete the answer with the best of the live arms, and mark all their verdicts as guesses.

    >>> board = Scoreboard(2)
    >>> board.add(np.arange(2), sums=np.array([1.0, 2.0]), pulls=10)
    >>> guess_rest(board, np.arange(2), m=1, round=0, rng=np.random.default_rng(0))
    >>> board.verdict().top(), sorted(board.verdict().guesses)
    ([1], [0, 1])
    """
    to_accept = m - board.accepted
    worse = smallest(perturbed(board.means(live), rng, bounded=board.bounded), len(live) - to_accept)
    board.accept(live[~worse], round, "shared")
    board.reject(live[worse], round, "shared")
    board.leave_open(live)
