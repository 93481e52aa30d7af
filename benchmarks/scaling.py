"""How the CPU time and the words of a run grow with the number of arms and of agents.

    python benchmarks/scaling.py [--largest 10_000_000]

Runs of m = 1 with a horizon of 500 n / K time steps: 500 pulls per arm. One table has n = 100, 1,000, ... with K = 10,
the other K = 1, 10, 100, 1,000 with n = 10,000. The last line of each has the log-log slope of each column between its
last three lines: 1 means proportional to n or K.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct

ALGORITHMS = ("collab-top-iid", "kzz-balanced", "frugal-top")
PULLS_PER_ARM = 500


def measure(name: str, n: int, agents: int, repeats: int) -> tuple[float, int]:
    """CPU seconds of a run, the fastest of several, and its words."""
    arms = ct.BernoulliArms(np.append(np.random.default_rng(n).uniform(0.1, 0.8, n - 1), 0.9))
    horizon = max(PULLS_PER_ARM * n // agents, 1_000)
    fastest, words = float("inf"), 0
    for seed in range(repeats):
        began = time.process_time()
        words = ct.identify(arms, 1, agents=agents, horizon=horizon, algorithm=name, seed=seed).words
        fastest = min(fastest, time.process_time() - began)
    return fastest, words


def table(title: str, settings: list[tuple[int, int]], varied: int) -> Table:
    """One line per setting (n, K), and the slopes in the one that is `varied`: 0 for n, 1 for K."""
    result = Table("n", "K", *(f"{name}, {unit}" for name in ALGORITHMS for unit in ("ms", "words")), title=title)
    lines = []
    for n, agents in settings:
        cells = [measure(name, n, agents, repeats=1 if n > 1_000_000 else 3) for name in ALGORITHMS]
        lines.append([value for cell in cells for value in cell])
        texts = [text for seconds, words in cells for text in (f"{1e3 * seconds:,.1f}", f"{words:,}")]
        result.add_row(f"{n:,}", f"{agents:,}", *texts)
    sizes = np.log([setting[varied] for setting in settings][-3:])
    slopes = np.polyfit(sizes, np.log(np.array(lines[-3:])), 1)[0]
    result.add_row("slope", "", *(f"{slope:.2f}" for slope in slopes))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=10_000_000, help="the largest number of arms")
    largest = parser.parse_args().largest
    console = Console(width=120)
    numbers = [n for n in (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000) if n <= largest]
    console.print(table("More arms", [(n, 10) for n in numbers], varied=0))
    console.print(table("More agents", [(10_000, agents) for agents in (1, 10, 100, 1_000)], varied=1))


if __name__ == "__main__":
    main()
