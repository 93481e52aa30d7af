"""`collabtop plan`: which horizon gives which error, or what a budget buys, before anything is pulled."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import collabtop as ct
from collabtop.cli.output import examples, print_json, print_tables
from collabtop.cli.run_options import BoundsOption, DirectionOption, PrivacyOption, WeightsOption, column_option
from collabtop.cli.values import read_bounds, read_privacy, read_weights

if TYPE_CHECKING:
    from collabtop.arms import SimulatedArms

plan_examples = examples(
    "collabtop plan -n 588 -m 8 --agents 10 --gap 0.05",
    "collabtop plan --means means.txt -m 1 --agents 10 --error 0.1 --error 0.01",
    "collabtop plan --means one_column_per_agent.txt -m 1 --seconds 20",
    "collabtop plan -n 588 -m 8 --agents 10 --gap 0.05 --no-simulation --json",
    "collabtop plan --budget 6000 -n 200 -m 5 --pilot pilot.csv --tolerance 0.05",
    "collabtop plan --budget 6000 -m 5 --pilot clicks.csv --candidate page --reward clicked",
    "collabtop plan -n 40 -m 4 --agents 10 --gap 0.05 --privacy 1,1e-6,reward",
    "collabtop plan --budget 50 --cost 0.002 -n 200 -m 5 --spread 0.2 0.6 --pull-seconds 3",
)


def plan(
    m: Annotated[int, typer.Option("-m", "--m", help="How many of the best arms are wanted.")],
    n: Annotated[int | None, typer.Option("-n", "--n", help="Number of arms; not needed with --means.")] = None,
    agents: Annotated[int | None, typer.Option(help="Number of agents; not needed for a non-IID file.")] = None,
    gap: Annotated[
        float | None,
        typer.Option(help="The gap you expect between rank m and m + 1; the plan is for the hardest such arms."),
    ] = None,
    means: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead of --gap: means like the ones you expect.")
    ] = None,
    weights: WeightsOption = None,
    budget: Annotated[
        float | None, typer.Option(help="Instead of an error: what all pulls may cost, to see what that buys.")
    ] = None,
    pilot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --budget: earlier rewards, as a CSV file or an earlier checkpoint."),
    ] = None,
    candidate: Annotated[str | None, column_option("--candidate", file="--pilot")] = None,
    reward: Annotated[str | None, column_option("--reward", file="--pilot")] = None,
    direction: DirectionOption = "maximize",
    bounds: BoundsOption = "0,1",
    spread: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="With --budget: numbers between which about 95% of the true means lie."),
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="With --budget: how far below rank m a close answer may be; default: 0.02.")
    ] = None,
    cost: Annotated[float | None, typer.Option(help="With --budget: the price of a pull; default: 1.")] = None,
    pull_seconds: Annotated[float | None, typer.Option(help="With --budget: how long a pull takes.")] = None,
    error: Annotated[
        list[float] | None,
        typer.Option(help="The acceptable probability of a wrong answer; default: 0.01; repeatable."),
    ] = None,
    privacy: PrivacyOption = None,
    algorithm: Annotated[
        list[str] | None, typer.Option(help="A name from `collabtop algorithms`; default: all that fit; repeatable.")
    ] = None,
    simulation: Annotated[bool, typer.Option(help="Simulate, or only print the bounds.")] = True,
    runs: Annotated[int, typer.Option(help="The most simulated runs per algorithm and error.")] = 20_000,
    seconds: Annotated[
        float | None,
        typer.Option(help="CPU time for simulations, roughly; default: 1 for up to 10,000 arms, 10 for a million."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulations.")] = 0,
    jobs: Annotated[int | None, typer.Option(min=1, help="Number of threads; default: one per core.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Estimate the horizon that a given error needs, or what a budget buys."""
    if weights is not None and means is None:
        raise ct.InputError("--weights only applies with --means")
    log = {"candidate": candidate, "reward": reward, "direction": direction, "bounds": read_bounds(bounds)}
    result: ct.Plan | ct.BudgetPlan = ct.plan(
        n,
        m,
        agents,
        budget=budget,
        gap=gap,
        means=None if means is None else _read(means, read_weights(weights)),
        pilot=_pilot(pilot, log),
        spread=spread,
        tolerance=tolerance,
        cost=cost,
        pull_seconds=pull_seconds,
        error=error or [0.01],
        privacy=read_privacy(privacy),
        algorithms=algorithm,
        simulate=simulation,
        runs=runs,
        seconds=seconds,
        seed=seed,
        jobs=jobs,
        progress=not json,
    )
    if json:
        print_json(result.to_dict())
    else:
        print_tables(result)


def _pilot(path: Path | None, log: dict[str, Any]) -> "Path | ct.LoggedArms | None":
    """Earlier rewards; `log` has the options that apply to a CSV file of them."""
    from collabtop.planning.beliefs import is_table

    given = [name for name, value in log.items() if value != _LOG_DEFAULTS[name]]
    if not given:
        return path
    if path is None or not is_table(path):
        was = "which was not given" if path is None else f"but --pilot is {str(path)!r}"
        raise ct.InputError(f"--{given[0]} only applies with a CSV file as --pilot, {was}")
    return ct.read_rewards(path, **log)


_LOG_DEFAULTS = {"candidate": None, "reward": None, "direction": "maximize", "bounds": (0.0, 1.0)}


def _read(path: Path, weights: list[float] | None) -> "SimulatedArms":
    from collabtop.arms import SimulatedArms

    arms = ct.read_arms(path, weights=weights)
    if not isinstance(arms, SimulatedArms):
        raise ct.InputError(f"{path}: a plan needs known means")
    return arms
