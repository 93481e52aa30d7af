"""Error, words and round trips of frugal-top and its rivals on the standard instances.

    python benchmarks/frugal_standard.py [--quick] [--jobs 2] [--seed 1] > docs/frugal-standard.md

Each cell has one horizon: the one at which kzz is wrong in about a fifth of its runs, found by bisection. There,
errors can be both lower and higher. kzz-balanced pulls every arm as often as kzz, so the two share a column of errors
and differ only in words. A few CPU minutes; `--quick` leaves out n = 10,000 and makes fewer runs.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import collabtop as ct
from collabtop.stats import fewer_wrong_p_value, holm
from collabtop.studies.table import PointSummary

LEVEL = 0.05  # the probability that a win or a loss of the whole table is due to chance
ERROR = 0.2  # of kzz, at the horizon of the comparison
INSTANCES: dict[str, Callable[[int, int], ct.BernoulliArms]] = {
    "equal gaps": lambda n, m: ct.datasets.equal_gaps(n, m, gap=0.1),
    "one good arm": lambda n, m: ct.datasets.one_good_arm(n, gap=0.1),
    "arithmetic": lambda n, m: ct.datasets.arithmetic(n),
    "geometric": lambda n, m: ct.datasets.geometric(n),
    "uniform means": lambda n, m: ct.datasets.uniform_means(n, seed=1),
}
ALGORITHMS: dict[str, ct.Algorithm] = {
    "frugal": ct.FrugalTop(),
    "kzz": ct.KZZ(balanced=True),
    "full": ct.CollabTopIID(schedule="full"),
    "paper": ct.CollabTopIID(),
}
RUNS = {64: 200, 588: 120, 10_000: 40}
SEARCH_RUNS = {64: 100, 588: 80, 10_000: 60}


class Cell(NamedTuple):
    """One instance, m and number of agents."""

    instance: str
    n: int
    m: int
    agents: int


def cells(sizes: list[int]) -> Iterator[Cell]:
    for instance in INSTANCES:
        for n in sizes:
            for m in (1, 8, n // 4):
                if instance == "one good arm" and m > 1:
                    continue
                yield from (Cell(instance, n, m, agents) for agents in (2, 10, 100))


class Bench:
    """Makes the runs of all cells."""

    def __init__(self, seed: int, jobs: int, share: float) -> None:
        self.seed, self.jobs, self.share = seed, jobs, share
        self.horizons: dict[tuple[str, int, int], int] = {}

    def point(self, cell: Cell, algorithm: ct.Algorithm, horizon: int, runs: int) -> PointSummary | None:
        """The runs of one algorithm, or None if it needs a longer horizon."""
        arms = INSTANCES[cell.instance](cell.n, cell.m)
        if horizon < algorithm.smallest_horizon(ct.Problem(cell.n, cell.m, cell.agents, 1)):
            return None
        study = ct.Study(
            arms=arms,
            algorithms=algorithm,
            m=cell.m,
            agents=cell.agents,
            horizon=horizon,
            runs=max(10, int(runs * self.share)),
            seed=self.seed,
            engine="auto",
        )
        return study.run(jobs=self.jobs).points()[0]

    def horizon(self, cell: Cell) -> int:
        """Where kzz is wrong in about a fifth of its runs; up to rounding, its error depends only on T K."""
        key = cell.instance, cell.n, cell.m
        if key not in self.horizons:
            self.horizons[key] = self.search(cell._replace(agents=2)) * 2
        least = ALGORITHMS["kzz"].smallest_horizon(ct.Problem(cell.n, cell.m, cell.agents, 1))
        return max(least, self.horizons[key] // cell.agents)

    def search(self, cell: Cell) -> int:
        """Bisection of log T from a bracket around H / K, moved down while the error at its lower end is too small."""
        kzz, runs = ALGORITHMS["kzz"], SEARCH_RUNS[cell.n]
        least = kzz.smallest_horizon(ct.Problem(cell.n, cell.m, cell.agents, 1))
        unit = ct.complexity(INSTANCES[cell.instance](cell.n, cell.m), cell.m) / cell.agents
        low, high = math.log(max(least, unit / 30)), math.log(max(least, unit * 100) + 1)
        while low > math.log(least) and (point := self.point(cell, kzz, round(math.exp(low)), runs)):
            if point.error > ERROR:
                break
            low, high = max(math.log(least), low - math.log(30)), low
        for _ in range(9):
            middle = (low + high) / 2
            point = self.point(cell, kzz, round(math.exp(middle)), runs)
            low, high = (middle, high) if point is None or point.error > ERROR else (low, middle)
        return max(least, round(math.exp((low + high) / 2)))

    def row(self, cell: Cell) -> tuple[list[str], float, str]:
        """The columns of a row of the table without the outcome, the p-value of a difference, and its direction."""
        horizon = self.horizon(cell)
        points = {name: self.point(cell, each, horizon, RUNS[cell.n]) for name, each in ALGORITHMS.items()}
        all_see_all = self.point(cell, ct.KZZ(), horizon, 1)
        frugal, kzz = points["frugal"], points["kzz"]
        others = [point for name, point in points.items() if name != "frugal"]
        columns = [
            cell.instance,
            f"{cell.n:,}",
            f"{cell.m:,}",
            str(cell.agents),
            f"{horizon:,}",
            *(share(points[name]) for name in ALGORITHMS),
            *(whole(point, "words_mean") for point in (frugal, kzz, all_see_all, points["full"])),
            *(whole(point, "round_trips_mean") for point in (frugal, kzz, points["full"])),
        ]
        return columns, *compare(counts(frugal), [counts(point) for point in others if point is not None])


def counts(point: PointSummary | None) -> tuple[int, int]:
    """Wrong answers and runs."""
    if point is None:
        raise SystemExit("frugal-top needs a longer horizon than kzz")
    return point.wrong, point.runs


def compare(ours: tuple[int, int], others: list[tuple[int, int]]) -> tuple[float, str]:
    """The p-value of a difference to the best of the others, and whether frugal-top would win or lose.

    It wins if it is better than each of the others, so the largest of their p-values counts. It loses if one of them is
    better, so the smallest counts, times the number of others (Bonferroni). Both directions are tested, hence the 2.
    """
    better = max(fewer_wrong_p_value(*ours, *other) for other in others)
    worse = min(1.0, len(others) * min(fewer_wrong_p_value(*other, *ours) for other in others))
    return min(1.0, 2 * min(better, worse)), "wins" if better < worse else "loses"


def outcomes(comparisons: list[tuple[float, str]]) -> list[str]:
    """The outcome of each cell: a win or a loss only where Holm's method rejects equality."""
    shown = holm([p for p, _ in comparisons], LEVEL)
    return [direction if is_shown else "even" for (_, direction), is_shown in zip(comparisons, shown, strict=True)]


