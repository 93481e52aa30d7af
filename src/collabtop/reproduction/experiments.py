"""The study behind the paper's experimental section, and the panels of its figures."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from operator import add
from typing import Literal, TypeVar

import msgspec

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.batched_sar import BatchedSAR
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.algorithms.hkk import HKK
from collabtop.algorithms.kzz import KZZ
from collabtop.algorithms.nsar import NSAR
from collabtop.algorithms.registry import available_algorithms, make_algorithm
from collabtop.algorithms.tzz import TZZ
from collabtop.algorithms.uniform import Uniform
from collabtop.arms import BernoulliArms, HeterogeneousArms, SimulatedArms
from collabtop.crossing import Crossing
from collabtop.errors import HorizonError, InputError
from collabtop.problem import complexity
from collabtop.reproduction.evidence import IID, NON_IID, Axis, fit_points
from collabtop.runs.spec import make_spec
from collabtop.studies.grid import Engine, Study
from collabtop.studies.table import PointSummary

AGENTS = 10
"""K in the paper's figures over T."""
_PAPER_SHARE = 30_000 / 61_520  # the paper's T in its figures over K, as a share of H<1> of its arms
_PILOT_FACTORS = tuple(2.0**power for power in range(-4, 7))  # times H / K
_PILOT_RUNS, _NON_IID_PILOT_RUNS, _QUICK_PILOT_RUNS = 200, 25, 10
_STEP, _QUICK_STEP = 2.0, 2.8  # between neighbouring horizons of a sweep
_MARGIN = 1.3  # a pilot of few runs may place the end of a sweep too low

_NSAR_POWERS = {1: 0.85, 8: 1.3}  # the best ones for these arms, by m
_BASELINE_RUNS, _NSAR_RUNS, _QUICK_NSAR_RUNS = 100, 50, 25
_WORDS_RUNS = 120

_T = TypeVar("_T")
Measure = Literal["error", "words"]


class Sweep(msgspec.Struct, frozen=True):
    """The horizons and numbers of agents of one figure."""

    horizons: tuple[int, ...]
    agents: tuple[int, ...]


def fixed_horizon(arms: SimulatedArms, m: int) -> int:
    """T of the sweep over K: the paper's T = 30,000 for its arms and m = 1, and in proportion to H for others.

    >>> import collabtop as ct
    >>> fixed_horizon(ct.datasets.movielens_like(), m=1)
    30000
    """
    return rounded(_PAPER_SHARE * complexity(arms, m))


def rounded(horizon: float) -> int:
    """A horizon with two significant digits.

    >>> rounded(30_137.2), rounded(7.2)
    (30000, 7)
    """
    digits = max(0, math.floor(math.log10(max(1.0, horizon))) - 1)
    return int(max(1, round(horizon / 10**digits) * 10**digits))


def data_kind(arms: str) -> str:
    """IID or non-IID, by the name of the arms."""
    return "IID" if arms == IID else "non-IID"


class Panel(msgspec.Struct, frozen=True):
    """One panel of a figure: a measure over T or K."""

    letter: str
    measure: Measure
    against: Axis
    arms: str
    m: int
    fixed: int
    """K where T varies, T where K varies."""

    @property
    def title(self) -> str:
        """The title of the panel."""
        measure = "Error" if self.measure == "error" else "Communication"
        if self.against == "horizon":
            return f"{measure} over T, K = {self.fixed}"
        return f"{measure} over K, T = {self.fixed:,}"


class FigurePlan(msgspec.Struct, frozen=True):
    """One figure of the paper."""

    number: int
    arms: str
    m: int
    panels: tuple[Panel, ...]

    @property
    def title(self) -> str:
        """The paper's caption."""
        return f"Performance of algorithms for top-{self.m} arm identification, {data_kind(self.arms)} data"


def figure_plans(iid: SimulatedArms, agents: int) -> tuple[FigurePlan, ...]:
    """The paper's four figures with twelve panels; `agents` is K of the non-IID arms.

    >>> import collabtop as ct
    >>> [len(plan.panels) for plan in figure_plans(ct.datasets.movielens_like(), 10)]
    [4, 4, 2, 2]
    """
    four = (("a", "error", "horizon"), ("b", "error", "agents"), ("c", "words", "horizon"), ("d", "words", "agents"))
    plans = []
    for number, m in ((1, 1), (2, 8)):
        fixed = {"horizon": AGENTS, "agents": fixed_horizon(iid, m)}
        panels = tuple(Panel(letter, measure, axis, IID, m, fixed[axis]) for letter, measure, axis in four)  # type: ignore[arg-type]
        plans.append(FigurePlan(number, IID, m, panels))
    for number, m in ((3, 1), (4, 8)):
        words = Panel("a", "words", "horizon", NON_IID, m, agents)
        error = Panel("b", "error", "horizon", NON_IID, m, agents)
        plans.append(FigurePlan(number, NON_IID, m, (words, error)))
    return tuple(plans)


