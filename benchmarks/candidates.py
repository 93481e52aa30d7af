"""Overhead of evaluating one's own candidates, relative to the time spent in the function itself.

    python benchmarks/candidates.py

Overhead: wall-clock time of a run minus the time inside the function, as a share of the latter; and CPU time of a run
whose function returns immediately, as a share of 1 ms per pull, which is less affected by other load. Both are the
minimum of ten runs. Log: pulls per second written to the checkpoint when a batch function returns them in bulk.
Threads: the time of a run with sequential pulls divided by that of the same run with 8 agents in threads.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct

CANDIDATES = np.linspace(0.1, 0.9, 20).tolist()


class Timed:
    """A function that takes a fixed time and adds up how long its calls took."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.inside = seconds, 0.0

    def __call__(self, mean: float, rng: np.random.Generator) -> bool:
        """Draw a reward and wait without releasing the core."""
        began = time.perf_counter()
        reward = rng.random() < mean
        while time.perf_counter() - began < self.seconds:
            pass
        self.inside += time.perf_counter() - began
        return bool(reward)


def immediate(mean: float, rng: np.random.Generator) -> bool:
    return mean > 0.5


def wall_clock_overhead(checkpoint: Path | None) -> float:
    shares = []
    for seed in range(10):
        pull = Timed(0.001)
        path = None if checkpoint is None else checkpoint / f"clock{seed}.ctlog"
        began = time.perf_counter()
        ct.identify(CANDIDATES, 2, pull=pull, agents=4, horizon=250, seed=seed, checkpoint=path)
        shares.append((time.perf_counter() - began - pull.inside) / pull.inside)
    return min(shares)


def cpu_overhead(checkpoint: Path | None) -> float:
    shares = []
    for seed in range(10):
        path = None if checkpoint is None else checkpoint / f"cpu{seed}.ctlog"
        began = time.process_time()
        result = ct.identify(CANDIDATES, 2, pull=immediate, agents=4, horizon=250, seed=seed, checkpoint=path)
        shares.append((time.process_time() - began) / result.pulls / 0.001)
    return min(shares)


@ct.batch
def in_bulk(mean: float, times: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random(times) < mean


def bulk(folder: Path) -> tuple[float, float]:
    """Pulls per second without and with a checkpoint."""
    rates = []
    for path in (None, folder / "bulk.ctlog"):
        began = time.perf_counter()
        result = ct.identify(CANDIDATES, 2, pull=in_bulk, agents=4, horizon=500_000, seed=1, checkpoint=path)
        rates.append(result.pulls / (time.perf_counter() - began))
    return rates[0], rates[1]


def sleeps(mean: float, rng: np.random.Generator) -> bool:
    time.sleep(0.01)
    return bool(rng.random() < mean)


async def sleeps_async(mean: float, rng: np.random.Generator) -> bool:
    import asyncio

    await asyncio.sleep(0.01)
    return bool(rng.random() < mean)


def speedup(pull: Callable[..., Any]) -> float:
    seconds = {}
    for team in ("local", "threads"):
        began = time.perf_counter()
        ct.identify(CANDIDATES, 2, pull=pull, agents=8, horizon=60, algorithm="kzz-balanced", seed=1, team=team)
        seconds[team] = time.perf_counter() - began
    return seconds["local"] / seconds["threads"]


def main() -> None:
    table = Table("measure", "measured", "target")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, path in (("overhead at 1 ms per pull", None), ("the same with a checkpoint", folder)):
            table.add_row(f"{name}, wall clock", f"{wall_clock_overhead(path):.1%}", "under 5%")
            table.add_row(f"{name}, CPU time", f"{cpu_overhead(path):.1%}", "under 5%")
        without, with_log = bulk(folder)
        table.add_row("pulls per second in bulk with a checkpoint", f"{with_log:,.0f}", "100,000")
        table.add_row("the same, as a share of the rate without", f"{with_log / without:.2f}", "-")
    table.add_row("8 threads compared with sequential pulls, 10 ms per pull", f"{speedup(sleeps):.1f} times", "6 times")
    table.add_row("the same with an async function", f"{speedup(sleeps_async):.1f} times", "6 times")
    Console().print(table)


if __name__ == "__main__":
    main()
