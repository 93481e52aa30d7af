"""Workers: what a run adds to the time of its calls, what a second core gains, and how long large sessions take.

    python benchmarks/workers.py [--repeats 15]

Overhead: pulls that wait for 1 ms, made by a run with `workers=8`, against 8 bare threads that make the same number of
calls, measured alternately: the median of the ratios, and in parentheses their quartiles. CPU time per pull is that of
the run minus that of the threads: it is less affected by other load, and 8 workers at 1 ms leave 125 us per pull before
one core is full. The start, which takes as long for few pulls as for many, is measured with a run of 64 pulls.
Processes: pulls that compute for 50 ms, with `team="processes"` on 2 workers against the local team, with the start of
the workers and without it. Sessions: 10,000 candidates and 100,000 rows, from `ask_tell` to the result.
Times, unlike ratios of CPU time, mean little on a machine with other load.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import collabtop as ct

WORKERS, PULLS = 8, 8_000
CANDIDATES = list(range(16))
HEAVY_PULLS = 200


def waits(candidate: int, rng: np.random.Generator) -> bool:
    time.sleep(0.001)
    return bool(rng.random() < 0.02 * candidate)


def bare_threads() -> None:
    """The calls of a run without the run."""

    def call() -> None:
        rng = np.random.default_rng(0)
        for _ in range(PULLS // WORKERS):
            waits(1, rng)

    threads = [threading.Thread(target=call) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run(checkpoint: Path | None, pulls: int = PULLS) -> None:
    ct.identify(CANDIDATES, 1, pull=waits, workers=WORKERS, horizon=pulls, seed=1, checkpoint=checkpoint)


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall-clock and CPU time of some work."""
    began, began_cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - began_cpu


def overhead(repeats: int, folder: Path | None) -> tuple[NDArray[np.float64], float]:
    """Quartiles of the time of a run as a multiple of that of bare threads, and its additional CPU time per pull."""
    times = []
    for repeat in range(repeats):
        path = None if folder is None else folder / f"{repeat}.ctlog"
        times.append((*seconds(lambda path=path: run(path)), *seconds(bare_threads)))  # type: ignore[misc]
    wall, cpu, bare_wall, bare_cpu = np.array(times).T
    return np.quantile(wall / bare_wall, [0.25, 0.5, 0.75]), float(np.median(cpu - bare_cpu)) / PULLS


def start(repeats: int) -> float:
    """The time of a run beyond that of its few pulls."""
    pulls = 64
    return float(np.median([seconds(lambda: run(None, pulls))[0] for _ in range(repeats)])) - 0.001 * pulls / WORKERS


def computes(candidate: int, rng: np.random.Generator) -> bool:
    until = time.thread_time() + 0.05  # seconds of computing, however busy the machine is
    while time.thread_time() < until:
        pass
    return bool(rng.random() < 0.02 * candidate)


def processes() -> tuple[float, float]:
    """How much faster two processes are than the local team, with and without the start of the workers."""
    asked = {"horizon": HEAVY_PULLS, "seed": 1}
    ended: list[float] = []

    def note_first_pull(event: object) -> None:
        if isinstance(event, ct.events.PullsMade) and not ended:
            ended.append(time.perf_counter())

    local, _ = seconds(lambda: ct.identify(CANDIDATES, 1, pull=computes, **asked))  # type: ignore[call-overload]
    began = time.perf_counter()
    team = ct.ProcessesTeam(workers=2)
    ct.identify(CANDIDATES, 1, pull=computes, team=team, on_event=note_first_pull, **asked)  # type: ignore[call-overload]
    total = time.perf_counter() - began
    return local / total, local / (total - (ended[0] - began) + 0.05)


def session(folder: Path) -> int:
    """Make a session, and return the number of its rows."""
    rng, rows = np.random.default_rng(1), 0
    opened = ct.ask_tell(range(10_000), 10, agents=1, budget=100_000, seed=1, log=folder / "session.ctlog")
    while pulls := opened.ask():
        opened.tell(pulls, [(rng.random(pull.times) < pull.candidate / 10_000).tolist() for pull in pulls])
        rows += sum(pull.times for pull in pulls)
    opened.result()
    return rows


def main() -> None:
    from rich.console import Console  # here, since every worker process imports this script
    from rich.table import Table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    table = Table("measure", "measured", "target")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, path in (("8 workers at 1 ms per pull", None), ("the same with a checkpoint", folder)):
            (low, ratio, high), cpu = overhead(repeats, path)
            table.add_row(f"{name}, against bare threads", f"{ratio:.3f} ({low:.3f} to {high:.3f})", "at most 1.05")
            table.add_row(f"{name}, CPU time per pull", f"{cpu * 1e6:.0f} us", "-")
        table.add_row("the start of such a run", f"{1e3 * start(repeats):.0f} ms", "-")
        rate, without_start = processes()
        table.add_row(f"2 processes, {HEAVY_PULLS} pulls of 50 ms, against local", f"{rate:.2f}", "at least 1.8")
        table.add_row("the same without the start of the processes", f"{without_start:.2f}", "at least 1.8")
        rows: list[int] = []
        wall, cpu = seconds(lambda: rows.append(session(folder)))
        table.add_row(f"ask-tell with 10,000 candidates and {rows[0]:,} rows", f"{wall:.1f} s", "a second or two")
        table.add_row("the same, CPU time", f"{cpu:.1f} s", "-")
    table.caption = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores when it ended"
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
