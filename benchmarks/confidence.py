"""Runs with a confidence: how often they are wrong, and how many pulls they take compared with KL-LUCB.

    python benchmarks/confidence.py [--quick]

The first table counts the runs that settled an arm wrongly and gives their share with its 95% Wilson interval; the
confidence states the share that is allowed. Where arms are nearly equal, a limit ends the runs, and the arms settled by
then count. The second table gives ratios of mean pulls for 1 and 10 agents, with the same few seeds for both
algorithms. Takes minutes, most of them for KL-LUCB; `--quick` makes a tenth of the runs and leaves out the hard
instances of the second table.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct
from collabtop.arms import SimulatedArms
from collabtop.problem import misplaced
from collabtop.stats import wilson_interval

CONFIDENCE = 0.95
MIXED = [[0.9, 0.2], [0.2, 0.7], [0.6, 0.3], [0.1, 0.3]]
LEVEL = [[0.55, 0.47], [0.45, 0.55], [0.55, 0.45], [0.4, 0.6], [0.6, 0.4]] + [[0.5, 0.5]] * 15

# Name, arms, m, agents, tolerance, limit, runs.
FAILURES = [
    ("easy: .9, .5, .4, .1", ct.BernoulliArms([0.9, 0.5, 0.4, 0.1]), 1, 3, 0.0, 10**6, 1_000),
    ("hard: .55, .5, .45, .45, .4", ct.BernoulliArms([0.55, 0.5, 0.45, 0.45, 0.4]), 1, 2, 0.0, 10**6, 500),
    ("the same, tolerance .06, m = 2", ct.BernoulliArms([0.55, 0.5, 0.45, 0.45, 0.4]), 2, 2, 0.06, 10**6, 1_000),
    ("20 nearly equal: .51, .5, ...", ct.BernoulliArms([0.51] + [0.5] * 19), 1, 2, 0.0, 190, 2_000),
    ("20 nearly equal, non-IID", ct.HeterogeneousArms(LEVEL), 1, 2, 0.0, 380, 2_000),
    ("non-IID: averages .55, .45, .45, .2", ct.HeterogeneousArms(MIXED), 1, 2, 0.0, 10**6, 500),
]  # fmt: skip

# Name, arms, m, seeds.
PULLS = [
    ("easy: .9, .5, .4, .1", ct.BernoulliArms([0.9, 0.5, 0.4, 0.1]), 1, 10),
    ("easy: .9 and 15 of .5", ct.BernoulliArms([0.9] + [0.5] * 15), 1, 10),
    ("easy: .9, .8, .4, .3, .2, m = 2", ct.BernoulliArms([0.9, 0.8, 0.4, 0.3, 0.2]), 2, 10),
    ("hard: .55, .5, .45, .45, .4", ct.BernoulliArms([0.55, 0.5, 0.45, 0.45, 0.4]), 1, 2),
    ("hard: 16 arms, equal gaps of .1", ct.datasets.equal_gaps(16, 1, 0.1), 1, 1),
    ("hard: 16 arms from .9 to .1, m = 4", ct.datasets.arithmetic(16), 4, 2),
]


def wrongly_settled(arms: SimulatedArms, m: int, agents: int, tolerance: float, limit: int, seed: int) -> bool:
    """Whether a run settled an arm wrongly: accepted one that is not good enough or rejected one that is too good."""
    result = ct.identify(
        arms, m, agents=agents, confidence=CONFIDENCE, tolerance=tolerance, max_horizon=limit, seed=seed
    )
    return bool(np.setdiff1d(misplaced(arms.means, result.top_indices, tolerance), result.open).size)


def failures(share: float) -> Table:
    title = f"Runs at confidence {CONFIDENCE} that settled an arm wrongly: at most {1 - CONFIDENCE:.0%} are allowed"
    table = Table("instance", "agents", "runs", "wrong", "share", "95% interval", title=title)
    for name, arms, m, agents, tolerance, limit, runs in FAILURES:
        runs = max(1, round(share * runs))
        wrong = sum(wrongly_settled(arms, m, agents, tolerance, limit, seed) for seed in range(runs))
        low, high = wilson_interval(wrong / runs, runs)
        table.add_row(name, str(agents), f"{runs:,}", str(wrong), f"{wrong / runs:.2%}", f"{low:.2%} to {high:.2%}")
    return table


def mean_pulls(arms: SimulatedArms, m: int, algorithm: str, agents: int, seeds: int) -> float:
    runs = [
        ct.identify(arms, m, agents=agents, confidence=CONFIDENCE, algorithm=algorithm, seed=seed)
        for seed in range(seeds)
    ]
    assert all(run.sure for run in runs)
    return float(np.mean([run.pulls for run in runs]))


def ratios(*, hard: bool) -> Table:
    table = Table(
        "instance", "runs", "kl-lucb, pulls", "confident-top / kl-lucb, K = 1", "K = 10",
        title=f"Pulls at confidence {CONFIDENCE}",
    )  # fmt: skip
    for name, arms, m, seeds in PULLS:
        if hard or name.startswith("easy"):
            baseline = mean_pulls(arms, m, "kl-lucb", 1, seeds)
            ours = [mean_pulls(arms, m, "confident-top", agents, seeds) / baseline for agents in (1, 10)]
            table.add_row(name, str(seeds), f"{baseline:,.0f}", *(f"{ratio:.2f}" for ratio in ours))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    console = Console(width=110)
    console.print(failures(0.1 if quick else 1.0))
    console.print(ratios(hard=not quick))


if __name__ == "__main__":
    main()
