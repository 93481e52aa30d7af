"""Error rates of the package against a second, naive implementation, at settings drawn at random.

    python benchmarks/independent.py [--settings 60] [--runs 1000] [--seed 1] [--algorithm NAME ...]

The naive implementation (tests/support/naive.py) shares no code with the package. The settings take all algorithms that
it has in turn, with few and many arms, m = 1 and larger (above n / 2 too), one agent and more agents than arms, ties at
the border and elsewhere, tiny means and means near 1, and non-IID arms with weights and without. Each horizon is
doubled until the naive implementation is right often enough for a rate between 0 and 1. fed-elim stops there with its
best guess; of its local answers, that of the first agent is compared. All agents of robust-top are honest, and
paired-top has arms without examples.

Each setting is compared with Fisher's exact test, corrected for the number of settings (Holm): with equal rates, some
setting differs with probability 1% at most. Small differences that all point to a fault add up in a second test, of the
sum of squared z (also 1%). The program fails if either finds a difference. Takes about 15 minutes.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support import naive

import collabtop as ct
from collabtop.algorithms.registry import make_algorithm

LEVEL = 0.01
FED_ELIM = ("fed-elim", "fed-elim local")
HETEROGENEOUS = ("uniform", "collab-top-noniid", "collab-top-noniid full", "frugal-top-noniid", *FED_ELIM)
ONE_AGENT = ("sar", "nsar", "sequential-halving")
BEST_ARM = ("sequential-halving", "hkk", "tzz")
SMALL = (2, 3, 5, 8, 13)  # for fed-elim, which is slow
SIZES = {"frugal-top": (5, 20, 50, 120, 200), "fed-elim": SMALL, "fed-elim local": SMALL}
OPTIONS: dict[str, dict[str, Any]] = {
    "full": {"schedule": "full"},
    "frugal-top-noniid": {"coarseness": 0.0},
    "fed-elim": {"confidence": 1 - naive.FED_ELIM_DELTA},
    "robust-top": {"liars": naive.LIARS},
}


def in_the_package(name: str) -> ct.Algorithm:
    """The package's algorithm of a name in the naive implementation, such as "collab-top-iid full"."""
    algorithm, _, variant = name.partition(" ")
    return make_algorithm(algorithm, **OPTIONS.get(variant, OPTIONS.get(algorithm, {})))


@dataclass(frozen=True)
class Setting:
    """One comparison: an algorithm, the mean of each arm at each agent, m, and the horizon."""

    algorithm: str
    kind: str
    table: np.ndarray
    m: int
    horizon: int
    lenient: bool = False
    """Whether only an arm that is worse than the m-th best makes an answer wrong."""
    weights: tuple[float, ...] | None = None

    def wrong(self, top: set[int]) -> bool:
        """Whether these are not m best arms: equally good ones may replace each other."""
        values = np.average(self.table, axis=1, weights=self.weights)
        if self.algorithm == "fed-elim local":
            values = self.table[:, 0]
        if self.lenient:
            return bool(values[sorted(top)].min() < np.sort(values)[-self.m] - 1e-12)
        return not np.allclose(np.sort(values[sorted(top)]), np.sort(values)[-self.m :], rtol=0, atol=1e-12)

    def naive_errors(self, runs: int, seed: int) -> int:
        """How many of so many runs of the naive implementation are wrong."""
        rng, table = np.random.default_rng(seed), self.table.tolist()
        asked = self.algorithm, table, self.m, self.horizon, rng, self.weights
        return sum(self.wrong(naive.answer(*asked)) for _ in range(runs))

    def package_errors(self, runs: int, seed: int) -> int:
        """How many of so many runs of the package are wrong."""
        heterogeneous = self.algorithm in HETEROGENEOUS
        table = self.table
        arms = ct.HeterogeneousArms(table, weights=self.weights) if heterogeneous else ct.BernoulliArms(table[:, 0])
        algorithm = in_the_package(self.algorithm)
        rules: dict[str, Any] = {"horizon": self.horizon, "algorithm": algorithm}
        if self.algorithm in FED_ELIM:
            rules = {"max_horizon": self.horizon, "algorithm": "fed-elim", **algorithm.options}
        agents = self.table.shape[1]
        results = (ct.identify(arms, self.m, agents=agents, seed=seed + run, **rules) for run in range(runs))
        return sum(self.wrong(self._answer(result)) for result in results)

    def _answer(self, result: ct.Result) -> set[int]:
        if self.algorithm != "fed-elim local":
            return set(result.top_indices)
        assert result.local_top is not None
        return set(result.local_top[0])

    def __str__(self) -> str:
        n, agents = self.table.shape
        kind = self.kind if self.weights is None else f"{self.kind}, weighted"
        return f"{self.algorithm:23} {kind:22} n={n:<3} m={self.m:<3} K={agents:<3} T={self.horizon:<8}"


