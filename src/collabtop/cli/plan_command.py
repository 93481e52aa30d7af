"""`collabtop plan`: which horizon for which error, and what it costs, before anything is pulled."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import collabtop as ct
from collabtop.arms import SimulatedArms
from collabtop.cli.output import examples, print_json, print_tables
from collabtop.errors import InputError

plan_examples = examples(
    "collabtop plan -n 588 -m 8 --agents 10 --gap 0.05",
    "collabtop plan --means means.txt -m 1 --agents 10 --error 0.1 --error 0.01",
    "collabtop plan --means one_column_an_agent.txt -m 1 --seconds 20",
    "collabtop plan -n 588 -m 8 --agents 10 --gap 0.05 --no-simulation --json",
)


def plan(
    m: Annotated[int, typer.Option("-m", "--m", help="How many of the best arms are wanted.")],
    n: Annotated[int | None, typer.Option("-n", "--n", help="How many arms there are; a file says it itself.")] = None,
    agents: Annotated[
        int | None, typer.Option(help="How many agents share the work; a non-IID file says it itself.")
    ] = None,
    gap: Annotated[
        float | None, typer.Option(help="The gap you expect at the border: planned for are the hardest arms with it.")
    ] = None,
    means: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead of a gap, means like the ones you expect.")
    ] = None,
    error: Annotated[
        list[float] | None, typer.Option(help="A chance of a wrong answer to plan for, 0.01 if left out; repeatable.")
    ] = None,
    algorithm: Annotated[
        list[str] | None, typer.Option(help="A name from `collabtop algorithms`; repeatable; all that fit if left out.")
    ] = None,
    simulation: Annotated[bool, typer.Option(help="Simulate, or give the bounds only.")] = True,
    runs: Annotated[int, typer.Option(help="Simulated runs a point of the search.")] = 300,
    seconds: Annotated[float, typer.Option(help="About how long to simulate, in all.")] = 60.0,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other runs.")] = 0,
    jobs: Annotated[int | None, typer.Option(min=1, help="How many processes; all cores if left out.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON, and nothing else.")] = False,
) -> None:
    """Say which horizon gives which error, and what words, bits and round trips each algorithm takes for it."""
    made = ct.plan(
        n,
        m,
        agents,
        gap=gap,
        means=None if means is None else _read(means),
        error=error or [0.01],
        algorithms=algorithm,
        simulate=simulation,
        runs=runs,
        seconds=seconds,
        seed=seed,
        jobs=jobs,
        progress=not json,
    )
    if json:
        print_json(made.to_dict())
    else:
        print_tables(made)


def _read(path: Path) -> SimulatedArms:
    arms = ct.read_arms(path)
    if not isinstance(arms, SimulatedArms):
        raise InputError(f"{path}: known means are needed to plan")
    return arms
