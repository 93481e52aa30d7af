"""Overhead of a run: its CPU time as a ratio to drawing the same samples in bulk with NumPy, its memory, and the start.

    python benchmarks/overhead.py [--large] [--memory]

The baseline draws the samples of a run with one `binomial` call per round over the live arms; for frugal-top, which
draws in many local stages, it repeats the calls that the run made. Both are measured alternately in one process.
`--large` adds n = 1,000,000 with K = 100, and `--memory` the peak memory of runs with up to 10,000,000 arms (10 GB).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct

MILLION = 1_000_000
SMALL = ct.datasets.movielens_like()


class RecordedArms(ct.BernoulliArms):
    """Arms that remember the size and the pulls of each draw."""

    def pull(self, arms: np.ndarray, times: np.ndarray, draws: object) -> np.ndarray:
        """Draw, and remember it."""
        self.calls = [*getattr(self, "calls", []), (len(arms), int(times[0]))]
        return super().pull(arms, times, draws)  # type: ignore[arg-type]


def cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def bulk_draws(means: np.ndarray, result: ct.Result) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    rounds = [(summary.pulls // summary.live, means[: summary.live]) for summary in result.rounds]
    return lambda: [rng.binomial(pulls, live) for pulls, live in rounds]


def own_draws(arms: ct.BernoulliArms, agents: int, horizon: int, name: str) -> Callable[[], object]:
    """The draws that a run of this algorithm makes itself."""
    recorded, rng = RecordedArms(arms.means), np.random.default_rng(0)
    ct.identify(recorded, m=1, agents=agents, horizon=horizon, algorithm=name, seed=0)
    return lambda: [rng.binomial(pulls, arms.means[:count]) for count, pulls in recorded.calls]


def seconds(
    name: str, arms: ct.BernoulliArms, agents: int, horizon: int, seeds: int, repeats: int, *, own: bool = False
) -> tuple[float, float]:
    """Mean over seeds of the time of a run and of its draws, each the fastest of several repeats.

    The two are measured alternately. The fastest repeat is least affected by other load on the machine.
    """
    draws = own_draws(arms, agents, horizon, name) if own else None
    times = np.empty((seeds, repeats, 2))
    for seed, repeat in np.ndindex(seeds, repeats):
        began = time.process_time()
        result = ct.identify(arms, m=1, agents=agents, horizon=horizon, algorithm=name, seed=seed)
        times[seed, repeat, 0] = time.process_time() - began
        baseline = draws or bulk_draws(arms.means, result)
        del result
        times[seed, repeat, 1] = cpu_seconds(baseline)
    run, bulk = times.min(axis=1).mean(axis=0)
    return float(run), float(bulk)


def row(name: str, arms: ct.BernoulliArms, agents: int, horizon: int, limit: str, **options: int | bool) -> list[str]:
    run, bulk = seconds(name, arms, agents, horizon, **options)  # type: ignore[arg-type]
    title = f"{name}, own draws" if options.get("own") else name
    cells = f"{run * 1e3:,.2f}", f"{bulk * 1e3:,.2f}", f"{run / bulk:.1f}"
    return [f"{arms.n:,}", f"{agents:,}", f"{horizon:,}", title, *cells, limit]


def ratios(*, large: bool) -> Table:
    table = Table("n", "K", "T", "algorithm", "run, ms", "draws, ms", "ratio", "at most", title="CPU time of a run")
    for name, limit in (("collab-top-iid", "14.5"), ("kzz-balanced", "8.5"), ("kzz", "13"), ("frugal-top", "-")):
        table.add_row(*row(name, SMALL, 10, 30_000, limit, seeds=10, repeats=10))
    table.add_row(*row("collab-top-iid", SMALL, 100, 30_000, "35", seeds=5, repeats=10))
    table.add_row(*row("collab-top-iid", SMALL, 1_000, 30_000, "160", seeds=2, repeats=5))
    if large:
        arms = ct.BernoulliArms(np.random.default_rng(1).uniform(0.4, 0.9, MILLION))
        for name, limit in (("collab-top-iid", "3"), ("kzz-balanced", "1.7"), ("frugal-top", "2")):
            own = name == "frugal-top"
            table.add_row(*row(name, arms, 100, 5 * MILLION, limit, seeds=1, repeats=3, own=own))
    return table


def milliseconds() -> Table:
    """Runs whose time is dominated by something else than their draws."""
    table = Table("n", "K", "algorithm", "run, ms", "at most", title="CPU time of other runs")
    groups = ct.datasets.movielens_like_groups()
    many = ct.BernoulliArms(np.append(np.random.default_rng(1).uniform(0.1, 0.5, 99_999), 0.9))
    lines: list[tuple[ct.Arms, int, str, str, dict[str, float]]] = [
        (SMALL, 1, "sar", "50", {"horizon": 300_000}),
        (groups, 10, "frugal-top-noniid", "12.5", {"horizon": 30_000}),
        (many, 10, "confident-top", "a tenth of 0.1.0", {"confidence": 0.9}),  # 3,800 ms on the machine of the README
    ]
    for arms, agents, name, limit, until in lines:
        run = partial(ct.identify, arms, 1, agents=agents, algorithm=name, seed=1, **until)
        fastest = min(cpu_seconds(run) for _ in range(10))
        table.add_row(f"{arms.n:,}", str(agents), name, f"{1e3 * fastest:.1f}", limit)
    return table


def start() -> Table:
    """CPU time of new processes, the fastest of several, without that of Python itself."""
    table = Table("started", "ms", "of NumPy's", "at most", title="Start-up")
    command = str(Path(sys.executable).with_name("collabtop"))
    python = _process([sys.executable, "-c", ""])
    numpy = _process([sys.executable, "-c", "import numpy.random"]) - python
    for title, line, limit in (
        ("import numpy.random", [sys.executable, "-c", "import numpy.random"], ""),
        ("import collabtop", [sys.executable, "-c", "import collabtop"], "0.3"),
        ("collabtop --version", [command, "--version"], ""),
        ("collabtop --help", [command, "--help"], ""),
    ):
        took = _process(line) - python
        table.add_row(title, f"{1e3 * took:.1f}", f"{took / numpy:.2f}", limit)
    return table


def _process(command: Sequence[str], repeats: int = 15) -> float:
    """CPU seconds of a child process, the fastest of several."""
    times = []
    for _ in range(repeats):
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = getrusage(RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def memory() -> Table:
    """Peak memory of Python and NumPy during one run, without the arms themselves."""
    table = Table("n", "K", "algorithm", "peak, GB", "bytes per arm", "at most", title="Peak memory of a run")
    arms: ct.Arms = ct.BernoulliArms(np.random.default_rng(1).uniform(0.4, 0.9, 10 * MILLION))
    for name in ("collab-top-iid", "kzz-balanced", "frugal-top"):
        table.add_row(*memory_row(name, arms, 50 * MILLION, "110 bytes per arm"))
    arms = ct.BernoulliArms(np.random.default_rng(1).uniform(0.4, 0.9, MILLION))
    for name in ("uniform", "kzz"):
        table.add_row(*memory_row(name, arms, 5 * MILLION, "2 GB"))
    arms = ct.HeterogeneousArms(np.random.default_rng(1).uniform(0.4, 0.9, (MILLION, 100)))
    for name in ("collab-top-noniid", "frugal-top-noniid"):
        table.add_row(*memory_row(name, arms, 50 * MILLION, "2 GB"))
    return table


def memory_row(name: str, arms: ct.Arms, horizon: int, limit: str) -> list[str]:
    tracemalloc.start()
    ct.identify(arms, m=1, agents=100, horizon=horizon, algorithm=name, seed=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return [f"{arms.n:,}", "100", name, f"{peak / 1e9:.2f}", f"{peak / arms.n:,.0f}", limit]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also n = 1,000,000 with K = 100 (a minute)")
    parser.add_argument("--memory", action="store_true", help="also the peak memory of large runs (minutes, 10 GB)")
    arguments = parser.parse_args()
    console = Console(width=120)
    console.print(start())
    console.print(ratios(large=arguments.large))
    console.print(milliseconds())
    if arguments.memory:
        console.print(memory())


if __name__ == "__main__":
    main()
