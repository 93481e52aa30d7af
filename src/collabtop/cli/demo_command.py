"""`collabtop demo`: the recommended algorithm, the paper's and KZZ on the embedded instance."""

from pathlib import Path
from typing import Annotated

import typer

import collabtop as ct
from collabtop.cli.output import examples, print_json, print_tables

demo_examples = examples("collabtop demo", "collabtop demo --seed 3 --out demo.png", "collabtop demo --json")

# Ranks 8 and 9 are .0019 apart: with this horizon the algorithms find all 8 in about 97 of 100 runs.
_M, _AGENTS, _HORIZON = 8, 10, 300_000
_NEXT = "Next, with candidates and a function of your own in prompts.py:"
_NEXT_COMMAND = "collabtop identify -m 3 --arms prompts:candidates --pull prompts:score --horizon 2000"


def demo(
    seed: Annotated[int, typer.Option(help="A different seed makes a different run.")] = 7,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw a figure into this .png, .svg or .pdf file.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Find the best 8 of 588 movies with 10 agents, by frugal-top, collab-top-iid and kzz, and compare them."""
    from collabtop.display.comparison import comparison_row, comparison_table
    from collabtop.display.live_arms_bars import LiveArmsBars
    from collabtop.display.save import figure_path, save_figure

    path = None if out is None else figure_path(out)
    arms = ct.datasets.movielens_like()
    results = [
        ct.identify(arms, _M, agents=_AGENTS, horizon=_HORIZON, algorithm=algorithm, seed=seed)
        for algorithm in (ct.FrugalTop(), ct.CollabTopIID(schedule="full"), ct.KZZ())
    ]
    if path is not None:
        from collabtop.display.live_arms_figure import live_arms_figure  # Matplotlib takes longer to load than a run

        save_figure(live_arms_figure(results), path)
    if json:
        print_json({"seed": seed, "runs": [comparison_row(result, arms) for result in results]})
        return
    print_tables(comparison_table(results, arms), *(LiveArmsBars(result) for result in results))
    if path is not None:
        typer.echo(f"The figure is in {path}")
    typer.echo(f"{_NEXT} {_NEXT_COMMAND}")
