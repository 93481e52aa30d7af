"""Error of runs extended from T to 2T, compared with runs planned for 2T, on the standard instances.

    python benchmarks/extend.py [--runs 2000] [--planned 20000] [--seed 1] [--budget]

Each row is an instance with n = 64 and K = 10. 2T is the horizon at which frugal-top is wrong in about a tenth of its
runs, found with batched simulations, which also give the error of a run planned for it. Each run is extended with
`horizon=2T`: the plan is that of 2T, and earlier pulls that it does not need are paid for in addition; "pulls" are all
that were made, as a multiple of 2T * K. With --budget it is also extended with a budget of 2T * K pulls.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from threading import Event

import numpy as np

import collabtop as ct
from collabtop.runlog.legs import Leg
from collabtop.runlog.memory import MemoryLog
from collabtop.runlog.tally import Tally
from collabtop.runs.checkpoint import make_header
from collabtop.runs.extended_run import horizon_for_budget
from collabtop.runs.leg_run import LegRun
from collabtop.runs.result import Result
from collabtop.runs.spec import RunSpec, make_spec

N, AGENTS, ERROR = 64, 10, 0.1
INSTANCES: dict[str, Callable[[int], ct.BernoulliArms]] = {
    "equal gaps": lambda m: ct.datasets.equal_gaps(N, m, gap=0.1),
    "one good arm": lambda m: ct.datasets.one_good_arm(N, gap=0.1),
    "arithmetic": lambda m: ct.datasets.arithmetic(N),
    "geometric": lambda m: ct.datasets.geometric(N),
    "uniform means": lambda m: ct.datasets.uniform_means(N, seed=1),
}


def planned_error(arms: ct.BernoulliArms, m: int, horizon: int, runs: int, rng: np.random.Generator) -> float:
    """The error of runs planned for this horizon."""
    problem = ct.Problem(n=N, m=m, agents=AGENTS, horizon=horizon)
    best = np.zeros(N, np.bool_)
    best[np.argsort(-arms.means)[:m]] = True
    answers = ct.FrugalTop().answers(problem, arms.means, runs, rng)
    return float((answers != best).any(axis=1).mean())


def horizon_for_error(arms: ct.BernoulliArms, m: int, rng: np.random.Generator) -> int:
    """The even horizon with about the wanted error."""
    low = ct.FrugalTop().smallest_horizon(ct.Problem(n=N, m=m, agents=AGENTS, horizon=1))
    high = 2 * low
    while planned_error(arms, m, high, 1000, rng) > ERROR:
        low, high = high, 2 * high
    while high - low > high // 50:
        middle = (low + high) // 2
        low, high = (middle, high) if planned_error(arms, m, middle, 2000, rng) > ERROR else (low, middle)
    return high // 2 * 2


def leg(spec: RunSpec, begun: Leg) -> tuple[Result, MemoryLog]:
    """Make one leg of a run."""
    log = MemoryLog()
    stopped = Event()
    run = LegRun(spec, begun, log, None, observable=False, stop=stopped.set)
    return run.run(stopped, lambda result: None), log


def extended(arms: ct.BernoulliArms, m: int, horizon: int, seed: int, *, by_budget: bool) -> Result:
    """A run to half of a horizon that is then extended."""
    spec = make_spec(arms, m, agents=AGENTS, horizon=horizon // 2, algorithm="frugal-top", seed=seed)
    begun = Leg(make_header(spec, logged=False), [], [])
    _, log = leg(spec, begun)
    records = log.take()
    longer = spec.extended(horizon)
    if by_budget:
        tally = Tally(N, AGENTS)
        for record in records:
            tally.add_earlier(record)
        longer = spec.extended(horizon_for_budget(spec, tally, horizon * AGENTS), horizon * AGENTS)
    before = Leg(begun.header, records, [])
    return leg(longer, before.extended(longer.extension))[0]


def interval(wrong: int, runs: int, planned: float, planned_runs: int) -> str:
    """The ratio of two errors with its 95% interval."""
    if not wrong or not planned:
        return "-"
    error = wrong / runs
    half = 1.96 * math.sqrt((1 - error) / wrong + (1 - planned) / (planned * planned_runs))
    return f"{error / planned:.2f} ({error / planned * math.exp(-half):.2f} to {error / planned * math.exp(half):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--planned", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", action="store_true", help="also extend with a budget, which takes much longer")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    columns = ["instance", "m", "2T", "error planned", "error extended", "ratio", "pulls"]
    columns += ["error with a budget", "ratio", "pulls"] if arguments.budget else []
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for name, make in INSTANCES.items():
        for m in (1,) if name == "one good arm" else (1, 8):
            arms = make(m)
            best = set(np.argsort(-arms.means)[:m].tolist())
            horizon = horizon_for_error(arms, m, rng)
            planned = planned_error(arms, m, horizon, arguments.planned, rng)
            cells = [name, str(m), f"{horizon:,}", f"{planned:.3f}"]
            for by_budget in (False, True) if arguments.budget else (False,):
                wrong, paid = 0, 0.0
                for seed in range(arguments.runs):
                    result = extended(arms, m, horizon, seed, by_budget=by_budget)
                    wrong += set(result.top_indices) != best
                    assert result.observed is not None
                    paid += float(result.observed.pulls.sum()) / (horizon * AGENTS) / arguments.runs
                ratio = interval(wrong, arguments.runs, planned, arguments.planned)
                cells += [f"{wrong / arguments.runs:.3f}", ratio, f"{paid:.3f}"]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
