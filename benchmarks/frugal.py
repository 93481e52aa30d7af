"""frugal-top compared with the paper on time, words and round trips; each target is a ratio.

    python benchmarks/frugal.py [--means MEANS.txt --group-means GROUP_MEANS.txt] [--out FOLDER] [--runs 20000]

K = 10. A horizon for error .01 comes from 20,000 runs around the crossing (or `--runs`; half as many for non-IID arms)
and a fit of log error. A target is met if the whole 95% interval is below its limit; "within" means that the ratio is
below the limit, but its interval extends beyond it. Without files the embedded instances are used. With `--out` a
stopped run resumes. About 3 CPU minutes: most runs are simulated in batches.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

import collabtop as ct
from collabtop.crossing import Crossing, NotReached, fit_crossing, ratio_interval
from collabtop.studies.table import PointSummary

AGENTS = 10
PILOT = [0.35 * 1.7**step for step in range(8)]  # times H / K
AROUND = (0.8, 0.9, 1.0, 1.12, 1.25)


class Bench:
    """Runs studies and keeps the point nearest to each crossing."""

    def __init__(
        self,
        arms: dict[str, ct.BernoulliArms | ct.HeterogeneousArms],
        out: Path | None,
        runs: int,
        jobs: int | None,
    ) -> None:
        self.arms, self.out, self.runs, self.jobs = arms, out, runs, jobs
        self.fine: dict[tuple[str, int], PointSummary] = {}

    def points(self, name: str, algorithm: ct.Algorithm, which: str, m: int, horizons: Sequence[float], runs: int):
        """The points of one algorithm at the given horizons."""
        study = ct.Study(
            arms={which: self.arms[which]},
            algorithms=algorithm,
            m=m,
            agents=AGENTS,
            horizon=sorted({round(horizon) for horizon in horizons}),
            runs=runs,
            seed=4,
            engine="auto",
        )
        folder = self.out / f"{name}-m{m}-{study.fingerprint[:8]}" if self.out else None
        return study.run(folder, jobs=self.jobs, progress=True).points()

    def crossing(self, name: str, algorithm: ct.Algorithm, which: str, m: int) -> Crossing:
        """The horizon for error .01."""
        arms = self.arms[which]
        unit = ct.complexity(arms, m) / AGENTS
        least = algorithm.smallest_horizon(ct.Problem(arms.n, m, AGENTS, 1))
        pilot = self.points(name, algorithm, which, m, [max(least, unit * f) for f in PILOT], 200)
        rough = _fit(pilot)
        most = self.runs if which == "iid" else self.runs // 2
        for runs in (min(1_000, most // 10), most // len(AROUND)):
            fine = self.points(name, algorithm, which, m, [max(least, rough.horizon * f) for f in AROUND], runs)
            rough = _fit(fine)
        self.fine[name, m] = min(fine, key=lambda point: abs(point.horizon - rough.horizon))
        return rough


def _fit(points: Sequence[PointSummary]) -> Crossing:
    rare = [point for point in points if point.error <= 0.3]
    clean = next((index for index, point in enumerate(rare) if point.wrong == 0), len(rare))
    rare = rare[: clean + 1]
    crossing = fit_crossing([p.horizon for p in rare], [p.wrong for p in rare], [p.runs for p in rare])
    if isinstance(crossing, NotReached):
        raise SystemExit(f"no crossing in {[(p.horizon, p.error) for p in points]}: {crossing.reason}")
    return crossing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--means", type=Path)
    parser.add_argument("--group-means", type=Path)
    parser.add_argument("--out", type=Path, help="folder for the studies' rows, to resume from")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--runs", type=int, default=20_000, help="runs around a crossing (IID)")
    arguments = parser.parse_args()
    arms = {
        "iid": ct.read_arms(arguments.means) if arguments.means else ct.datasets.movielens_like(),
        "noniid": ct.read_arms(arguments.group_means) if arguments.group_means else ct.datasets.movielens_like_groups(),
    }
    bench = Bench(arms, arguments.out, arguments.runs, arguments.jobs)
    algorithms: dict[str, tuple[ct.Algorithm, str]] = {
        "frugal-top": (ct.FrugalTop(), "iid"),
        "kzz": (ct.KZZ(), "iid"),
        "collab-top-iid": (ct.CollabTopIID(), "iid"),
        "frugal-top-noniid": (ct.FrugalTopNonIID(), "noniid"),
        "collab-top-noniid": (ct.CollabTopNonIID(), "noniid"),
    }
    crossings = {
        (name, m): bench.crossing(name, algorithm, which, m)
        for m in (1, 8)
        for name, (algorithm, which) in algorithms.items()
    }
    console = Console(width=140)
    horizons = Table(
        "algorithm", "m", "T for error .01", "95% interval", "words", "bits", "round trips", title="K = 10"
    )
    for (name, m), at in crossings.items():
        point = bench.fine[name, m]
        horizons.add_row(
            name,
            str(m),
            f"{at.horizon:,.0f}",
            f"{at.low:,.0f} to {at.high:,.0f}",
            f"{point.words_mean:,.0f}",
            f"{point.bits_mean:,.0f}",
            f"{point.round_trips_mean:.1f}",
        )
    console.print(horizons)
    console.print(targets(bench, crossings))


def targets(bench: Bench, crossings: dict[tuple[str, int], Crossing]) -> Table:
    table = Table("target", "m", "measured", "95% interval", "at most", "met", title="frugal-top against the paper")

    def row(name: str, m: int, value: float, limit: float, ends: tuple[float, float] | None = None) -> None:
        low, high = ends or (value, value)
        met = "yes" if high <= limit else "within" if value <= limit else "NO"
        table.add_row(name, str(m), f"{value:.3g}", f"{low:.3g} to {high:.3g}" if ends else "", f"{limit:g}", met)

    def horizon(ours: str, theirs: str, limits: tuple[float, float]) -> None:
        for m, limit in zip((1, 8), limits, strict=True):
            ratio, low, high = ratio_interval(crossings[ours, m], crossings[theirs, m])
            row(f"horizon of {ours} / {theirs}", m, ratio, limit, (low, high))

    horizon("frugal-top", "kzz", (0.65, 0.75))
    horizon("frugal-top", "collab-top-iid", (0.2, 0.17))
    for m, limit in ((1, 0.25), (8, 0.5)):
        words = bench.fine["frugal-top", m].words_mean
        row("words of frugal-top / collab-top-iid", m, words / bench.fine["collab-top-iid", m].words_mean, limit)
    row("words of frugal-top", 1, bench.fine["frugal-top", 1].words_mean, 500)
    for m, limit in ((1, 8), (8, 12)):
        row("round trips of frugal-top", m, bench.fine["frugal-top", m].round_trips_mean, limit)
    horizon("frugal-top-noniid", "collab-top-noniid", (0.5, 0.6))
    for m in (1, 8):
        bits = bench.fine["frugal-top-noniid", m].bits_mean
        row(
            "bits of frugal-top-noniid / collab-top-noniid",
            m,
            bits / bench.fine["collab-top-noniid", m].bits_mean,
            0.15,
        )
    return table


if __name__ == "__main__":
    main()
