"""`collabtop resume`: continue a run from its checkpoint."""

from pathlib import Path
from typing import Annotated

import typer

import collabtop as ct
from collabtop.cli import run_options as shared
from collabtop.cli.errors import resumable
from collabtop.cli.output import examples

resume_examples = examples(
    "collabtop resume run.ctlog --pull mymodule:score --team threads",
    "collabtop resume run.ctlog --pull mymodule:score --arms mymodule:candidates --team threads --retries 3",
)


def resume(
    checkpoint: Annotated[Path, typer.Argument(metavar="FILE", help="A file written by `identify --checkpoint`.")],
    pull: shared.LoggedPull = None,
    arms: shared.LoggedArmsOption = None,
    means: shared.LoggedMeans = None,
    csv: shared.LoggedCsv = None,
    candidate: shared.CandidateColumn = None,
    reward: shared.RewardColumn = None,
    agent: shared.AgentColumn = None,
    replay: shared.LoggedReplay = False,
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
    policy = shared.make_policy(retries, wait, time_limit, failures)
    columns = {"candidate": candidate, "reward": reward, "agent": agent}
    given = shared.logged_source(checkpoint, pull, arms, means, csv, policy, replay=replay, columns=columns)
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
