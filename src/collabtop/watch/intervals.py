"""The 95% intervals of all candidates of a run, in internal values, by the rule of the result."""

import copy
from collections.abc import Callable, Sequence

import numpy as np

from collabtop.coordination.scoreboard import Columns
from collabtop.intervals import Evidence, FiniteEvidence
from collabtop.protocol.messages import Ints, Reals
from collabtop.runlog.format import Header
from collabtop.runlog.tally import Tally
from collabtop.runs.evidence import Seen, intervals

Ends = tuple[Reals, Reals]


class RewardEvidence:
    """What rewards say about means if each example is used once, one batch per exchange, as the coordinator gets them.

    Args:
        tally: the rewards, which are added elsewhere.
        header: the run.
    """

    def __init__(self, tally: Tally, header: Header) -> None:
        population, counted = header.problem.population, header.unit.bounded and header.weights is None
        self._tally = tally
        self._finite = FiniteEvidence(tally.n, population) if population is not None and counted else None
        self._before = np.zeros((3, tally.n))  # pulls, sums and sums of squares in the batches that have ended

    def end_batch(self) -> None:
        """The rewards since the last call are a batch."""
        if self._finite is not None:
            self._before = self._add_rest(self._finite)

    def evidence(self) -> Evidence | None:
        """The evidence so far, with the batch under way; None if examples can be used more than once."""
        if self._finite is None:
            return None
        finite = copy.deepcopy(self._finite)
        self._add_rest(finite)
        return finite.evidence

    def _add_rest(self, finite: FiniteEvidence) -> Reals:
        pulls = self._tally.pulls
        arms = np.flatnonzero(pulls != self._before[0])
        now = self._before.copy()
        sums = np.nan_to_num(self._tally.means[arms]) * pulls[arms]
        now[:, arms] = pulls[arms], sums, np.fmin(self._tally.squares[arms], sums)
        counts, sums, squares = now[:, arms] - self._before[:, arms]
        with np.errstate(divide="ignore", invalid="ignore"):  # a foreign log may use examples twice
            finite.add(arms, counts, sums, squares)
        return now


def reward_intervals(
    seen: Seen, means: Reals, failed: Ints, finite: Evidence | None, header: Header, arms: Ints | None = None
) -> Ends:
    """The intervals of the means of all rewards that were seen; NaN where there are none, and except of `arms`."""
    pulls = np.where(np.isnan(means), 0, seen.pulls)
    squares = np.fmin(seen.squares, means * pulls) if header.unit.bounded else seen.squares
    unsettled = np.zeros(len(means), np.int8), np.zeros(len(means), np.int32)
    return intervals(Columns(*unsettled, means, pulls, squares, finite), header.problem, seen, failed, arms)


class _Memo:
    """Ends of intervals that are computed again only for the candidates whose numbers changed since the last time."""

    def __init__(self) -> None:
        self._columns: Reals | None = None
        self._ends: Reals | None = None

    def _updated(self, columns: Sequence[Reals | Ints], compute: Callable[[Ints], Ends]) -> Ends:
        """The ends for these columns of numbers; `compute` gets the candidates whose row changed."""
        rows = np.array(columns, np.float64)
        if self._columns is None or self._ends is None:
            changed, self._ends = np.arange(rows.shape[1]), np.full((2, rows.shape[1]), np.nan)
        else:
            different = (rows != self._columns) & ~(np.isnan(rows) & np.isnan(self._columns))
            changed = np.flatnonzero(different.any(axis=0))
        self._columns = rows
        if len(changed):
            low, high = compute(changed)
            self._ends[:, changed] = low[changed], high[changed]
        return self._ends[0], self._ends[1]


class KnownIntervals(_Memo):
    """The intervals of the means that the coordinator knows; NaN for the others."""

    def ends(self, columns: Columns, tally: Tally, header: Header) -> Ends:
        """Their ends now."""
        seen, failed = Seen.of(tally), tally.failed
        rows = [columns.pulls, columns.means, columns.squares, *(columns.finite or ()), *seen, failed]
        return self._updated(rows, lambda arms: intervals(columns, header.problem, seen, failed, arms))


class SeenIntervals(_Memo):
    """The intervals of the means of all rewards in the log; NaN for candidates without any."""

    def ends(self, tally: Tally, finite: Evidence | None, header: Header) -> Ends:
        """Their ends now."""
        seen, means, failed = Seen.of(tally), tally.means, tally.failed
        rows = [*seen, means, failed, *(finite or ())]
        return self._updated(rows, lambda arms: reward_intervals(seen, means, failed, finite, header, arms))
