"""What one lying site can do to the answer, for each algorithm that is meant for sites.

    python benchmarks/lying_site.py [--runs 1000]

600 arms with means spread evenly over 0.1 to 0.9, the best 8 wanted, 10 sites, the horizon 40 pulls an arm; site 0
lies. It praises one arm: says 1 of the one with mean 0.3, and is honest otherwise. Or it turns all around: says 1 - r
instead of r. Printed are the praised arm's value, honest and praised (means over the runs in which it got as far as a
value), in how many runs it got among the best 8, and how many of the best 8 were found, honest and turned around.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

import collabtop as ct
from collabtop.arms import Arms, Draws
from collabtop.arms.base import Ints, Reals

N, M, SITES, HORIZON = 600, 8, 10, 24_000
MEANS = np.random.default_rng(1).permutation(np.linspace(0.1, 0.9, N))
BEST = set(np.argsort(-MEANS)[:M].tolist())
PRAISED = int(np.argmin(np.abs(MEANS - 0.3)))
ALGORITHMS = ["frugal-top-noniid", "collab-top-noniid", "uniform", "frugal-top", "collab-top-iid"]

Lie = Callable[[Ints, Ints, Reals], Reals]


class OneLies(Arms):
    """The arms of all sites, of which the first one's answers are lies."""

    def __init__(self, lie: Lie) -> None:
        super().__init__(N)
        self._honest, self._lie = ct.BernoulliArms(MEANS), lie

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """What a site says that it drew."""
        sums = self._honest.pull(arms, times, draws)
        return self._lie(arms, times, sums) if draws.agent == 0 else sums


def honest(arms: Ints, times: Ints, sums: Reals) -> Reals:
    return sums


def praise(arms: Ints, times: Ints, sums: Reals) -> Reals:
    return np.where(arms == PRAISED, times, sums).astype(np.float64)


def turn_around(arms: Ints, times: Ints, sums: Reals) -> Reals:
    return times - sums


def found(lie: Lie, algorithm: str, runs: int) -> tuple[float, float, float]:
    """The praised arm's mean value (NaN: it had none), how often it won, and how many of the best were found."""
    arms, values, wins, right = OneLies(lie), [], 0, 0
    for seed in range(runs):
        result = ct.identify(arms, M, agents=SITES, horizon=HORIZON, algorithm=algorithm, seed=seed)
        mean = result.estimates[PRAISED].mean
        values += [] if mean is None else [mean]
        wins += PRAISED in result.top_indices
        right += len(BEST.intersection(result.top_indices))
    return float(np.mean(values)) if values else np.nan, wins / runs, right / runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    runs = parser.parse_args().runs
    print("| algorithm | value of the arm, honest | promoted | it wins | found of the best 8, honest | inverted |")
    print("| --- | --- | --- | --- | --- | --- |")
    for algorithm in ALGORITHMS:
        true, _, before = found(honest, algorithm, runs)
        value, wins, _ = found(praise, algorithm, runs)
        _, _, after = found(turn_around, algorithm, runs)
        values = " | ".join("-" if np.isnan(it) else f"{it:.3f}" for it in (true, value))
        print(f"| `{algorithm}` | {values} | {wins:.1%} | {before:.2f} | {after:.2f} |", flush=True)


if __name__ == "__main__":
    main()
