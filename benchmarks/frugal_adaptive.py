"""Schedules of frugal-top for m = 1 that adapt to the rewards: which of the standard instances suit kzz better still.

    python benchmarks/frugal_adaptive.py [--means F] [--runs 2000] [--seed 1] [--only NAME ...]

frugal-top fixes sizes and pulls before the first pull, and FrugalTop(adaptive=True) chooses one of up to four such
plans. The designs here go further: an arm that is clearly worse than the best one is rejected early, and the time that
it would have taken goes to the rounds to come. They are simulated here only. The first table has the cells of
`frugal_exponents.py`, on which the designs were chosen; the second has others. "kzz better" are cells in which kzz has
fewer errors beyond chance (Holm over the cells of a design, .05); "by 2 points" are those in which the measured error
of kzz is lower by .02 or more. The horizon is that for error .01 on the means of a file, or else on the MovieLens-like
ones, with 10 agents; words are those at 2 H / K there. About 15 minutes.
"""

from __future__ import annotations

import argparse
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from frugal_exponents import AGENTS, HORIZONS, wrong  # type: ignore[import-not-found]
from frugal_standard import INSTANCES, SEARCH_RUNS, Bench, Cell, cells  # type: ignore[import-not-found]

import collabtop as ct
from collabtop.algorithms.shared import frugal_plan
from collabtop.algorithms.shared.batched_runs import deal_hands
from collabtop.algorithms.shared.frugal_choice import evidence
from collabtop.crossing import Crossing, fit_crossing
from collabtop.protocol.messages import Flags, Ints, Reals
from collabtop.stats import fewer_wrong_p_value, holm

LEVEL, BATCH, POINTS = 0.05, 500, 0.02
FEW, MANY = 32, 128  # pulls per arm, T K / n
SHRINK = 1.75  # of the number of open arms from one shared round to the next, about
OTHERS = {
    "equal gaps of .5": lambda n, m: ct.datasets.equal_gaps(n, m, gap=0.5),
    "uniform, seed 2": lambda n, m: ct.datasets.uniform_means(n, seed=2),
    "uniform, seed 3": lambda n, m: ct.datasets.uniform_means(n, seed=3),
    "even, .6 to .4": lambda n, m: ct.BernoulliArms(np.linspace(0.6, 0.4, n)),
    "concave": lambda n, m: ct.BernoulliArms(0.9 - 0.7 * np.sqrt(np.arange(n) / n)),
    "convex": lambda n, m: ct.BernoulliArms(0.9 - 0.7 * (np.arange(n) / n) ** 1.5),
}


class Design(NamedTuple):
    """A schedule: pulls grow as s^-power while s arms are open.

    An arm is rejected early if the evidence against it is more than x + log n, or inside an agent x + log h, for a hand
    of h arms.
    """

    power: float = 0.92
    power_if_few: float | None = None  # the exponent at up to 32 pulls per arm; from 128 on, it is `power`
    local: float | None = None  # x inside the agents, which then report the time that they took
    shared: float | None = None  # x in shared rounds
    once: bool = False  # reject only after the first ranking; later rounds follow the plan that is chosen then
    steep: float | None = None  # the exponent after it, if it leaves at most 3/4 of the arms that would stay open
    handed_over: int = 0  # at least so many arms by all agents together,
    by_each: int = 7  # and by each agent

    def first_power(self, pulls_per_arm: float) -> float:
        """The exponent until the first ranking."""
        if self.power_if_few is None:
            return self.power
        few = math.log(MANY / pulls_per_arm) / math.log(MANY / FEW)
        return self.power + (self.power_if_few - self.power) * min(1.0, max(0.0, few))


FEW_AND_EARLY = Design(power_if_few=1.1, local=3, shared=-1)
DESIGNS = {
    "fixed, simulated here": Design(),
    "few pulls": Design(power_if_few=1.1),
    "early rejection": Design(local=3, shared=-1),
    "both": FEW_AND_EARLY,
    "both, other handover": FEW_AND_EARLY._replace(handed_over=34, by_each=6),
    "one choice": Design(power_if_few=1.1, shared=-1, once=True, steep=1.25, handed_over=64),
}


