"""A study's runs: the same whatever shares the work, whatever stops it, and never made twice."""

import csv
import gc
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import collabtop as ct
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import StudyHeader, StudyRows
from collabtop.studies import chunks, runner
from collabtop.studies.runner import run_again
from tests.support.unmeasured import unmeasured

SCRIPT = """
import sys, collabtop as ct
arms = ct.datasets.uniform_means(40, seed=1)
study = ct.Study(arms=arms, algorithms=["kzz", "collab-top-iid", "uniform"], m=[1, 3], agents=[2, 5],
                 horizon=[2_000, 4_000], runs=50, seed=3)
study.run(sys.argv[1], jobs=int(sys.argv[2]))
"""


def arms():
    return ct.datasets.uniform_means(40, seed=1)


def small_study(**changes):
    given: dict[str, Any] = {
        "algorithms": ["kzz", "collab-top-iid"],
        "m": [1, 3],
        "agents": 5,
        "horizon": [2_000],
        "runs": 45,
        "seed": 3,
    }
    return ct.Study(arms=arms(), **(given | changes))


def started(out, jobs=2, **settings):
    command = [sys.executable, "-c", SCRIPT, str(out), str(jobs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings)


def files(out):
    return {name: (Path(out) / name).read_bytes() for name in ("rows.csv", "points.csv", "study.txt")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    with started(out) as child:
        assert child.wait() == 0
    return files(out)


@pytest.mark.slow
def test_a_result_does_not_depend_on_the_number_of_processes(tmp_path):
    one = small_study().run(tmp_path / "one", jobs=1)
    three = small_study().run(tmp_path / "three", jobs=3)
    assert one == three == small_study().run(jobs=2)
    assert files(tmp_path / "one") == files(tmp_path / "three")


def killed_and_resumed(out, kills, seed):
    chance = random.Random(seed)
    struck = 0
    while True:
        with started(out) as child:
            try:
                child.wait(timeout=chance.uniform(0.3, 1.5) if struck < kills else None)
                assert child.returncode == 0, child.stderr.read().decode()
                return struck
            except subprocess.TimeoutExpired:
                child.kill()
                struck += 1


@pytest.mark.slow
def test_a_study_killed_at_random_moments_ends_with_the_same_files(tmp_path, undisturbed):
    assert killed_and_resumed(tmp_path, kills=4, seed=1) > 0
    assert files(tmp_path) == undisturbed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["points.csv", "rows.csv", "study.txt"]


@pytest.mark.long
def test_fifty_kills_end_with_the_same_files(tmp_path, undisturbed):
    struck = 0
    while struck < 50:
        out = tmp_path / str(struck)
        struck += killed_and_resumed(out, kills=5, seed=100 + struck)
        assert files(out) == undisturbed


def test_workers_end_by_themselves_when_their_parent_is_killed(tmp_path):
    with started(tmp_path / "out", jobs=3) as child:
        workers = wait_for(lambda: children(child.pid), "no worker came up")
        child.kill()
    wait_for(lambda: not any(is_alive(worker) for worker in workers), "a worker outlived its parent")


def wait_for(condition, complaint, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    pytest.fail(complaint)


def children(pid):
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found] if len(found) == 3 else []


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_ctrl_c_leaves_no_worker_and_a_journal_that_goes_on(tmp_path, undisturbed):
    with started(tmp_path, start_new_session=True) as child:
        wait_for(
            lambda: (tmp_path / "journal").exists() and (tmp_path / "journal").stat().st_size > 2_000, "no records"
        )
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(timeout=30) != 0
        assert b"KeyboardInterrupt" in child.stderr.read()
    assert (tmp_path / "journal").exists()
    with started(tmp_path) as child:
        assert child.wait() == 0
    assert files(tmp_path) == undisturbed


@pytest.mark.slow
def test_a_full_disk_is_a_clear_error_and_the_study_goes_on_later(tmp_path, undisturbed):
    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    with started(tmp_path, preexec_fn=little_room, env=unmeasured()) as child:
        _, complaint = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "StudyError" in complaint.decode().splitlines()[-1]
    assert "file too large; fix this and run the study again to resume it" in complaint.decode()
    assert not (tmp_path / "rows.csv").exists()
    with started(tmp_path) as child:
        assert child.wait() == 0
    assert files(tmp_path) == undisturbed


def test_no_run_is_made_that_the_journal_holds(tmp_path, monkeypatch):
    made = []
    run_chunk = chunks.run_chunk

    def noted(study, chunk):
        made.append(chunk.runs)
        return run_chunk(study, chunk)

    monkeypatch.setattr(runner, "run_chunk", noted)

    interrupted(small_study(), tmp_path, records=3)
    table = small_study().run(tmp_path, jobs=1)
    assert sum(map(len, made)) == len(table) == 4 * 45
    made.clear()
    assert small_study().run(tmp_path, jobs=1) == table
    assert made == []


@pytest.mark.slow
def test_a_torn_last_record_is_made_again(tmp_path):
    whole = small_study().run(jobs=1)
    interrupted(small_study(), tmp_path, records=3)
    journal = tmp_path / "journal"
    for cut in (1, 40, 2_000):
        journal.write_bytes(journal.read_bytes()[:-cut])
    assert small_study().run(tmp_path, jobs=1) == whole


def interrupted(study, out, records):
    """Run a study until its journal has so many records, the first of them its head."""
    append, seen = RunLog.append, []

    def stop(self, record, **options):
        append(self, record, **options)
        seen.append(record)
        if len(seen) == records:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunLog, "append", stop)
        with pytest.raises(KeyboardInterrupt):
            study.run(out, jobs=1)


def test_the_journal_of_another_study_is_refused_and_left_alone(tmp_path):
    interrupted(small_study(), tmp_path, records=2)
    before = (tmp_path / "journal").read_bytes()
    with pytest.raises(ct.FileError, match="belongs to a different study"):
        small_study(seed=4).run(tmp_path, jobs=1)
    assert (tmp_path / "journal").read_bytes() == before


def test_the_journal_of_another_version_is_refused_and_left_alone(tmp_path, monkeypatch):
    interrupted(small_study(), tmp_path, records=2)
    before = (tmp_path / "journal").read_bytes()
    monkeypatch.setattr(runner, "__version__", "0.0.1")
    with pytest.raises(ct.FileError, match="a different study or version of collabtop"):
        small_study().run(tmp_path, jobs=1)
    assert (tmp_path / "journal").read_bytes() == before


@pytest.mark.parametrize("rows", [StudyRows("nowhere", b"\x90"), StudyRows("", b"\xc1")])
def test_a_journal_with_rows_that_cannot_be_read_is_refused_in_one_line(tmp_path, rows):
    study = small_study(runs=1)
    log = RunLog(tmp_path / "journal")
    log.append(StudyHeader(runner.study_mark(study)))
    log.append(StudyRows(rows.point or study.points[0].key, rows.rows))
    log.close()
    with pytest.raises(
        ct.FileError, match=r"journal is damaged: the rows of point '.*' cannot be read \(.*\); delete it"
    ):
        study.run(tmp_path, jobs=1)


def test_a_file_that_is_no_journal_is_refused_and_left_alone(tmp_path):
    (tmp_path / "journal").write_text("My diary\n")
    with pytest.raises(ct.FileError, match="is not a collabtop log"):
        small_study().run(tmp_path, jobs=1)
    assert (tmp_path / "journal").read_text() == "My diary\n"


def test_a_first_record_that_was_torn_is_no_obstacle(tmp_path):
    interrupted(small_study(), tmp_path, records=1)
    whole = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(whole[: len(whole) // 2])
    assert len(small_study().run(tmp_path, jobs=1)) == 180


def test_results_of_another_study_are_refused_and_left_alone(tmp_path):
    small_study().run(tmp_path, jobs=1)
    before = files(tmp_path)
    with pytest.raises(ct.FileError, match="holds the results of a different study"):
        small_study(runs=46).run(tmp_path, jobs=1)
    assert files(tmp_path) == before
    (tmp_path / "study.txt").unlink()
    with pytest.raises(ct.FileError, match="holds the results of a different study"):
        small_study().run(tmp_path, jobs=1)


@pytest.mark.parametrize(
    ("version", "complaint"), [(" by collabtop 0.0.1", "collabtop 0.0.1"), ("", "an older version")]
)
def test_results_of_another_version_are_refused_and_left_alone(tmp_path, version, complaint):
    small_study().run(tmp_path, jobs=1)
    (tmp_path / "study.txt").write_text(f"{small_study().fingerprint}{version}\n")
    before = files(tmp_path)
    with pytest.raises(ct.FileError, match=f"results from {complaint}, but this is {ct.__version__}"):
        small_study().run(tmp_path, jobs=1)
    assert files(tmp_path) == before


def test_results_with_a_row_too_few_are_refused_and_left_alone(tmp_path):
    small_study().run(tmp_path, jobs=1)
    rows = tmp_path / "rows.csv"
    rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[:-1]))
    before = files(tmp_path)
    with pytest.raises(ct.FileError, match="has 179 rows, but the study has 180 runs"):
        small_study().run(tmp_path, jobs=1)
    assert files(tmp_path) == before


@pytest.mark.slow
def test_a_folder_in_use_by_another_process_is_refused(tmp_path):
    with started(tmp_path) as child:
        wait_for(lambda: (tmp_path / "journal").exists() and (tmp_path / "journal").stat().st_size, "no journal")
        child.send_signal(signal.SIGSTOP)  # a fast machine could end the study before the second process asks
        again = started(tmp_path)
        _, complaint = again.communicate()
        child.send_signal(signal.SIGCONT)
        assert b"is in use by another process" in complaint
        assert child.wait() == 0


def test_a_killed_worker_is_a_clear_error(tmp_path):
    with started(tmp_path, jobs=3) as child:
        workers = wait_for(lambda: children(child.pid), "no worker came up")
        os.kill(workers[0], signal.SIGKILL)
        _, complaint = child.communicate(timeout=60)
    assert "StudyError: a process of the study was killed" in complaint.decode().splitlines()[-1]


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ct.FileError, match="file"):
        small_study().run(tmp_path / "file" / "below", jobs=1)


