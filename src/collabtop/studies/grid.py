"""A study: which runs to make, with seeds that make them the same wherever they run."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.registry import make_algorithm
from collabtop.arms import SimulatedArms
from collabtop.errors import InputError
from collabtop.runs.spec import make_spec
from collabtop.studies.table import Setting, StudyTable, options_text
from collabtop.validation import whole_number, wrong_value

_MOST_RUNS = 10**9

StudyTeam = Literal["local", "ray"]
"""Where the runs of a study are made."""

Engine = Literal["messages", "batched", "auto"]
"""How the runs of a point are made: message by message, in batches, or the first ones so and the others so."""


class Point(msgspec.Struct, frozen=True):
    """A point of the grid: `runs` independent runs of one algorithm in one setting."""

    arms: str
    """Name of the arms."""
    algorithm: Algorithm
    m: int
    agents: int
    horizon: int
    runs: int
    seed: int
    engine: Engine = "messages"

    @property
    def key(self) -> str:
        """The point without its engine and number of runs, as text: with the same engine it makes the same runs."""
        options = json.dumps(self.algorithm.options, sort_keys=True)
        return f"{self.arms}|{self.algorithm.title}|{options}|{self.m}|{self.agents}|{self.horizon}|{self.seed}"

    @property
    def setting(self) -> Setting:
        """What its rows and its summary have in common."""
        options = options_text(self.algorithm.options)
        return Setting(self.arms, self.algorithm.title, options, self.m, self.agents, self.horizon)

    def run_seed(self, run: int) -> int:
        """The seed of run number `run`: it depends on the point and the run, not on the rest of the study."""
        return self._seed(str(run))

    def batch_seed(self, start: int) -> int:
        """The seed of the batch that starts with this run."""
        return self._seed(f"batch from {start}")

    def _seed(self, what: str) -> int:
        digest = hashlib.blake2b(f"{self.key}|{what}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 1


class Study:
    """Many independent runs over a grid of settings.

    Args:
        arms: simulated arms, or several by name.
        algorithms: names or algorithm objects.
        m: how many arms are wanted (the paper's m), one number or several.
        agents: number of agents (K), one or several; not needed for non-IID arms, which determine it.
        horizon: time steps (T), one or several.
        runs: independent runs per point.
        seed: one seed for the whole study.
        engine: how runs are made. `"messages"` makes each run message by message. `"batched"` simulates only the
            answers, many runs at once and 10 to 40 times faster: rows have no words, bits, trips and times. `"auto"`
            makes runs message by message until the means of these are known to 4%, and the others in batches;
            algorithms without `simulate`, and arms that are not Bernoulli, have all their runs made message by
            message. The distribution of answers is the same.

    Studies can be added: `first + second` makes the runs of both, each once.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.4, 0.1])
    >>> study = ct.Study(arms=arms, algorithms=["kzz", "uniform"], agents=2, horizon=[8, 80], runs=50, seed=1)
    >>> for point in study.run().points():
    ...     print(point.algorithm, point.horizon, f"{point.error:.2f}", point.words_mean)
    kzz 8 0.08 16.0
    kzz 80 0.00 16.0
    uniform 8 0.24 8.0
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
        engine: Engine = "messages",
    ) -> None:
        self.arms = dict(arms) if isinstance(arms, Mapping) else {"arms": arms}
        """The arms, by name."""
        chosen = [make_algorithm(name) if isinstance(name, str) else name for name in _listed("algorithms", algorithms)]
        if not self.arms:
            raise InputError("arms is empty: a study needs at least one set of arms", argument="arms")
        runs, seed = whole_number("runs", runs, least=1, most=_MOST_RUNS), whole_number("seed", seed, least=0)
        points: list[Point] = []
        for name, its_arms in self.arms.items():
            if not isinstance(its_arms, SimulatedArms):
                raise InputError(
                    f"arms {name!r} have no known means, so a study cannot tell which answers are right",
                    argument="arms",
                )
            numbers = [its_arms.agents] if its_arms.agents is not None else _listed("agents", agents)
            grid = product(chosen, _listed("m", m), numbers, _listed("horizon", horizon))
            points += [
                Point(name, algorithm, best, k, t, runs, seed, _engine(engine, algorithm, its_arms))
                for algorithm, best, k, t in grid
            ]
        self.points = _checked(points, self.arms)
        """The points of the grid, in order and each once."""

    def __add__(self, other: "Study") -> "Study":
        for name in self.arms.keys() & other.arms.keys():
            if self.arms[name].fingerprint() != other.arms[name].fingerprint():
                raise InputError(f"arms {name!r} differ between the studies: give them different names")
        both = object.__new__(Study)
        both.arms = self.arms | other.arms
        both.points = _each_once([*self.points, *other.points])
        return both

    @property
    def fingerprint(self) -> str:
        """A hash that changes with anything that changes the study's rows."""
        digest = hashlib.sha256()
        for name, arms in sorted(self.arms.items()):
            digest.update(f"{name}|{type(arms).__name__}|{arms.shape}|".encode() + arms.means.tobytes())
            if arms.weights is not None:
                digest.update(f"weights {arms.weights}|".encode())
        for point in sorted(self.points, key=lambda point: point.key):
            digest.update(f"{point.key}|{point.runs}|{point.engine}\n".encode())
        return digest.hexdigest()[:32]

    def run(
        self,
        out: str | Path | None = None,
        *,
        jobs: int | None = None,
        progress: bool = False,
        team: StudyTeam = "local",
        address: str | None = None,
    ) -> StudyTable:
        """Make all runs.

        Args:
            out: a folder for `rows.csv`, `points.csv` and the journal. A study that was stopped continues
                from its journal when it is run again with the same folder, and ends with the same files.
            jobs: number of processes; all cores if omitted. It never changes a result.
            progress: show a progress bar with the time left.
            team: where the runs are made: `"local"` (processes on this machine) or `"ray"` (tasks on a Ray
                cluster, as many at once as it has CPUs, or `jobs`). It never changes a result.
            address: with `"ray"`, the cluster to join; see `RayTeam`.
        """
        from collabtop.studies.runner import run_study

        folder = Path(out) if out is not None else None
        return run_study(self, folder, jobs=jobs, progress=progress, team=team, address=address)