def iid_algorithms() -> list[Algorithm]:
    """The paper's two algorithms, with both schedules and balanced pulls, and this package's own.

    >>> [algorithm.title for algorithm in iid_algorithms()][:4]
    ['collab-top-iid', 'collab-top-iid', 'kzz', 'kzz-balanced']
    """
    return [CollabTopIID(), CollabTopIID(schedule="full"), KZZ(), KZZ(balanced=True), *_if_available("frugal-top")]


def noniid_algorithms() -> list[Algorithm]:
    """The paper's two algorithms, with both schedules, and this package's own.

    >>> [algorithm.title for algorithm in noniid_algorithms()][:3]
    ['collab-top-noniid', 'collab-top-noniid', 'uniform']
    """
    return [CollabTopNonIID(), CollabTopNonIID(schedule="full"), Uniform(), *_if_available("frugal-top-noniid")]


def baselines(m: int) -> list[Algorithm]:
    """The literature's other algorithms for IID arms; the last is for one agent, as if all were shared for free.

    >>> [algorithm.title for algorithm in baselines(1)], [algorithm.title for algorithm in baselines(8)]
    (['batched-sar', 'tzz', 'hkk', 'nsar'], ['batched-sar', 'nsar'])
    """
    best_arm_only: list[Algorithm] = [TZZ(), HKK()] if m == 1 else []
    return [BatchedSAR(), *best_arm_only, NSAR(power=_NSAR_POWERS[m])]


