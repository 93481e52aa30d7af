"""Error rates at the points of the specification, compared with reference rates.

    python benchmarks/spec_points.py --means MEANS.txt --group-means GROUP_MEANS.txt [--runs 6000] [--jobs 2]

The reference rates come from 6,000 runs of independent code (2,000 runs for non-IID arms). A rate agrees
if it is within 3 sqrt(p (1 - p) (1/N + 1/N_ref)) of its reference, with p at least .002. About 3 minutes.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import collabtop as ct

# algorithm, arms, m, T, P(wrong), N_ref
POINTS = [
    ("collab-top-iid", "iid", 1, 10_000, 0.394, 6_000),
    ("collab-top-iid", "iid", 1, 30_000, 0.072, 6_000),
    ("kzz", "iid", 1, 10_000, 0.063, 6_000),
    ("kzz", "iid", 1, 20_000, 0.009, 6_000),
    ("collab-top-iid", "iid", 8, 120_000, 0.812, 6_000),
    ("collab-top-iid", "iid", 8, 240_000, 0.530, 6_000),
    ("kzz", "iid", 8, 120_000, 0.184, 6_000),
    ("collab-top-noniid", "noniid", 1, 20_000, 0.0375, 2_000),
    ("collab-top-noniid", "noniid", 1, 50_000, 0.000, 2_000),
    ("uniform", "noniid", 1, 20_000, 0.497, 2_000),
    ("uniform", "noniid", 1, 50_000, 0.198, 2_000),
]


def tolerance(reference: float, runs: int, runs_ref: int) -> float:
    p = max(reference, 0.002)
    return 3 * math.sqrt(p * (1 - p) * (1 / runs + 1 / runs_ref))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--means", type=Path, required=True, help="588 means, one per line")
    parser.add_argument("--group-means", type=Path, required=True, help="547 lines of 10 means")
    parser.add_argument("--runs", type=int, default=6_000, help="runs per point")
    parser.add_argument("--jobs", type=int, default=None)
    arguments = parser.parse_args()
    arms = {"iid": ct.read_arms(arguments.means), "noniid": ct.read_arms(arguments.group_means)}
    table = Table(
        "algorithm", "m", "T", "reference", "measured", "allowed", "agrees", title=f"{arguments.runs:,} runs per point"
    )
    all_agree = True
    for name, which, m, horizon, reference, runs_ref in POINTS:
        study = ct.Study(
            arms={which: arms[which]}, algorithms=name, m=m, agents=10, horizon=horizon, runs=arguments.runs
        )
        (point,) = study.run(jobs=arguments.jobs).points()
        allowed = tolerance(reference, arguments.runs, runs_ref)
        agrees = abs(point.error - reference) <= allowed
        all_agree &= agrees
        table.add_row(
            name,
            str(m),
            f"{horizon:,}",
            f"{reference:.4f}",
            f"{point.error:.4f}",
            f"{allowed:.4f}",
            "yes" if agrees else "NO",
        )
    Console().print(table)
    return 0 if all_agree else 1


if __name__ == "__main__":
    sys.exit(main())
