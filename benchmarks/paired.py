"""Regret on a set of examples: independent draws, collabtop, and ten lines of paired halving, at the same calls.

    python benchmarks/paired.py [--runs 60] [--jobs 2] [--seed 1] [--quick]

200 prompts answer 500 questions, and the best 5 are wanted. An answer is right or wrong, the same each time. `rho` is
how strongly prompts agree on which questions are hard. Regret: the mean of the true best 5 minus that of the chosen 5.
All methods see the same instances, so regrets are compared run by run: `z` is the mean difference to halving in
standard errors. With 24 cells, |z| < 3 is within chance (a false alarm in 6 of 100 runs of this benchmark).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

import collabtop as ct

PROMPTS, QUESTIONS, WANTED = 200, 500, 5
RHOS, CALLS, AGENTS = (0.0, 0.3, 0.6, 0.8), (3_000, 6_000, 12_000), (1, 16)

Table = NDArray[np.bool_]


def answers(rho: float, rng: np.random.Generator) -> Table:
    """Whether each prompt answers each question correctly."""
    accuracy = np.clip(rng.normal(0.6, 0.08, PROMPTS), 0.05, 0.95)
    thresholds = np.array([NormalDist().inv_cdf(share) for share in accuracy])
    difficulty = np.sqrt(rho) * rng.normal(size=QUESTIONS)
    noise = np.sqrt(1 - rho) * rng.normal(size=(PROMPTS, QUESTIONS))
    right: Table = difficulty + noise < thresholds[:, None]
    return right


def paired_halving(table: Table, calls: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Ten lines: in each round all open prompts answer the same new questions, and the better half stays."""
    order, live, sums, used, asked = rng.permutation(QUESTIONS), np.arange(PROMPTS), np.zeros(PROMPTS), 0, 0
    rounds = int(np.ceil(np.log2(PROMPTS / WANTED)))
    for r in range(rounds):
        new = min(QUESTIONS - asked, int((calls - used) / (rounds - r) / len(live)))
        sums[live] += table[np.ix_(live, order[asked : asked + new])].sum(axis=1)
        asked, used = asked + new, used + new * len(live)
        keep = WANTED if r == rounds - 1 else max(WANTED, -(-len(live) // 2))
        live = live[np.argsort(-sums[live] + 0.5 * rng.random(len(live)))[:keep]]
    return live


def identified(table: Table, calls: int, seed: int, *, agents: int, replace: bool) -> list[int]:
    """The best prompts by collabtop, with each pair scored by a call, as users do."""
    arms = ct.DatasetArms(
        range(PROMPTS), range(QUESTIONS), lambda prompt, question: table[prompt, question], replace=replace
    )
    return ct.identify(arms, WANTED, agents=agents, budget=calls, seed=seed).top_indices


def regrets(seed: int, rho: float, calls: int) -> list[float]:
    """The regret of every method on one instance."""
    rng = np.random.default_rng([seed, int(100 * rho), calls])
    table = answers(rho, rng)
    values = table.mean(axis=1)
    chosen: list[NDArray[np.int64] | list[int]] = [paired_halving(table, calls, rng)]
    for agents in AGENTS:
        chosen.extend(identified(table, calls, seed, agents=agents, replace=replace) for replace in (True, False))
    best = np.sort(values)[-WANTED:].mean()
    return [float(best - values[top].mean()) for top in chosen]


def report(runs: int, jobs: int, seed: int, calls: tuple[int, ...], run: Callable[..., list[float]] = regrets) -> None:
    """Print one line per cell."""
    print("calls    rho  halving  " + "  ".join(f"{agents:>2} agents: independent    ours     z" for agents in AGENTS))
    with ProcessPoolExecutor(jobs) as pool:
        for count in calls:
            for rho in RHOS:
                found = np.array(
                    list(pool.map(partial(run, rho=rho, calls=count), range(seed, seed + runs), chunksize=4))
                )
                line = f"{count:>6,}  {rho:.1f}    {found[:, 0].mean():.4f}  "
                for i in range(len(AGENTS)):
                    independent, ours = found[:, 1 + 2 * i], found[:, 2 + 2 * i]
                    difference = ours - found[:, 0]
                    z = difference.mean() / max(1e-12, difference.std(ddof=1) / np.sqrt(runs))
                    line += f"{independent.mean():>22.4f}  {ours.mean():.4f}  {z:>5.1f}"
                print(line, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="6,000 calls only")
    given = parser.parse_args()
    report(given.runs, given.jobs, given.seed, (6_000,) if given.quick else CALLS)
