"""The study of how words grow with n and K (T2), and the words of a run by step."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.arms import SimulatedArms
from collabtop.datasets import uniform_means
from collabtop.problem import Problem
from collabtop.reproduction.evidence import Growth, LocalRuns, RoundCost
from collabtop.reproduction.experiments import combined
from collabtop.runs.result import Result
from collabtop.studies.grid import Study
from collabtop.studies.runner import observe_runs, study_mark
from collabtop.studies.table import Row, StudyTable, write_whole

_POWERS, _DEEP_POWERS = (10, 12, 14, 16), (12, 14, 16, 18, 20)
_AGENT_COUNTS = (2, 10, 50)
_LOCAL_AGENT_COUNTS = (10, 20, 30, 40, 50)
_IID_RUNS, _LOCAL_RUNS = 6, 40
# Multiples of the smallest horizon: with few pulls per arm most arms tie, with many pulls hardly any do.
HORIZON_FACTORS = (4, 4_096)

ObservedRun = tuple[Row, list[RoundCost]]
"""The row of a run, and the costs of its rounds, which are read from its ledger."""
ObserveStudy = Callable[[str, Study], list[ObservedRun]]
"""Makes the runs of a study under a name, or loads them if they were made before."""

_SEARCH = ("Sample", "Values", "Narrow", "Window")
# Sent once per run, before the first round or after the last local one: not part of a step of a round.
_ONCE = ("Deal", "Held", "TimeUsed", "HandOver", "Hand")


def growth_studies(
    *, seed: int, deep: bool = False, powers: Sequence[int] = (), agent_counts: Sequence[int] = _AGENT_COUNTS
) -> list[Study]:
    """Both algorithms of the paper for n = 2^10 to 2^16, or 2^12 to 2^20 if `deep`, and K up to 50: a study per n."""
    return [_at_size(power, agent_counts, seed) for power in powers or (_DEEP_POWERS if deep else _POWERS)]


def _at_size(power: int, agent_counts: Sequence[int], seed: int) -> Study:
    n, iid, noniid = 2**power, CollabTopIID(), CollabTopNonIID()
    arms = {f"n = 2^{power}": uniform_means(n, seed=power)}
    studies = []
    for k in agent_counts:
        studies += [_study(arms, iid, n, m, k, _IID_RUNS, seed, f) for m in (1, 64) for f in HORIZON_FACTORS]
        # Its words are the same in every run, so one run is enough.
        studies.append(_study(arms, noniid, n, 1, k, 1, seed, HORIZON_FACTORS[0]))
    return combined(studies)


def _study(
    arms: Mapping[str, SimulatedArms], algorithm: Algorithm, n: int, m: int, k: int, runs: int, seed: int, factor: int
) -> Study:
    horizon = factor * algorithm.smallest_horizon(Problem(n, m, k, 1))
    return Study(arms=arms, algorithms=algorithm, m=m, agents=k, horizon=horizon, runs=runs, seed=seed)


def local_study(arms: SimulatedArms, *, seed: int) -> Study:
    """How often the local phase runs on the paper's instance, by K."""
    return Study(
        arms={"movies": arms},
        algorithms="collab-top-iid",
        agents=_LOCAL_AGENT_COUNTS,
        horizon=200_000,
        runs=_LOCAL_RUNS,
        seed=seed,
    )


def growth_evidence(studies: Sequence[Study], local: Study, observe: ObserveStudy) -> Growth:
    """The words by round and step, from the ledgers of the IID runs, and how often the local phase runs."""
    rows: list[Row] = []
    rounds: list[RoundCost] = []
    for study in studies:
        for row, costs in observe("growth", study):
            rows.append(row)
            rounds += costs if row.algorithm == CollabTopIID.name else []
    sizes = {name: arms.n for study in studies for name, arms in study.arms.items()}
    return Growth(tuple(StudyTable(rows).points()), sizes, tuple(rounds), tuple(_phases(observe("local", local))))


def observed_costs(path: Path, study: Study, *, jobs: int | None = None) -> list[ObservedRun]:
    """The runs of a study with the costs of their rounds: those in the file, if they are of this study and version.

    Otherwise the runs are made, and stored in the file.
    """
    mark = study_mark(study)
    with suppress(FileNotFoundError, msgspec.DecodeError):  # truncated or in a different form: make them again
        stored_mark, stored = msgspec.json.decode(path.read_bytes(), type=tuple[str, list[ObservedRun]])
        if stored_mark == mark:
            return stored
    observed = sorted(observe_runs(study, round_costs, jobs=jobs), key=lambda run: run[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, msgspec.json.encode((mark, observed)))
    return observed


def round_costs(result: Result) -> list[RoundCost]:
    """The words of each round of a run of collab-top-iid, by step of the paper.

    >>> import collabtop as ct
    >>> arms = ct.datasets.uniform_means(64, seed=1)
    >>> result = ct.identify(arms, m=1, agents=2, horizon=3_000, algorithm="collab-top-iid", seed=1)
    >>> first = round_costs(result)[0]
    >>> first.phase, first.live, 0 < first.searches < first.words
    ('local', 64, True)
    """
    costs = []
    for summary in result.rounds:
        entries = [e for e in result.ledger.entries if e.round == summary.round and e.kind not in _ONCE]
        costs.append(
            RoundCost(
                n=result.n,
                agents=result.agents,
                m=result.m,
                horizon=result.horizon,
                seed=result.seed,
                round=summary.round,
                phase=summary.phase,
                live=summary.live,
                words=sum(entry.words for entry in entries),
                searches=sum(entry.words for entry in entries if entry.kind in _SEARCH),
            )
        )
    return costs


def _phases(observed: Sequence[ObservedRun]) -> list[LocalRuns]:
    phases = []
    for k in sorted({row.agents for row, _ in observed}):
        runs = [rounds for row, rounds in observed if row.agents == k]
        local = sum(rounds[0].phase == "local" for rounds in runs)
        phases.append(LocalRuns(runs[0][0].n, k, len(runs), local))
    return phases
