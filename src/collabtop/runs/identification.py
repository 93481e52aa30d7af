"""`identify`: one run, from its arguments to its result."""

from __future__ import annotations

from os import PathLike
from typing import Any

from collabtop.algorithms.base import Algorithm
from collabtop.arms import PullPolicy
from collabtop.arms.function import Pull
from collabtop.coordination.team import Team
from collabtop.events import OnEvent
from collabtop.runs.budget import Cost
from collabtop.runs.checkpoint import seed_in
from collabtop.runs.execute import execute
from collabtop.runs.result import Result
from collabtop.runs.spec import make_spec


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
    policy: PullPolicy | None = None,
    algorithm: str | Algorithm = "auto",
    options: dict[str, Any] | None = None,
    seed: int | None = None,
    team: str | Team = "local",
    checkpoint: str | PathLike[str] | None = None,
    on_event: OnEvent | None = None,
    progress: bool = False,
    watch: bool = False,
) -> Result:
    """Find the best m arms with a team of agents.

    Args:
        arms: candidates of your own, with `pull`, or what can be pulled: `BernoulliArms`, `HeterogeneousArms`,
            `BetaArms`, `FunctionArms`, `DatasetArms`, or arms of your own (the paper's I).
        m: how many are wanted (m).
        agents: how many agents share the work (K); arms that differ from agent to agent know it themselves.
        horizon: how many pulls each agent may make (T): all of them are spent.
        budget: instead of a horizon: how many pulls all agents may make together, or with `cost` what they may
            cost. The horizon is the largest that cannot cost more, whichever candidates stay open.
        cost: the price of one pull: a function of a candidate, a number for each, or one for all.
        confidence: instead of a horizon, stop as soon as the answer is right with this probability.
        tolerance: with a confidence, an arm this little worse than the m-th best is right as well.
        max_horizon: with a confidence, the most pulls an agent may make; 10,000,000 if left out. A run that
            meets it says that it is not sure (`result.sure`) and which arms are open.
        pull: a function that tries a candidate once, `pull(candidate, rng)`, and gives a reward in [0, 1]; it
            may be `async`, or marked with `batch`.
        policy: what happens to pulls that fail: retries, a time limit, and what counts in the end.
        algorithm: a name (`available_algorithms()`), an algorithm object with its options, or `"auto"`: the
            best for the kind of arms.
        options: options of an algorithm given by name.
        seed: the same seed gives the same run, on every team; left out, one is drawn and reported.
        team: where the agents run: `"local"` (one after the other), `"threads"` (in parallel), `"ray"` (on a Ray
            cluster), or a team object.
        checkpoint: a file that keeps every pull and every exchange; the same call, or `resume`, goes on from it.
        on_event: called with every event of the run, from one thread at a time.
        progress: show how far the run is, on stderr.
        watch: show the run on a page in the browser (needs the `watch` extra).

    Returns:
        The best m arms, what was learnt of all of them, and what it cost.

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
    if seed is None and checkpoint is not None:
        seed = seed_in(checkpoint)
    spec = make_spec(
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
        policy=policy,
        algorithm=algorithm,
        options=options,
        seed=seed,
        team=team,
    )
    return execute(spec, checkpoint=checkpoint, on_event=on_event, progress=progress, watch=watch)
