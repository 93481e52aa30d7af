"""`collabtop reproduce`: the experiments of the paper, measured again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import collabtop as ct
from collabtop.cli.errors import resumable
from collabtop.cli.output import examples, print_json, print_tables
from collabtop.errors import FileError, InputError

if TYPE_CHECKING:
    from rich.table import Table

    from collabtop.reproduction.report import Reproduction

reproduce_examples = examples(
    "collabtop reproduce --quick",
    "collabtop reproduce --out report --jobs 2",
    "collabtop reproduce --deep --means means.txt --group-means group_means.txt",
    "collabtop reproduce --movielens ml-25m.zip",
)

_QUICK_RUNS, _RUNS = 100, 1_000
_COLOURS = {"supported": "green", "not contradicted": "green", "contradicted": "red", "undecided": "yellow"}


def reproduce(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for the report, its figures and the studies.")
    ] = Path("reproduction"),
    runs: Annotated[
        int | None,
        typer.Option(
            min=2, help=f"Runs per IID point (a fifth for non-IID); default: {_RUNS}, or {_QUICK_RUNS} with --quick."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points and runs: a fraction of the time.")] = False,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Ten times the runs near the horizons for error .01, and more values of K and n."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="A different seed makes different runs.")] = 0,
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of processes; default: all cores.")] = None,
    means: Annotated[Path | None, typer.Option(metavar="FILE", help="The IID arms: one mean per line.")] = None,
    group_means: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The non-IID arms: one line per arm, one column per agent.")
    ] = None,
    movielens: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A MovieLens release as downloaded, for both kinds of arms.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Repeat the paper's experiments: twelve panels, and a verdict on each of its statements."""
    from collabtop.reproduction.report import Settings, measure, write_report

    if quick and deep:
        raise InputError("give --quick or --deep, not both")
    iid, groups, source = _arms(means, group_means, movielens)
    settings = Settings(
        iid, groups, source, runs=runs or (_QUICK_RUNS if quick else _RUNS), seed=seed, quick=quick, deep=deep
    )
    with resumable():
        reproduction = measure(settings, out, jobs=jobs, progress=not json)
        files = write_report(reproduction, out, jobs=jobs)
    if json:
        print_json({**reproduction.to_dict(), "files": {name: str(path) for name, path in files.items()}})
        return
    print_tables(_table(reproduction))
    typer.echo(f"The report is in {files['html']} (also {files['markdown'].name}), the figures in {files['figures']}")


def _arms(
    means: Path | None, group_means: Path | None, movielens: Path | None
) -> "tuple[ct.BernoulliArms, ct.HeterogeneousArms, str]":
    if movielens is not None:
        if means is not None or group_means is not None:
            raise InputError("--movielens is for both kinds of arms: omit --means and --group-means")
        return ct.datasets.movielens(movielens), ct.datasets.movielens_groups(movielens), movielens.name
    iid = ct.datasets.movielens_like() if means is None else ct.read_arms(means)
    groups = ct.datasets.movielens_like_groups() if group_means is None else ct.read_arms(group_means)
    if not isinstance(iid, ct.BernoulliArms):
        raise FileError(f"{means}: several columns, but one mean per arm is needed", argument="means")
    if not isinstance(groups, ct.HeterogeneousArms):
        raise FileError(f"{group_means}: one column, but one per agent is needed", argument="group_means")
    embedded = "the embedded stand-in for the paper's"
    names = [embedded if file is None else file.name for file in (means, group_means)]
    return iid, groups, names[0] if names[0] == names[1] else f"{names[0]} (IID), {names[1]} (non-IID)"


def _table(reproduction: "Reproduction") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for name in ("", "the paper says", "verdict"):
        table.add_column(name, no_wrap=not name)
    for statement in reproduction.statements:
        verdict = f"[{_COLOURS[statement.verdict]}]{statement.verdict}[/]"
        if statement.headline:
            verdict += "\n" + statement.headline.replace("; ", "\n")
        table.add_row(statement.name, statement.says, verdict)
    return table
