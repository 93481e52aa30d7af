"""The runs of a study in chunks: what one process, here or on a cluster, makes at a time."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import msgspec

from collabtop.problem import is_best
from collabtop.runs.identification import identify
from collabtop.runs.result import Result
from collabtop.studies.grid import Point, Study
from collabtop.studies.table import Row, options_text


class Chunk(msgspec.Struct, frozen=True):
    """Some runs of one point, and one record of the journal."""

    point: int
    runs: tuple[int, ...]


FinishedChunks = Iterator[tuple[Chunk, list[Row]]]
"""Chunks as they are finished, in any order."""

ChunkRunner = Callable[[Study, Sequence[Chunk]], AbstractContextManager[FinishedChunks]]
"""Runs the chunks of a study in processes or on a cluster, which end with the context."""


def run_chunk(study: Study, chunk: Chunk) -> list[Row]:
    """Make the runs of a chunk."""
    point = study.points[chunk.point]
    return [_run_once(study, point, run) for run in chunk.runs]


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
        arms=point.arms,
        algorithm=result.algorithm,
        options=options_text(result.options),
        m=point.m,
        agents=point.agents,
        horizon=point.horizon,
        run=run,
        seed=seed,
        correct=is_best(arms.means, result.top_indices),
        time=result.time,
        words=result.words,
        bits=result.bits,
        round_trips=result.round_trips,
        pulls=result.pulls,
    )
