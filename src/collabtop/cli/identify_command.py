"""`collabtop identify`: one run on candidates and a function, on a file of means, or on logged rewards."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

import collabtop as ct
from collabtop.cli import run_options as shared
from collabtop.cli.errors import resumable
from collabtop.cli.output import examples, print_json, print_tables
from collabtop.cli.values import load, read_bounds, read_options, read_privacy, read_weights

identify_examples = examples(
    "collabtop identify --arms mymodule:candidates --pull mymodule:score -m 5 --agents 8 --horizon 200 "
    "--team threads --checkpoint run.ctlog",
    "collabtop identify --arms mymodule:candidates --pull mymodule:score -m 5 --agents 8 --budget 20 "
    "--cost mymodule:price --retries 3 --failures skip",
    "collabtop identify --csv rewards.csv -m 1 --agents 10 --horizon 60",
    "collabtop identify --csv clicks.csv --candidate page --reward clicked -m 1 --agents 10 --horizon 60",
    "collabtop identify --csv latencies.csv -m 1 --agents 10 --horizon 60 --direction minimize --bounds none",
    "collabtop identify --means means.txt -m 8 --agents 10 --horizon 30000",
    "collabtop identify --means means.csv -m 1 --agents 10 --confidence 0.99 --seed 7",
    "collabtop identify --arms mymodule:patients_arms -m 1 --agents 3 --horizon 2000 --privacy 1,1e-6,example",
    "collabtop identify --means one_column_per_agent.csv --weights 1,1,4 -m 1 --horizon 30000",
    "collabtop identify --means means.txt -m 8 --agents 10 --horizon 30000 "
    "--algorithm collab-top-iid --option schedule=full --json",
)


_MeansOption = Annotated[
    Path | None,
    shared.file_option("Simulate: one mean per line, or one column per agent for non-IID arms; CSV may have labels."),
]
_CsvOption = Annotated[
    Path | None, shared.file_option("Logged rewards: columns candidate, reward and, optionally, agent.")
]
_BudgetOption = Annotated[
    float | None,
    typer.Option(help="Instead of --horizon: pulls of all agents together, or their total cost with --cost."),
]
_CostOption = Annotated[str | None, shared.object_option("The price of a pull: a function of a candidate, or a list.")]
_ConfidenceOption = Annotated[
    float | None, typer.Option(help="Instead of --horizon: stop when the answer is right with this probability.")
]
_ToleranceOption = Annotated[
    float, typer.Option(help="With --confidence: accept an arm that is worse than the m-th best by at most this much.")
]
_AlgorithmName = Annotated[
    str, typer.Option(help="A name from `collabtop algorithms`, or auto: the default for the kind of arms.")
]
_AlgorithmOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the algorithm; repeatable.")
]
_SeedOption = Annotated[int | None, typer.Option(help="The same seed gives the same run; drawn at random by default.")]
_CheckpointOption = Annotated[
    Path | None, shared.file_option("Record every pull here; the same command continues from it.")
]


def identify(
    m: Annotated[int, typer.Option("-m", "--m", help="How many of the best arms are wanted.")],
    means: _MeansOption = None,
    arms: shared.ArmsOption = None,
    pull: shared.PullOption = None,
    csv: _CsvOption = None,
    candidate: shared.CandidateColumn = None,
    reward: shared.RewardColumn = None,
    agent: shared.AgentColumn = None,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay",
            help="Use logged rewards in the order of the file; lower a horizon that needs more than there are.",
        ),
    ] = False,
    direction: shared.DirectionOption = "maximize",
    bounds: shared.BoundsOption = "0,1",
    weights: shared.WeightsOption = None,
    agents: Annotated[int | None, typer.Option(help="Number of agents; not needed for a non-IID file.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Number of pulls per agent.")] = None,
    budget: _BudgetOption = None,
    cost: _CostOption = None,
    confidence: _ConfidenceOption = None,
    tolerance: _ToleranceOption = 0.0,
    max_horizon: Annotated[int | None, typer.Option(help="With --confidence: the most pulls per agent.")] = None,
    robust: Annotated[int, typer.Option(help="How many of the agents may lie.")] = 0,
    privacy: shared.PrivacyOption = None,
    algorithm: _AlgorithmName = "auto",
    option: _AlgorithmOption = None,
    seed: _SeedOption = None,
    team: shared.TeamOption = shared.TeamName.local,
    address: shared.AddressOption = None,
    timeout: shared.Timeout = None,
    checkpoint: _CheckpointOption = None,
    workers: shared.Workers = None,
    rate: shared.RateOption = None,
    name: Annotated[str | None, typer.Option(help="A name for the run, shown in results and logs.")] = None,
    retries: shared.Retries = 0,
    wait: shared.Wait = 0.5,
    time_limit: shared.TimeLimit = None,
    failures: shared.FailuresOption = shared.FailureName.stop,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what the run would do, without pulling.")] = False,
    progress: shared.ProgressOption = None,
    watch: shared.WatchOption = False,
    json: shared.Json = False,
) -> None:
    """Find the best m candidates with a team of agents, and print them and what the run cost."""
    policy = shared.make_policy(retries, wait, time_limit, failures)
    unit: dict[str, Any] = {"direction": direction, "bounds": read_bounds(bounds)}
    log = {"candidate": candidate, "reward": reward, "agent": agent, "replay": replay}
    source, function = _source(means, arms, pull, csv, log, unit, read_weights(weights))
    limits: dict[str, Any] = {"agents": agents, "horizon": horizon, "budget": budget}
    limits["cost"] = None if cost is None else load("--cost", cost)
    limits |= {"algorithm": algorithm, "options": read_options(algorithm, option or [])}
    limits |= {"robust": robust, "privacy": read_privacy(privacy)}
    if csv is None:  # the arms of a file have it already
        limits |= unit
    if dry_run:
        forecast = ct.dry_run(source, m, **limits)
        print_json(forecast) if json else print_tables(forecast)
        return
    show = shared.result_printer(json=json)
    with (
        resumable(show, logged=checkpoint is not None),
        shared.notice_if_finished(checkpoint) if checkpoint else nullcontext(),
    ):
        result = ct.identify(
            source,
            m,
            **limits,
            confidence=confidence,
            tolerance=tolerance,
            max_horizon=max_horizon,
            pull=function,
            policy=policy if function is not None else None,
            seed=seed,
            team=shared.make_team(team, address),
            timeout=timeout,
            workers=workers,
            rate=rate,
            checkpoint=checkpoint,
            name=name,
            progress=shared.wants_progress(progress),
            watch=watch,
        )
    show(result)


def _source(
    means: Path | None,
    arms: str | None,
    pull: str | None,
    csv: Path | None,
    log: dict[str, Any],
    unit: dict[str, Any],
    weights: list[float] | None,
) -> tuple[Any, Any]:
    """The arms, or candidates and the function that pulls them; `log` has the options that apply to a CSV file."""
    given = [name for name, value in (("--means", means), ("--arms", arms), ("--csv", csv)) if value is not None]
    if len(given) != 1:
        count = f"{' and '.join(given)} were given" if given else "none was given"
        raise ct.InputError(f"give exactly one of --means, --arms and --csv: {count} (collabtop identify --help)")
    if pull is not None and arms is None:
        raise ct.InputError(f"--pull only applies with --arms, but {given[0]} was given")
    for option in (option for option, value in log.items() if value and csv is None):
        raise ct.InputError(f"--{option} only applies with --csv, but {given[0]} was given")
    if weights is not None and arms is not None:
        raise ct.InputError("--weights only applies with --means or --csv: pass weights= to your own arms")
    if arms is not None:
        function = None if pull is None else load("--pull", pull)
        return load("--arms", arms), function
    if csv is not None:
        return ct.read_rewards(csv, weights=weights, **log, **unit), None
    assert means is not None
    return ct.read_arms(means, weights=weights), None
