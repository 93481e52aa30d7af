"""The runs of a study in chunks: what one process, here or on a cluster, makes at a time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import Any

import msgspec
import numpy as np

from collabtop.problem import Problem, is_best, right_answers
from collabtop.runs.identification import identify
from collabtop.runs.result import Result
from collabtop.studies.grid import Point, Study
from collabtop.studies.table import COSTS, Row

# Large runs form small chunks and batches, so that Ctrl-C never waits for many of them, and arrays stay in the cache.
_CHUNK, _CHUNK_SIZE = 20, 2_000_000  # runs; runs times arms times agents
_BATCH, _BATCH_SIZE = 100, 60_000  # runs; runs times arms
_BATCHES = 5  # per chunk
# In a study with both engines: how many runs are made message by message, and how exact their mean costs have to be.
_FEWEST, _MOST, _EXACT = 5, 100, 0.02

_NO_COSTS: Any = dict.fromkeys((*COSTS, "pulls"))


class Chunk(msgspec.Struct, frozen=True):
    """Some runs of one point, and one record of the journal."""

    point: int
    runs: tuple[int, ...]


FinishedChunks = Iterator[tuple[Chunk, list[Row]]]
"""Chunks as they are finished, in any order."""

ChunkRunner = Callable[[Study, Sequence[Chunk]], AbstractContextManager[FinishedChunks]]
"""Runs the chunks of a study in processes or on a cluster, which end with the context."""


def chunk_size(point: Point, n: int) -> int:
    """Runs per chunk, at a point with n arms. It depends on nothing else, so a resumed study has the same chunks."""
    if point.engine == "messages":
        return min(_CHUNK, max(1, _CHUNK_SIZE // (n * point.agents)))
    return batch_size(n) * min(_BATCHES, max(1, _CHUNK_SIZE // n))


def batch_size(n: int) -> int:
    """Runs per batch, with n arms."""
    return min(_BATCH, max(1, _BATCH_SIZE // n))


def run_chunk(study: Study, chunk: Chunk) -> list[Row]:
    """Make the runs of a chunk."""
    point = study.points[chunk.point]
    rows: list[Row] = []
    for run in chunk.runs:
        if point.engine == "batched" or (point.engine == "auto" and (chunk.runs[0] > 0 or _costs_are_known(rows))):
            break
        rows.append(_run_once(study, point, run))
    return rows + _run_batches(study, point, chunk.runs[len(rows) :])


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


def _run_once(study: Study, point: Point, run: int) -> Row:
    arms, seed = study.arms[point.arms], point.run_seed(run)
    result = identify_at(study, point, seed)
    return Row(
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


def _run_batches(study: Study, point: Point, runs: Sequence[int]) -> list[Row]:
    """Simulate the answers of these runs; batches are always complete, so a run does not depend on their number."""
    arms, setting = study.arms[point.arms], point.setting
    rows: list[Row] = []
    problem, size = Problem(arms.n, point.m, point.agents, point.horizon, weights=arms.weights), batch_size(arms.n)
    for batch, members in groupby(runs, lambda run: run // size):
        seed = point.batch_seed(batch)
        answers = point.algorithm.answers(problem, arms.means, size, np.random.default_rng(seed))
        right = right_answers(arms.values, answers).tolist()
        rows += [
            Row(*setting, run=run, seed=seed, correct=right[run % size], **_NO_COSTS, engine="batched")
            for run in members
        ]
    return rows
