"""`collabtop algorithms`: the list of algorithms."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

import collabtop as ct
from collabtop.cli.output import examples, print_json, print_tables

# The m and the agents of a problem that an algorithm with this limit refuses.
_LIMITS = {"one agent": (1, 2), "m = 1": (2, 1)}

algorithms_examples = examples("collabtop algorithms", "collabtop algorithms --json")


def algorithms(
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """List the algorithms: which arms they are for, what they do, and their options with defaults."""
    rows = [describe(name) for name in ct.available_algorithms()]
    if json:
        print_json(rows)
        return
    from rich.table import Table

    table = Table(show_lines=True)
    for column in ("name", "for", "what it does", "options"):
        table.add_column(column, no_wrap=column == "name")
    for row in rows:
        options = "\n".join(f"{name}={value}" for name, value in row["options"].items())
        table.add_row(row["name"], "\n".join([row["arms"], *row["limits"]]), row["summary"], options or "-")
    print_tables(table)


def describe(name: str) -> dict[str, Any]:
    """What an algorithm declares about itself.

    >>> describe("kzz-balanced")["summary"]
    'kzz with balanced=True'
    >>> describe("sequential-halving")["limits"]
    ['one agent', 'm = 1']
    """
    from collabtop.algorithms.registry import algorithm_options

    algorithm, options = ct.make_algorithm(name), algorithm_options(name)
    fixed = [f"{option}={value}" for option, value in asdict(algorithm).items() if option not in options]
    return {
        "name": name,
        "arms": "IID arms" if algorithm.iid_only else "all arms",
        "limits": [limit for limit, (m, agents) in _LIMITS.items() if _refuses(algorithm, m, agents)],
        "summary": f"{algorithm.name} with {', '.join(fixed)}" if fixed else algorithm.summary,
        "options": options,
    }


def _refuses(algorithm: "ct.Algorithm", m: int, agents: int) -> bool:
    try:
        algorithm.check(ct.Problem(n=8, m=m, agents=agents, horizon=1_000))
    except ct.SettingError:
        return True
    return False
