"""How often intervals miss their means, and how often runs with a confidence settle a candidate wrongly.

    python benchmarks/coverage.py [--runs 5000] [--whole 300] [--only NAME]

The first table is batched: the rounds of a run with a confidence of .9 on four candidates, without its messages. A run
counts if in some round one of the four intervals misses (of paired candidates, if two are in the wrong order), which
bounds the error of the run. The second has whole runs to a horizon, in which 95% intervals may miss in 5% of cases, and
at a confidence of .9 with a limit, in which 10% may be wrong. The third has the pulls of runs at confidence .95 if
rewards have a standard deviation of .02, and those that intervals for 0/1 rewards would take. Takes about 6 minutes of
one core. `--only` makes the whole runs with rewards of one name, and nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct
from collabtop.algorithms.confident_top import PairedEvidence, times_before
from collabtop.arms import Arms, Draws
from collabtop.arms.base import Ints, Reals
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.intervals import mean_bounds
from collabtop.problem import Problem, misplaced

Draw = Callable[[float, int, np.random.Generator], Reals]
MEANS = np.array([0.52, 0.5, 0.48, 0.3])


class DrawnArms(Arms):
    """Arms with rewards from a function of the mean, the number of pulls and a generator."""

    def __init__(self, means: Reals, draw: Callable[[float, int, np.random.Generator], Reals]) -> None:
        super().__init__(len(means))
        self.means, self._draw = means, draw

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Draw the rewards one by one, and add them up."""
        counts = np.broadcast_to(times, arms.shape).tolist()
        rewards = [self._draw(self.means[arm], count, draws.bulk) for arm, count in zip(arms, counts, strict=True)]
        draws.squares = np.array([values @ values for values in rewards])
        return np.array([values.sum() for values in rewards])


def bernoulli(mean: float, count: int, rng: np.random.Generator) -> Reals:
    return (rng.random(count) < mean).astype(np.float64)


def beta(mean: float, count: int, rng: np.random.Generator) -> Reals:
    return rng.beta(4 * mean, 4 - 4 * mean, count)


def two_points(mean: float, count: int, rng: np.random.Generator) -> Reals:
    large = rng.random(count) < 0.1
    return np.asarray(np.where(large, np.minimum(1.0, mean + 0.4), mean - np.minimum(1 - mean, 0.4) / 9), np.float64)


def tiny(mean: float, count: int, rng: np.random.Generator) -> Reals:
    return rng.beta(624 * mean, 624 - 624 * mean, count)


def scores_of(size: int, rho: float, seed: int) -> Reals:
    """The scores of all candidates on a set of examples, on which they agree with correlation `rho`."""
    rng = np.random.default_rng([seed, size])
    common, own = rng.random(size), rng.random((len(MEANS), size))
    luck = np.where(rng.random((len(MEANS), size)) < rho, common, own)
    return (luck < MEANS[:, np.newaxis]).astype(np.float64)


def examples(size: int, rho: float) -> Callable[[int], tuple[Any, Reals]]:
    """Candidates scored on examples, on which they agree with correlation `rho`: arms, and their true means."""

    def make(seed: int) -> tuple[Any, Reals]:
        scores = scores_of(size, rho, seed)
        return ct.DatasetArms(range(len(MEANS)), range(size), lambda arm, example: scores[arm, example]), scores.mean(
            axis=1
        )

    return make


def drawn(means: Reals, draw: Any) -> Callable[[int], tuple[Any, Reals]]:
    return lambda seed: (DrawnArms(means, draw), means)


def minimized(seed: int) -> tuple[Any, Reals]:
    def latency(mean: float, rng: np.random.Generator) -> float:
        return 1_000 * float(rng.beta(4 * mean, 4 - 4 * mean))

    return ct.FunctionArms(list(1 - MEANS), latency, direction="minimize", bounds=(0, 1_000)), 1_000 * (1 - MEANS)


BATCHED: dict[str, tuple[Draw, Reals]] = {
    "standard deviation .02": (tiny, MEANS),
    "Bernoulli": (bernoulli, MEANS),
    "Bernoulli near 0": (bernoulli, MEANS / 20),
    "Bernoulli near 1": (bernoulli, 1 - (1 - MEANS) / 20),
    "Beta": (beta, MEANS),
    "two points": (two_points, MEANS),
}
SETTINGS: dict[str, Callable[[int], tuple[Any, Reals]]] = {
    "standard deviation .02": drawn(MEANS, tiny),
    "Bernoulli": drawn(MEANS, bernoulli),
    "Bernoulli near 0": drawn(MEANS / 20, bernoulli),
    "Bernoulli near 1": drawn(1 - (1 - MEANS) / 20, bernoulli),
    "Beta": drawn(MEANS, beta),
    "two points": drawn(MEANS, two_points),
    "50 examples, paired, rho .8": examples(50, 0.8),
    "500 examples, paired, rho .8": examples(500, 0.8),
    "500 examples, rho 0": examples(500, 0.0),
    "minimized": minimized,
}


def intervals_missed(draw: Draw, means: Reals, runs: int, rng: np.random.Generator) -> float:
    """The share of runs in which one of the intervals misses its mean, in any of 26 rounds."""
    missed = np.zeros(runs, bool)
    for mean in means:
        pulls, sums, squares = np.zeros(runs), np.zeros(runs), np.zeros(runs)
        for r in range(26):
            new = times_before(r + 1) - times_before(r)
            rewards = draw(mean, runs * new, rng).reshape(runs, new)
            pulls, sums, squares = pulls + new, sums + rewards.sum(axis=1), squares + (rewards**2).sum(axis=1)
            low, high = mean_bounds(pulls, sums, squares, 0.1 / len(means))
            missed |= (mean < low - 1e-12) | (mean > high + 1e-12)
    return float(missed.mean())


