"""A side-by-side comparison of several runs on the same arms: their answers and their costs."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from rich.console import Group
from rich.table import Table
from rich.text import Text

from collabtop.arms import SimulatedArms
from collabtop.display.round_outcomes import round_outcomes
from collabtop.problem import misplaced
from collabtop.runs.printing import printable
from collabtop.runs.result import Result
from collabtop.validation import counted


def correct_arms(means: ArrayLike, answer: Sequence[int]) -> int:
    """How many arms of an answer belong to a set of best arms, where arms whose means tie are equally good.

    >>> correct_arms([0.7, 0.6, 0.6, 0.5], answer=[1, 2])
    1
    """
    wrong = np.isin(misplaced(means, answer), answer)
    return len(answer) - int(max(wrong.sum(), (~wrong).sum()))


def comparison_table(results: Sequence[Result], arms: SimulatedArms) -> Group:
    """One column per run: its costs, and its answer by rank with arms below the m-th best in brackets."""
    table = Table()
    table.add_column("")
    for result in results:
        table.add_column(result.algorithm, justify="right")
    rows = [comparison_row(result, arms) for result in results]
    table.add_row("correct", *(f"{row['right']} of {row['m']}" for row in rows))
    for name in ("time", "pulls", "words", "bits", "round_trips"):
        table.add_row(name.replace("_", " "), *(f"{row[name]:,}" for row in rows))
    table.add_section()
    for rank in range(results[0].m):
        table.add_row(f"rank {rank + 1}", *(_answer(result, arms, rank) for result in results))
    return Group(Text(_title(results[0]), "bold"), table)


def comparison_row(result: Result, arms: SimulatedArms) -> dict[str, Any]:
    """The numbers of one run as plain Python objects."""
    return {
        "algorithm": result.algorithm,
        "options": result.options,
        "m": result.m,
        "right": correct_arms(arms.values, result.top_indices),
        "top": result.top,
        "time": result.time,
        "pulls": result.pulls,
        "words": result.words,
        "bits": result.bits,
        "round_trips": result.round_trips,
        "rounds": msgspec.to_builtins(round_outcomes(result)),
    }


def _title(result: Result) -> str:
    team = counted(result.agents, "agent")
    return f"Best {result.m} of {result.n:,} arms, {team}, horizon {result.horizon:,}, seed {result.seed}"


def _answer(result: Result, arms: SimulatedArms, rank: int) -> str:
    arm = result.top_indices[rank]
    label = printable(arms.label(arm))
    return f"({label})" if arm in misplaced(arms.values, result.top_indices) else label
