"""`collabtop study`, part of it as a real process."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars
import pytest

from tests.support.unmeasured import unmeasured

COMMAND = Path(sys.executable).with_name("collabtop")

GRID = """
algorithms = ["kzz", {name = "collab-top-iid", schedule = "full"}, "collab-top-iid"]
agents = [2, 5]
horizon = 3_000
runs = %d
arms.hard = {instance = "uniform_means", n = 40, seed = 1}
"""


@pytest.fixture
def grid(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(GRID % 10)
    return path


def test_a_study_prints_its_points_and_writes_rows_beside_the_file(run, grid):
    result = run("study", grid, "--jobs", 1)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert sum("collab-top-iid, full" in line for line in lines) == 2
    assert sum("kzz" in line for line in lines) == 2
    out = grid.with_name("grid-results")
    assert lines[-1] == f"60 runs are in {out}: rows.csv (one row per run), points.csv (one row per point)"
    assert len(polars.read_csv(out / "rows.csv")) == 60
    assert len(polars.read_csv(out / "points.csv")) == 6


def test_json_has_the_points_and_nothing_else(run, grid, tmp_path):
    result = run("study", grid, "--out", tmp_path / "out", "--json", "--jobs", 2)
    found = json.loads(result.stdout)
    assert result.stderr == ""
    assert found["out"] == str(tmp_path / "out")
    frame = polars.read_csv(tmp_path / "out" / "points.csv")
    assert [point["words_mean"] for point in found["points"]] == frame["words_mean"].to_list()


def test_parquet_is_written_on_request(run, grid, tmp_path):
    run("study", grid, "--out", tmp_path / "out", "--parquet", "--jobs", 1)
    rows = polars.read_parquet(tmp_path / "out" / "rows.parquet")
    assert rows["words"].to_list() == polars.read_csv(tmp_path / "out" / "rows.csv")["words"].to_list()


def test_the_same_command_again_shows_the_same_without_running(run, grid):
    first = run("study", grid, "--jobs", 1)
    before = {path.name: path.stat().st_mtime_ns for path in grid.with_name("grid-results").iterdir()}
    assert run("study", grid, "--jobs", 1).stdout == first.stdout
    assert {path.name: path.stat().st_mtime_ns for path in grid.with_name("grid-results").iterdir()} == before


def test_a_changed_file_is_refused_and_earlier_results_stay(run, refused, grid):
    run("study", grid, "--jobs", 1)
    rows = grid.with_name("grid-results") / "rows.csv"
    before = rows.read_bytes()
    grid.write_text(GRID % 11)
    assert "holds the results of a different study" in refused("study", grid)
    grid.write_text("algorithms = [")
    assert "grid.toml: not TOML: " in refused("study", grid)
    grid.write_text(GRID % 10 + "\ncolour = 1\n")
    assert "grid.toml: key 'colour': colour is not a key here: the keys are arms, " in refused("study", grid)
    assert rows.read_bytes() == before


def test_a_missing_file_and_bad_options_get_one_line(refused, grid):
    assert "absent.toml: no such file" in refused("study", "absent.toml")
    assert "--jobs" in refused("study", grid, "--jobs", 0)


def test_help_shows_what_a_file_looks_like(run):
    text = run("study", "--help").stdout
    assert "Examples" in text
    assert 'algorithms = ["kzz"' in text


def started(*arguments, **settings):
    command = [str(COMMAND), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings)


@pytest.mark.slow
def test_ctrl_c_ends_with_130_and_says_how_to_go_on(grid, tmp_path):
    grid.write_text(GRID % 300)
    journal = tmp_path / "out" / "journal"
    with started("study", grid, "--out", tmp_path / "out", "--jobs", 2, start_new_session=True) as child:
        end = time.monotonic() + 30
        while not (journal.exists() and journal.stat().st_size > 1_000) and time.monotonic() < end:
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGINT)
        _, complaint = child.communicate(timeout=30)
    assert child.returncode == 130
    assert complaint.decode().splitlines()[-1] == "error: interrupted: run the same command again to continue"
    assert "Traceback" not in complaint.decode()
    with started("study", grid, "--out", tmp_path / "out", "--json") as child:
        out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert sum(point["runs"] for point in json.loads(out)["points"]) == 1_800


@pytest.mark.slow
def test_a_full_disk_ends_with_one_line_and_the_same_command_goes_on(grid, tmp_path):
    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))

    grid.write_text(GRID % 40)
    with started("study", grid, "--out", tmp_path / "out", "--json", preexec_fn=little_room, env=unmeasured()) as child:
        _, complaint = child.communicate(timeout=60)
    assert child.returncode == 1
    assert complaint.decode() == (
        f"error: study journal {str(tmp_path / 'out' / 'journal')!r}: file too large; "
        "fix this and run the study again to resume it\n"
    )
    with started("study", grid, "--out", tmp_path / "out", "--json") as child:
        out, _ = child.communicate(timeout=60)
    assert sum(point["runs"] for point in json.loads(out)["points"]) == 240
