"""The 95% intervals of all candidates of a run, in internal values."""

import numpy as np

from collabtop.coordination.scoreboard import Columns
from collabtop.intervals import LEVEL, mean_bounds, normal_bounds
from collabtop.protocol.messages import Reals
from collabtop.runlog.format import Header
from collabtop.runlog.log_state import LogState
from collabtop.runs.evidence import Seen, intervals


def known_intervals(columns: Columns | None, state: LogState, header: Header) -> tuple[Reals, Reals]:
    """The intervals of the means that the coordinator knows; NaN for the others."""
    if columns is None:
        unknown = np.full(header.n, np.nan)
        return unknown, unknown
    return intervals(columns, header.problem, Seen.of(state.tally), state.tally.failed)


def seen_intervals(state: LogState, header: Header) -> tuple[Reals, Reals]:
    """The intervals of the means of all rewards in the log; NaN for candidates without any."""
    low, high = np.full(header.n, np.nan), np.full(header.n, np.nan)
    tally = state.tally
    if header.weights is not None:
        unsettled = np.zeros(header.n, np.int8), np.zeros(header.n, np.int32)
        columns = Columns(*unsettled, tally.means, tally.pulls, tally.squares, None)
        return intervals(columns, header.problem, Seen.of(tally), tally.failed)
    rewarded = tally.pulls - tally.failed  # failed pulls gave no reward, so they do not make an interval shorter
    seen = np.flatnonzero(rewarded)
    pulls, means, squares = rewarded[seen].astype(np.float64), tally.means[seen], tally.squares[seen]
    low[seen], high[seen] = reward_intervals(pulls, means, squares, header)
    return low, high


def reward_intervals(pulls: Reals, means: Reals, squares: Reals, header: Header) -> tuple[Reals, Reals]:
    """The intervals of means of so many rewards with these sums of squares (NaN: unknown)."""
    population = header.problem.population
    if not header.unit.bounded:
        return normal_bounds(pulls, means, squares, population)
    low, high = mean_bounds(pulls, means * pulls, np.fmin(squares, means * pulls), 1 - LEVEL)
    exact = pulls == (population or 0)
    return np.where(exact, means, low), np.where(exact, means, high)
