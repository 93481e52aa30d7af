"""How long a run may be if rewards are a finite sample, such as the rows of a log."""

from bisect import bisect_left

import msgspec

from collabtop.algorithms.base import Algorithm
from collabtop.arms import Arms
from collabtop.errors import InputError
from collabtop.problem import Problem


def within_sample(algorithm: Algorithm, arms: Arms, problem: Problem) -> tuple[Problem, tuple[str, ...]]:
    """The problem with a horizon that the sample pays for, and a note if the horizon was lowered.

    Args:
        algorithm: the algorithm of the run. One that stops early takes what there is.
        arms: replayed arms lower the horizon; others reject one that is too long.
        problem: the problem with the horizon that was asked for.

    >>> import collabtop as ct
    >>> arms = ct.LoggedArms([[0, 1] * 20, [1, 1] * 25], labels=["old", "new"])
    >>> within_sample(ct.Uniform(), arms, Problem(n=2, m=1, agents=2, horizon=60, pull_limit=40, sample_size=40))
    Traceback (most recent call last):
    collabtop.errors.InputError: horizon is 60, but uniform may then need 60 rows of a candidate, and 'old' has 40: ...
    """
    limit = arms.pull_limit
    if arms.sample_size is None or limit is None or algorithm.stops_early or problem.m == problem.n:
        return problem, ()

    def needed(horizon: int) -> int:
        longest = msgspec.structs.replace(problem.inner.at_horizon(horizon), pull_limit=None)
        return sum(pulls for _, pulls in algorithm.most_pulls(longest))

    if problem.horizon < algorithm.smallest_horizon(problem) or needed(problem.horizon) <= limit:
        return problem, ()
    smallest = algorithm.smallest_horizon(msgspec.structs.replace(problem, pull_limit=None))
    reason = (
        f"horizon is {problem.horizon:,}, but {algorithm.title} may then need {needed(problem.horizon):,} rows of a "
        f"candidate, and {arms.label(arms.smallest_sample)!r} has {arms.sample_size // (arms.agents or 1):,}"
    )
    if needed(smallest) > limit:
        raise InputError(
            f"{reason}, fewer than the {needed(smallest):,} of its smallest horizon, {smallest:,}: log more rows, or "
            "use a different algorithm",
            argument="horizon",
        )
    longest = bisect_left(range(problem.horizon), True, lo=smallest, key=lambda horizon: needed(horizon) > limit) - 1
    if not arms.lowers_horizon:
        raise InputError(f"{reason}: use a horizon of at most {longest:,}, or log more rows", argument="horizon")
    return problem.at_horizon(longest), (
        f"{reason}: the run took the largest horizon that the log pays for, {longest:,}",
    )
