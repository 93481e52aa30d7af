"""What the machinery costs: CPU time of a run, as a ratio to drawing the same samples in bulk with NumPy.

    python benchmarks/overhead.py [--large]

The yardstick draws what the run draws, one `binomial` call a round over the live arms; both are measured in
turn in one process. `--large` adds n = 1,000,000 and K = 100, and the peak memory an arm.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct


def cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def bulk_draws(means: np.ndarray, result: ct.Result) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    rounds = [(one.pulls // one.live, means[: one.live]) for one in result.rounds]
    return lambda: [rng.binomial(pulls, live) for pulls, live in rounds]


def ratio(name: str, arms: ct.BernoulliArms, agents: int, horizon: int, repeats: int) -> tuple[float, float]:
    """The quickest run and the quickest of its bulk draws, measured in turn: what a busy machine disturbs least."""
    run, bulk = [], []
    for seed in range(repeats + 1):
        began = time.process_time()
        result = ct.identify(arms, m=1, agents=agents, horizon=horizon, algorithm=name, seed=seed)
        run.append(time.process_time() - began)
        bulk.append(cpu_seconds(bulk_draws(arms.means, result)))
    return min(run[1:]), min(bulk[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also n = 1,000,000 with K = 100 (a minute)")
    large = parser.parse_args().large
    table = Table("n", "K", "T", "algorithm", "run, ms", "bulk, ms", "ratio", "at most")
    small = ct.datasets.movielens_like()
    cases = [
        (small, 10, 30_000, 200, "collab-top-iid", "20"),
        (small, 10, 30_000, 200, "kzz-balanced", "-"),
        (small, 10, 30_000, 200, "kzz", "-"),
    ]
    if large:
        big = ct.BernoulliArms(np.random.default_rng(1).uniform(0.4, 0.9, 1_000_000))
        cases += [
            (big, 100, 5_000_000, 5, "collab-top-iid", "6"),
            (big, 100, 5_000_000, 5, "kzz-balanced", "2.5"),
        ]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for arms, agents, horizon, repeats, name, limit in cases:
        run, bulk = ratio(name, arms, agents, horizon, repeats)
        table.add_row(
            f"{arms.n:,}",
            str(agents),
            f"{horizon:,}",
            name,
            f"{run * 1e3:.2f}",
            f"{bulk * 1e3:.2f}",
            f"{run / bulk:.1f}",
            limit,
        )
    Console().print(table)
    if large:
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        print(f"peak memory above the start: {grown / 1_000_000:.0f} bytes an arm (at most 200)")


if __name__ == "__main__":
    main()
