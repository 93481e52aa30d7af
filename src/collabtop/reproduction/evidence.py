"""The evidence on which the statements are judged: the points of the studies, with lookups."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from collabtop.arms import SimulatedArms
from collabtop.crossing import Crossing, NotReached, fit_crossing
from collabtop.problem import complexity
from collabtop.studies.table import PointSummary

_PAPER_NAMES = {
    "collab-top-iid": "CollabTopIID",
    "collab-top-noniid": "CollabTopNIID",
    "kzz": "KZZ",
    "kzz-balanced": "KZZ balanced",
    "uniform": "Uniform",
    "sar": "SAR",
    "batched-sar": "BatchedSAR",
    "tzz": "TZZ",
    "hkk": "HKK",
    "nsar": "NSAR with free sharing",
}
Axis = Literal["horizon", "agents"]
"""What varies in a sweep: T or K."""
IID, NON_IID = "movies", "groups"
"""Names of the two kinds of arms."""
_SCHEDULES = {"paper": "printed schedule", "full": "full schedule"}


def paper_name(algorithm: str, schedule: str | None = None) -> str:
    """The name of an algorithm in the style of the paper, with its schedule if it has one.

    >>> paper_name("collab-top-iid", "paper"), paper_name("frugal-top-noniid")
    ('CollabTopIID, printed schedule', 'FrugalTopNIID')
    """
    name = _PAPER_NAMES.get(algorithm)
    if name is None:
        name = "".join({"iid": "IID", "noniid": "NIID"}.get(part, part.capitalize()) for part in algorithm.split("-"))
    return name if schedule is None else f"{name}, {_SCHEDULES.get(schedule, schedule)}"


class Line(msgspec.Struct, frozen=True):
    """An algorithm with its schedule: one line in a panel."""

    algorithm: str
    schedule: str | None = None

    @property
    def name(self) -> str:
        """The name in the style of the paper."""
        return paper_name(self.algorithm, self.schedule)


PRINTED, FULL = Line("collab-top-iid", "paper"), Line("collab-top-iid", "full")
KZZ = Line("kzz")
PRINTED_NON_IID, FULL_NON_IID = Line("collab-top-noniid", "paper"), Line("collab-top-noniid", "full")
UNIFORM = Line("uniform")
NSAR = Line("nsar")


class Crossed(msgspec.Struct, frozen=True):
    """The horizon at which the error of an algorithm falls to .01 in one setting, from runs near it."""

    line: Line
    m: int
    agents: int
    at: Crossing | NotReached
    arms: str = IID


class LocalRuns(msgspec.Struct, frozen=True):
    """How many runs of collab-top-iid had a local phase."""

    n: int
    agents: int
    runs: int
    local: int


class RoundCost(msgspec.Struct, frozen=True):
    """The words of one round of a run of collab-top-iid, by step of the paper."""

    n: int
    agents: int
    m: int
    horizon: int
    seed: int
    round: int
    phase: str
    live: int
    words: int
    """All words of LocalElim or GlobalElim."""
    searches: int
    """Words of its CollabSearch calls."""


class Growth(msgspec.Struct, frozen=True):
    """How words grow with n and K, and which steps send them (T2)."""

    points: tuple[PointSummary, ...]
    sizes: dict[str, int]
    """n, by the name of the arms."""
    rounds: tuple[RoundCost, ...]
    local: tuple[LocalRuns, ...]


class Disjointness(msgspec.Struct, frozen=True):
    """The answers of one algorithm to set disjointness (T4)."""

    line: Line
    runs: int
    wrong: int
    """Wrong answers to "is there an element in all sets?"."""
    bits_mean: float
    bits_sd: float
    elements: int
    agents: int


class WordsByKind(msgspec.Struct, frozen=True):
    """The words of single runs of one algorithm by kind of message."""

    runs: tuple[dict[str, int], ...]


class Evidence(msgspec.Struct, frozen=True):
    """All measurements."""

    points: tuple[PointSummary, ...]
    """The points of the panels."""
    arms: dict[str, SimulatedArms]
    baselines: tuple[PointSummary, ...] = ()
    """Points of the literature's other algorithms, at the horizons of the panels; with one agent, at K times these."""
    words_over_agents: tuple[PointSummary, ...] = ()
    """Points of the panels over K with more runs with messages (C5)."""
    bound: tuple[PointSummary, ...] = ()
    """Points at horizons where the paper's bound is below 1 (T1)."""
    disjointness: tuple[Disjointness, ...] = ()
    words_by_kind: dict[str, WordsByKind] = {}
    """In the setting of the paper's comparison (C4), by algorithm."""
    crossings: tuple[Crossed, ...] = ()
    growth: Growth | None = None

    def complexity(self, arms: str, m: int) -> float:
        """H<m> of the arms."""
        return complexity(self.arms[arms], m)

    def sweep(
        self, line: Line, arms: str, m: int, *, agents: int | None = None, horizon: int | None = None
    ) -> list[PointSummary]:
        """The points of one line, ordered by K and T; `agents` or `horizon` fixes one of the two."""
        points = [
            point
            for point in (*self.points, *self.baselines)
            if (point.arms, point.m, point.algorithm, point.schedule) == (arms, m, line.algorithm, line.schedule)
            and agents in (None, point.agents)
            and horizon in (None, point.horizon)
        ]
        return sorted(points, key=lambda point: (point.agents, point.horizon))

    def lines(self, arms: str) -> list[Line]:
        """The lines that were run on these arms, those of the paper first."""
        first = [PRINTED, FULL, KZZ, Line("kzz-balanced"), PRINTED_NON_IID, FULL_NON_IID, UNIFORM]
        seen = {Line(point.algorithm, point.schedule) for point in self.points if point.arms == arms}
        rest = sorted(seen - set(first), key=lambda line: line.name)
        return [line for line in first if line in seen] + rest

    def baseline_lines(self, arms: str, m: int) -> list[Line]:
        """The literature's other algorithms that were run in this setting."""
        points = (point for point in self.baselines if (point.arms, point.m) == (arms, m))
        return list(dict.fromkeys(Line(point.algorithm, point.schedule) for point in points))

    def crossing(self, line: Line, arms: str, m: int, agents: int) -> Crossing | NotReached | None:
        """The horizon for error .01 from runs near it; None if there are none for this line."""
        setting = line, arms, m, agents
        return next((c.at for c in self.crossings if (c.line, c.arms, c.m, c.agents) == setting), None)

    def best_crossing(self, line: Line, arms: str, m: int, agents: int) -> Crossing | NotReached:
        """The horizon for error .01 from runs near it, or from the panels if there are none."""
        near = self.crossing(line, arms, m, agents)
        return fit_points(self.sweep(line, arms, m, agents=agents)) if near is None else near


def fit_points(
    points: Sequence[PointSummary], target: float = 0.01, *, most: float = 0.5, axis: Axis = "horizon"
) -> Crossing | NotReached:
    """The horizon, or the number of agents, at which the error is `target` according to these points.

    For a target below `most`, points with an error above `most` are left out, because log error is close to a line only
    where errors are rare; but at least two points with wrong answers are kept.
    """
    ordered = sorted(points, key=lambda point: int(getattr(point, axis)))
    kept = [point for point in ordered if point.error <= most or target >= most]
    missing = 2 - sum(point.wrong > 0 for point in kept)
    left_out = [point for point in ordered if point not in kept]
    used = [*left_out[len(left_out) - missing :], *kept] if missing > 0 else kept
    return fit_crossing([getattr(p, axis) for p in used], [p.wrong for p in used], [p.runs for p in used], target)
