"""The best answer that is known before a run has ended."""

import msgspec
import numpy as np

from collabtop.coordination.coordinator import Outcome
from collabtop.coordination.scoreboard import ACCEPTED, OPEN, Estimates
from collabtop.problem import Problem
from collabtop.protocol.messages import Ints, Reals
from collabtop.runlog.tally import Tally
from collabtop.stats import Z_95, interval_end


def partial_outcome(
    outcome: Outcome, problem: Problem, seed: int, seen: Tally | None = None, *, under_way: bool = True
) -> Outcome:
    """The outcome of a run if it ended now: a verdict for every arm, and the pulls made so far.

    The answer has the arms that the coordinator has accepted, then the open ones whose mean is surely the largest: by
    the lower end of its 95% interval, so that few lucky rewards do not outrank many good ones. Verdicts on open arms
    are guesses. `seen` has the rewards themselves, where they are known; else the coordinator's means count; the pulls
    of questions that are `under_way` are added to the last round.
    """
    means, pulls = _known(outcome.estimates, seen)
    verdicts = outcome.estimates.columns.verdicts
    open_arms, missing = np.flatnonzero(verdicts == OPEN), problem.m - int(np.count_nonzero(verdicts == ACCEPTED))
    best = open_arms[_by_lower_end(means[open_arms], pulls[open_arms], problem, seed)][: max(0, missing)]
    estimates = outcome.estimates.completed(best, means, pulls)
    if under_way:
        outcome = _with_pulls_under_way(outcome, seen)
    return msgspec.structs.replace(outcome, estimates=estimates)


def _known(estimates: Estimates, seen: Tally | None) -> tuple[Reals, Ints]:
    """Means and pulls of all arms: of the rewards themselves where there are some, else as the coordinator knows."""
    columns = estimates.columns
    if seen is None:
        return columns.means, columns.pulls
    seen_means = seen.means
    known = ~np.isnan(seen_means)
    return np.where(known, seen_means, columns.means), np.where(known, seen.pulls, columns.pulls)


def _by_lower_end(means: Reals, pulls: Ints, problem: Problem, seed: int) -> Ints:
    """The order of arms by the lower ends of their intervals, largest first; unknown arms last, ties at random.

    Rewards without bounds have no interval, so then the means themselves count.
    """
    ends = np.full(len(means), -np.inf)
    known = ~np.isnan(means)
    counts = np.maximum(pulls[known], 1) / problem.mean_squared_weight
    if problem.bounded:
        ends[known] = interval_end(np.clip(means[known], 0.0, 1.0), counts, Z_95**2 / 2, np.zeros(len(counts)))
    else:
        ends[known] = means[known]
    return np.lexsort((np.random.default_rng(seed).random(len(means)), -means, -ends))


def _with_pulls_under_way(outcome: Outcome, seen: Tally | None) -> Outcome:
    """Add the pulls that agents made for a question that they have not answered yet."""
    if seen is None or not outcome.rounds or not seen.agent_pulls.any():
        return outcome
    extra = np.maximum(0, seen.agent_pulls - np.array(outcome.agent_pulls))
    in_round = np.array(outcome.agent_pulls_in_round) + extra
    last = outcome.rounds[-1]
    last = msgspec.structs.replace(last, pulls=last.pulls + int(extra.sum()), time=int(in_round.max()))
    return msgspec.structs.replace(outcome, rounds=(*outcome.rounds[:-1], last))