def _listed(name: str, values: Any) -> list[Any]:
    listed = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    listed = [value.item() if isinstance(value, np.generic) else value for value in listed]
    if listed == [None]:
        raise InputError(f"{name} is missing: a study of IID arms needs it", argument=name)
    if not listed:
        raise InputError(f"{name} is empty: a grid needs at least one value", argument=name)
    return listed


def _engine(engine: Engine, algorithm: Algorithm, arms: SimulatedArms) -> Engine:
    """The engine for one point; "auto" is resolved where only messages can be simulated."""
    if engine not in get_args(Engine):
        raise wrong_value("engine", engine, "'messages', 'batched' or 'auto' is needed")
    if engine == "messages" or (algorithm.batched and arms.bernoulli):
        return engine
    if engine == "auto":
        return "messages"
    why = (
        f"{type(arms).__name__} are not Bernoulli arms" if algorithm.batched else f"{algorithm.title} has no `simulate`"
    )
    raise InputError(f"engine is 'batched', but {why}: use 'auto' or 'messages'", argument="engine")


def _checked(points: list[Point], arms: Mapping[str, SimulatedArms]) -> tuple[Point, ...]:
    for point in points:
        try:
            make_spec(arms[point.arms], point.m, agents=point.agents, horizon=point.horizon, algorithm=point.algorithm)
        except InputError as error:
            argument = "algorithms" if error.argument == "algorithm" else error.argument
            raise InputError(f"{point.algorithm.title} on {point.arms}: {error}", argument=argument) from None
    return _each_once(points)


def _each_once(points: list[Point]) -> tuple[Point, ...]:
    unique: dict[str, Point] = {}
    for point in points:
        earlier = unique.setdefault(point.key, point)
        if point.engine != earlier.engine:
            raise InputError(
                f"engine is {point.engine!r} and {earlier.engine!r} for the same runs of {point.algorithm.title}: give "
                "both studies the same engine",
                argument="engine",
            )
        if point.runs > earlier.runs:
            unique[point.key] = point
    return tuple(unique.values())
