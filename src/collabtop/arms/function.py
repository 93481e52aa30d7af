"""Candidates and a function that tries one of them: the arms that `identify` makes of `pull=`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from collabtop.arms.base import Arms
from collabtop.arms.called import CalledArms
from collabtop.arms.calls import CandidatePull
from collabtop.arms.policy import PullPolicy
from collabtop.arms.tables import as_candidates
from collabtop.arms.unit import Bounds, Direction, Unit
from collabtop.errors import InputError

Pull = Callable[..., Any]


class FunctionArms(CalledArms):
    """Candidates and a function that tries one of them once: `pull(candidate, rng)` returns a reward.

    `rng` is created for every pull from (seed, agent, pull number, attempt): use it for all randomness in
    `pull`, and a run can be reproduced exactly. `pull` may be `async`, or marked with `batch` to make many
    pulls of a candidate in one call. `identify(candidates, m, pull=pull, ...)` is short for these arms.

    Args:
        candidates: the candidates to choose from (the paper's I): a list, a generator, `rows` of a data frame, or a
            dictionary whose keys are their labels.
        pull: the function.
        paired: give the t-th pull of every candidate the same random numbers (common random numbers). Where part of
            the noise is the same for all candidates, it then cancels out when they are compared.
        direction: `"maximize"`, or `"minimize"` if small rewards are better: a latency, an error, a price.
        bounds: the smallest and the largest possible reward, or None if there are none.
        labels: the names of the candidates; the default is `str(candidate)`.
        policy: what happens to pulls that fail.

    >>> import collabtop as ct
    >>> prompts = ["short", "polite", "step by step"]
    >>> def score(prompt, rng):
    ...     return rng.random() < len(prompt) / 20
    >>> arms = ct.FunctionArms(prompts, score)
    >>> ct.identify(arms, m=1, agents=2, horizon=200, seed=1).top
    ['step by step']
    """

    takes_pull: ClassVar[bool] = True

    def __init__(
        self,
        candidates: Iterable[Any],
        pull: Pull,
        *,
        paired: bool = False,
        direction: Direction = "maximize",
        bounds: Bounds = (0.0, 1.0),
        labels: Sequence[str] | None = None,
        policy: PullPolicy | None = None,
    ) -> None:
        candidates = as_candidates(candidates)
        function = CandidatePull(candidates, pull, unit=Unit(direction, bounds), paired=paired)
        super().__init__(candidates, function, labels=labels, agents=None, policy=policy)
        self.paired, self.independent = function.paired, not function.paired

    def identity(self) -> list[Any]:
        """Whether pulls are paired belongs to the identity."""
        return [*super().identity(), "paired"] if self.paired else super().identity()


def as_arms(
    arms: Any,
    pull: Pull | None = None,
    policy: PullPolicy | None = None,
    *,
    paired: bool = False,
    direction: Direction = "maximize",
    bounds: Bounds = (0.0, 1.0),
) -> Arms:
    """Arms, made from candidates and a function if they are not arms already."""
    if isinstance(arms, Arms):
        if pull is not None:
            raise InputError(
                "pull only applies to a list of candidates; these arms have their own pull", argument="pull"
            )
        unit = Unit(direction, bounds)
        given = {
            "policy": policy is not None,
            "paired": paired,
            "direction": unit.direction != "maximize",
            "bounds": unit.bounds != (0.0, 1.0),
        }
        for name in (name for name, is_given in given.items() if is_given):
            raise InputError(
                f"{name} only applies with pull; pass it to the arms instead: FunctionArms(..., {name}=...)",
                argument=name,
            )
        return arms
    if pull is not None:
        return FunctionArms(arms, pull, paired=paired, direction=direction, bounds=bounds, policy=policy)
    raise InputError(
        f"arms is a {type(arms).__name__}, but arms are needed: BernoulliArms(means) to simulate, "
        "or a list of your own candidates with pull=, the function that tries one of them",
        argument="arms",
    )
