"""`collabtop extend`: make a run longer, with all of its earlier pulls."""

from pathlib import Path
from typing import Annotated

import typer

import collabtop as ct
from collabtop.cli import run_options as shared
from collabtop.cli.errors import resumable
from collabtop.cli.output import examples

extend_examples = examples(
    "collabtop extend run.ctlog --horizon 400 --pull mymodule:score --team threads",
    "collabtop extend run.ctlog --budget 40 --pull mymodule:score --team threads",
)


def extend(
    checkpoint: Annotated[Path, typer.Argument(metavar="FILE", help="A file written by `identify --checkpoint`.")],
    horizon: Annotated[int | None, typer.Option(help="Number of pulls per agent; larger than before.")] = None,
    budget: Annotated[
        float | None, typer.Option(help="Instead of --horizon: what all pulls may cost, including those before.")
    ] = None,
    pull: shared.LoggedPull = None,
    arms: shared.LoggedArmsOption = None,
    means: shared.LoggedMeans = None,
    csv: shared.LoggedCsv = None,
    candidate: shared.CandidateColumn = None,
    reward: shared.RewardColumn = None,
    agent: shared.AgentColumn = None,
    replay: shared.LoggedReplay = False,
    team: shared.TeamOption = shared.TeamName.local,
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
    """Make a run longer: with a plan for a larger horizon or budget, in which all earlier pulls count as made."""
    policy = shared.make_policy(retries, wait, time_limit, failures)
    columns = {"candidate": candidate, "reward": reward, "agent": agent}
    show = shared.result_printer(json=json)
    with resumable(show):
        result = ct.extend(
            checkpoint,
            horizon=horizon,
            budget=budget,
            **shared.logged_source(checkpoint, pull, arms, means, csv, policy, replay=replay, columns=columns),
            team=shared.make_team(team, None),
            timeout=timeout,
            workers=workers,
            rate=rate,
            progress=shared.wants_progress(progress),
            watch=watch,
        )
    show(result)
