"""`collabtop study`: many runs over a grid, from a TOML file."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from collabtop.cli.errors import resumable
from collabtop.cli.output import examples, print_json, print_tables
from collabtop.cli.run_options import AddressOption

study_examples = examples(
    "collabtop study grid.toml",
    "collabtop study grid.toml --out results --jobs 4 --parquet",
    "collabtop study grid.toml --json",
    "collabtop study grid.toml --team ray --address 10.0.0.1:6379",
) + (
    "\n\n[bold]A study file[/bold]\n\n"
    '  algorithms = \\["kzz", {name = "collab-top-iid", schedule = "full"}]\n\n'
    "  m = \\[1, 8]\n\n  agents = 10\n\n  horizon = \\[10_000, 30_000]\n\n  runs = 100\n\n  seed = 1\n\n"
    '  arms.movies = {dataset = "movielens_like"}\n\n'
    '  arms.mine = {means = "means.txt"}\n\n'
    '  arms.hard = {instance = "equal_gaps", n = 64, m = 8, gap = 0.1}'
)


class StudyTeam(StrEnum):
    """Where the runs are made."""

    local = "local"
    ray = "ray"


def study(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The grid: arms, algorithms, m, agents, horizon.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder for the results; default: FILE-results beside the file."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of processes; default: all cores.")] = None,
    team: Annotated[
        StudyTeam, typer.Option(help="Make the runs in processes on this machine, or as tasks on a Ray cluster.")
    ] = (StudyTeam.local),
    address: AddressOption = None,
    parquet: Annotated[bool, typer.Option("--parquet", help="Also write rows.parquet (needs polars).")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print only JSON: the points.")] = False,
) -> None:
    """Run every point of a grid and write one row per run. Repeat the command to continue a stopped study."""
    from collabtop.display.points_table import points_table
    from collabtop.studies.files import read_study

    grid = read_study(file)
    folder = out if out is not None else file.with_name(f"{file.stem}-results")
    with resumable():
        table = grid.run(folder, jobs=jobs, progress=not json, team=team.value, address=address)
    if parquet:
        table.to_parquet(folder / "rows.parquet")
    if json:
        print_json({"out": str(folder), "points": [msgspec.to_builtins(point) for point in table.points()]})
        return
    print_tables(points_table(table.points()))
    typer.echo(f"{len(table):,} runs are in {folder}: rows.csv (one row per run), points.csv (one row per point)")
