"""Runs per second of each algorithm, and the ratio of a run's CPU time to drawing its samples in bulk with NumPy.

    python benchmarks/runs_per_second.py [--runs 100] [--seconds 3]

Measures every available algorithm with each of its schedules, in CPU time of one process; a study makes this many runs
per second and core. The baseline draws the samples of the run with one `binomial` call per round, over the live arms
and, where every agent pulls every arm, over the agents. Algorithms for one agent get ten times the horizon, as if ten
agents shared for free. Algorithms with a confidence (.95) run until they are sure or T is used up. kl-lucb, which
decides after every second pull, runs on 16 easy arms.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct
from collabtop.algorithms.registry import algorithm_options
from collabtop.arms import SimulatedArms

AGENTS = 10
SETTINGS = [(1, 30_000), (8, 600_000)]
IID, MIXED = ct.datasets.movielens_like(), ct.datasets.movielens_like_groups()
EASY = ct.BernoulliArms([0.9] + [0.5] * 15)


class Line(msgspec.Struct, frozen=True):
    """One line of the table: an algorithm and its setting."""

    arms: SimulatedArms
    algorithm: ct.Algorithm
    m: int
    agents: int
    horizon: int


def lines() -> Iterator[Line]:
    """Every algorithm on the kind of arms it is meant for, with every m and schedule it accepts."""
    for title in ct.available_algorithms():
        schedules = (
            [{"schedule": name} for name in ("paper", "full")] if "schedule" in algorithm_options(title) else [{}]
        )
        for options in schedules:
            algorithm = ct.make_algorithm(title, **options)
            for arms in _arms_for(algorithm):
                for m, horizon in SETTINGS:
                    if _accepts(algorithm, arms, m, AGENTS):
                        yield Line(arms, algorithm, m, AGENTS, horizon)
                    elif _accepts(algorithm, arms, m, 1):
                        yield Line(arms, algorithm, m, 1, horizon * AGENTS)


def _arms_for(algorithm: ct.Algorithm) -> list[SimulatedArms]:
    if isinstance(algorithm, ct.KLLUCB):
        return [EASY]
    if algorithm.iid_only or isinstance(algorithm, ct.SAR | ct.SequentialHalving):
        return [IID]
    return [IID, MIXED] if isinstance(algorithm, ct.Uniform) else [MIXED]


def _accepts(algorithm: ct.Algorithm, arms: SimulatedArms, m: int, agents: int) -> bool:
    try:
        algorithm.check(ct.Problem(arms.n, m, agents, 1))
    except ct.SettingError:
        return False
    return 2 * m < arms.n  # the best half of the easy arms would have to separate arms that tie


def seconds(line: Line, runs: int, most: float) -> tuple[float, float]:
    """Median CPU seconds of a run and of its bulk draws, measured alternately."""
    rng, run, bulk = np.random.default_rng(0), [], []
    for seed in range(runs + 1):
        began = time.process_time()
        result = ct.identify(
            line.arms, line.m, agents=line.agents, horizon=line.horizon, algorithm=line.algorithm, seed=seed
        )
        between = time.process_time()
        for summary in result.rounds:
            live = line.arms.means[: summary.live]
            rng.binomial(summary.pulls // live.size, live)
        run.append(between - began)
        bulk.append(time.process_time() - between)
        if len(run) > 3 and sum(run) > most:
            break
    return float(np.median(run[1:])), float(np.median(bulk[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="runs per line")
    parser.add_argument("--seconds", type=float, default=3.0, help="approximate limit on the time per line")
    arguments = parser.parse_args()
    table = Table()
    for column in ("algorithm", "arms", "m", "K", "T", "runs per second", "run, ms", "bulk, ms", "ratio"):
        table.add_column(column, justify="left" if column in ("arms", "algorithm") else "right")
    for line in lines():
        run, bulk = seconds(line, arguments.runs, arguments.seconds)
        table.add_row(
            " ".join([line.algorithm.title, *filter(None, [line.algorithm.options.get("schedule")])]),
            f"{line.arms.n} {'IID' if line.arms.iid else 'non-IID'}",
            str(line.m),
            str(line.agents),
            f"{line.horizon:,}",
            f"{1 / run:,.0f}" if run < 0.1 else f"{1 / run:.1f}",
            f"{run * 1e3:.2f}",
            f"{bulk * 1e3:.2f}",
            f"{run / bulk:.1f}",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
