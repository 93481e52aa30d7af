"""Options that `identify`, `resume` and `study` have in common."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import collabtop as ct
from collabtop.runs.checkpoint import is_finished


class TeamName(StrEnum):
    """Where the agents run."""

    local = "local"
    threads = "threads"
    ray = "ray"


class FailureName(StrEnum):
    """What becomes of a pull that failed for good."""

    stop = "raise"
    zero = "zero"
    skip = "skip"


TeamOption = Annotated[TeamName, typer.Option(help="Agents one after the other, in parallel, or on a Ray cluster.")]
AddressOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="With --team ray: the cluster to join; left out, one is started here."),
]
Retries = Annotated[int, typer.Option(help="How often a failed pull is tried again.")]
Wait = Annotated[float, typer.Option(help="Seconds before the first retry; later ones wait twice as long each.")]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds a pull may take.")]
FailuresOption = Annotated[FailureName, typer.Option(help="What becomes of a pull that still fails.")]
ProgressOption = Annotated[
    bool | None, typer.Option("--progress/--no-progress", help="Show how far the run is; in a terminal by default.")
]
WatchOption = Annotated[bool, typer.Option("--watch", help="Show the run on a page in the browser.")]
Json = Annotated[bool, typer.Option("--json", help="Print the whole result as JSON, and nothing else.")]


def make_team(team: TeamName, address: str | None) -> str | ct.Team:
    """The team that the options say."""
    if address is None:
        return team.value
    if team is not TeamName.ray:
        raise ct.InputError(f"--address goes with --team ray, and the team is {team.value}")
    return ct.RayTeam(address=address)


@contextmanager
def notice_if_finished(checkpoint: Path) -> Iterator[None]:
    """Say, on stderr, that a checkpoint held the answer already: whoever changed a function wants to know."""
    known = is_finished(checkpoint)
    yield
    if known:
        said = f"{checkpoint} held the answer already: nothing was pulled (another file begins a new run)"
        typer.echo(said, err=True)


def make_policy(retries: int, wait: float, time_limit: float | None, failures: FailureName) -> ct.PullPolicy:
    """The policy that the options say."""
    return ct.PullPolicy(retries=retries, wait=wait, time_limit=time_limit, failures=failures.value)


def wants_progress(asked: bool | None) -> bool:
    """What was asked for, or whether somebody looks."""
    return sys.stderr.isatty() if asked is None else asked