class AdaptiveRuns:
    """Many runs of a design at once; the open arms of a run are a prefix of its row, the best ones first."""

    def __init__(self, means: Reals, agents: int, horizon: int, design: Design, runs: int, rng: np.random.Generator):
        self.n, self.agents, self.design, self.rng = len(means), agents, design, rng
        self.means, self.best = np.append(means, 0.0), int(means.argmax())
        self.arms = np.broadcast_to(np.arange(self.n), (runs, self.n))
        self.sums: Reals = np.zeros((runs, self.n))
        self.count = np.full(runs, self.n)
        self.pulls, self.time_left = np.zeros(runs), np.full(runs, float(horizon))
        self.words = np.zeros(runs)
        first_power = design.first_power(horizon * agents / self.n)
        self.power = np.full((runs, 1), first_power)
        self.plan = self._plan(horizon, first_power)
        self._prune() if self.plan.local_pulls else self._share_all()
        while (self.count > 1).any():
            self._round()

    @property
    def wrong(self) -> Flags:
        """The runs that ended with a wrong answer."""
        return np.asarray(self.arms[:, 0] != self.best)

    def _plan(self, horizon: int, power: float) -> frugal_plan.FrugalPlan:
        fewest = max(self.design.by_each, -(-self.design.handed_over // self.agents))
        problem = ct.Problem(self.n, 1, self.agents, horizon)
        return frugal_plan.frugal_plan(problem, 0.001, power=power, fewest=fewest)

    def _prune(self) -> None:
        """The local stages, then the first ranking; all agents wait for the slowest."""
        hands = deal_hands(self.arms, self.agents, self.rng)
        sums, time, before = np.where(hands < self.n, 0.0, -1.0), np.zeros(len(hands)), 0
        sizes = [*self.plan.local_sizes[1:], self.plan.local_sizes[-1]]
        for size, total in zip(sizes, [*self.plan.local_pulls, self.plan.shared_pulls[0]], strict=True):
            is_open = sums >= 0
            time += is_open.sum(axis=1) * (total - before)
            sums = np.where(is_open, sums + self.rng.binomial(total - before, self.means[hands]), -1.0)
            hands, sums = ranked(hands, sums, size, self.rng)
            if self.design.local is not None:
                limit = math.log(self.plan.local_sizes[0]) + self.design.local
                sums = np.where(evidence(sums / total, total) <= limit, sums, -1.0)
            before = total
        runs = len(self.count)
        self.arms, self.sums = ranked(hands.reshape(runs, -1), sums.reshape(runs, -1), hands.size // runs, self.rng)
        self.count, self.pulls = np.count_nonzero(self.sums >= 0, axis=1), np.full(runs, float(before))
        self.time_left -= time.reshape(runs, -1).max(axis=1)
        self.words += self.agents * (1 if self.design.local is None else 2) + 2 * self.count
        self._settle(first=True)

    def _share_all(self) -> None:
        """The first shared round, of all arms."""
        self.words -= self.n + self.agents - 1  # all agents know which arms are open
        self._pull(np.full(len(self.count), self.plan.shared_pulls[0]))
        self._settle(first=True)

    def _round(self) -> None:
        ladder = ladders(self.n)[self.count]
        new = np.maximum(1, np.rint(self._totals(ladder)[:, 0] - self.pulls))
        most = np.floor(self.time_left * self.agents / self.count)
        self._pull(np.where(ladder[:, 1] > 0, np.minimum(new, most), most))
        if not (self.design.once or self.design.shared is None):
            self.words += np.where(self.count > 1, self.agents, 0)  # the number of pulls depends on rewards
        self._settle()

    def _totals(self, ladder: Reals) -> Reals:
        """The pulls of an arm by the end of each round to come, with the largest factor that the time allows."""
        shares = np.where(ladder > 0, np.maximum(ladder, 1.0) ** -self.power, 0.0)
        pulls = self.pulls[:, np.newaxis]
        low, high = np.zeros(len(ladder)), self.time_left * self.agents * self.n
        for _ in range(45):
            middle = (low + high) / 2
            totals = np.maximum(pulls, middle[:, np.newaxis] * shares)
            time = (ladder * np.diff(totals, axis=1, prepend=pulls)).sum(axis=1) / self.agents
            low, high = np.where(time <= self.time_left, middle, low), np.where(time <= self.time_left, high, middle)
        return np.maximum(pulls, low[:, np.newaxis] * shares)

    def _pull(self, new: Reals) -> None:
        new = np.where(self.count > 1, new, 0).astype(np.int64)
        is_open = np.arange(self.arms.shape[1]) < self.count[:, np.newaxis]
        times = np.where(is_open, new[:, np.newaxis], 0)
        self.sums = np.where(is_open, self.sums + self.rng.binomial(times, self.means[self.arms]), -1.0)
        self.words += np.where(self.count > 1, 2 * (self.count + self.agents - 1), 0)
        self.time_left = self.time_left - np.ceil(self.count * new / self.agents)
        self.pulls = self.pulls + new

    def _settle(self, first: bool = False) -> None:
        """Keep as many arms as the ladder has next, and none with too much evidence against it."""
        ladder = ladders(self.n)[self.count]
        keep = np.maximum(1, ladder[:, 1]).astype(np.int64)  # the last round settles all arms
        self.arms, self.sums = ranked(self.arms, self.sums, int(keep.max()), self.rng)
        if self.design.shared is not None and (first or not self.design.once):
            pulls = self.pulls[:, np.newaxis]
            clear = evidence(self.sums / pulls, pulls) > math.log(self.n) + self.design.shared
            left = np.minimum(keep, np.maximum(2, np.count_nonzero(~clear & (self.sums >= 0), axis=1)))
            if first and self.design.steep is not None:
                self.power = np.where(left <= 0.75 * keep, self.design.steep, self.power[:, 0])[:, np.newaxis]
            if first and self.design.once:
                self.words += self.agents  # which plan
            keep = left
        self.count = np.minimum(self.count, keep)
        self.sums = np.where(np.arange(self.sums.shape[1]) < self.count[:, np.newaxis], self.sums, -1.0)


def ranked(arms: Ints, sums: Reals, keep: int, rng: np.random.Generator) -> tuple[Ints, Reals]:
    """The `keep` best of each row, the best one first; ties are broken at random."""
    order = np.argsort(-(sums + 0.5 * rng.random(sums.shape)), axis=1)[:, :keep]
    return np.take_along_axis(arms, order, 1), np.take_along_axis(sums, order, 1)


@lru_cache
def ladders(n: int) -> Reals:
    """Row s: the numbers of open arms in the rounds to come if s are open, then zeros."""
    rows = [[0], [1], *(frugal_plan._in_steps(size, 2, round(math.log(size / 2, SHRINK))) for size in range(2, n + 1))]
    table = np.zeros((n + 1, 1 + max(map(len, rows))))
    for size, row in enumerate(rows):
        table[size, : len(row)] = row
    return table


def wrong_of(
    design: Design | ct.FrugalTop, arms: ct.BernoulliArms, agents: int, horizon: int, runs: int, seed: int
) -> int:
    """Wrong answers in so many runs."""
    if isinstance(design, ct.FrugalTop):
        return int(wrong(design, arms, agents, horizon, runs))
    rng, parts = np.random.default_rng(seed), [min(BATCH, runs - done) for done in range(0, runs, BATCH)]
    return sum(int(AdaptiveRuns(arms.means, agents, horizon, design, part, rng).wrong.sum()) for part in parts)


def long_enough(cell: Cell, bench: Bench) -> int:
    """The horizon of a cell, at least the smallest one of all algorithms."""
    smallest = ct.FrugalTop(adaptive=True).smallest_horizon(ct.Problem(cell.n, 1, cell.agents, 1))
    return max(smallest, int(bench.horizon(cell)))


def compared(
    design: Design | ct.FrugalTop, places: list[tuple[Cell, int]], kzz: list[int], runs: int, seed: int
) -> str:
    """The columns of one design for some cells."""
    ours = [wrong_of(design, INSTANCES[c.instance](c.n, 1), c.agents, t, runs, seed) for c, t in places]
    worse = holm([fewer_wrong_p_value(b, runs, a, runs) for a, b in zip(ours, kzz, strict=True)], LEVEL)
    names = [f"{c.instance} {c.n} K={c.agents}" for (c, _), is_worse in zip(places, worse, strict=True) if is_worse]
    behind = sum(a - b >= POINTS * runs for a, b in zip(ours, kzz, strict=True))
    return f"{np.mean(ours) / runs:.3f} | {len(names)}: {', '.join(names) or '-'} | {behind}"


def on_film(design: Design | ct.FrugalTop, film: ct.BernoulliArms, runs: int, seed: int) -> str:
    """The horizon for error .01, and the words of a run at about that horizon."""
    unit = ct.complexity(film, 1) / AGENTS
    horizons = [round(unit * factor) for factor in HORIZONS]
    errors = [wrong_of(design, film, AGENTS, horizon, runs, seed) for horizon in horizons]
    at = fit_crossing(horizons, errors, [runs] * len(horizons))
    shown = f"{at.horizon:,.0f} ({at.low:,.0f} to {at.high:,.0f})" if isinstance(at, Crossing) else "not found"
    if isinstance(design, ct.FrugalTop):
        return f"{shown} | {design.most_words(ct.Problem(film.n, 1, AGENTS, horizons[2]))}"
    batch = AdaptiveRuns(film.means, AGENTS, horizons[2], design, BATCH, np.random.default_rng(seed))
    return f"{shown} | {batch.words.mean():.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--means", help="a file of means, for the horizon for error .01")
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=DESIGNS, help="these designs only")
    options = parser.parse_args()
    runs, film = options.runs, ct.read_arms(options.means) if options.means else ct.datasets.movielens_like()
    assert isinstance(film, ct.BernoulliArms)
    simulated = {name: design for name, design in DESIGNS.items() if options.only is None or name in options.only}
    designs: dict[str, Design | ct.FrugalTop] = {
        "frugal-top": ct.FrugalTop(),
        "adaptive": ct.FrugalTop(adaptive=True),
    } | simulated
    bench = Bench(seed=1, jobs=2, share=1.0)
    standard = [(cell, bench.horizon(cell)) for cell in cells([64, 588]) if cell.m == 1]
    INSTANCES.update(OTHERS)
    SEARCH_RUNS[200] = SEARCH_RUNS[588]
    others = [Cell(name, 200, 1, agents) for name in OTHERS for agents in (2, 10, 100)]
    tables = {"standard instances": standard, "other instances": [(cell, long_enough(cell, bench)) for cell in others]}
    for title, places in tables.items():
        arms = [INSTANCES[cell.instance](cell.n, 1) for cell, _ in places]
        kzz = [wrong(ct.KZZ(balanced=True), a, c.agents, t, runs) for a, (c, t) in zip(arms, places, strict=True)]
        print(f"\n{title}: mean error of kzz {np.mean(kzz) / runs:.3f} over {len(places)} cells, {runs:,} runs each\n")
        with_film = title == "standard instances"
        print("| design | mean error | kzz better | by 2 points |" + " horizon for error .01 | words |" * with_film)
        print("| --- | --- | --- | --- |" + " --- | --- |" * with_film)
        for name, design in designs.items():
            columns = compared(design, places, kzz, runs, options.seed)
            if with_film:
                columns += f" | {on_film(design, film, 2 * runs, options.seed)}"
            print(f"| {name} | {columns} |", flush=True)


if __name__ == "__main__":
    main()
