"""How words grow with n and K (T2): the study, and where the words of a run go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.arms import SimulatedArms
from collabtop.datasets import uniform_means
from collabtop.problem import Problem
from collabtop.reproduction.evidence import Growth, LocalRuns, RoundCost
from collabtop.reproduction.experiments import added
from collabtop.runs.result import Result
from collabtop.studies.grid import Study
from collabtop.studies.runner import run_again, study_mark
from collabtop.studies.table import StudyTable, write_whole

_POWERS = (12, 14, 16, 18, 20)
_CREWS = (2, 10, 50)
_LOCAL_CREWS = (10, 20, 30, 40, 50, 70, 100)
_IID_RUNS, _LOCAL_RUNS = 3, 100
# Times the smallest horizon: a few pulls an arm, where most arms tie, and so many that hardly any do.
ROOMS = (4, 4_096)

FolderOf = Callable[[str, Study], Path]
"""Where a study's rows are, by its name."""
_Read = TypeVar("_Read")

_SEARCH = ("Sample", "Values", "Narrow", "Window", "CountTies", "Tied")
# Said once a run, before the first round's work or after the last local one's: no part of a round's step.
_ONCE = ("Deal", "Held", "HandOver", "Hand")


def growth_study(*, seed: int, powers: Iterable[int] = _POWERS, crews: Iterable[int] = _CREWS) -> Study:
    """Both of the paper's algorithms over n = 2^12 ... 2^20 and K up to 50."""
    studies = []
    crews = tuple(crews)
    for power in powers:
        n = 2**power
        arms = {f"n = 2^{power}": uniform_means(n, seed=power)}
        for k in crews:
            iid, other = CollabTopIID(), CollabTopNonIID()
            studies += [_study(arms, iid, n, m, k, _IID_RUNS, seed, room) for m in (1, 64) for room in ROOMS]
            studies.append(_study(arms, other, n, 1, k, 1, seed, ROOMS[0]))  # its words are the same in every run
    return added(studies)


def _study(
    arms: Mapping[str, SimulatedArms], algorithm: Algorithm, n: int, m: int, k: int, runs: int, seed: int, room: int
) -> Study:
    horizon = room * algorithm.smallest_horizon(Problem(n, m, k, 1))
    return Study(arms=arms, algorithms=algorithm, m=m, agents=k, horizon=horizon, runs=runs, seed=seed)


def local_study(arms: SimulatedArms, *, seed: int) -> Study:
    """Does the local phase run at all, as K grows on the paper's instance?"""
    return Study(
        arms={"movies": arms},
        algorithms="collab-top-iid",
        agents=_LOCAL_CREWS,
        horizon=200_000,
        runs=_LOCAL_RUNS,
        seed=seed,
    )


def growth_evidence(study: Study, table: StudyTable, local: Study, local_table: StudyTable, folder: FolderOf) -> Growth:
    """Make the IID runs again by their seeds, and read where the words went from their ledgers, once."""
    rounds = _kept(folder("growth", study) / "rounds.json", study, list[RoundCost], lambda: _rounds(study, table))
    phases = _kept(folder("local", local) / "phases.json", local, list[LocalRuns], lambda: _phases(local, local_table))
    sizes = {name: arms.n for name, arms in study.arms.items()}
    return Growth(tuple(table.points()), sizes, tuple(rounds), tuple(phases))


def _kept(path: Path, study: Study, kind: type[_Read], read: Callable[[], _Read]) -> _Read:
    """What was read from a study's ledgers before, if it was this very study and version; otherwise read it now."""
    mark = study_mark(study)
    with suppress(FileNotFoundError, msgspec.DecodeError):  # cut short, or of another form: read again
        found, kept = msgspec.json.decode(path.read_bytes(), type=tuple[str, kind])  # type: ignore[valid-type]
        if found == mark:
            return kept
    made = read()
    write_whole(path, msgspec.json.encode((mark, made)))
    return made


def _rounds(study: Study, table: StudyTable) -> list[RoundCost]:
    iid = [row for row in table.rows if row.algorithm == CollabTopIID.name]
    return [cost for row in iid for cost in round_costs(run_again(study, row))]


def round_costs(result: Result) -> list[RoundCost]:
    """Words of each round of a run of collab-top-iid, by the paper's step.

    >>> import collabtop as ct
    >>> arms = ct.datasets.uniform_means(64, seed=1)
    >>> result = ct.identify(arms, m=1, agents=2, horizon=3_000, algorithm="collab-top-iid", seed=1)
    >>> first = round_costs(result)[0]
    >>> first.phase, first.live, 0 < first.searches < first.words
    ('local', 64, True)
    """
    costs = []
    for one in result.rounds:
        entries = [entry for entry in result.ledger.entries if entry.round == one.round and entry.kind not in _ONCE]
        costs.append(
            RoundCost(
                n=result.n,
                agents=result.agents,
                m=result.m,
                horizon=result.horizon,
                seed=result.seed,
                round=one.round,
                phase=one.phase,
                live=one.live,
                words=sum(entry.words for entry in entries),
                searches=sum(entry.words for entry in entries if entry.kind in _SEARCH),
            )
        )
    return costs


def _phases(study: Study, table: StudyTable) -> list[LocalRuns]:
    (arms,) = study.arms.values()
    found = []
    for k in sorted({row.agents for row in table.rows}):
        rows = [row for row in table.rows if row.agents == k]
        local = sum(run_again(study, row).rounds[0].phase == "local" for row in rows)
        found.append(LocalRuns(arms.n, k, len(rows), local))
    return found
