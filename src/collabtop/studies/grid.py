"""A study: which runs to make, and the seeds that make them the same wherever they run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.registry import make_algorithm
from collabtop.arms import SimulatedArms
from collabtop.errors import InputError
from collabtop.runs.spec import make_spec
from collabtop.validation import whole_number

if TYPE_CHECKING:
    from collabtop.studies.table import StudyTable

_MOST_RUNS = 10**9


class Point(msgspec.Struct, frozen=True):
    """One place of the grid: `runs` independent runs of one algorithm in one setting."""

    arms: str
    """Name of the arms."""
    algorithm: Algorithm
    m: int
    agents: int
    horizon: int
    runs: int
    seed: int

    @property
    def key(self) -> str:
        """What is run, as text: two points with the same key are the same runs."""
        options = json.dumps(self.algorithm.options, sort_keys=True)
        return f"{self.arms}|{self.algorithm.title}|{options}|{self.m}|{self.agents}|{self.horizon}|{self.seed}"

    def run_seed(self, run: int) -> int:
        """The seed of run number `run`: it depends on the point and the run, not on the rest of the study."""
        digest = hashlib.blake2b(f"{self.key}|{run}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 1


class Study:
    """Many independent runs over a grid of settings.

    Args:
        arms: simulated arms, or several by name.
        algorithms: names or algorithm objects.
        m: how many arms are wanted (the paper's m), one number or several.
        agents: number of agents (K), one or several; non-IID arms bring their own.
        horizon: time steps (T), one or several.
        runs: independent runs a point.
        seed: one seed for the whole study.

    Studies can be added up: `first + second` makes the runs of both, each once.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.4, 0.1])
    >>> study = ct.Study(arms=arms, algorithms=["kzz", "uniform"], agents=2, horizon=[8, 80], runs=50, seed=1)
    >>> for point in study.run().points():
    ...     print(point.algorithm, point.horizon, f"{point.error:.2f}", point.words_mean)
    kzz 8 0.12 14.72
    kzz 80 0.00 15.84
    uniform 8 0.20 8.0
    uniform 80 0.00 8.0
    """

    def __init__(
        self,
        *,
        arms: SimulatedArms | Mapping[str, SimulatedArms],
        algorithms: Sequence[str | Algorithm] | str | Algorithm,
        horizon: int | Sequence[int],
        m: int | Sequence[int] = 1,
        agents: int | Sequence[int] | None = None,
        runs: int = 100,
        seed: int = 0,
    ) -> None:
        self.arms = dict(arms) if isinstance(arms, Mapping) else {"arms": arms}
        """The arms, by name."""
        made = [make_algorithm(one) if isinstance(one, str) else one for one in _listed("algorithms", algorithms)]
        if not self.arms:
            raise InputError("arms is empty: a study needs at least one set of arms")
        runs = whole_number("runs", runs, least=1, most=_MOST_RUNS)
        points: list[Point] = []
        for name, some in self.arms.items():
            if not isinstance(some, SimulatedArms):
                raise InputError(f"arms {name!r} have no known means, so no study can tell a right answer")
            crews = [some.agents] if some.agents is not None else _listed("agents", agents)
            grid = product(made, _listed("m", m), crews, _listed("horizon", horizon))
            points += [Point(name, algorithm, its_m, k, t, runs, seed) for algorithm, its_m, k, t in grid]
        self.points = _checked(points, self.arms)
        """The points of the grid, in order and each once."""

    def __add__(self, other: Study) -> Study:
        for name in self.arms.keys() & other.arms.keys():
            if not np.array_equal(self.arms[name].means, other.arms[name].means):
                raise InputError(f"arms {name!r} differ between the studies: give them names of their own")
        both = object.__new__(Study)
        both.arms = self.arms | other.arms
        both.points = _each_once([*self.points, *other.points])
        return both

    @property
    def fingerprint(self) -> str:
        """Changes with anything that changes the study's rows."""
        digest = hashlib.sha256()
        for name, arms in sorted(self.arms.items()):
            digest.update(f"{name}|{type(arms).__name__}|{arms.shape}|".encode() + arms.means.tobytes())
        for point in sorted(self.points, key=lambda one: one.key):
            digest.update(f"{point.key}|{point.runs}\n".encode())
        return digest.hexdigest()[:32]

    def run(
        self,
        out: str | Path | None = None,
        *,
        jobs: int | None = None,
        progress: bool = False,
        team: str = "local",
        address: str | None = None,
    ) -> StudyTable:
        """Make all runs.

        Args:
            out: a folder for `rows.csv`, `points.csv` and the journal. A study that was stopped goes on
                from its journal when it is run again with the same folder, and ends with the same files.
            jobs: how many processes share the work; all cores if left out. Never changes a result.
            progress: show a bar with the time left.
            team: where the runs are made: `"local"` (processes of this machine) or `"ray"` (tasks on a Ray
                cluster, as many at once as it has CPUs, or `jobs`). Never changes a result.
            address: with `"ray"`, the cluster to join; see `RayTeam`.
        """
        from collabtop.studies.runner import run_study

        folder = Path(out) if out is not None else None
        return run_study(self, folder, jobs=jobs, progress=progress, team=team, address=address)


def _listed(name: str, values: Any) -> list[Any]:
    listed = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    if listed == [None]:
        raise InputError(f"{name} is missing: a study of arms that are the same for all agents needs it")
    if not listed:
        raise InputError(f"{name} is empty: a grid needs at least one value of it")
    return listed


def _checked(points: list[Point], arms: Mapping[str, SimulatedArms]) -> tuple[Point, ...]:
    for point in points:
        try:
            make_spec(arms[point.arms], point.m, agents=point.agents, horizon=point.horizon, algorithm=point.algorithm)
        except InputError as error:
            raise InputError(f"{point.algorithm.title} on {point.arms}: {error}") from None
    return _each_once(points)


def _each_once(points: list[Point]) -> tuple[Point, ...]:
    unique: dict[str, Point] = {}
    for point in points:
        known = unique.setdefault(point.key, point)
        if point.runs > known.runs:
            unique[point.key] = point
    return tuple(unique.values())
