"""`identify` and `start`: one run, from its arguments to its result, or to a handle of it."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any, TypeVar, Unpack, overload

from collabtop.algorithms.base import Algorithm
from collabtop.arms import Arms, PullPolicy
from collabtop.arms.function import Pull
from collabtop.arms.rate import RateLimit
from collabtop.arms.unit import Bounds, Direction
from collabtop.coordination.team import Team
from collabtop.events import OnEvent
from collabtop.privacy import Privacy
from collabtop.runs.arguments import ArmsOptions, PullOptions
from collabtop.runs.budget import Cost
from collabtop.runs.checkpoint import seed_in
from collabtop.runs.execute import Execution, OnInterrupt, Timeout
from collabtop.runs.handle import Run
from collabtop.runs.result import Result
from collabtop.runs.spec import TeamName, make_spec

Candidate = TypeVar("Candidate")
PullOf = Callable[[Candidate, Any], Any] | Callable[[Candidate, int, Any], Any]
"""A function of a candidate and `rng` (or the number of a replicate), or one that is marked with `batch`."""


@overload
def identify(arms: Arms, m: int, **options: Unpack[ArmsOptions]) -> Result: ...


@overload
def identify(
    arms: Mapping[Any, Candidate], m: int, *, pull: PullOf[Candidate], **options: Unpack[PullOptions]
) -> Result: ...


@overload
def identify(
    arms: Iterable[Candidate], m: int, *, pull: PullOf[Candidate], **options: Unpack[PullOptions]
) -> Result: ...


def identify(
    arms: Any,
    m: int,
    *,
    agents: int | None = None,
    horizon: int | None = None,
    budget: float | None = None,
    cost: Cost | None = None,
    confidence: float | None = None,
    tolerance: float = 0.0,
    max_horizon: int | None = None,
    pull: Pull | None = None,
    paired: bool = False,
    direction: Direction = "maximize",
    bounds: Bounds = (0.0, 1.0),
    policy: PullPolicy | None = None,
    workers: int | None = None,
    rate: RateLimit | None = None,
    robust: int = 0,
    privacy: Privacy | None = None,
    algorithm: str | Algorithm = "auto",
    options: dict[str, Any] | None = None,
    seed: int | None = None,
    team: TeamName | Team = "local",
    timeout: Timeout | None = None,
    checkpoint: str | PathLike[str] | None = None,
    name: str | None = None,
    on_event: OnEvent | None = None,
    on_interrupt: OnInterrupt = "raise",
    progress: bool = False,
    watch: bool = False,
) -> Result:
    """Find the best m arms with a team of agents.

    It is `start(...).result()`, but makes the run in the calling thread, so that Ctrl-C reaches your function, and
    objects that belong to a thread can be used.

    Args:
        arms: candidates of your own, with `pull`: a list, a generator, `rows` of a data frame, or a dictionary whose
            keys are their labels; or arms: `BernoulliArms`, `HeterogeneousArms`, `BetaArms`,
            `FunctionArms`, `DatasetArms`, `LoggedArms`, or a class of your own (the paper's I).
        m: how many are wanted (m).
        agents: how many agents share the work (K). It may be left out for arms that differ from agent to agent, and for
            a function on this machine: one agent then pools all that it sees, however many `workers` there are.
        horizon: how many pulls each agent may make (T).
        budget: instead of a horizon: how many pulls all agents may make together, or, with `cost`, what the pulls may
            cost. The horizon is then the largest that cannot exceed it, whichever candidates stay open.
        cost: the price of one pull: one number, one number per candidate, or a function of the candidate.
        confidence: instead of a horizon: stop as soon as the answer is right with this probability.
        tolerance: with a confidence: an arm worse than the m-th best by at most this much counts as right; in the unit
            of the rewards.
        max_horizon: with a confidence: the most pulls an agent may make; 10,000,000 by default. A run that reaches it
            has `result.sure` False, and `result.open` lists the arms that are not settled.
        pull: a function `pull(candidate, rng)` that tries a candidate once and returns a reward; it may be `async`, or
            marked with `batch`.
        paired: with `pull`: give the t-th pull of every candidate the same random numbers.
        direction: with `pull`: `"maximize"`, or `"minimize"` if small rewards are better: a latency, an error, a price.
        bounds: with `pull`: the smallest and the largest possible reward, or None if there are none. A confidence needs
            bounds.
        policy: what happens to pulls that fail: retries, a time limit, and what a failed pull counts as.
        workers: how many pulls run at once, over all agents; by default one per agent on the teams that run agents in
            parallel. On a Ray cluster, the hosts share them.
        rate: how many calls may begin per second, over all workers; or a `Rate`, such as tokens per minute; or several.
        robust: how many of the agents may lie: the answer then rests on trimmed means, and `result.suspects` lists
            agents whose answers do not fit those of the others (`RobustTop`).
        privacy: differential privacy: agents add noise to every sum of rewards (`Privacy`, docs: Privacy).
        algorithm: a name (`available_algorithms()`), an algorithm object, or `"auto"`: the best for these arms.
        options: options of an algorithm passed by name.
        seed: the same seed gives the same run on every team; by default one is drawn, and reported in the result.
        team: where the agents run: `"local"` (one after the other), `"threads"` (in parallel, for functions that wait),
            `"processes"` (for functions that compute: one worker process per core), `"ray"` (on a Ray cluster), or a
            team object.
        timeout: seconds, or a `datetime`, after which the run is stopped: it completes the pulls under way and returns
            the best answer known by then, with `result.complete` False.
        checkpoint: a file that keeps every pull and every exchange; the same call, or `resume`, continues from it.
        name: a name for the run, shown in results and logs.
        on_event: called with every event of the run, from one thread at a time.
        on_interrupt: what happens at Ctrl-C. `"raise"`: the `KeyboardInterrupt` gets an attribute `partial`, the result
            so far with `complete` False. `"return"`: that result is returned.
        progress: show the progress on stderr.
        watch: show the run on a page in the browser (needs the `watch` extra).

    Returns:
        The best m arms, what was learnt about all of them, and what it cost.

    Raises:
        InputError: an argument is wrong; nothing was pulled.
        PullError: the user's own function failed.
        CheckpointError: the checkpoint could not be written.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.2, 0.9, 0.5, 0.4], labels=["w", "x", "y", "z"])
    >>> result = ct.identify(arms, m=2, agents=3, horizon=1_000, seed=7)
    >>> result.top
    ['x', 'y']
    >>> result.algorithm, result.time
    ('frugal-top', 1000)
    >>> ct.identify(arms, m=2, agents=3, confidence=0.99, seed=7).sure
    True
    """
    execution = _prepare(
        arms,
        m,
        agents=agents,
        horizon=horizon,
        budget=budget,
        cost=cost,
        confidence=confidence,
        tolerance=tolerance,
        max_horizon=max_horizon,
        pull=pull,
        paired=paired,
        direction=direction,
        bounds=bounds,
        policy=policy,
        robust=robust,
        privacy=privacy,
        algorithm=algorithm,
        options=options,
        seed=seed,
        team=team,
        workers=workers,
        rate=rate,
        timeout=timeout,
        checkpoint=checkpoint,
        name=name,
        on_event=on_event,
        on_interrupt=on_interrupt,
        progress=progress,
        watch=watch,
    )
    return execution.run()


def _prepare(
    arms: Any,
    m: int,
    *,
    seed: int | None = None,
    timeout: Timeout | None = None,
    checkpoint: str | PathLike[str] | None = None,
    on_event: OnEvent | None = None,
    on_interrupt: OnInterrupt = "raise",
    progress: bool = False,
    watch: bool = False,
    may_double: bool = False,
    **arguments: Any,
) -> Execution:
    """A run that is ready to begin, from the arguments of `identify`."""
    if seed is None and checkpoint is not None:
        seed = seed_in(checkpoint)
    return Execution(
        make_spec(arms, m, seed=seed, may_double=may_double or timeout is not None, **arguments),
        checkpoint=checkpoint,
        on_event=on_event,
        progress=progress,
        watch=watch,
        timeout=timeout,
        on_interrupt=on_interrupt,
    )


@overload
def start(arms: Arms, m: int, **options: Unpack[ArmsOptions]) -> Run: ...


@overload
def start(arms: Mapping[Any, Candidate], m: int, *, pull: PullOf[Candidate], **options: Unpack[PullOptions]) -> Run: ...


@overload
def start(arms: Iterable[Candidate], m: int, *, pull: PullOf[Candidate], **options: Unpack[PullOptions]) -> Run: ...


def start(*args: Any, **kwargs: Any) -> Run:
    """Start a run in the background and return a handle of it; the arguments are those of `identify`.

    Wrong arguments raise their error here. The run is made in a thread of its own: `run.best()` is the answer so far,
    `run.stop()` ends it after the pulls under way, and `run.result()` waits for it.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.2, 0.9, 0.5, 0.4], labels=["w", "x", "y", "z"])
    >>> with ct.start(arms, m=2, agents=3, horizon=1_000, seed=7) as run:
    ...     result = run.result()
    >>> result == ct.identify(arms, m=2, agents=3, horizon=1_000, seed=7)
    True
    >>> run.best() == result, run.progress.state
    (True, 'done')
    """
    return Run(_prepare(*args, may_double=True, **kwargs))


start.__signature__ = inspect.signature(identify).replace(return_annotation=Run)  # type: ignore[attr-defined]
