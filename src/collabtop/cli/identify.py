"""`collabtop identify`: one run on a file of means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import collabtop as ct
from collabtop.cli.option_values import read_options
from collabtop.cli.output import examples, print_json, print_tables

identify_examples = examples(
    "collabtop identify --means means.txt -m 8 --agents 10 --horizon 30000",
    "collabtop identify --means means.csv -m 1 --agents 10 --horizon 20000 --algorithm kzz --seed 7",
    "collabtop identify --means means.txt -m 8 --agents 10 --horizon 30000 "
    "--algorithm collab-top-iid --option schedule=full --json",
    "collabtop identify --means one_column_an_agent.txt -m 1 --horizon 20000",
)


def identify(
    means: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="One mean a line; several columns, one an agent, make it non-IID; CSV may carry labels.",
        ),
    ],
    m: Annotated[int, typer.Option("-m", "--m", help="How many of the best arms are wanted.")],
    horizon: Annotated[int, typer.Option(help="How many pulls each agent may make.")],
    agents: Annotated[
        int | None, typer.Option(help="How many agents share the work; a non-IID file says it itself.")
    ] = None,
    algorithm: Annotated[
        str, typer.Option(help="A name from `collabtop algorithms`, or auto: the best for the kind of arms.")
    ] = "auto",
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the algorithm; may be repeated.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same run; left out, one is drawn.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON, and nothing else.")] = False,
) -> None:
    """Simulate a team on arms with known means, and print the best m it found and what that cost."""
    result = ct.identify(
        ct.read_arms(means),
        m,
        agents=agents,
        horizon=horizon,
        algorithm=algorithm,
        options=read_options(algorithm, option or []),
        seed=seed,
    )
    if json:
        print_json(result.to_dict())
    else:
        print_tables(result)