def means_of(kind: str, n: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Means of n arms in random order."""
    best = np.arange(n) < m
    match kind:
        case "spread":
            means = rng.uniform(0.1, 0.9, n)
        case "two levels":
            means = np.where(best, 0.6, 0.4)
        case "three levels":  # the border runs through arms that tie
            means = np.where(np.arange(n) < max(1, m - 1), 0.7, np.where(np.arange(n) <= m + 1, 0.6, 0.4))
        case "tiny":
            means = np.where(best, 0.01, 0.002)
        case "near one":
            means = np.where(best, 0.995, rng.choice([0.98, 0.9, 0.5], n))
        case _:  # "sparse": most arms never have a success
            means = np.where(best, rng.uniform(0.05, 0.2, n), 0.0)
    return rng.permutation(means)


KINDS = ("spread", "two levels", "three levels", "tiny", "near one", "sparse")


def draw_setting(number: int, seed: int, algorithms: Sequence[str] = tuple(naive.ALGORITHMS)) -> Setting:
    """A setting with the algorithm whose turn it is, and all else at random."""
    algorithm, rng = algorithms[number % len(algorithms)], np.random.default_rng([seed, number])
    kind = str(rng.choice(KINDS))
    n = int(rng.choice(SIZES.get(algorithm, (*SMALL, 20, 31, 50))))
    m = 1 if algorithm in BEST_ARM or rng.random() < 0.4 else int(rng.integers(1, n))
    agents = 1 if algorithm in ONE_AGENT else int(rng.choice([1, 2, 3, 6, 10, 40]))
    if algorithm == "robust-top":
        agents = max(agents, 2 * naive.LIARS + 1)
    if algorithm in FED_ELIM:
        agents = min(agents, 6)
    table = np.repeat(means_of(kind, n, m, rng)[:, np.newaxis], agents, axis=1)
    if algorithm in HETEROGENEOUS and rng.random() < 0.5:
        shift = rng.uniform(-1, 1, table.shape) * np.minimum(table, 1 - table)
        table = table + shift - shift.mean(axis=1, keepdims=True) if agents > 1 else table
        table = np.clip(table, 0, 1)
    weights = None
    if algorithm in HETEROGENEOUS and agents > 1 and rng.random() < 0.5:
        weights = tuple(rng.choice([1.0, 2.0, 5.0], agents).tolist())
    horizon = in_the_package(algorithm).smallest_horizon(ct.Problem(n, m, agents, horizon=1).inner)
    target, setting = rng.uniform(0.1, 0.8), Setting(algorithm, kind, table, m, horizon, weights=weights)
    for _ in range(14):
        if setting.naive_errors(40, seed=number) <= 40 * target:
            break
        setting = replace(setting, horizon=2 * setting.horizon)
    return setting


def fisher(first: int, second: int, runs: int) -> float:
    """The two-sided p-value of Fisher's exact test for two counts of errors in `runs` runs each."""
    total = first + second

    def log_ways(errors: int) -> float:
        return sum(
            math.lgamma(runs + 1) - math.lgamma(chosen + 1) - math.lgamma(runs - chosen + 1)
            for chosen in (errors, total - errors)
        )

    possible = [log_ways(errors) for errors in range(max(0, total - runs), min(total, runs) + 1)]
    most = max(possible)
    weights = [math.exp(ways - most) for ways in possible]
    observed = math.exp(log_ways(first) - most) * (1 + 1e-9)
    return min(1.0, sum(weight for weight in weights if weight <= observed) / sum(weights))


def z_score(first: int, second: int, runs: int) -> float | None:
    """The difference in standard errors; None if the rates are too near to 0 or 1 for that."""
    pooled = (first + second) / (2 * runs)
    if 2 * runs * min(pooled, 1 - pooled) < 10:
        return None
    return (first - second) / runs / math.sqrt(pooled * (1 - pooled) * 2 / runs)


def too_large(squares: list[float]) -> float:
    """The probability of a sum of squared z at least this large (Wilson and Hilferty's approximation)."""
    count = len(squares)
    scaled = ((sum(squares) / count) ** (1 / 3) - (1 - 2 / (9 * count))) / math.sqrt(2 / (9 * count))
    return math.erfc(scaled / math.sqrt(2)) / 2


def compare(settings: int, runs: int, seed: int, algorithms: Sequence[str] = tuple(naive.ALGORITHMS)) -> list[str]:
    """Print all comparisons, and return what differs by more than chance."""
    p_values: dict[str, float] = {}
    squares = []
    for number in range(settings):
        setting = draw_setting(number, seed, algorithms)
        ours = setting.package_errors(runs, seed=1_000_000 * (number + 1))
        reference = setting.naive_errors(runs, seed=seed + 1_000 + number)
        p, z = fisher(ours, reference, runs), z_score(ours, reference, runs)
        p_values[str(setting)] = p
        if z is not None:
            squares.append(z**2)
        shown = "    -" if z is None else f"{z:+5.1f}"
        print(f"{setting} package {ours / runs:.4f}  naive {reference / runs:.4f}  z {shown}  p {p:.3g}", flush=True)
    different = []
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):  # Holm
        if p * (len(p_values) - rank) > LEVEL:
            break
        different.append(f"{name}: p {p:.2g}")
    overall = too_large(squares)
    print(f"{len(squares)} rates between 0 and 1; sum of z^2 {sum(squares):.1f}, p {overall:.3g}")
    if overall < LEVEL:
        different.append(f"all settings together: p {overall:.2g}")
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=int, default=60)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--algorithm", action="append", choices=list(naive.ALGORITHMS), help="default: all in turn")
    options = parser.parse_args()
    algorithms = options.algorithm or list(naive.ALGORITHMS)
    different = compare(options.settings, options.runs, options.seed, algorithms)
    print("\n".join(["different beyond chance:", *different] if different else ["all within chance"]))
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
