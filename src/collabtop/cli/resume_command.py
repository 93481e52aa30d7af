"""`collabtop resume`: continue a run from its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import collabtop as ct
from collabtop.cli.errors import resumable
from collabtop.cli.imports import load
from collabtop.cli.output import examples, print_json, print_tables
from collabtop.cli.run_options import (
    AddressOption,
    FailureName,
    FailuresOption,
    Json,
    ProgressOption,
    Retries,
    TeamName,
    TeamOption,
    TimeLimit,
    Wait,
    WatchOption,
    make_policy,
    make_team,
    notice_if_finished,
    wants_progress,
)

resume_examples = examples(
    "collabtop resume run.ctlog --pull mymodule:score --team threads",
    "collabtop resume run.ctlog --pull mymodule:score --arms mymodule:candidates --team threads --retries 3",
)


def resume(
    checkpoint: Annotated[Path, typer.Argument(metavar="FILE", help="A file written by `identify --checkpoint`.")],
    pull: Annotated[str | None, typer.Option(metavar="MODULE:NAME", help="Your function.")] = None,
    arms: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="Your candidates, if the file does not hold them; or your own arms."),
    ] = None,
    means: Annotated[Path | None, typer.Option(metavar="FILE", help="The file of means of a simulation.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="The file of logged rewards.")] = None,
    replay: Annotated[bool, typer.Option("--replay", help="With --csv: use each reward once, in order.")] = False,
    team: TeamOption = TeamName.local,
    address: AddressOption = None,
    retries: Retries = 0,
    wait: Wait = 0.5,
    time_limit: TimeLimit = None,
    failures: FailuresOption = FailureName.stop,
    progress: ProgressOption = None,
    watch: WatchOption = False,
    json: Json = False,
) -> None:
    """Continue a run from its checkpoint; completed pulls are not repeated."""
    given: dict[str, Any] = {}
    if arms is not None:
        loaded = load("--arms", arms)
        given["arms" if isinstance(loaded, ct.Arms) else "candidates"] = loaded
    if means is not None:
        given["arms"] = ct.read_arms(means)
    if csv is not None:
        from collabtop.runs.checkpoint import read_header

        given["arms"] = ct.read_rewards(csv, replay=replay, dealt_to=read_header(checkpoint).agents)
    if pull is not None:
        given |= {"pull": load("--pull", pull), "policy": make_policy(retries, wait, time_limit, failures)}
    with resumable(), notice_if_finished(checkpoint):
        result = ct.resume(
            checkpoint, **given, team=make_team(team, address), progress=wants_progress(progress), watch=watch
        )
    print_json(result.to_dict()) if json else print_tables(result)