def pairs_misordered(size: int, rho: float, runs: int) -> float:
    """The share of runs in which two candidates scored on the same examples are separated in the wrong order."""
    wrong, live = 0, np.arange(len(MEANS))
    problem = Problem(len(MEANS), 1, 2, 10**6, pull_limit=size, numbered=True)
    for seed in range(runs):
        scores, evidence, used, misordered = scores_of(size, rho, seed), PairedEvidence(problem), 0, False
        means = scores.mean(axis=1)
        for r in range(60):
            part = scores[:, used : used + times_before(r + 1) - times_before(r)]
            used += part.shape[1]
            if used >= size:
                break
            evidence.add(live, part.sum(axis=1), part.shape[1], (((part - part.mean(axis=0)) / 2) ** 2).sum(axis=1))
            low, high = evidence.bounds(live, 0.1 / len(MEANS))
            better, worse = np.nonzero(low[:, np.newaxis] > high)
            misordered |= bool((means[better] < means[worse] - 1e-12).any())
        wrong += misordered
    return wrong / runs


def missed(make: Callable[[int], tuple[Any, Reals]], runs: int) -> float:
    """The share of intervals that miss, over all candidates and runs."""
    count = total = 0
    for seed in range(runs):
        arms, means = make(seed)
        low, high = ct.identify(arms, 1, agents=2, horizon=100, seed=seed).intervals
        known = ~np.isnan(low)
        total += int(known.sum())
        count += int(((means < low - 1e-9) | (means > high + 1e-9))[known].sum())
    return count / total


def wrong(make: Callable[[int], tuple[Any, Reals]], runs: int) -> float:
    """The share of runs at confidence .9 that settled a candidate wrongly."""
    count = 0
    for seed in range(runs):
        arms, means = make(seed)
        result = ct.identify(arms, 1, agents=2, confidence=0.9, max_horizon=200, seed=seed)
        scale = -means / 1_000 + 1 if means.max() > 1 else means
        count += bool(np.setdiff1d(misplaced(scale, result.top_indices), [int(arm) for arm in open_arms(result)]).size)
    return count / runs


def open_arms(result: ct.Result) -> list[int]:
    return sorted(result.estimates.guesses)


def pulls_needed(gap: float, *, squares: bool, seeds: int = 5) -> float:
    """Mean pulls of a run at confidence .95 on ten candidates of standard deviation .02, the best ahead by `gap`."""
    bounds = Scoreboard.bounds
    if not squares:  # as if rewards were 0 or 1

        def without_squares(board: Scoreboard, arms: Ints, error: float) -> tuple[Reals, Reals]:
            pulls, means = board.pulls(arms).astype(np.float64), board.means(arms)
            return mean_bounds(pulls, means * pulls, means * pulls, error)

        setattr(Scoreboard, "bounds", without_squares)  # noqa: B010
    try:
        arms = DrawnArms(np.array([0.5 + gap] + [0.5] * 9), tiny)
        return float(
            np.mean([ct.identify(arms, 1, agents=2, confidence=0.95, seed=seed).pulls for seed in range(seeds)])
        )
    finally:
        setattr(Scoreboard, "bounds", bounds)  # noqa: B010


def batched_table(runs: int, rng: np.random.Generator) -> Table:
    """How often some interval is wrong at some time."""
    table = Table("rewards", "wrong at some time", title=f"{runs:,} runs at confidence .9: at most 10% are allowed")
    for name, (draw, means) in BATCHED.items():
        table.add_row(name, f"{intervals_missed(draw, means, runs, rng):.2%}")
    for size, rho in ((50, 0.8), (500, 0.8), (500, 0.0)):
        table.add_row(f"{size} examples, rho {rho:g}", f"{pairs_misordered(size, rho, runs):.2%}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5_000)
    parser.add_argument("--whole", type=int, default=300)
    parser.add_argument("--only", choices=SETTINGS, metavar="NAME")
    chosen = parser.parse_args()
    console, rng = Console(width=100), np.random.default_rng(1)
    if chosen.only is None:
        console.print(batched_table(chosen.runs, rng))
    title = f"{chosen.whole:,} whole runs each: at most 5% and 10% are allowed"
    table = Table("rewards", "intervals that miss", "runs that are wrong", title=title)
    for name in SETTINGS if chosen.only is None else [chosen.only]:
        make = SETTINGS[name]
        table.add_row(name, f"{missed(make, chosen.whole):.2%}", f"{wrong(make, chosen.whole):.2%}")
    console.print(table)
    if chosen.only is not None:
        return
    table = Table("gap", "pulls", "with 0/1 intervals", "ratio", title="Standard deviation .02, confidence .95")
    for gap in (0.02, 0.05, 0.1):
        ours, theirs = pulls_needed(gap, squares=True), pulls_needed(gap, squares=False)
        table.add_row(f"{gap:g}", f"{ours:,.0f}", f"{theirs:,.0f}", f"{ours / theirs:.3f}")
    console.print(table)


if __name__ == "__main__":
    main()
