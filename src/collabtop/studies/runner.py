"""Makes a study's runs: on all cores, with a journal, so that nothing is made twice and nothing is lost."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from multiprocessing.context import BaseContext
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import collabtop
from collabtop.errors import FileError, InputError, StudyError, reason
from collabtop.runs.result import Result
from collabtop.studies.chunks import Chunk, Made, Makers, identify_at, run_chunk
from collabtop.studies.grid import Study
from collabtop.studies.journal import Journal
from collabtop.studies.on_ray import on_ray
from collabtop.studies.table import Row, StudyTable, options_text, points_csv, write_whole
from collabtop.teams.ray.cluster import require_ray
from collabtop.validation import whole_number

_CHUNK = 20
_CHUNK_SIZE = 2_000_000  # arms times agents: large runs go one by one, so that Ctrl-C never waits for twenty


def run_study(
    study: Study,
    out: Path | None,
    *,
    jobs: int | None,
    progress: bool,
    team: str = "local",
    address: str | None = None,
) -> StudyTable:
    """Make all runs of a study that its journal does not hold yet."""
    makers = _makers(team, jobs, address)
    try:
        return _in_memory(study, makers, progress) if out is None else _in_folder(study, out, makers, progress)
    except BrokenProcessPool:
        raise StudyError("a process of the study was killed (out of memory?): run it again, it resumes") from None


def _makers(team: str, jobs: int | None, address: str | None) -> Makers:
    if team == "ray":
        require_ray()
        return partial(on_ray, address=address, at_once=None if jobs is None else process_count(jobs))
    if team != "local":
        raise InputError(f"team is {team!r}, but a study runs on 'local' processes or on 'ray'")
    if address is not None:
        raise InputError("address goes with team 'ray': it names the cluster to join")
    return partial(_in_processes, jobs=process_count(jobs))


def process_count(jobs: int | None) -> int:
    """How many processes to use: as many as asked for, or one a core that this process may use."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return whole_number("jobs", jobs, least=1)


def process_context() -> BaseContext:
    """How processes are started: by a fork where that is safe, since it takes no time."""
    return multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


def _in_memory(study: Study, makers: Makers, progress: bool) -> StudyTable:
    with closing(_make(study, _missing(study, {}), makers, progress)) as made:
        return StudyTable(row for _, rows in made for row in rows)


def _in_folder(study: Study, out: Path, makers: Makers, progress: bool) -> StudyTable:
    try:
        out.mkdir(parents=True, exist_ok=True)
        finished = _finished(study, out)
    except OSError as error:
        raise FileError(f"{out}: {reason(error)}") from None
    if finished is not None:
        return finished
    try:
        return _with_journal(study, out, makers, progress)
    except OSError as error:
        raise StudyError(f"{out}: {reason(error)}; run it again when that is mended, it resumes") from None


def _finished(study: Study, out: Path) -> StudyTable | None:
    """The rows that are there already, if this very study was run into this folder before."""
    rows = out / "rows.csv"
    if not rows.exists():
        return None
    _check_mark(study, out)
    table, wanted = StudyTable.from_csv(rows), sum(point.runs for point in study.points)
    if len(table) != wanted:
        raise FileError(f"{rows} has {len(table):,} rows, but the study has {wanted:,} runs: remove the folder")
    (out / "journal").unlink(missing_ok=True)  # a kill may have come between the two
    return table


def study_mark(study: Study) -> str:
    """What names a study's rows: two versions of collabtop need not make the same runs of one study."""
    return f"{study.fingerprint} by collabtop {collabtop.__version__}"


def _check_mark(study: Study, out: Path) -> None:
    mark = out / "study.txt"
    found = mark.read_text().strip() if mark.exists() else ""
    if found == study_mark(study):
        return
    fingerprint, _, version = found.partition(" by collabtop ")
    if fingerprint != study.fingerprint:
        raise FileError(f"{out} holds the results of another study: choose another folder, or remove that one")
    raise FileError(
        f"{out} holds this study's results as {f'collabtop {version}' if version else 'an older version'} made them, "
        f"and this is {collabtop.__version__}: choose another folder, or remove that one"
    )


def _with_journal(study: Study, out: Path, makers: Makers, progress: bool) -> StudyTable:
    numbers = {point.key: number for number, point in enumerate(study.points)}
    done: dict[tuple[int, int], Row] = {}
    with Journal(out / "journal", study_mark(study)) as journal:
        for record in journal.records:
            for row in msgspec.convert(record["rows"], list[Row]):
                done[numbers[record["point"]], row.run] = row
        with closing(_make(study, _missing(study, done), makers, progress)) as made:
            for chunk, rows in made:
                key = study.points[chunk.point].key
                journal.append({"point": key, "rows": [msgspec.to_builtins(row) for row in rows]})
                done.update({(chunk.point, row.run): row for row in rows})
    table = StudyTable(done.values())
    write_whole(out / "study.txt", f"{study_mark(study)}\n".encode())
    write_whole(out / "points.csv", points_csv(table.points()))
    table.to_csv(out / "rows.csv")
    (out / "journal").unlink()
    return table


def _missing(study: Study, done: dict[tuple[int, int], Row]) -> list[Chunk]:
    chunks = []
    for number, point in enumerate(study.points):
        runs = [run for run in range(point.runs) if (number, run) not in done]
        size = min(_CHUNK, max(1, _CHUNK_SIZE // (study.arms[point.arms].n * point.agents)))
        chunks += [Chunk(number, tuple(runs[i : i + size])) for i in range(0, len(runs), size)]
    return chunks


def _make(study: Study, chunks: Sequence[Chunk], makers: Makers, progress: bool) -> Generator[tuple[Chunk, list[Row]]]:
    total = sum(point.runs for point in study.points)
    left = sum(len(chunk.runs) for chunk in chunks)
    with ExitStack() as stack:
        # The processes come first: a fork is safe only while no bar is drawn by a thread.
        results = stack.enter_context(makers(study, chunks))
        bar = stack.enter_context(_bar(progress))
        task = bar.add_task("runs", total=total, completed=total - left)
        for chunk, rows in results:
            yield chunk, rows
            bar.advance(task, len(rows))


@contextmanager
def _in_processes(study: Study, chunks: Sequence[Chunk], jobs: int) -> Iterator[Made]:
    jobs = min(jobs, max(1, len(chunks)))
    if jobs == 1:
        yield ((chunk, run_chunk(study, chunk)) for chunk in chunks)
        return
    pool = ProcessPoolExecutor(jobs, mp_context=process_context(), initializer=_begin_worker, initargs=(study,))
    try:
        futures: dict[Future[list[Row]], Chunk] = {pool.submit(_work, chunk): chunk for chunk in chunks}
        yield ((futures[future], future.result()) for future in as_completed(futures))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_study: Study


def _begin_worker(study: Study) -> None:
    global _study  # a process of the pool has one study for its whole life
    _study = study
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(chunk: Chunk) -> list[Row]:
    return run_chunk(_study, chunk)


def run_again(study: Study, row: Row) -> Result:
    """The run behind a row once more, for what the row does not say."""
    (point, *_) = (
        point
        for point in study.points
        if (
            point.arms,
            point.algorithm.title,
            options_text(point.algorithm.options),
            point.m,
            point.agents,
            point.horizon,
        )
        == (row.arms, row.algorithm, row.options, row.m, row.agents, row.horizon)
    )
    return identify_at(study, point, row.seed)


def _bar(shown: bool) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), disable=not shown)