def share(point: PointSummary | None) -> str:
    return "-" if point is None else f"{point.error:.3f}".lstrip("0") if point.error < 1 else "1"


def whole(point: PointSummary | None, column: str) -> str:
    return "-" if point is None else f"{getattr(point, column):,.0f}"


HEAD = """\
# frugal-top on the standard instances

Generated by `python benchmarks/frugal_standard.py`. Each cell is an instance with n, m and K. All algorithms get the
same horizon T, the one at which kzz is wrong in about a fifth of its runs. Errors are fractions of wrong answers
({runs}).

- *frugal* is frugal-top. *kzz* is kzz and kzz-balanced, which pull every arm equally often. *full* and *paper* are
  collab-top-iid with its two schedules. "-" means that the horizon is below the algorithm's smallest.
- frugal-top wins a cell if its error is below that of each of the other three, and loses it if it is above that of one
  of them, by Fisher's exact test. The tests are corrected for {cells} cells and for the three others (Holm and
  Bonferroni): with probability .95 no win and no loss of the whole table is due to chance. "even" means that this many
  runs do not show a difference, not that the algorithms are equally good: the means over the nine cells of an
  instance and m, in the summary, show smaller ones. With 2,000 runs per cell, kzz is better in 11 of the 30 cells with
  m = 1 and n up to 588 ([the exponent](frugal-top.md#the-exponent-for-m-1)).
- The instances are: equal gaps of .1; one arm .1 above the others; means from .9 to .1 in even steps; gaps that grow
  geometrically from .01 to .8; means drawn uniformly (seed 1).
"""
COLUMNS = [
    *("instance", "n", "m", "K", "T", "error frugal", "error kzz", "error full", "error paper"),
    *("words frugal", "words kzz-balanced", "words kzz", "words full"),
    *("trips frugal", "trips kzz", "trips full", "frugal-top"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="n = 64 and 588 only, a quarter of the runs")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sizes = [64, 588] if arguments.quick else [64, 588, 10_000]
    bench = Bench(arguments.seed, arguments.jobs, 0.25 if arguments.quick else 1.0)
    run_counts = ", ".join(f"{int(RUNS[n] * bench.share)} runs for n = {n:,}" for n in sizes)
    rows = []
    for cell in cells(sizes):
        rows.append(bench.row(cell))
        print(f"{len(rows)} cells: {' '.join(rows[-1][0][:5])}", file=sys.stderr, flush=True)
    results = outcomes([(p, direction) for _, p, direction in rows])
    lines = [f"| {' | '.join([*row, result])} |" for (row, _, _), result in zip(rows, results, strict=True)]
    print(HEAD.format(runs=run_counts, cells=len(lines)))
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"| {' | '.join('---' for _ in COLUMNS)} |")
    print("\n".join([*lines, summary(lines)]))


def summary(lines: list[str]) -> str:
    """A table with one row per instance and m, over all n and K."""
    groups: dict[tuple[str, str], list[list[str]]] = {}
    for line in lines:
        cell = [column.strip() for column in line.strip("| ").split("|")]
        groups.setdefault((cell[0], cell[2] if cell[2] in ("1", "8") else "n/4"), []).append(cell)
    text = ["", "## Summary", "", "Means over the cells of each instance and m.", ""]
    text += ["| instance | m | wins | even | loses | error frugal | error kzz | error full | words / kzz-balanced's |"]
    text += [f"|{' --- |' * 9}"]
    for (instance, m), members in groups.items():
        totals = [str(sum(cell[-1] == outcome for cell in members)) for outcome in ("wins", "even", "loses")]
        errors = [_mean_error([cell[column] for cell in members]) for column in (5, 6, 7)]
        words = [[float(cell[column].replace(",", "")) for cell in members] for column in (9, 10)]
        ratio = _mean([ours / theirs for ours, theirs in zip(*words, strict=True)])
        text.append(f"| {' | '.join([instance, m, *totals, *errors, f'{ratio:.2f}'])} |")
    results = [line.strip("| ").split("|")[-1].strip() for line in lines]
    totals = [f"{outcome} {results.count(outcome)}" for outcome in ("wins", "even", "loses")]
    return "\n".join([*text, "", f"Against the best of the others, over {len(lines)} cells: {', '.join(totals)}."])


def _mean_error(shares: list[str]) -> str:
    """Over the cells in which the algorithm could run."""
    return f"{_mean([float(share) for share in shares if share != '-']):.3f}".lstrip("0")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
