"""A study's runs as tasks on a Ray cluster; a run depends only on its seed, so a lost task is simply run again."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from typing import Any

from collabtop.errors import CollabtopError, InputError, StudyError
from collabtop.studies.chunks import Chunk, FinishedChunks, run_chunk
from collabtop.studies.grid import Study
from collabtop.teams.ray.cluster import Cluster, add_folders, joined_cluster, module_folders, reason

_RETRIES = 3
"""How often a task is run again when its process or node is lost."""


@contextmanager
def on_ray(
    study: Study, chunks: Sequence[Chunk], *, address: str | None, at_once: int | None
) -> Iterator[FinishedChunks]:
    """Run the chunks on a cluster, at most `at_once` at a time, or as many as it has CPUs."""
    with joined_cluster(address, at_once or 1) as cluster:
        cpus = int(cluster.ray.cluster_resources().get("CPU", 1))
        # Twice the CPUs, so that the next task is waiting when one is done.
        with closing(_finished(cluster, study, list(chunks), at_once or 2 * cpus)) as finished:
            yield finished


def _finished(
    cluster: Cluster, study: Study, left: list[Chunk], at_once: int
) -> Generator[tuple[Chunk, bytes], None, None]:
    ray = cluster.ray
    task = ray.remote(_work).options(num_cpus=1, max_retries=_RETRIES)
    folders = ray.put(module_folders())
    try:
        sent = ray.put(study)
    except TypeError as error:
        cause = str(error.__cause__ or error).strip().splitlines()[0]
        raise InputError(f"the study cannot be sent to Ray ({cause})") from None
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
        for ref in running:  # the study was stopped: results of running tasks are not wanted any more
            ray.cancel(ref, force=True)


def _work(folders: list[str], boxed: list[Any], chunk: Chunk) -> bytes:
    """The task. The study is wrapped in a list: its modules can be imported only after the folders were added."""
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
            f"a task of the study was lost on Ray and {_RETRIES} retries failed ({type(error).__name__}); run it again "
            "to resume it"
        ) from None
