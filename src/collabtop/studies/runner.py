"""Makes the runs of a study on all cores, with a journal, so that no run is lost or made twice."""

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from collabtop._version import __version__
from collabtop.errors import CheckpointError, FileError, InputError, StudyError, reason
from collabtop.runlog.file import RunLog, open_log
from collabtop.runlog.format import Record, StudyHeader, StudyRows
from collabtop.runs.result import Result
from collabtop.studies.chunks import (
    Chunk,
    ChunkRunner,
    FinishedChunks,
    chunk_runs,
    identify_at,
    observe_chunk,
    run_chunk,
)
from collabtop.studies.grid import Study
from collabtop.studies.on_ray import on_ray
from collabtop.studies.table import Row, StudyTable, points_csv, write_whole
from collabtop.teams.ray.cluster import require_ray
from collabtop.validation import whole_number, wrong_value

_T = TypeVar("_T")
_decode = msgspec.msgpack.Decoder(list[Row]).decode


def run_study(
    study: Study,
    out: Path | None,
    *,
    jobs: int | None,
    progress: bool,
    team: str = "local",
    address: str | None = None,
) -> StudyTable:
    """Make all runs of a study that are not in its journal yet."""
    runner = _runner(team, jobs, address)
    try:
        return _in_memory(study, runner, progress) if out is None else _in_folder(study, out, runner, progress)
    except BrokenProcessPool:
        raise StudyError("a process of the study was killed (out of memory?); run it again to resume it") from None


def _runner(team: str, jobs: int | None, address: str | None) -> ChunkRunner:
    if team == "ray":
        require_ray()
        return partial(on_ray, address=address, at_once=None if jobs is None else process_count(jobs))
    if team != "local":
        raise wrong_value("team", team, "'local' or 'ray' is needed for a study")
    if address is not None:
        raise InputError("address only applies with team 'ray': it is the cluster to join", argument="address")
    return partial(_in_processes, jobs=process_count(jobs))


def process_count(jobs: int | None) -> int:
    """The number of processes to use: as many as requested, or one per core that this process may use."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return whole_number("jobs", jobs, least=1)


def process_pool(processes: int, begin: Callable[..., None] | None = None, *arguments: object) -> ProcessPoolExecutor:
    """Worker processes, each of which first calls `begin`; they are forked on Linux, which is the fastest way."""
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    return ProcessPoolExecutor(processes, mp_context=context, initializer=partial(_begin_process, begin, *arguments))


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Let Ctrl-C wait while processes start: one that does not ignore it yet would print a traceback."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_process(begin: Callable[..., None] | None, *arguments: object) -> None:
    gc.freeze()  # the finalizers of what the parent left to be collected may wait for threads that are not here
    if begin is not None:
        begin(*arguments)


def _in_memory(study: Study, runner: ChunkRunner, progress: bool) -> StudyTable:
    with closing(_run_chunks(study, _missing(study, {}), runner, progress)) as chunks:
        return StudyTable(row for _, rows in chunks for row in _decode(rows))


def _in_folder(study: Study, out: Path, runner: ChunkRunner, progress: bool) -> StudyTable:
    try:
        out.mkdir(parents=True, exist_ok=True)
        finished = _finished(study, out)
    except OSError as error:
        raise FileError(f"{out}: {reason(error)}") from None
    if finished is not None:
        return finished
    try:
        return _with_journal(study, out, runner, progress)
    except CheckpointError as error:
        raise StudyError(str(error)) from None
    except OSError as error:
        raise StudyError(f"{out}: {reason(error)}; fix this and run the study again to resume it") from None


def _finished(study: Study, out: Path) -> StudyTable | None:
    """The rows of this study if the folder holds them already."""
    rows = out / "rows.csv"
    if not rows.exists():
        return None
    _check_mark(study, out)
    table, wanted = StudyTable.from_csv(rows), sum(point.runs for point in study.points)
    if len(table) != wanted:
        raise FileError(f"{rows} has {len(table):,} rows, but the study has {wanted:,} runs: delete the folder")
    (out / "journal").unlink(missing_ok=True)  # a kill may have left it behind
    return table


def study_mark(study: Study) -> str:
    """A text that identifies a study's rows; different versions of collabtop may make different runs of a study."""
    return f"{study.fingerprint} by collabtop {__version__}"


def _check_mark(study: Study, out: Path) -> None:
    path = out / "study.txt"
    mark = path.read_text().strip() if path.exists() else ""
    if mark == study_mark(study):
        return
    fingerprint, _, version = mark.partition(" by collabtop ")
    if fingerprint != study.fingerprint:
        raise FileError(f"{out} holds the results of a different study: use a different folder, or delete this one")
    raise FileError(
        f"{out} holds this study's results from {f'collabtop {version}' if version else 'an older version'}, but this "
        f"is {__version__}: use a different folder, or delete this one"
    )


