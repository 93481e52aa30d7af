"""A side-by-side comparison of several runs on the same arms: their answers and their costs."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from collabtop.arms import SimulatedArms
from collabtop.display.round_outcomes import round_outcomes
from collabtop.runs.result import Result, printable


def true_top(arms: SimulatedArms, m: int) -> list[int]:
    """The m best arms by their true means, best first.

    >>> import collabtop as ct
    >>> true_top(ct.BernoulliArms([0.5, 0.9, 0.7]), m=2)
    [1, 2]
    """
    values = arms.means if arms.iid else arms.means.mean(axis=1)
    return [int(arm) for arm in np.argsort(-values, kind="stable")[:m]]


def comparison_table(results: Sequence[Result], arms: SimulatedArms) -> Group:
    """One column per run: its costs, and its answer by rank with wrong arms in brackets."""
    table = Table()
    table.add_column("")
    for result in results:
        table.add_column(result.algorithm, justify="right")
    rows = [comparison_row(result, arms) for result in results]
    table.add_row("correct", *(f"{row['right']} of {row['m']}" for row in rows))
    for name in ("time", "pulls", "words", "bits", "round_trips"):
        table.add_row(name.replace("_", " "), *(f"{row[name]:,}" for row in rows))
    table.add_section()
    best = set(true_top(arms, results[0].m))
    for rank in range(results[0].m):
        table.add_row(f"rank {rank + 1}", *(_answer(result, arms, rank, best) for result in results))
    return Group(Text(_title(results[0]), "bold"), table)


def comparison_row(result: Result, arms: SimulatedArms) -> dict[str, Any]:
    """The numbers of one run as plain Python objects."""
    return {
        "algorithm": result.algorithm,
        "options": result.options,
        "m": result.m,
        "right": len(set(result.top_indices) & set(true_top(arms, result.m))),
        "top": result.top,
        "time": result.time,
        "pulls": result.pulls,
        "words": result.words,
        "bits": result.bits,
        "round_trips": result.round_trips,
        "rounds": msgspec.to_builtins(round_outcomes(result)),
    }


def _title(result: Result) -> str:
    return (
        f"Best {result.m} of {result.n:,} arms, {result.agents} agents, horizon {result.horizon:,}, seed {result.seed}"
    )


def _answer(result: Result, arms: SimulatedArms, rank: int, best: set[int]) -> str:
    arm = result.top_indices[rank]
    label = printable(arms.label(arm))
    return label if arm in best else f"({label})"