def test_a_run_can_be_made_again_from_its_row():
    study = small_study()
    row = study.run(jobs=1).rows[-1]
    again = run_again(study, row)
    assert (again.words, again.time, again.seed) == (row.words, row.time, row.seed)


def test_large_runs_are_handed_out_one_by_one():
    big = ct.Study(
        arms=ct.BernoulliArms([0.5] * 99_999 + [0.6]), algorithms="uniform", agents=50, horizon=100_000, runs=3
    )
    assert [len(chunk.runs) for chunk in runner._missing(big, {})] == [1, 1, 1]


def test_jobs_below_one_are_refused():
    with pytest.raises(ct.InputError, match="jobs is 0"):
        small_study().run(jobs=0)


def test_rows_are_sorted_and_have_no_clock_times(tmp_path):
    small_study().run(tmp_path, jobs=2)
    with (tmp_path / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    keys = [(r["algorithm"], int(r["m"]), int(r["agents"]), int(r["horizon"]), int(r["run"])) for r in rows]
    assert keys == sorted(keys)
    assert not {"seconds", "date", "clock"} & rows[0].keys()


class Garbage:
    """An object that only the garbage collector can free, and that says where it did."""

    def __init__(self, path: Path) -> None:
        self.path, self.itself = path, self

    def __del__(self) -> None:
        with self.path.open("a") as file:
            file.write(f"{os.getpid()}\n")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_what_the_parent_left_to_be_collected_is_not_finalized_in_its_processes(tmp_path, monkeypatch):
    # A finalizer may wait for a thread of the parent, such as that of a gRPC server, and would then wait for ever.
    def collect_and_run(study, chunk):
        gc.collect()
        return chunks.run_chunk(study, chunk)

    monkeypatch.setattr(runner, "run_chunk", collect_and_run)
    gc.disable()
    try:
        Garbage(tmp_path / "finalized")
        small_study().run(jobs=2)
        assert not (tmp_path / "finalized").exists()
    finally:
        gc.enable()
    gc.collect()
    assert (tmp_path / "finalized").read_text().split() == [str(os.getpid())]
