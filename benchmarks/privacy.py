"""What differential privacy costs: the error at one horizon, and the horizon for one error, against epsilon.

    python benchmarks/privacy.py [--runs 4000] [--seconds 30] [--seed 1]

The best 4 of 40 candidates with means from 0.2 to 0.8, 10 agents, delta = 1e-6. Simulated runs with noise; that these
have the errors of real ones is tested (tests/test_privacy.py).
"""

from __future__ import annotations

import argparse

import numpy as np

import collabtop as ct
from collabtop.planning.setting import with_noise

MEANS, WANTED, AGENTS, HORIZON, ERROR = np.linspace(0.2, 0.8, 40), 4, 10, 9_000, 0.05
EPSILONS = (None, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25)
ALGORITHMS = ("kzz-balanced", "frugal-top", "uniform")


def privacy(epsilon: float | None, unit: str) -> ct.Privacy | None:
    """The privacy of a row of the table."""
    return None if epsilon is None else ct.Privacy(epsilon=epsilon, delta=1e-6, unit=unit)  # type: ignore[arg-type]


def error(algorithm: str, asked: ct.Privacy | None, runs: int, seed: int) -> float:
    """The share of wrong answers at the horizon."""
    problem = with_noise(ct.Problem(len(MEANS), WANTED, AGENTS, HORIZON), asked)
    answers = ct.make_algorithm(algorithm).answers(problem, MEANS, runs, np.random.default_rng(seed))
    return float((~answers[:, -WANTED:].all(axis=1)).mean())


def horizon(algorithm: str, asked: ct.Privacy | None, runs: int, seconds: float, seed: int) -> str:
    """The horizon for the error."""
    arguments = {"m": WANTED, "agents": AGENTS, "error": ERROR, "runs": runs, "seconds": seconds, "seed": seed}
    plan = ct.plan(means=MEANS, algorithms=[algorithm], privacy=asked, **arguments)  # type: ignore[call-overload]
    found = plan.rows[0].horizon
    return "-" if found is None else f"{found:,}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4_000, help="simulated runs per entry")
    parser.add_argument("--seconds", type=float, default=30.0, help="about how long to look for a horizon, per entry")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    heads = [f"`{name}`: error at {HORIZON:,}" for name in ALGORITHMS] + [
        f"`{name}`: horizon for {ERROR:g}" for name in ALGORITHMS
    ]
    print(f"| unit | epsilon | noise | {' | '.join(heads)} |")
    print("| --- " * (3 + len(heads)) + "|")
    for unit in ("reward", "example"):
        for epsilon in EPSILONS if unit == "reward" else EPSILONS[1:]:
            asked = privacy(epsilon, unit)
            noise = with_noise(ct.Problem(len(MEANS), WANTED, AGENTS, HORIZON), asked).noise
            errors = [f"{error(name, asked, options.runs, options.seed):.3f}" for name in ALGORITHMS]
            found = [horizon(name, asked, options.runs, options.seconds, options.seed) for name in ALGORITHMS]
            shown = ("-", "none", "0") if epsilon is None else (unit, f"{epsilon:g}", f"{noise:.1f}")
            print(f"| {' | '.join([*shown, *errors, *found])} |", flush=True)


if __name__ == "__main__":
    main()
