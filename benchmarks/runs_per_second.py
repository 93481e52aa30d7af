"""Runs per second of each algorithm, made message by message and in batches, against drawing their samples with NumPy.

    python benchmarks/runs_per_second.py [--runs 100] [--seconds 3]

Measures every available algorithm with each of its schedules, in CPU time of one process; a study makes this many runs
per second and core. Columns:

- run: a run with messages; bulk: its samples with one `binomial` call per round, over the live arms and, where every
  agent pulls every arm, over the agents.
- batched: a run in a batch as large as in a study with many runs (`Algorithm.simulate`), which gives the answer only;
  sampling: the same `binomial` calls as for bulk, but for as many runs at once; draws: the `binomial` calls that the
  batch would make without its tables, repeated without anything else. Of algorithms that draw in many local stages
  (frugal-top), only draws counts all samples.

Algorithms for one agent get ten times the horizon, as if ten agents shared for free. Algorithms with a confidence (.95)
run until they are sure or T is used up. kl-lucb, which decides after every second pull, runs on 16 easy arms.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct
from collabtop.algorithms.registry import algorithm_options
from collabtop.algorithms.shared import binomial_tables
from collabtop.arms import SimulatedArms
from collabtop.arms.base import Reals
from collabtop.studies.chunks import batch_end

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


def rounds_of(result: ct.Result, arms: SimulatedArms) -> list[tuple[int, Reals]]:
    """The pulls of each live arm, and as many means as are live, in each round with pulls."""
    rounds = [(summary.pulls, arms.means[: summary.live]) for summary in result.rounds if summary.live]
    return [(pulls // means.size, means) for pulls, means in rounds]


def seconds(line: Line, runs: int, most: float) -> tuple[float, float]:
    """Median CPU seconds of a run and of its bulk draws, measured alternately."""
    rng, run, bulk = np.random.default_rng(0), [], []
    for seed in range(runs + 1):
        began = time.process_time()
        result = ct.identify(
            line.arms, line.m, agents=line.agents, horizon=line.horizon, algorithm=line.algorithm, seed=seed
        )
        between = time.process_time()
        for pulls, live in rounds_of(result, line.arms):
            rng.binomial(pulls, live)
        run.append(between - began)
        bulk.append(time.process_time() - between)
        if len(run) > 3 and sum(run) > most:
            break
    return float(np.median(run[1:])), float(np.median(bulk[1:]))


class RecordedDraws(np.random.Generator):
    """A generator that remembers the arguments of its binomial draws."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self.calls: list[tuple[Any, ...]] = []

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Draw, and remember the arguments."""
        self.calls.append((n, p, size))
        return super().binomial(n, p, size)


def batched_seconds(line: Line, most: float) -> tuple[float, float, float] | None:
    """CPU seconds per run in a batch, of sampling in bulk, and of the batch's own draws: the fastest of several."""
    if not line.algorithm.batched:
        return None
    problem = ct.Problem(line.arms.n, line.m, line.agents, line.horizon)
    result = ct.identify(line.arms, line.m, agents=line.agents, horizon=line.horizon, algorithm=line.algorithm, seed=0)
    rounds, size = rounds_of(result, line.arms), batch_end(1_000, line.arms.means.size) - 1_000
    recorded, rng = RecordedDraws(0), np.random.default_rng(0)
    with patch.object(binomial_tables, "_MOST_ENTRIES", 0):  # no tables, so that all draws are recorded
        line.algorithm.answers(problem, line.arms.means, size, recorded)

    def sample() -> None:
        for pulls, means in rounds:
            rng.binomial(pulls, means, (size, *means.shape))

    def draw() -> None:
        for call in recorded.calls:
            rng.binomial(*call)

    work = (lambda: line.algorithm.answers(problem, line.arms.means, size, rng), sample, draw)
    times: list[list[float]] = [[], [], []]
    ends = time.process_time() + most
    while len(times[0]) < 3 or time.process_time() < ends:
        for kind, action in zip(times, work, strict=True):
            began = time.process_time()
            action()
            kind.append(time.process_time() - began)
    batched, sampling, draws = (min(kind) / size for kind in times)
    return batched, sampling, draws


def batched_cells(line: Line, most: float) -> list[str]:
    measured = batched_seconds(line, most)
    if measured is None:
        return ["-"] * 5
    batched, sampling, draws = measured
    milliseconds = [f"{value * 1e3:.3f}" for value in measured]
    return [*milliseconds, f"{batched / sampling:.2f}", f"{batched / draws:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="runs per line")
    parser.add_argument("--seconds", type=float, default=3.0, help="approximate limit on the time per line")
    arguments = parser.parse_args()
    table = Table()
    columns = ("algorithm", "arms", "m", "K", "T", "runs per second", "run, ms", "bulk, ms", "run / bulk")
    batched = ("batched, ms", "sampling, ms", "draws, ms", "batched / sampling", "batched / draws")
    for column in (*columns, *batched):
        left = column in ("arms", "algorithm")
        table.add_column(column, justify="left" if left else "right", no_wrap=left)
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
            *batched_cells(line, arguments.seconds / 3),
        )
    Console(width=170).print(table)


if __name__ == "__main__":
    main()
