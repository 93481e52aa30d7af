"""What the exponent of frugal-top's schedule decides for m = 1: which means it suits, and which kzz suits better.

    python benchmarks/frugal_exponents.py [--means F] [--runs 2000]

The fewer arms are open, the more pulls each of them has had: about s^-p by the time that s are open. A larger p leaves
more pulls to the last few arms, and fewer to the first decisions. For each p, the table has the mean error over the
standard instances (n = 64 and 588; K = 2, 10 and 100) at the horizons of `frugal_standard.py`, the same for kzz, the
cells in which frugal-top's error is larger than kzz's beyond chance (Holm over all cells and exponents, .05), and the
horizon for error .01 on the means of a file, or else on the MovieLens-like ones, with 10 agents. Minutes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import TypeVar
from unittest.mock import patch

import numpy as np
from frugal_standard import INSTANCES, Bench, Cell, cells  # type: ignore[import-not-found]

import collabtop as ct
from collabtop.algorithms.shared import frugal_plan
from collabtop.crossing import Crossing, fit_crossing
from collabtop.problem import right_answers
from collabtop.stats import fewer_wrong_p_value, holm

LEVEL, BATCH, AGENTS = 0.05, 500, 10
Done = TypeVar("Done")
SHARES: dict[str, Callable[..., float] | None] = {
    "0.92, as it is": None,
    "1": lambda size, m, power: 1 / size,
    "1.05": lambda size, m, power: size**-1.05,
    "1.05, up to 1.2 from 64 arms on": lambda size, m, power: rising(size, 1.05, 1.2, 64),
}
HORIZONS = (1.3, 1.6, 2.0, 2.5, 3.1)  # times H / K, around the horizon for error .01


def rising(size: float, first: float, last: float, many: int) -> float:
    """As `frugal_plan.pulls_share`: an exponent that rises in even steps of log(size) from `many` arms on."""
    halvings = math.log2(many / size)
    return 2 ** (first * halvings + (last - first) / (2 * math.log2(many / 2)) * max(0.0, halvings) ** 2)


def wrong(algorithm: ct.Algorithm, arms: ct.BernoulliArms, agents: int, horizon: int, runs: int) -> int:
    """Wrong answers in so many runs."""
    problem, rng = ct.Problem(arms.n, 1, agents, horizon), np.random.default_rng(1)
    parts = [min(BATCH, runs - done) for done in range(0, runs, BATCH)]
    right = sum(int(right_answers(arms.means, algorithm.answers(problem, arms.means, n, rng)).sum()) for n in parts)
    return runs - right


def with_share(share: Callable[..., float] | None, work: Callable[[], Done]) -> Done:
    """Do some work with plans that divide pulls differently."""
    caches = frugal_plan.frugal_plan, frugal_plan.smallest_frugal_horizon
    with patch.object(frugal_plan, "pulls_share", share or frugal_plan.pulls_share):
        for cache in caches:
            cache.cache_clear()
        done = work()
    for cache in caches:
        cache.cache_clear()
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--means", help="a file of means, for the horizon for error .01")
    parser.add_argument("--runs", type=int, default=2_000)
    options = parser.parse_args()
    runs, film = options.runs, ct.read_arms(options.means) if options.means else ct.datasets.movielens_like()
    assert isinstance(film, ct.BernoulliArms)
    bench = Bench(seed=1, jobs=2, share=1.0)
    places: list[tuple[Cell, int]] = [(cell, bench.horizon(cell)) for cell in cells([64, 588]) if cell.m == 1]

    def in_cells(algorithm: ct.Algorithm) -> list[int]:
        return [wrong(algorithm, INSTANCES[c.instance](c.n, 1), c.agents, t, runs) for c, t in places]

    unit = ct.complexity(film, 1) / AGENTS
    horizons = [round(unit * factor) for factor in HORIZONS]
    kzz = in_cells(ct.KZZ(balanced=True))
    by_share = {name: with_share(share, lambda: in_cells(ct.FrugalTop())) for name, share in SHARES.items()}
    p_values = [
        fewer_wrong_p_value(b, runs, a, runs) for ours in by_share.values() for a, b in zip(ours, kzz, strict=True)
    ]
    worse = iter(holm(p_values, LEVEL))
    print(f"kzz: mean error {np.mean(kzz) / runs:.3f} over {len(places)} cells, {runs:,} runs each\n")
    print("| exponent | mean error | cells in which kzz has fewer errors | horizon for error .01 |")
    print("| --- | --- | --- | --- |")
    for name, ours in by_share.items():
        names = [
            f"{c.instance} {c.n} K={c.agents}" for (c, _), is_worse in zip(places, worse, strict=False) if is_worse
        ]
        errors = with_share(SHARES[name], lambda: [wrong(ct.FrugalTop(), film, AGENTS, t, 4 * runs) for t in horizons])
        at = fit_crossing(horizons, errors, [4 * runs] * len(horizons))
        shown = f"{at.horizon:,.0f} ({at.low:,.0f} to {at.high:,.0f})" if isinstance(at, Crossing) else "not found"
        print(
            f"| {name} | {np.mean(ours) / runs:.3f} | {len(names)}: {', '.join(names) or '-'} | {shown} |", flush=True
        )


if __name__ == "__main__":
    main()
