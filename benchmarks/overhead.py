"""Overhead of a run: its CPU time as a ratio to drawing the same samples in bulk with NumPy.

    python benchmarks/overhead.py [--large]

The baseline draws the samples of the run with one `binomial` call per round over the live arms; both are measured
alternately in one process. `--large` adds n = 1,000,000 with K = 100, and the peak memory per arm.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct

LARGE = 1_000_000


def cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def bulk_draws(means: np.ndarray, result: ct.Result) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    rounds = [(summary.pulls // summary.live, means[: summary.live]) for summary in result.rounds]
    return lambda: [rng.binomial(pulls, live) for pulls, live in rounds]


def ratio(
    name: str, arms: ct.BernoulliArms, agents: int, horizon: int, seeds: int, repeats: int
) -> tuple[float, float]:
    """Mean over seeds of the time of a run and of its bulk draws, each the fastest of several repeats.

    The two are measured alternately. The fastest repeat is least affected by other load on the machine.
    """
    times = np.empty((seeds, repeats, 2))
    for seed, repeat in np.ndindex(seeds, repeats):
        began = time.process_time()
        result = ct.identify(arms, m=1, agents=agents, horizon=horizon, algorithm=name, seed=seed)
        times[seed, repeat, 0] = time.process_time() - began
        times[seed, repeat, 1] = cpu_seconds(bulk_draws(arms.means, result))
        del result
    run, bulk = times.min(axis=1).mean(axis=0)
    return float(run), float(bulk)


def peak_bytes_per_arm(name: str) -> float:
    """Peak memory of Python and NumPy during one large run, without the arms themselves."""
    arms = large_arms()
    tracemalloc.start()
    ct.identify(arms, m=1, agents=100, horizon=5 * LARGE, algorithm=name, seed=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / LARGE


def large_arms() -> ct.BernoulliArms:
    return ct.BernoulliArms(np.random.default_rng(1).uniform(0.4, 0.9, LARGE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also n = 1,000,000 with K = 100 (a minute)")
    large = parser.parse_args().large
    table = Table("n", "K", "T", "algorithm", "run, ms", "bulk, ms", "ratio", "at most", "bytes per arm", "at most")
    small = ct.datasets.movielens_like()
    for name, limit in (("collab-top-iid", "20"), ("frugal-top", "-"), ("kzz-balanced", "-"), ("kzz", "-")):
        run, bulk = ratio(name, small, agents=10, horizon=30_000, seeds=20, repeats=10)
        cells = f"{run * 1e3:.2f}", f"{bulk * 1e3:.2f}", f"{run / bulk:.1f}"
        table.add_row("588", "10", "30,000", name, *cells, limit, "", "")
    for name, limit in (("collab-top-iid", "6"), ("kzz-balanced", "2.5")) if large else ():
        run, bulk = ratio(name, large_arms(), agents=100, horizon=5 * LARGE, seeds=2, repeats=3)
        cells = f"{run * 1e3:.2f}", f"{bulk * 1e3:.2f}", f"{run / bulk:.1f}"
        memory = f"{peak_bytes_per_arm(name):.0f}"
        table.add_row(f"{LARGE:,}", "100", f"{5 * LARGE:,}", name, *cells, limit, memory, "200")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
