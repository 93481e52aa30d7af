"""`collabtop resume`: continue a run from its checkpoint."""

from pathlib import Path
from typing import Annotated, Any

import typer

import collabtop as ct
from collabtop.cli import run_options as shared
from collabtop.cli.errors import resumable
from collabtop.cli.output import examples
from collabtop.cli.values import load

resume_examples = examples(
    "collabtop resume run.ctlog --pull mymodule:score --team threads",
    "collabtop resume run.ctlog --pull mymodule:score --arms mymodule:candidates --team threads --retries 3",
)


def resume(
    checkpoint: Annotated[Path, typer.Argument(metavar="FILE", help="A file written by `identify --checkpoint`.")],
    pull: Annotated[str | None, shared.object_option("Your function.")] = None,
    arms: Annotated[
        str | None, shared.object_option("Your candidates, if the file does not hold them; or your own arms.")
    ] = None,
    means: Annotated[Path | None, shared.file_option("The file of means of a simulation.")] = None,
    csv: Annotated[Path | None, shared.file_option("The file of logged rewards.")] = None,
    replay: Annotated[bool, typer.Option("--replay", help="With --csv: the run was started with --replay.")] = False,
    team: shared.TeamOption = shared.TeamName.local,
    address: shared.AddressOption = None,
    timeout: shared.Timeout = None,
    workers: shared.Workers = None,
    rate: shared.RateOption = None,
    retries: shared.Retries = 0,
    wait: shared.Wait = 0.5,
    time_limit: shared.TimeLimit = None,
    failures: shared.FailuresOption = shared.FailureName.stop,
    progress: shared.ProgressOption = None,
    watch: shared.WatchOption = False,
    json: shared.Json = False,
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

        header = read_header(checkpoint)
        unit: dict[str, Any] = {"direction": header.direction, "bounds": header.bounds}
        given["arms"] = ct.read_rewards(csv, replay=replay, **unit)
    if pull is not None:
        given |= {"pull": load("--pull", pull), "policy": shared.make_policy(retries, wait, time_limit, failures)}
    show = shared.result_printer(json=json)
    with resumable(show), shared.notice_if_finished(checkpoint):
        result = ct.resume(
            checkpoint,
            **given,
            team=shared.make_team(team, address),
            timeout=timeout,
            workers=workers,
            rate=rate,
            progress=shared.wants_progress(progress),
            watch=watch,
        )
    show(result)
