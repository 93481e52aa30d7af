"""Options that commands have in common."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import collabtop as ct
from collabtop.cli.output import print_json, print_tables
from collabtop.cli.values import load


class TeamName(StrEnum):
    """Where the agents run."""

    local = "local"
    threads = "threads"
    processes = "processes"
    ray = "ray"


class FailureName(StrEnum):
    """What counts for a pull that failed for good."""

    stop = "raise"
    zero = "zero"
    skip = "skip"


def file_option(help: str) -> Any:
    """An option that takes a file."""
    return typer.Option(metavar="FILE", help=help)


def object_option(help: str) -> Any:
    """An option that takes a Python object of the user's, as MODULE:NAME."""
    return typer.Option(metavar="MODULE:NAME", help=help)


def column_option(name: str, file: str) -> Any:
    """An option that names a column of a file of logged rewards."""
    return typer.Option(name, metavar="COLUMN", help=f"With {file}: the column with the {name.lstrip('-')}s.")


ArmsOption = Annotated[str | None, object_option("Your candidates (with --pull), or your own arms.")]
PullOption = Annotated[str | None, object_option("Your function pull(candidate, rng); returns a reward.")]
DirectionOption = Annotated[str, typer.Option(help="maximize, or minimize if small rewards are better.")]
BoundsOption = Annotated[
    str, typer.Option(metavar="LOW,HIGH", help="The smallest and the largest possible reward, or none.")
]
WeightsOption = Annotated[
    str | None,
    typer.Option(metavar="W1,W2,...", help="For non-IID arms: how much each agent counts; equally by default."),
]
PrivacyOption = Annotated[
    str | None,
    typer.Option(
        metavar="EPS,DELTA,UNIT",
        help="Differential privacy: agents add noise to sums of rewards, so that what they send reveals at most EPS "
        "about any one UNIT (reward or example), except with probability DELTA; such as 1,1e-6,reward. A smaller EPS "
        "is more private and needs more pulls.",
    ),
]
TeamOption = Annotated[
    TeamName, typer.Option(help="Run pulls one after the other, in threads, in processes, or on a Ray cluster.")
]
AddressOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="With --team ray: the cluster to join; by default, one is started here."),
]
Workers = Annotated[int | None, typer.Option(help="How many pulls run at once.")]
RateOption = Annotated[float | None, typer.Option("--rate", help="How many calls may begin per second.")]
LoggedPull = Annotated[str | None, object_option("Your function.")]
LoggedArmsOption = Annotated[
    str | None, object_option("Your candidates, if the file does not hold them; or your own arms.")
]
LoggedMeans = Annotated[Path | None, file_option("The file of means of a simulation.")]
LoggedCsv = Annotated[Path | None, file_option("The file of logged rewards.")]
LoggedReplay = Annotated[bool, typer.Option("--replay", help="With --csv: the run was started with --replay.")]
CandidateColumn = Annotated[str | None, column_option("--candidate", file="--csv")]
RewardColumn = Annotated[str | None, column_option("--reward", file="--csv")]
AgentColumn = Annotated[str | None, column_option("--agent", file="--csv")]
Retries = Annotated[int, typer.Option(help="How often a failed pull is tried again.")]
Wait = Annotated[float, typer.Option(help="Seconds before the first retry; doubled for each later one.")]
TimeLimit = Annotated[float | None, typer.Option(help="The most seconds a pull may take.")]
FailuresOption = Annotated[
    FailureName,
    typer.Option(help="What to do with a pull that still fails: stop the run, count the worst reward, or skip it."),
]
ProgressOption = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="Show progress; on by default in a terminal."),
]
WatchOption = Annotated[bool, typer.Option("--watch", help="Show the run on a page in the browser.")]
Timeout = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Stop after this time, and print the best answer known by then."),
]
Json = Annotated[bool, typer.Option("--json", help="Print only JSON: the whole result.")]


def result_printer(*, json: bool) -> "Callable[[ct.Result], None]":
    """The function that prints a result: as JSON, or as a table."""
    return (lambda result: print_json(result.to_dict())) if json else print_tables


def logged_source(
    checkpoint: Path,
    pull: str | None,
    arms: str | None,
    means: Path | None,
    csv: Path | None,
    policy: "ct.PullPolicy",
    *,
    replay: bool,
    columns: dict[str, Any],
) -> dict[str, Any]:
    """What has to be passed again for the run that a checkpoint holds."""
    given: dict[str, Any] = {}
    if arms is not None:
        loaded = load("--arms", arms)
        given["arms" if isinstance(loaded, ct.Arms) else "candidates"] = loaded
    if means is not None or csv is not None:
        from collabtop.runs.checkpoint import read_header

        header = read_header(checkpoint)
        unit: dict[str, Any] = {"direction": header.direction, "bounds": header.bounds}
        if means is not None:
            given["arms"] = ct.read_arms(means, weights=header.weights)
        if csv is not None:
            given["arms"] = ct.read_rewards(csv, replay=replay, weights=header.weights, **columns, **unit)
    if pull is not None:
        given |= {"pull": load("--pull", pull), "policy": policy}
    return given


def make_team(team: TeamName, address: str | None) -> Any:
    """The team for these options."""
    if address is None:
        return team.value
    if team is not TeamName.ray:
        raise ct.InputError(f"--address only applies with --team ray, but --team is {team.value}")
    return ct.RayTeam(address=address)


@contextmanager
def notice_if_finished(checkpoint: Path) -> Iterator[None]:
    """Print on stderr that a checkpoint held the answer already, so that a changed function had no effect."""
    from collabtop.runs.checkpoint import is_finished

    was_finished = is_finished(checkpoint)
    yield
    if was_finished:
        typer.echo(f"{checkpoint} held the answer already: nothing was pulled (use a new file for a new run)", err=True)


def make_policy(retries: int, wait: float, time_limit: float | None, failures: FailureName) -> "ct.PullPolicy":
    """The policy for these options."""
    return ct.PullPolicy(retries=retries, wait=wait, time_limit=time_limit, failures=failures.value)


def wants_progress(asked: bool | None) -> bool:
    """What was requested, or by default whether stderr is a terminal."""
    return sys.stderr.isatty() if asked is None else asked
