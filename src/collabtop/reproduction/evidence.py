"""What the statements are judged by: the points of the studies, and how to find them."""

from __future__ import annotations

import msgspec

from collabtop.arms import SimulatedArms
from collabtop.problem import complexity
from collabtop.reproduction.names import paper_name
from collabtop.stats import Crossing, fit_crossing
from collabtop.studies.table import PointSummary


class Line(msgspec.Struct, frozen=True):
    """An algorithm with its schedule: one line in a panel."""

    algorithm: str
    schedule: str | None = None

    @property
    def name(self) -> str:
        """As the paper calls it."""
        return paper_name(self.algorithm, self.schedule)


PRINTED, FULL = Line("collab-top-iid", "paper"), Line("collab-top-iid", "full")
KZZ = Line("kzz")
PRINTED_NON_IID, FULL_NON_IID = Line("collab-top-noniid", "paper"), Line("collab-top-noniid", "full")
UNIFORM = Line("uniform")


class Crossed(msgspec.Struct, frozen=True):
    """Where one algorithm's error falls to .01 in one setting, from the deeper study."""

    line: Line
    m: int
    agents: int
    at: Crossing | None
    """None if it was sought and not found."""


class LocalRuns(msgspec.Struct, frozen=True):
    """How often collab-top-iid had a local round at all."""

    n: int
    agents: int
    runs: int
    local: int


class RoundCost(msgspec.Struct, frozen=True):
    """One round of a run of collab-top-iid: words by the paper's step."""

    n: int
    agents: int
    m: int
    horizon: int
    seed: int
    round: int
    phase: str
    live: int
    words: int
    """LocalElim or GlobalElim, all of it."""
    searches: int
    """Words of its CollabSearch calls."""


class Growth(msgspec.Struct, frozen=True):
    """Words over n and K, and where they go (T2)."""

    points: tuple[PointSummary, ...]
    sizes: dict[str, int]
    """n, by the name of the arms."""
    rounds: tuple[RoundCost, ...]
    local: tuple[LocalRuns, ...]


class Disjointness(msgspec.Struct, frozen=True):
    """How one algorithm answered set disjointness (T4)."""

    line: Line
    runs: int
    wrong: int
    """Wrong answers to "is there an element in all sets?"."""
    bits_mean: float
    elements: int
    agents: int


class WordsByKind(msgspec.Struct, frozen=True):
    """Where the words of one algorithm go, by kind of message."""

    runs: int
    """Runs whose ledgers were read."""
    words: dict[str, float]
    """On average."""


class Evidence(msgspec.Struct, frozen=True):
    """All that was measured."""

    points: tuple[PointSummary, ...]
    """The points behind the panels."""
    arms: dict[str, SimulatedArms]
    bound: tuple[PointSummary, ...] = ()
    """Points at horizons where the paper's bound says something (T1)."""
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
        """The points of one line, in order of K and T; `agents` or `horizon` holds one of them fixed."""
        found = [
            point
            for point in self.points
            if (point.arms, point.m, point.algorithm, point.schedule) == (arms, m, line.algorithm, line.schedule)
            and agents in (None, point.agents)
            and horizon in (None, point.horizon)
        ]
        return sorted(found, key=lambda point: (point.agents, point.horizon))

    def lines(self, arms: str) -> list[Line]:
        """The algorithms that ran on these arms, the paper's first."""
        known = [PRINTED, FULL, KZZ, Line("kzz-balanced"), PRINTED_NON_IID, FULL_NON_IID, UNIFORM]
        seen = {Line(point.algorithm, point.schedule) for point in self.points if point.arms == arms}
        rest = sorted(seen - set(known), key=lambda line: line.name)
        return [line for line in known if line in seen] + rest

    def crossing(self, line: Line, m: int, agents: int) -> Crossing | None:
        """The horizon for error .01 from the deeper study, if it was made."""
        for one in self.crossings:
            if (one.line, one.m, one.agents) == (line, m, agents):
                return one.at
        return None

    def rough_crossing(self, line: Line, arms: str, m: int, agents: int) -> Crossing | None:
        """The same from the panels' few runs: a rough idea only."""
        points = [point for point in self.sweep(line, arms, m, agents=agents) if point.error <= 0.5]
        if len(points) < 2:
            return None
        return fit_crossing([it.horizon for it in points], [it.wrong for it in points], [it.runs for it in points])
