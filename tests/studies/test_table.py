"""What a study's rows add up to, and the files they are kept in."""

import csv
import sys

import polars
import pytest

import collabtop as ct
from collabtop.stats import wilson_interval
from collabtop.studies.table import Row, write_whole


@pytest.fixture(scope="module")
def table():
    arms = {"hard, by name": ct.BernoulliArms([0.6, 0.5, 0.4, 0.3])}
    return ct.Study(arms=arms, algorithms=["kzz", "uniform"], agents=2, horizon=[8, 16], runs=25, seed=5).run(jobs=1)


def test_points_are_means_and_deviations_of_their_rows(table):
    points = table.points()
    assert sum(point.runs for point in points) == len(table)
    frame = polars.DataFrame([{name: getattr(row, name) for name in Row.__struct_fields__} for row in table.rows])
    for point in points:
        rows = frame.filter(polars.col("algorithm") == point.algorithm, polars.col("horizon") == point.horizon)
        assert point.wrong == (~rows["correct"]).sum()
        assert point.error == point.wrong / point.runs
        assert (point.error_low, point.error_high) == wilson_interval(point.wrong / point.runs, point.runs)
        for name in ("words", "bits", "round_trips", "time"):
            assert getattr(point, f"{name}_mean") == pytest.approx(rows[name].mean())
            assert getattr(point, f"{name}_sd") == pytest.approx(rows[name].std())


def test_csv_is_read_back_and_by_others(table, tmp_path):
    path = tmp_path / "rows.csv"
    table.to_csv(path)
    assert ct.StudyTable.from_csv(path) == table
    frame = polars.read_csv(path)
    assert frame.columns == list(Row.__struct_fields__)
    assert frame["words"].to_list() == [row.words for row in table.rows]
    with path.open(newline="") as file:
        assert [row["arms"] for row in csv.DictReader(file)] == ["hard, by name"] * len(table)


def test_rows_of_batched_runs_are_read_back_and_checked(tmp_path):
    arms = {"a, b": ct.BernoulliArms([0.6, 0.5, 0.4])}
    study = ct.Study(arms=arms, algorithms="kzz", agents=2, horizon=12, runs=30, seed=5, engine="batched")
    table, path = study.run(jobs=1), tmp_path / "rows.csv"
    table.to_csv(path)
    assert ct.StudyTable.from_csv(path) == table
    path.write_text(path.read_text().replace(",12,7,", ",12,seven,") + "\n")
    with pytest.raises(ct.FileError, match="line 9: not a row of a study"):
        ct.StudyTable.from_csv(path)


def test_parquet_has_the_same_rows(table, tmp_path):
    table.to_parquet(tmp_path / "rows.parquet")
    frame = polars.read_parquet(tmp_path / "rows.parquet")
    assert frame.columns == list(Row.__struct_fields__)
    assert frame["correct"].dtype == polars.Boolean
    assert frame["seed"].to_list() == [row.seed for row in table.rows]


def test_without_polars_parquet_is_refused_with_what_to_install(table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ct.InputError, match=r"^Parquet needs polars, .*: pip install 'collabtop\[parq"):
        table.to_parquet(tmp_path / "rows.parquet")


def test_a_csv_that_is_no_study_is_named_with_its_line(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("arms,words\nx,3\n")
    with pytest.raises(ct.FileError, match=r"rows.csv, line 2: not a row of a study"):
        ct.StudyTable.from_csv(path)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    write_whole(path, b"before")

    def no_room(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_room)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
