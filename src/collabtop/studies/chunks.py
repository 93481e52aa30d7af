"""The runs of a study in chunks: what one process, here or on a cluster, makes at a time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import msgspec
import numpy as np

from collabtop.arms import SimulatedArms
from collabtop.problem import Problem, is_best, right_answers
from collabtop.runs.identification import identify
from collabtop.runs.result import Result
from collabtop.studies.grid import Point, Study
from collabtop.studies.table import COSTS, Row

# Large runs form small chunks and batches, so that Ctrl-C never waits for many of them.
_CHUNK, _CHUNK_SIZE = 20, 2_000_000  # runs; runs times arms times agents
_BATCHED_CHUNK = 500  # runs
# A batch is simulated as a whole. The first ones are small and end at usual numbers of runs, so few runs take little
# time and nothing is simulated in vain; later ones are large, so that they make good use of tables.
_BATCH_ENDS, _BATCH_SIZE = (10, 25, 50, 100, 200, 500, 1_000), 600_000  # runs; runs times means
# In a study with both engines: how many runs are made message by message, and how exact their mean costs have to be.
_FEWEST, _MOST, _EXACT = 5, 100, 0.04

_T = TypeVar("_T")
_NO_COSTS: Any = dict.fromkeys((*COSTS, "pulls"))


class Chunk(msgspec.Struct, frozen=True):
    """Some runs of one point, and one record of the journal."""

    point: int
    runs: tuple[int, ...]


FinishedChunks = Iterator[tuple[Chunk, bytes]]
"""Chunks as they are finished, in any order, with their rows as in the journal: Python's pickle takes far longer."""

ChunkRunner = Callable[[Study, Sequence[Chunk]], AbstractContextManager[FinishedChunks]]
"""Runs the chunks of a study in processes or on a cluster, which end with the context."""


def chunk_runs(point: Point, arms: SimulatedArms) -> Iterator[range]:
    """The runs of each chunk of a point, which are complete batches. A resumed study has the same chunks."""
    start = 0
    while start < point.runs:
        if point.engine == "messages":
            end = start + min(_CHUNK, max(1, _CHUNK_SIZE // (arms.n * point.agents)))
        else:
            most = min(_BATCHED_CHUNK, _CHUNK_SIZE // arms.n)
            end = batch_end(start, arms.means.size)
            while end - start < most and batch_end(end, arms.means.size) - start <= most:
                end = batch_end(end, arms.means.size)
        yield range(start, min(end, point.runs))
        start = end


def batch_end(start: int, means: int) -> int:
    """The end of the batch that starts with this run, with so many means of arms.

    >>> batch_end(0, means=588), batch_end(10, means=588), batch_end(50_000, means=588)
    (10, 25, 51000)
    """
    last = _BATCH_ENDS[-1]
    end = next((end for end in _BATCH_ENDS if end > start), start - start % last + last)
    return min(end, start + max(1, _BATCH_SIZE // means))


def run_chunk(study: Study, chunk: Chunk) -> bytes:
    """Make the runs of a chunk, and encode their rows."""
    return msgspec.msgpack.encode(_chunk_rows(study, chunk))


def _chunk_rows(study: Study, chunk: Chunk) -> list[Row]:
    point = study.points[chunk.point]
    rows: list[Row] = []
    for run in chunk.runs:
        if point.engine == "batched" or (point.engine == "auto" and (chunk.runs[0] > 0 or _costs_are_known(rows))):
            break
        rows.append(_run_once(study, point, run))
    return rows + _run_batches(study, point, chunk.runs, len(rows))


def _costs_are_known(rows: list[Row]) -> bool:
    """Whether the standard errors of all mean costs are small enough, or so many runs were made already."""
    if not _FEWEST <= len(rows) < _MOST:
        return len(rows) >= _MOST
    costs = np.array([[getattr(row, column) for column in COSTS] for row in rows], np.float64)
    errors = costs.std(axis=0, ddof=1) / np.sqrt(len(rows))
    return bool((errors <= _EXACT * costs.mean(axis=0)).all())


def identify_at(study: Study, point: Point, seed: int) -> Result:
    """Make one run of a point."""
    return identify(
        study.arms[point.arms],
        point.m,
        agents=point.agents,
        horizon=point.horizon,
        algorithm=point.algorithm,
        seed=seed,
    )


def observe_chunk(study: Study, chunk: Chunk, of: Callable[[Result], _T]) -> list[tuple[Row, _T]]:
    """Make the runs of a chunk message by message: the row of each, and `of` its result."""
    point = study.points[chunk.point]
    return [_observe_once(study, point, run, of) for run in chunk.runs]


def _run_once(study: Study, point: Point, run: int) -> Row:
    row, _ = _observe_once(study, point, run, lambda result: None)
    return row


def _observe_once(study: Study, point: Point, run: int, of: Callable[[Result], _T]) -> tuple[Row, _T]:
    arms, seed = study.arms[point.arms], point.run_seed(run)
    result = identify_at(study, point, seed)
    row = Row(
        *point.setting,
        run=run,
        seed=seed,
        correct=is_best(arms.values, result.top_indices),
        time=result.time,
        words=result.words,
        bits=result.bits,
        round_trips=result.round_trips,
        pulls=result.pulls,
    )
    return row, of(result)


def _run_batches(study: Study, point: Point, runs: Sequence[int], made: int) -> list[Row]:
    """Simulate the answers of the runs of a chunk, except for those that are `made`.

    Batches are always complete, so a run does not depend on their number.
    """
    arms, setting = study.arms[point.arms], point.setting
    rows: list[Row] = []
    problem = Problem(arms.n, point.m, point.agents, point.horizon, weights=arms.weights)
    left, end = runs[made:], runs[0]
    while left:
        start, end = end, batch_end(end, arms.means.size)
        if left[0] >= end:
            continue
        seed = point.batch_seed(start)
        answers = point.algorithm.answers(problem, arms.means, end - start, np.random.default_rng(seed))
        right = right_answers(arms.values, answers).tolist()
        members, left = left[: end - left[0]], left[end - left[0] :]
        rows += [
            Row(*setting, run=run, seed=seed, correct=right[run - start], **_NO_COSTS, engine="batched")
            for run in members
        ]
    return rows
