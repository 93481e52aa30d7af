"""How often intervals miss their means, and how often runs with a confidence settle a candidate wrongly.

    python benchmarks/coverage.py [--runs 5000]

Every line is one kind of rewards. The first table has 95% intervals, which may miss in 5% of the runs: after a run to a
horizon, with as many pulls of a candidate as the run happened to make of it. Then runs at confidence .9, on candidates
that differ little, so that each verdict can be wrong; a limit ends them, and the verdicts by then count. The second
table has the pulls of runs at confidence .95 if rewards have a standard deviation of .02, and those that
intervals for 0/1 rewards would take. Takes about 20 minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct
from collabtop.arms import Arms, Draws
from collabtop.arms.base import Ints, Reals
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.intervals import mean_bounds
from collabtop.problem import misplaced

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


def examples(size: int, rho: float) -> Callable[[int], tuple[Any, Reals]]:
    """Candidates scored on examples, on which they agree with correlation `rho`: arms, and their true means."""

    def make(seed: int) -> tuple[Any, Reals]:
        rng = np.random.default_rng([seed, size])
        common, own = rng.random(size), rng.random((len(MEANS), size))
        luck = np.where(rng.random((len(MEANS), size)) < rho, common, own)
        scores = (luck < MEANS[:, np.newaxis]).astype(np.float64)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5_000)
    runs = parser.parse_args().runs
    console = Console(width=100)
    table = Table(
        "rewards",
        "intervals that miss",
        "runs that are wrong",
        title=f"{runs:,} runs each: at most 5% and 10% are allowed",
    )
    for name, make in SETTINGS.items():
        table.add_row(name, f"{missed(make, runs):.2%}", f"{wrong(make, runs):.2%}")
    console.print(table)
    table = Table(
        "gap", "pulls", "with 0/1 intervals", "ratio", title="Ten candidates of standard deviation .02, confidence .95"
    )
    for gap in (0.02, 0.05, 0.1):
        ours, theirs = pulls_needed(gap, squares=True), pulls_needed(gap, squares=False)
        table.add_row(f"{gap:g}", f"{ours:,.0f}", f"{theirs:,.0f}", f"{ours / theirs:.3f}")
    console.print(table)


if __name__ == "__main__":
    main()