def _with_journal(study: Study, out: Path, runner: ChunkRunner, progress: bool) -> StudyTable:
    numbers = {point.key: number for number, point in enumerate(study.points)}
    done: dict[tuple[int, int], Row] = {}
    with closing(_journal(out / "journal", study_mark(study))) as journal:
        for record in journal.records:
            if isinstance(record, StudyRows):
                for row in _logged_rows(record, numbers, out / "journal"):
                    done[numbers[record.point], row.run] = row
        with closing(_run_chunks(study, _missing(study, done), runner, progress)) as chunks:
            for chunk, rows in chunks:
                key = study.points[chunk.point].key
                journal.append(StudyRows(key, rows), sync=True)
                done.update({(chunk.point, row.run): row for row in _decode(rows)})
    table = StudyTable(done.values())
    write_whole(out / "study.txt", f"{study_mark(study)}\n".encode())
    write_whole(out / "points.csv", points_csv(table.points()))
    table.to_csv(out / "rows.csv")
    (out / "journal").unlink()
    return table


def _logged_rows(record: StudyRows, numbers: Mapping[str, int], path: Path) -> list[Row]:
    try:
        if record.point in numbers:
            return _decode(record.rows)
        error = "no such point"
    except (msgspec.DecodeError, RecursionError) as wrong:
        error = str(wrong)
    raise FileError(f"{path} is damaged: the rows of point {record.point!r:.80} cannot be read ({error}); delete it")


def _journal(path: Path, mark: str) -> RunLog:
    """The journal of a study; that of a different one is refused, and stays as it is."""

    def check(logged: Record) -> None:
        if logged != StudyHeader(mark):
            different = "belongs to a different study or version of collabtop"
            raise FileError(f"{path} {different}: use a different folder, or delete this one")

    return open_log(path, StudyHeader(mark), check, name="study journal", advice="run the study again to resume it")


def _missing(study: Study, done: dict[tuple[int, int], Row]) -> list[Chunk]:
    chunks = []
    for number, point in enumerate(study.points):
        for runs in chunk_runs(point, study.arms[point.arms]):
            if any((number, run) not in done for run in runs):
                chunks.append(Chunk(number, tuple(runs)))
    return chunks


def _run_chunks(
    study: Study, chunks: Sequence[Chunk], runner: ChunkRunner, progress: bool
) -> Generator[tuple[Chunk, bytes]]:
    total = sum(point.runs for point in study.points)
    left = sum(len(chunk.runs) for chunk in chunks)
    with ExitStack() as stack:
        # The processes come first: a fork is safe only while no thread draws a progress bar.
        results = stack.enter_context(runner(study, chunks))
        bar = stack.enter_context(_bar(progress))
        task = bar.add_task("runs", total=total, completed=total - left)
        for chunk, rows in results:
            yield chunk, rows
            bar.advance(task, len(chunk.runs))


@contextmanager
def _in_processes(study: Study, chunks: Sequence[Chunk], jobs: int) -> Iterator[FinishedChunks]:
    jobs = min(jobs, max(1, len(chunks)))
    if jobs == 1:
        yield ((chunk, run_chunk(study, chunk)) for chunk in chunks)
        return
    pool = process_pool(jobs, _begin_worker, study)
    try:
        with _interrupted_later():
            futures: dict[Future[bytes], Chunk] = {pool.submit(_work, chunk): chunk for chunk in chunks}
        yield ((futures[future], future.result()) for future in as_completed(futures))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_study: Study


def _begin_worker(study: Study) -> None:
    global _study  # a process of the pool works on one study only
    _study = study
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(chunk: Chunk) -> bytes:
    return run_chunk(_study, chunk)


def run_again(study: Study, row: Row) -> Result:
    """Make the run of a row again, for what the row does not hold; it must have been made message by message."""
    if row.engine != "messages":
        raise InputError(f"run {row.run} of {row.algorithm} is batched, so it cannot be repeated by itself")
    point = next(point for point in study.points if point.setting == row.setting)
    return identify_at(study, point, row.seed)


def observe_runs(study: Study, of: Callable[[Result], _T], *, jobs: int | None = None) -> list[tuple[Row, _T]]:
    """Make all runs of a study message by message: the row of each, and `of` its result, for what rows do not hold."""
    chunks = _missing(study, {})[::-1]  # the last points have the largest runs: begin with these
    jobs = min(process_count(jobs), max(1, len(chunks)))
    if jobs == 1:
        return [observed for chunk in chunks for observed in observe_chunk(study, chunk, of)]
    pool = process_pool(jobs, _begin_worker, study)
    try:
        with _interrupted_later():
            observed_chunks = pool.map(partial(_observe, of), chunks)
        return [observed for chunk in observed_chunks for observed in chunk]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _observe(of: Callable[[Result], _T], chunk: Chunk) -> list[tuple[Row, _T]]:
    return observe_chunk(_study, chunk, of)


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
