"""How far one lying site can change the answer, for each algorithm that can be used with sites.

    python benchmarks/lying_site.py [--runs 1000]

600 arms have means spread evenly over 0.1 to 0.9. 10 sites look for the best 8 with a horizon of 40 pulls per arm, and
site 0 lies. It either promotes one arm, by reporting 1 for the arm with mean 0.3 and honest rewards otherwise, or it
inverts all rewards, by reporting 1 - r instead of r. The table shows the value of the promoted arm, honest and promoted
(means over the runs in which it had a value), the share of runs in which it was among the best 8, and how many of the
best 8 were found, honest and inverted.
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
PROMOTED = int(np.argmin(np.abs(MEANS - 0.3)))
ALGORITHMS = ["frugal-top-noniid", "collab-top-noniid", "uniform", "frugal-top", "collab-top-iid"]

Lie = Callable[[Ints, Ints, Reals], Reals]


class OneLies(Arms):
    """The arms of all sites; the first site lies."""

    def __init__(self, lie: Lie) -> None:
        super().__init__(N)
        self._honest, self._lie = ct.BernoulliArms(MEANS), lie

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """The sums that a site reports."""
        sums = self._honest.pull(arms, times, draws)
        return self._lie(arms, times, sums) if draws.agent == 0 else sums


def honest(arms: Ints, times: Ints, sums: Reals) -> Reals:
    return sums


def promote(arms: Ints, times: Ints, sums: Reals) -> Reals:
    return np.where(arms == PROMOTED, times, sums).astype(np.float64)


def invert(arms: Ints, times: Ints, sums: Reals) -> Reals:
    return times - sums


def measure(lie: Lie, algorithm: str, runs: int) -> tuple[float, float, float]:
    """The promoted arm's mean value (NaN if it had none), how often it won, and how many of the best were found."""
    arms, values, wins, right = OneLies(lie), [], 0, 0
    for seed in range(runs):
        result = ct.identify(arms, M, agents=SITES, horizon=HORIZON, algorithm=algorithm, seed=seed)
        mean = result.estimates[PROMOTED].mean
        values += [] if mean is None else [mean]
        wins += PROMOTED in result.top_indices
        right += len(BEST.intersection(result.top_indices))
    return float(np.mean(values)) if values else np.nan, wins / runs, right / runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000)
    runs = parser.parse_args().runs
    print("| algorithm | value of the arm, honest | promoted | it wins | found of the best 8, honest | inverted |")
    print("| --- | --- | --- | --- | --- | --- |")
    for algorithm in ALGORITHMS:
        true, _, before = measure(honest, algorithm, runs)
        value, wins, _ = measure(promote, algorithm, runs)
        _, _, after = measure(invert, algorithm, runs)
        values = " | ".join("-" if np.isnan(mean) else f"{mean:.3f}" for mean in (true, value))
        print(f"| `{algorithm}` | {values} | {wins:.1%} | {before:.2f} | {after:.2f} |", flush=True)


if __name__ == "__main__":
    main()
