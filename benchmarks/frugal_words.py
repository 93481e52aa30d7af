"""The words of frugal-top over n, K and m, as ratios to K log2 n + m: they should be O(K log n + m).

    python benchmarks/frugal_words.py [--quick]

One run per cell, because words hardly vary between runs and do not depend on the horizon. The last line gives the
constant: no cell has a larger ratio. `by plan` is the bound that is known before the run (docs/frugal-top.md). Takes
half a minute; `--quick` leaves out n above 2^14.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct
from collabtop.algorithms.shared.frugal_bound import frugal_round_trips_bound, frugal_words_bound

WANTED = {"1": lambda n: 1, "8": lambda n: 8, "sqrt n": math.isqrt, "n/4": lambda n: n // 4}


def measured(n: int, m: int, agents: int) -> tuple[int, int, int, int]:
    """Words and round trips of a run, each with its upper bound."""
    algorithm = ct.FrugalTop()
    horizon = 3 * algorithm.smallest_horizon(ct.Problem(n, m, agents, 1))
    arms = ct.BernoulliArms(np.random.default_rng(1).random(n))
    result = ct.identify(arms, m, agents=agents, horizon=horizon, algorithm=algorithm, seed=1)
    problem = ct.Problem(n, m, agents, horizon)
    return result.words, frugal_words_bound(problem), result.round_trips, frugal_round_trips_bound(problem)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    sizes = [2**power for power in ((8, 11, 14) if parser.parse_args().quick else (8, 10, 12, 14, 16, 18, 20))]
    table = Table("n", "m", "K", "words", "by plan", "words / (K log2 n + m)", "round trips", "by plan")
    ratios: list[float] = []
    rows: list[tuple[float, float, float]] = []
    for n in sizes:
        for name, wanted in WANTED.items():
            for agents in (2, 10, 100):
                m = wanted(n)
                words, most, trips, most_trips = measured(n, m, agents)
                ratios.append(words / (agents * math.log2(n) + m))
                rows.append((agents * math.log2(n), m, words))
                cells = (f"{n:,}", name, str(agents), f"{words:,}", f"{most:,}", f"{ratios[-1]:.2f}")
                table.add_row(*cells, str(trips), str(most_trips))
    console = Console(width=110)
    console.print(table)
    a, b = relative_fit(np.array(rows))
    console.print(f"fitted (least squares of relative errors): words = {a:.1f} K log2 n + {b:.1f} m")
    console.print(
        f"words are at most {max(ratios):.1f} (K log2 n + m) in every cell, {np.median(ratios):.1f} at the median"
    )


def relative_fit(rows: np.ndarray) -> tuple[float, float]:
    """The a and b for which words are about a K log2 n + b m, with all cells weighted equally."""
    (a, b), *_ = np.linalg.lstsq(rows[:, :2] / rows[:, 2:], np.ones(len(rows)), rcond=None)
    return float(a), float(b)


if __name__ == "__main__":
    main()
