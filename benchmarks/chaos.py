"""Disturb runs at random, and check that answer, ledger and pulls are those of an undisturbed run.

    python benchmarks/chaos.py --runs 40

Each run is over two sites or in one process, with real processes and connections. Processes are killed and frozen,
links are cut, clocks jump, and the power of a process and its disk is cut. As root on Linux, the disks are ext4 file
systems on loop devices, which a power cut shuts down without writing anything more. Elsewhere a power cut tears the end
of each log at random, up to what was synced.

Nothing may be lost except pulls in progress, at most one per agent, and those of the last second before a power cut.
The script ends with 1 at the first run that breaks this, and prints its seed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

import collabtop as ct

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.chaos import disturbed_run
from tests.support.disks import LoopDisk, SimulatedDisk, kind_of_disks


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--runs", type=int, default=40)
    options.add_argument("--faults", type=int, default=10, help="the most faults per run")
    options.add_argument("--seed", type=int, default=1, help="the seed of the first run; the next has the next number")
    options.add_argument("--simulated-disks", action="store_true", help="do not use loop devices")
    chosen = options.parse_args()
    disks: type[LoopDisk | SimulatedDisk] = SimulatedDisk if chosen.simulated_disks else kind_of_disks()
    faults: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    longest: dict[str, float] = {}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        certs = Path(scratch) / "certs"
        ct.make_certificates(certs, ["site0", "site1"])
        for seed in range(chosen.seed, chosen.seed + chosen.runs):
            try:
                injected, losses = disturbed_run(Path(scratch) / f"run{seed}", certs, disks, seed, chosen.faults)
            except AssertionError as error:
                sys.exit(f"seed {seed}: {error}")
            faults.update(fault.kind for fault in injected)
            for kind, seconds, pulls in losses:
                lost[kind] += pulls
                longest[kind] = max(longest.get(kind, 0.0), seconds)
            print(f"seed {seed}: {len(injected)} faults", file=sys.stderr, flush=True)
    table = Table("fault", "number", "pulls made again", "longest loss")
    for kind, number in sorted(faults.items()):
        table.add_row(kind, str(number), str(lost[kind]), f"{longest[kind]:.2f} s" if kind in longest else "-")
    Console().print(table)
    total, seconds = sum(faults.values()), time.monotonic() - began
    print(f"{total} faults in {chosen.runs} runs on {disks.kind} disks in {seconds:.0f} s: nothing else was lost")


if __name__ == "__main__":
    main()
