"""How well plans and warnings are calibrated, over 12 instances.

    python benchmarks/planning.py [--plans 40] [--reference 100000] [--alarms 40] [--many]

Plans: `plan(error=[0.05, 0.01])` is made many times per instance, with different seeds. Columns:

- coverage: how often the 95% interval holds the horizon at which the error really is the target.
- true error / target: the error at the planned horizon, as the median and as the range of 95% of plans.
- runs: simulated runs per plan.

With `--many`, the instances are others, with so many arms that an algorithm has 100 to 2,500 runs when eight of them
share the default time; there are no warnings.

The real error comes from many runs at seven horizons around the crossing, smoothed by a parabola of log error.

Warnings: `result.warnings` of runs at horizons where the error is at most .1 (about .08, .04 and .01), where each is a
false alarm, and at least .5 (about .6 and .9), where a run without one is a miss. Not every instance has such errors.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import msgspec
import numpy as np
from rich.console import Console

import collabtop as ct
from collabtop.arms import SimulatedArms
from collabtop.problem import right_answers

TARGETS = (0.05, 0.01)
SPAN, WIDE_SPAN = np.geomspace(0.75, 1.35, 7), np.geomspace(0.4, 1.35, 11)
LEVELS = ((0.8, 0.97), (0.5, 0.7), (0.05, 0.1), (0.03, 0.05), (0.005, 0.02))


class Instance(msgspec.Struct, frozen=True):
    """Arms to plan for, and the algorithm."""

    name: str
    arms: SimulatedArms
    m: int
    agents: int
    algorithm: str
    seconds: float = 120.0
    """For a plan."""

    @property
    def problem(self) -> ct.Problem:
        """The problem, with its horizon still to be set."""
        return ct.Problem(self.arms.n, self.m, self.agents, 1)


def instances() -> Iterator[Instance]:
    """Two arms to 588, equal gaps to click rates, one wanted or half of all, IID or not."""
    data, rng = ct.datasets, np.random.default_rng(5)
    local = np.clip(np.linspace(0.3, 0.7, 20)[:, np.newaxis] + rng.normal(0, 0.1, (20, 4)), 0, 1)
    yield Instance("two arms, .6 and .5", ct.BernoulliArms([0.6, 0.5]), 1, 2, "kzz")
    yield Instance("equal gaps of .3, 16 arms", data.equal_gaps(16, 1, 0.3), 1, 4, "frugal-top")
    yield Instance("equal gaps of .2, 8 of 64", data.equal_gaps(64, 8, 0.2), 8, 4, "kzz")
    yield Instance("uniform means, 100 arms", data.uniform_means(100, 1), 1, 10, "kzz")
    yield Instance("uniform means, 5 of 100", data.uniform_means(100, 2), 5, 10, "frugal-top")
    yield Instance("evenly spaced, 5 of 30", data.arithmetic(30), 5, 3, "collab-top-iid")
    yield Instance("geometric gaps, 20 arms", data.geometric(20), 1, 5, "frugal-top")
    yield Instance("clicks, .02 and .004, 5 of 50", ct.BernoulliArms([0.02] * 5 + [0.004] * 45), 5, 6, "kzz-balanced")
    yield Instance("evenly spaced, 10 of 20", data.arithmetic(20), 10, 4, "uniform")
    yield Instance("one good arm of 200", data.one_good_arm(200, 0.2), 1, 8, "frugal-top")
    yield Instance("non-IID, 3 of 20", ct.HeterogeneousArms(local), 3, 4, "frugal-top-noniid")
    yield Instance("like MovieLens, 588 arms", data.movielens_like(), 1, 10, "kzz")


def many_arms() -> Iterator[Instance]:
    """From 588 to 10,000 arms, in an eighth of a second."""
    data, share = ct.datasets, 1 / 8
    yield Instance("like MovieLens, 588 arms", data.movielens_like(), 1, 10, "kzz", share)
    yield Instance("equal gaps of .05, 8 of 588", data.equal_gaps(588, 8, 0.05), 8, 10, "uniform", share)
    yield Instance("equal gaps of .05, 8 of 2,000", data.equal_gaps(2_000, 8, 0.05), 8, 10, "frugal-top", share)
    yield Instance("one good arm of 2,000", data.one_good_arm(2_000, 0.2), 1, 8, "collab-top-iid", share)
    yield Instance("uniform means, 5 of 2,000", data.uniform_means(2_000, 1), 5, 10, "kzz-balanced", share)
    yield Instance("evenly spaced, 500 of 1,000", data.arithmetic(1_000), 500, 10, "batched-sar", share)
    yield Instance("equal gaps of .05, 8 of 10,000", data.equal_gaps(10_000, 8, 0.05), 8, 10, "batched-sar", share)
    yield Instance("equal gaps of .1, 1 of 10,000", data.equal_gaps(10_000, 1, 0.1), 1, 10, "frugal-top", share)


def error_at(instance: Instance, algorithm: ct.Algorithm, horizon: int, runs: int, seed: int) -> float:
    """The share of wrong answers of so many runs."""
    batch = max(1, min(1_000, 100_000 // instance.arms.n))
    rng, wrong, made = np.random.default_rng([seed, horizon]), 0, 0
    while made < runs:
        answers = algorithm.answers(instance.problem.at_horizon(horizon), instance.arms.means, batch, rng)
        wrong += int((~right_answers(instance.arms.means, answers)).sum())
        made += batch
    return wrong / made


class Reference:
    """The real error around a horizon, from many runs."""

    def __init__(self, instance: Instance, centre: int, runs: int) -> None:
        algorithm = ct.make_algorithm(instance.algorithm)
        least = algorithm.smallest_horizon(instance.problem)
        span = SPAN if instance.seconds > 1 else WIDE_SPAN  # with little time, horizons are too long
        horizons = sorted({max(least, round(centre * factor)) for factor in span})
        errors = np.array([error_at(instance, algorithm, horizon, runs // len(span), 77) for horizon in horizons])
        known = errors > 0
        self._fit = np.polyfit(np.log(np.array(horizons)[known]), np.log(errors[known]), 2, w=np.sqrt(errors[known]))
        self._range = np.log(horizons[0]), np.log(horizons[-1])

    def error(self, horizon: float) -> float:
        """The error at this horizon, which lies in the range of the runs."""
        return float(np.exp(np.polyval(self._fit, np.clip(np.log(horizon), *self._range))))

    def crossing(self, target: float) -> float:
        """The horizon with this error."""
        grid = np.linspace(*self._range, 4_000)
        return float(np.exp(grid[np.abs(np.polyval(self._fit, grid) - np.log(target)).argmin()]))


def plan_rows(
    instance: Instance, plans: int, reference_runs: int
) -> Iterator[tuple[list[str], list[bool], list[float]]]:
    made = [
        ct.plan(
            None,
            instance.m,
            instance.agents,
            means=instance.arms,
            error=list(TARGETS),
            algorithms=[instance.algorithm],
            seconds=instance.seconds,
            seed=seed,
        ).rows
        for seed in range(plans)
    ]
    for index, target in enumerate(TARGETS):
        planned = [  # a plan without a horizon counts in no column
            (row.horizon_low, row.horizon, row.horizon_high)
            for row in (rows[index] for rows in made)
            if row.horizon is not None and row.horizon_low is not None and row.horizon_high is not None
        ]
        reference = Reference(instance, int(np.median([horizon for _, horizon, _ in planned])), reference_runs)
        truth = reference.crossing(target)
        covered = [low <= truth <= high for low, _, high in planned]
        ratios = [reference.error(horizon) / target for _, horizon, _ in planned]
        low, middle, high = np.quantile(ratios, [0.025, 0.5, 0.975])
        runs = np.mean([rows[index].runs for rows in made])
        cells = [instance.name, instance.algorithm, f"{target:g}", f"{truth:,.0f}", f"{np.mean(covered):.2f}"]
        yield [*cells, f"{middle:.2f} ({low:.2f} to {high:.2f})", f"{runs:,.0f}"], covered, ratios


def alarm_rates(instance: Instance, runs: int) -> tuple[list[bool], list[bool]]:
    """Whether each run with a small error has a warning, and each one with a large error has none."""
    algorithm = ct.make_algorithm(instance.algorithm)
    false_alarms: list[bool] = []
    misses: list[bool] = []
    start = 0.03 * ct.complexity(instance.arms, instance.m) / instance.agents
    horizon = max(algorithm.smallest_horizon(instance.problem), round(start))
    seen, error = set(), 1.0
    while error > 0.005:
        error = error_at(instance, algorithm, horizon, 300, 78)
        level = next((level for level in LEVELS if level[0] <= error <= level[1]), None)
        if level is not None and level not in seen:
            seen.add(level)
            for seed in range(runs):
                result = ct.identify(
                    instance.arms,
                    instance.m,
                    agents=instance.agents,
                    horizon=horizon,
                    algorithm=algorithm,
                    seed=1_000 + seed,
                )
                if error <= 0.1:
                    false_alarms.append(bool(result.warnings))
                else:
                    misses.append(not result.warnings)
        horizon = round(1.25 * horizon) + 1
    return false_alarms, misses


def share(flags: list[bool]) -> str:
    return f"{np.mean(flags):.3f}" if flags else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=40, help="plans per instance")
    parser.add_argument("--reference", type=int, default=100_000, help="runs behind the real error")
    parser.add_argument("--alarms", type=int, default=40, help="runs per instance and error for the warnings")
    parser.add_argument("--many", action="store_true", help="many arms, and the time that each of eight algorithms has")
    arguments = parser.parse_args()
    console = Console(width=150, highlight=False, soft_wrap=True)
    console.print("| instance | algorithm | target | horizon | coverage | true error / target | runs |")
    console.print("| --- | --- | --- | --- | --- | --- | --- |")
    covered: dict[str, list[bool]] = {}
    ratios: dict[str, list[float]] = {}
    for instance in many_arms() if arguments.many else instances():
        for cells, its_covered, its_ratios in plan_rows(instance, arguments.plans, arguments.reference):
            console.print(f"| {' | '.join(cells)} |")
            covered.setdefault(cells[2], []).extend(its_covered)
            ratios.setdefault(cells[2], []).extend(its_ratios)
    for target in covered:
        within = np.mean([0.5 <= ratio <= 1.2 for ratio in ratios[target]])
        shown = f"| all | | {target} | | {np.mean(covered[target]):.3f} | {np.median(ratios[target]):.2f}, "
        console.print(f"{shown}{within:.0%} within .5 and 1.2 | |")
    if not arguments.many:
        print_alarms(console, arguments.alarms)


def print_alarms(console: Console, runs: int) -> None:
    console.print("\n| instance | algorithm | false alarms | misses |\n| --- | --- | --- | --- |")
    totals: tuple[list[bool], list[bool]] = ([], [])
    for instance in instances():
        rates = alarm_rates(instance, runs)
        console.print(f"| {instance.name} | {instance.algorithm} | {share(rates[0])} | {share(rates[1])} |")
        totals[0].extend(rates[0])
        totals[1].extend(rates[1])
    console.print(f"| all | | {share(totals[0])} | {share(totals[1])} |")


if __name__ == "__main__":
    main()
