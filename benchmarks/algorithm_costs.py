"""Communication and time of each algorithm on one task, for the table in docs/algorithms.md.

    python benchmarks/algorithm_costs.py

The task is the embedded stand-in for the paper's instance: 588 arms, 10 agents and a horizon of 300,000; for non-IID
arms, it is the stand-in for the paper's groups with 547 arms. Algorithms for one agent get the time of all ten, and
`kl-lucb` an easier task with 20 arms. Where the costs depend on the seed, the table shows the median over several seeds
with the minimum and the maximum. The table is the same on every machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

import collabtop as ct

AGENTS, HORIZON = 10, 300_000
SEEDS = {
    "collab-top-iid": 15,
    "frugal-top-noniid": 5,
    "confident-top": 5,
    "confident-top-noniid": 3,
    "kl-lucb": 3,
    "fed-elim": 3,
}
"""Algorithms whose costs are random: by how the hash deals, how means are rounded, or when a race ends."""
HEAD = "| algorithm | arms | m | words | bits | round trips | time steps |", "| --- " * 7 + "|"


def main() -> None:
    print("\n".join([*HEAD, *rows()]))


def rows() -> list[str]:
    """The table, line by line."""
    same, groups = ct.datasets.movielens_like(), ct.datasets.movielens_like_groups()
    few = ct.BernoulliArms(np.array([0.9, *[0.5] * 19]))
    team: dict[str, Any] = {"agents": AGENTS, "horizon": HORIZON}
    alone: dict[str, Any] = {"agents": 1, "horizon": HORIZON * AGENTS}
    lines = []
    for m in (1, 8):
        lines += [row(name, same, m, "same for all", **team) for name in (*_SAME, *(_BEST_ARM if m == 1 else ()))]
        lines += [row(name, groups, m, "differ", **team) for name in _DIFFERENT]
    lines += [row(name, same, 1, "one agent", **alone) for name in ("sar", "nsar", "sequential-halving")]
    sure = {"confidence": 0.95}
    lines.append(row("confident-top", same, 1, "same for all", agents=AGENTS, **sure))
    lines.append(row("confident-top-noniid", groups, 1, "differ", agents=AGENTS, **sure))
    lines.append(row("fed-elim", groups, 1, "differ", agents=AGENTS, **sure))
    lines.append(row("kl-lucb", few, 1, "one agent, 20 arms", agents=1, **sure))
    return lines


_SAME = "frugal-top", "paired-top", "collab-top-iid", "kzz-balanced", "kzz", "batched-sar"
_BEST_ARM = "tzz", "hkk"
_DIFFERENT = "frugal-top-noniid", "robust-top", "collab-top-noniid", "uniform"


def row(algorithm: str, arms: ct.Arms, m: int, kind: str, **setting: Any) -> str:
    seeds = range(1, SEEDS.get(algorithm, 1) + 1)
    results = [ct.identify(arms, m, algorithm=algorithm, seed=seed, **setting) for seed in seeds]
    counts = ([getattr(result, name) for result in results] for name in ("words", "bits", "round_trips", "time"))
    return f"| `{algorithm}` | {kind} | {m} | " + " | ".join(map(spread, counts)) + " |"


def spread(counts: Sequence[int]) -> str:
    middle, low, high = statistics.median_low(counts), min(counts), max(counts)
    return f"{middle:,}" if low == high else f"{middle:,} ({low:,} to {high:,})"


if __name__ == "__main__":
    main()
