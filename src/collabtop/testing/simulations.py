"""Whether an algorithm's batched simulation has the same distribution of answers as its runs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.arms.base import Reals
from collabtop.arms.simulated import BernoulliArms, HeterogeneousArms
from collabtop.errors import SettingError
from collabtop.problem import Problem, right_answers
from collabtop.protocol.messages import Flags
from collabtop.runs.identification import identify
from collabtop.stats import hypergeometric

FALSE_ALARM = 1e-4
"""The most a check may find wrong by chance: the probability that a correct `simulate` fails it."""


class SimulationCase(NamedTuple):
    """Bernoulli arms and a problem on which `run` and `simulate` are compared."""

    means: Reals
    """One mean per arm, or n x K for arms that differ between agents."""
    m: int
    agents: int
    horizon: int

    def __str__(self) -> str:
        return f"n={len(self.means)} m={self.m} agents={self.agents} horizon={self.horizon} {self.means.ndim}-d means"


class Comparison(NamedTuple):
    """How often something happened in runs and in batched runs, and how likely a larger difference is by chance."""

    what: str
    seen: int
    runs: int
    simulated: int
    batched_runs: int
    p_value: float

    def __str__(self) -> str:
        return (
            f"{self.what} in {self.seen} of {self.runs} runs, and in {self.simulated} of {self.batched_runs} runs by "
            f"simulate: such a difference has a probability of {self.p_value:.1g}"
        )


def check_simulation(
    algorithm: Algorithm,
    cases: Sequence[SimulationCase] | None = None,
    *,
    runs: int = 200,
    batched_runs: int = 4_000,
    false_alarm: float = FALSE_ALARM,
    seed: int = 0,
) -> None:
    """Check that `simulate` has the same law as `run`.

    Answers must be right as often, in each case and in all cases together, and each arm must be in them as often. Of
    the arms with the same mean, any and all must be in them as often. Every comparison is an exact test (Fisher's, or
    its extension to several cases), and its limit is `false_alarm` divided by the number of comparisons. So a correct
    `simulate` fails with at most that probability, for a random seed.

    Args:
        algorithm: an algorithm that implements `simulate`.
        cases: what to compare on; small cases of every kind that the algorithm supports, if omitted.
        runs: runs per case made message by message.
        batched_runs: runs per case by `simulate`.
        false_alarm: the probability that a correct `simulate` fails.
        seed: for the runs, and for the cases if none are given.

    >>> import collabtop as ct
    >>> check_simulation(ct.Uniform(), runs=50)
    """
    cases = simulation_cases(algorithm, seed) if cases is None else cases
    assert cases, f"{algorithm} supports none of the cases on which its simulation would be compared"
    by_case = [compare_laws(algorithm, case, runs, batched_runs, seed + number) for number, case in enumerate(cases)]
    compared = [(str(case), comparison) for case, found in zip(cases, by_case, strict=True) for comparison in found]
    compared.append(("all cases together", _together([comparisons[0] for comparisons in by_case])))
    limit = false_alarm / len(compared)
    for case, comparison in compared:
        assert comparison.p_value > limit, f"{algorithm} ({case}): {comparison}, but {limit:.1g} is the limit"


def compare_laws(
    algorithm: Algorithm, case: SimulationCase, runs: int, batched_runs: int, seed: int
) -> list[Comparison]:
    """Compare answers of `run` with those of `simulate`: first how often they are right, then which arms they have."""
    answers = message_answers(algorithm, case, runs, seed)
    problem = Problem(len(case.means), case.m, case.agents, case.horizon)
    batched = algorithm.answers(problem, case.means, batched_runs, np.random.default_rng([seed, 1]))
    events = [("the answer is right", right_answers(case.means, answers), right_answers(case.means, batched))]
    events += [(f"arm {arm} is in the answer", answers[:, arm], batched[:, arm]) for arm in range(problem.n)]
    for mean in np.unique(case.means, axis=0):
        equal = np.flatnonzero((case.means == mean).reshape(problem.n, -1).all(axis=1))
        if len(equal) > 1:
            seen, simulated = answers[:, equal], batched[:, equal]
            for word, reduce in (("one", np.logical_or.reduce), ("each", np.logical_and.reduce)):
                what = f"{word} of the arms {equal} is in the answer"
                events.append((what, reduce(seen, axis=1), reduce(simulated, axis=1)))
    return [_comparison(what, seen, simulated) for what, seen, simulated in events]


def message_answers(algorithm: Algorithm, case: SimulationCase, runs: int, seed: int) -> Flags:
    """The answers of runs made message by message: one row per run, one flag per arm."""
    arms = BernoulliArms(case.means) if case.means.ndim == 1 else HeterogeneousArms(case.means)
    answers = np.zeros((runs, arms.n), np.bool_)
    for row, run_seed in enumerate(np.random.default_rng([seed, 0]).integers(2**31, size=runs).tolist()):
        result = identify(arms, case.m, agents=case.agents, horizon=case.horizon, algorithm=algorithm, seed=run_seed)
        answers[row, result.top_indices] = True
    return answers


def _comparison(what: str, seen: Flags, simulated: Flags) -> Comparison:
    counts = int(np.count_nonzero(seen)), len(seen), int(np.count_nonzero(simulated)), len(simulated)
    return Comparison(what, *counts, same_shares([counts]))


def _together(comparisons: Sequence[Comparison]) -> Comparison:
    """One comparison of the same event in all cases: differences in the same direction add up."""
    counts = [(c.seen, c.runs, c.simulated, c.batched_runs) for c in comparisons]
    seen, runs, simulated, batched_runs = (sum(column) for column in zip(*counts, strict=True))
    return Comparison(comparisons[0].what, seen, runs, simulated, batched_runs, same_shares(counts))


def same_shares(tables: Sequence[tuple[int, int, int, int]]) -> float:
    """The two-sided p-value of an exact test that two shares are equal, within each of several tables.

    A table has the first count, its trials, the second count, and its trials. One table gives Fisher's exact test.
    For several, the sum of the first counts is compared with its distribution given the totals of each table.

    >>> round(same_shares([(1, 10, 9, 10)]), 5), round(same_shares([(3, 10, 7, 10), (2, 10, 6, 10)]), 3)
    (0.00109, 0.026)
    """
    chances, least = np.ones(1), 0
    for first, trials, second, other_trials in tables:
        marked = first + second
        counts = np.arange(max(0, marked - other_trials), min(marked, trials) + 1)
        chances = np.convolve(chances, hypergeometric(trials + other_trials, marked, trials, counts))
        least += int(counts[0])
    observed = chances[sum(first for first, *_ in tables) - least]
    return min(1.0, float(chances[chances <= observed * (1 + 1e-7)].sum()))


# n, m, K and the kind of means; with few pulls of arms with equal or tiny means, many sums tie.
_CASES = (
    (7, 1, 1, "spread"),
    (16, 1, 1, "equal"),
    (12, 4, 3, "spread"),
    (12, 9, 2, "tiny"),
    (5, 2, 9, "equal"),
    (24, 5, 3, "levels"),
    (60, 1, 3, "equal"),
    (10, 3, 4, "non-IID"),
)


def simulation_cases(algorithm: Algorithm, seed: int = 0) -> list[SimulationCase]:
    """Small cases of every kind that the algorithm supports: equal and tiny means, m > n / 2, more agents than arms."""
    cases = []
    for n, m, agents, kind in _CASES:
        if kind == "non-IID" and algorithm.iid_only:
            continue
        try:
            algorithm.check(Problem(n, m, agents, 1))
        except SettingError:
            continue
        horizon = 2 * algorithm.smallest_horizon(Problem(n, m, agents, 1))
        means = means_of_kind(kind, n, m, agents, np.random.default_rng([seed, n, m, agents]))
        cases.append(SimulationCase(means, m, agents, horizon))
    return cases


def means_of_kind(kind: str, n: int, m: int, agents: int, rng: np.random.Generator) -> Reals:
    """Means that are spread, equal on each side of the border or on three levels, tiny, or different for each agent."""
    if kind == "equal":
        return np.where(np.arange(n) < m, 0.6, 0.4)
    if kind == "levels":
        return np.where(np.arange(n) < m - 1, 0.7, np.where(np.arange(n) < 2 * m, 0.6, 0.4))
    if kind == "non-IID":
        return rng.random((n, agents))
    return rng.random(n) * (0.01 if kind == "tiny" else 1.0)
