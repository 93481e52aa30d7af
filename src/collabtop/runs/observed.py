"""Everything the agents of a run saw, where their pulls can be read without messages."""

from collections.abc import Sequence

import msgspec
import numpy as np

from collabtop.arms.base import Ints, Reals
from collabtop.arms.unit import Unit
from collabtop.problem import Problem, opposite, squares_of_opposite
from collabtop.protocol.batches import ArmTotals, Batch
from collabtop.runlog.tally import Tally


class Observed(msgspec.Struct, frozen=True):
    """Everything the agents saw, on teams that share memory with them; algorithms never use it."""

    pulls: Ints
    """Pulls of each arm by all agents."""
    means: Reals
    """Mean reward of each arm over those pulls, in the user's unit (NaN for an arm never pulled)."""
    deviations: Reals
    """Standard deviation of those rewards, in the user's unit; NaN if they were seen only as sums."""


def observed_of(batches: Sequence[Batch] | None, problem: Problem, unit: Unit) -> Observed | None:
    """Add up the batches of pulls that the agents made."""
    if batches is None:
        return None
    totals = ArmTotals(problem.n, batches)
    pulls, sums = totals.pulls, totals.sums
    squares = np.where(pulls > 0, np.nan, 0.0) if totals.squares is None else totals.squares
    if problem.mirrored:
        squares = squares_of_opposite(squares, sums, pulls, bounded=problem.bounded)
        sums = opposite(sums, pulls, bounded=problem.bounded)
    return observed_from(pulls, sums, squares, unit)


def observed_in(tally: Tally, unit: Unit) -> Observed:
    """What the agents have seen so far, in the user's unit."""
    return Observed(tally.pulls.copy(), unit.shown(tally.pooled_means), unit.shown_difference(tally.deviations))


def observed_from(pulls: Ints, sums: Reals, squares: Reals, unit: Unit) -> Observed:
    """What the agents saw, in the user's unit, from sums of internal values and of their squares."""
    with np.errstate(invalid="ignore"):
        means = sums / pulls
        deviations = np.sqrt(np.maximum(squares / pulls - means**2, 0.0))
    return Observed(pulls, unit.shown(means), unit.shown_difference(deviations))
