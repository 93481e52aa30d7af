"""A study's runs as tasks on a Ray cluster: a run depends on its seed alone, so a lost task is simply made again."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from typing import Any

from collabtop.errors import CollabtopError, InputError, StudyError
from collabtop.studies.chunks import Chunk, Made, run_chunk
from collabtop.studies.grid import Study
from collabtop.studies.table import Row
from collabtop.teams.ray.cluster import Cluster, add_folders, joined_cluster, module_folders, reason

_RETRIES = 3
"""How often a task is made again when its process or node is lost."""


@contextmanager
def on_ray(study: Study, chunks: Sequence[Chunk], *, address: str | None, at_once: int | None) -> Iterator[Made]:
    """Spread the chunks over a cluster, at most so many at once, or as many as it has CPUs."""
    with joined_cluster(address, at_once or 1) as cluster:
        cpus = int(cluster.ray.cluster_resources().get("CPU", 1))
        # Twice the CPUs, so that a task is waiting when one is done.
        with closing(_made(cluster, study, list(chunks), at_once or 2 * cpus)) as made:
            yield made


def _made(
    cluster: Cluster, study: Study, left: list[Chunk], at_once: int
) -> Generator[tuple[Chunk, list[Row]], None, None]:
    ray = cluster.ray
    task = ray.remote(_work).options(num_cpus=1, max_retries=_RETRIES)
    folders = ray.put(module_folders())
    try:
        sent = ray.put(study)
    except TypeError as error:
        said = str(error.__cause__ or error).strip().splitlines()[0]
        raise InputError(f"the study cannot be sent to Ray ({said})") from None
    running: dict[Any, Chunk] = {}
    left.reverse()
    try:
        while left or running:
            while left and len(running) < at_once:
                chunk = left.pop()
                running[task.remote(folders, [sent], chunk)] = chunk
            (ready,), _ = ray.wait(list(running), num_returns=1)
            yield running.pop(ready), _rows(ray, ready)
    finally:
        for ref in running:  # somebody wants to stop: what is under way is nobody's any more
            ray.cancel(ref, force=True)


def _work(folders: list[str], boxed: list[Any], chunk: Chunk) -> list[Row]:
    """The task. The study comes in a box, since its modules may be found only when the folders are known."""
    add_folders(folders)
    study: Study = import_module("ray").get(boxed[0])
    return run_chunk(study, chunk)


def _rows(ray: Any, ready: Any) -> Any:
    try:
        return ray.get(ready)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, CollabtopError):
            raise error.cause from None
        raise StudyError(f"a run failed on Ray: {reason(error)}") from error
    except ray.exceptions.RayError as error:
        raise StudyError(
            f"a task of the study was lost on Ray, {_RETRIES} times made again ({type(error).__name__}): run it "
            "again, it resumes"
        ) from None
