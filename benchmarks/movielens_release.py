"""Time and memory to read a MovieLens release of 25 million ratings.

    python benchmarks/movielens_release.py [--ratings 25000095]

Writes a made-up release of that many ratings to a temporary folder, as a zip file in the official format and with the
official numbers of users and movies (162,541 and 62,423). A separate process then reads it with each of the two
functions. The table shows the seconds until the arms are returned, the CPU seconds of all threads in that time (the
better measure on a busy machine), and the peak memory of the process including all imports. Needs the `movielens` extra
and 1 GB of disk. Takes two to three minutes, most of them to write the zip file.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

USERS, MOVIES, BLOCK = 162_541, 62_423, 1_000_000
CHILD = """
import json, resource, sys, time
import collabtop as ct
began, cpu = time.perf_counter(), time.process_time()
arms = getattr(ct.datasets, sys.argv[1])(sys.argv[2])
seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
unit = 1 if sys.platform == "darwin" else 1024
print(json.dumps([arms.n, seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit]))
"""


def write_release(path: Path, ratings: int) -> int:
    """Write a made-up release, with most ratings on few movies and users in order; return the bytes of ratings.csv."""
    rng = np.random.default_rng(0)
    users = np.sort(rng.integers(1, USERS + 1, ratings, dtype=np.int32))
    # The ranks of movies have a long tail, and their numbers no pattern.
    numbers = rng.permutation(np.arange(1, 3 * MOVIES, 3, dtype=np.int32))
    size = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("ml-25m/ratings.csv", "w", force_zip64=True) as file:
            size += file.write(b"userId,movieId,rating,timestamp\n")
            for start in range(0, ratings, BLOCK):
                part = users[start : start + BLOCK]
                ranks = (MOVIES * rng.random(len(part)) ** 4).astype(np.int32)
                stars = 0.5 * rng.integers(1, 11, len(part))
                times = rng.integers(789_652_004, 1_574_327_703, len(part))
                block = io.BytesIO()
                columns = {"userId": part, "movieId": numbers[ranks], "rating": stars, "timestamp": times}
                pl.DataFrame(columns).write_csv(block, include_header=False)
                size += file.write(block.getvalue())
        titles = "".join(f'{number},"Movie, The ({number})",Drama\n' for number in np.sort(numbers).tolist())
        archive.writestr("ml-25m/movies.csv", "movieId,title,genres\n" + titles)
    return size


def read_in_process(function: str, path: Path) -> tuple[int, float, float, int]:
    """Number of arms, seconds, CPU seconds and peak memory in bytes of a process that reads the release."""
    command = [sys.executable, "-c", CHILD, function, str(path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    arms, seconds, cpu, memory = json.loads(output)
    return arms, seconds, cpu, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=int, default=25_000_095)
    ratings = parser.parse_args().ratings
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ml-25m.zip")
        size = write_release(path, ratings)
        title = f"{ratings:,} ratings, {size / 1e6:,.0f} MB in a zip of {path.stat().st_size / 1e6:,.0f} MB"
        table = Table("read with", "arms", "seconds", "CPU seconds", "peak memory, MB", title=title)
        for function in ("movielens", "movielens_groups"):
            arms, seconds, cpu, memory = read_in_process(function, path)
            table.add_row(function, f"{arms:,}", f"{seconds:.1f}", f"{cpu:.1f}", f"{memory / 1e6:,.0f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