def baselines_study(
    iid: BernoulliArms, ranges: Mapping[tuple[str, int], Sweep], *, runs: int, seed: int, quick: bool
) -> Study:
    """The baselines at the horizons of the panels: for words, and for errors where there are no runs near error .01."""
    studies: list[Study] = []
    few = min(runs, _BASELINE_RUNS)
    fewest = min(runs, _QUICK_NSAR_RUNS if quick else _NSAR_RUNS)
    for m in (1, 8):
        horizons, (*others, alone) = ranges[IID, m].horizons, baselines(m)
        for algorithm, horizon in product(others, horizons):
            studies += _point_study(IID, iid, algorithm, m, AGENTS, horizon, few, seed)
        # nsar takes by far the longest to simulate; its error is .01 at one of the horizons in the middle.
        for horizon in horizons[len(horizons) // 4 : math.ceil(len(horizons) * 2 / 3)]:
            studies += _point_study(IID, iid, alone, m, 1, AGENTS * horizon, fewest, seed, engine="batched")
    return combined(studies)


def _if_available(name: str) -> list[Algorithm]:
    return [make_algorithm(name)] if name in available_algorithms() else []


def pilot_study(iid: BernoulliArms, groups: HeterogeneousArms, *, seed: int, quick: bool) -> Study:
    """A few runs at horizons from H / (16 K) to 64 H / K, to find where the errors are .5 and .01."""
    for kind, arms in (("IID", iid), ("non-IID", groups)):
        if arms.n <= 16:
            raise InputError(
                f"the number of {kind} arms is {arms.n}, but the paper's top-8 experiments need at least 17"
            )
        for m in (1, 8):
            if math.isinf(complexity(arms, m)):
                raise InputError(
                    f"{kind} arms of ranks {m} and {m + 1} have the same mean, but the paper's experiments need "
                    f"{'a best arm' if m == 1 else 'a best set of 8'}: change one of the means"
                )
    studies: list[Study] = []
    different = [a for a in iid_algorithms() if not (isinstance(a, KZZ) and a.balanced)]  # it errs as often as kzz
    # The statements on IID arms depend on where the sweeps end; a run on non-IID arms takes longer.
    for name, kind_of_arms, algorithms, usual_runs in (
        (IID, iid, different, _PILOT_RUNS),
        (NON_IID, groups, noniid_algorithms(), _NON_IID_PILOT_RUNS),
    ):
        runs = _QUICK_PILOT_RUNS if quick else usual_runs
        agents = kind_of_arms.agents or AGENTS
        for m in (1, 8):
            unit = complexity(kind_of_arms, m) / agents
            for horizon in dict.fromkeys(rounded(unit * factor) for factor in _PILOT_FACTORS):
                for algorithm in algorithms:
                    studies += _point_study(
                        name, kind_of_arms, algorithm, m, agents, horizon, runs, seed, engine="batched"
                    )
    return combined(studies)


def sweeps(pilot: Sequence[PointSummary], iid: SimulatedArms, *, quick: bool) -> dict[tuple[str, int], Sweep]:
    """The sweep of each figure: from error .5 of its first algorithm to error .01 of its last, by the pilot."""
    ranges = {}
    for arms, m in ((IID, 1), (IID, 8), (NON_IID, 1), (NON_IID, 8)):
        lines: dict[str, list[PointSummary]] = {}
        for point in pilot:
            if (point.arms, point.m) == (arms, m):
                lines.setdefault(point.algorithm + point.options, []).append(point)
        start = min(_located(points, 0.5) for points in lines.values())
        end = max(_located(points, 0.01) for points in lines.values()) * _MARGIN
        step = _QUICK_STEP if quick else _STEP
        horizons = [rounded(horizon) for horizon in _steps(start, end, step)]
        agents: set[int] = set()
        if arms == IID:
            fixed = fixed_horizon(iid, m)
            first, last = start * AGENTS / fixed, end * AGENTS / fixed
            agents = {AGENTS, *(round(k) for k in _steps(max(1.0, first), max(4.0, last), step))}
            # C4 is about this horizon; it takes the place of one that is close to it.
            close = {horizon for horizon in horizons[1:-1] if 1 / step < (horizon / fixed) ** 2 < step}
            horizons = sorted({*horizons, fixed} - (close - {fixed}))
        ranges[arms, m] = Sweep(tuple(horizons), tuple(sorted(agents)))
    return ranges


def _located(points: Sequence[PointSummary], target: float) -> float:
    """Where the pilot's error is `target`: by a fit, or if that is too uncertain, the first horizon that is lower."""
    at = fit_points(points, target)
    if isinstance(at, Crossing):
        return at.horizon
    ordered = sorted(points, key=lambda point: point.horizon)
    above = [index for index, point in enumerate(ordered) if point.error > target]
    return ordered[min(above[-1] + 1 if above else 0, len(ordered) - 1)].horizon


def _steps(start: float, end: float, step: float) -> Iterator[float]:
    """Numbers from `start` to at least `end`, with the same factor of about `step` between neighbours.

    >>> [round(number) for number in _steps(1, 10, 2)]
    [1, 2, 3, 6, 10]
    """
    count = max(2, math.ceil(math.log(end / start) / math.log(step)))
    yield from (start * (end / start) ** (index / count) for index in range(count + 1))


def panels_study(
    iid: BernoulliArms,
    groups: HeterogeneousArms,
    ranges: Mapping[tuple[str, int], Sweep],
    *,
    runs: int,
    seed: int,
) -> Study:
    """All runs for the twelve panels; non-IID points have a fifth, as each run draws for every arm and agent."""
    studies: list[Study] = []
    for m in (1, 8):
        fixed = fixed_horizon(iid, m)
        for algorithm in iid_algorithms():
            for horizon in ranges[IID, m].horizons:
                studies += _point_study(IID, iid, algorithm, m, AGENTS, horizon, runs, seed)
            for agents in ranges[IID, m].agents:
                studies += _point_study(IID, iid, algorithm, m, agents, fixed, runs, seed)
        for algorithm in noniid_algorithms():
            for horizon in ranges[NON_IID, m].horizons:
                studies += _point_study(NON_IID, groups, algorithm, m, groups.agents, horizon, max(2, runs // 5), seed)
    return combined(studies)


def first_middle_last(sweep: Sequence[_T]) -> tuple[_T, _T, _T]:
    """The ends of a sweep and its middle, in terms of numbers: where C5 compares words.

    >>> first_middle_last([1, 2, 3, 6, 10, 12, 22])
    (1, 6, 22)
    """
    return sweep[0], sweep[(len(sweep) - 1) // 2], sweep[-1]


def words_study(iid: BernoulliArms, ranges: Mapping[tuple[str, int], Sweep], *, seed: int) -> Study:
    """More runs with messages than the panels have, where C5 compares the words of CollabTopIID over K."""
    studies: list[Study] = []
    for m, algorithm in product((1, 8), (CollabTopIID(), CollabTopIID(schedule="full"))):
        for agents in first_middle_last(ranges[IID, m].agents):
            horizon = fixed_horizon(iid, m)
            studies += _point_study(IID, iid, algorithm, m, agents, horizon, _WORDS_RUNS, seed, engine="messages")
    return combined(studies)


def _point_study(
    name: str,
    arms: SimulatedArms,
    algorithm: Algorithm,
    m: int,
    agents: int | None,
    horizon: int,
    runs: int,
    seed: int,
    engine: Engine = "auto",
) -> list[Study]:
    """A study of one point, or none if the horizon is below the smallest one of the algorithm."""
    try:
        make_spec(arms, m, agents=agents, horizon=horizon, algorithm=algorithm)
    except HorizonError:
        return []
    return [
        Study(
            arms={name: arms},
            algorithms=algorithm,
            m=m,
            agents=agents,
            horizon=horizon,
            runs=runs,
            seed=seed,
            engine=engine,
        )
    ]


def combined(studies: Iterable[Study]) -> Study:
    """Several studies as one study."""
    return reduce(add, studies)
