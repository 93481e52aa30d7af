"""How many runs a second each algorithm makes, and the ratio of a run to drawing its samples in bulk with NumPy.

    python benchmarks/runs_per_second.py [--runs 100]

One process, CPU time: what a study makes a second is this times the number of cores. The yardstick draws what the
run draws, one `binomial` call a round over the live arms and, where every agent pulls every arm, the agents.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct
from collabtop.report.experiments import iid_algorithms, noniid_algorithms

SETTINGS = [(1, 30_000), (8, 600_000)]


def seconds(
    arms: ct.BernoulliArms | ct.HeterogeneousArms, algorithm: ct.Algorithm, m: int, horizon: int, runs: int
) -> tuple[float, float]:
    """CPU seconds of a run and of its bulk draws, measured in turn and each the median."""
    rng, run, bulk = np.random.default_rng(0), [], []
    for seed in range(runs + 1):
        began = time.process_time()
        result = ct.identify(arms, m, agents=10, horizon=horizon, algorithm=algorithm, seed=seed)
        between = time.process_time()
        for one in result.rounds:
            live = arms.means[: one.live]
            rng.binomial(one.pulls // live.size, live)
        run.append(between - began)
        bulk.append(time.process_time() - between)
    return float(np.median(run[1:])), float(np.median(bulk[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="runs an algorithm")
    runs = parser.parse_args().runs
    table = Table(title="K = 10")
    for column in ("arms", "algorithm", "m", "T", "runs a second", "run, ms", "bulk, ms", "ratio"):
        table.add_column(column, justify="left" if column in ("arms", "algorithm") else "right")
    for name, arms, algorithms in (
        ("588 IID", ct.datasets.movielens_like(), iid_algorithms()),
        ("547 non-IID", ct.datasets.movielens_like_groups(), noniid_algorithms()),
    ):
        for algorithm in algorithms:
            for m, horizon in SETTINGS:
                run, bulk = seconds(arms, algorithm, m, horizon, runs)
                table.add_row(
                    name,
                    " ".join([algorithm.title, *filter(None, [algorithm.options.get("schedule")])]),
                    str(m),
                    f"{horizon:,}",
                    f"{1 / run:,.0f}",
                    f"{run * 1e3:.2f}",
                    f"{bulk * 1e3:.2f}",
                    f"{run / bulk:.1f}",
                )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
