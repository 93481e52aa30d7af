"""What fewer round trips cost frugal-top: its error and its words with round_trips=1, 2, 3, ... at one horizon.

    python benchmarks/frugal_trips.py [--means MEANS.txt] [--runs 1000] [--jobs 2]

K = 10, on the embedded MovieLens-like means or a file of means. Prints the table of docs/frugal-top.md. About a minute.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import collabtop as ct
from collabtop.stats import wilson_interval

AGENTS = 10
HORIZONS = {1: 12_000, 8: 300_000}
ROUND_TRIPS = (1, 2, 3, 4, 6, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--means", type=Path)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--jobs", type=int)
    arguments = parser.parse_args()
    arms = ct.read_arms(arguments.means) if arguments.means else ct.datasets.movielens_like()
    print("| m | T | round_trips | error | 95% interval | words | round trips |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for m, horizon in HORIZONS.items():
        for round_trips in ROUND_TRIPS:
            study = ct.Study(
                arms=arms,
                algorithms=ct.FrugalTop(round_trips=round_trips),
                m=m,
                agents=AGENTS,
                horizon=horizon,
                runs=arguments.runs,
                seed=1,
            )
            point = study.run(jobs=arguments.jobs).points()[0]
            low, high = wilson_interval(point.error, point.runs)
            columns = (m, f"{horizon:,}", round_trips, f"{point.error:.3f}", f"{low:.3f} to {high:.3f}")
            costs = (f"{point.words_mean:,.0f}", f"{point.round_trips_mean:.0f}")
            print(f"| {' | '.join(map(str, (*columns, *costs)))} |", flush=True)


if __name__ == "__main__":
    main()
