"""`collabtop ask`: the pulls that a session needs now, for a table or a CSV file; the first call starts the session."""

import csv as csv_files
import io
from pathlib import Path
from typing import Annotated, Any

import typer

import collabtop as ct
from collabtop.cli import run_options as shared
from collabtop.cli.output import examples, path_to_save, print_json, print_tables
from collabtop.cli.values import read_bounds, read_options, read_weights
from collabtop.errors import FileError, InputError, reason

ask_examples = examples(
    "collabtop ask run.ctlog --candidates names.txt -m 2 --agents 3 --budget 600 --csv todo.csv",
    "collabtop ask run.ctlog --csv todo.csv",
    "collabtop ask run.ctlog --single --json",
)

COLUMNS = ("agent", "pull", "candidate", "replicate", "example", "times", "reward")
"""The columns of a file of pulls; `reward` is empty until it is filled in."""

_CandidatesOption = Annotated[
    Path | None, shared.file_option("Start a session on these candidates: a text file with one per line.")
]


def ask(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The file that keeps the session.")],
    csv: Annotated[Path | None, shared.file_option("Write the pulls here, with an empty column for rewards.")] = None,
    single: Annotated[bool, typer.Option("--single", help="One row per pull, also for repeated pulls.")] = False,
    candidates: _CandidatesOption = None,
    m: Annotated[int | None, typer.Option("-m", "--m", help="How many of the best candidates are wanted.")] = None,
    agents: Annotated[int | None, typer.Option(help="Number of agents: regions, tables, machines.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Number of pulls per agent.")] = None,
    budget: Annotated[float | None, typer.Option(help="Instead of --horizon: pulls of all agents together.")] = None,
    confidence: Annotated[
        float | None, typer.Option(help="Instead of --horizon: stop when the answer is right with this probability.")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="With --confidence: a difference that does not matter.")] = 0.0,
    example_count: Annotated[
        int | None, typer.Option("--examples", help="How many examples there are, each used once per candidate.")
    ] = None,
    by_agent: Annotated[bool, typer.Option("--by-agent", help="Candidates differ from agent to agent.")] = False,
    weights: shared.WeightsOption = None,
    direction: shared.DirectionOption = "maximize",
    bounds: shared.BoundsOption = "0,1",
    algorithm: Annotated[str, typer.Option(help="A name from `collabtop algorithms`, or auto.")] = "auto",
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the algorithm; repeatable.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed and rewards give the same run.")] = None,
    name: Annotated[str | None, typer.Option(help="A name for the run, shown in results and logs.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """List the pulls that can be made now; with --candidates, start the session. `tell` reports their rewards."""
    if candidates is None:
        given: dict[str, Any] = {"-m": m, "--agents": agents, "--horizon": horizon, "--budget": budget}
        given |= {"--confidence": confidence, "--weights": weights}
        for wrong in (option for option, value in given.items() if value is not None):
            raise InputError(f"{wrong} only applies with --candidates, which starts a session")
        session = ct.Session(log)
    elif m is None:
        raise InputError("-m is missing: pass how many of the best candidates are wanted")
    else:
        session = ct.ask_tell(
            read_names(candidates),
            m,
            log=log,
            agents=agents,
            horizon=horizon,
            budget=budget,
            confidence=confidence,
            tolerance=tolerance,
            examples=example_count,
            by_agent=by_agent,
            weights=read_weights(weights),
            direction=direction,  # type: ignore[arg-type]  # it is checked
            bounds=read_bounds(bounds),
            algorithm=algorithm,
            options=read_options(algorithm, option or []),
            seed=seed,
            name=name,
        )
    target = None if csv is None else path_to_save("--csv", csv)
    pulls = session.ask()
    if single:
        pulls = [part for pull in pulls for part in pull.split()]
    if target is not None:
        _save(pulls, target)
    if json:
        print_json([dict(zip(COLUMNS[:-1], _cells(pull), strict=True)) for pull in pulls])
    elif target is not None or not pulls:
        print_state(log, session, pulls)
    else:
        print_tables(_table(pulls))


def print_state(log: Path, session: "ct.Session", pulls: "list[ct.AskedPull]") -> None:
    """Print how many pulls are open or, when there are none, the result."""
    if not pulls:
        print_tables(session.result())
        return
    count, agents = sum(pull.times for pull in pulls), len({pull.agent for pull in pulls})
    typer.echo(f"{log}: {count:,} pulls of {agents:,} agents have no reward yet")


def read_names(path: Path) -> list[str]:
    """The candidates in a file: one per line, without blank lines."""
    from collabtop.text_files import read_text

    names = [line.strip() for line in read_text(path).splitlines() if line.strip()]
    if not names:
        raise FileError(f"{path}: the file has no candidates")
    return names


def _cells(pull: "ct.AskedPull") -> tuple[Any, ...]:
    return pull.agent, pull.number, pull.label, pull.replicate, pull.example, pull.times


def _save(pulls: "list[ct.AskedPull]", path: Path) -> None:
    from collabtop.studies.table import write_whole

    text = io.StringIO(newline="")
    writer = csv_files.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([*_cells(pull), ""] for pull in pulls)
    try:
        write_whole(path, text.getvalue().encode())
    except OSError as error:
        raise FileError(f"--csv {str(path)!r}: {reason(error)}") from None


def _table(pulls: "list[ct.AskedPull]") -> Any:
    from rich.table import Table

    from collabtop.runs.printing import printable

    table = Table(*COLUMNS[:-1])
    for pull in pulls:
        table.add_row(*("" if cell is None else printable(str(cell)) for cell in _cells(pull)))
    return table
