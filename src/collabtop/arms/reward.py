"""What a pull may return besides a number: a reward with its cost and a note."""

import sys
from dataclasses import dataclass
from numbers import Real
from typing import Any

from collabtop.validation import wrong_value


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward with what the pull was charged, and a note: `pull` and `score` may return it instead of a number.

    Costs are added up in `Result.totals`, and a run with `budget` and `cost` spends them instead of the prices in
    `cost`. A checkpoint keeps costs and notes with the rewards, and `collabtop show --notes` prints the notes.

    Args:
        value: the reward.
        cost: what the pull was charged, in the unit of the budget; None if that is unknown.
        note: a text about the pull, such as the answer of a model or the id of a trace.

    >>> import collabtop as ct
    >>> def score(prompt, rng):
    ...     return ct.Reward(rng.random() < len(prompt) / 20, cost=0.001 * len(prompt), note=f"answer to {prompt}")
    >>> result = ct.identify(["short", "step by step"], 1, pull=score, agents=1, horizon=100, seed=1)
    >>> result.top, round(result.totals.cost, 3)
    (['step by step'], 0.85)
    """

    value: Any
    cost: float | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        check_cost(self.cost)
        if self.note is not None and not isinstance(self.note, str):
            raise wrong_value("note", self.note, "a text is needed")


def check_cost(cost: Any) -> None:
    """Check that a cost is a finite number of at least 0, or None.

    >>> check_cost(-0.5)
    Traceback (most recent call last):
    collabtop.errors.InputError: cost is -0.5, but a finite number of at least 0 is needed
    """
    if cost is not None and not is_amount(cost):
        raise wrong_value("cost", cost, "a finite number of at least 0 is needed")


def is_amount(value: Any) -> bool:
    """Whether a value is a finite number of at least 0, Python's or NumPy's.

    >>> [is_amount(value) for value in (0, 0.25, -1, float("nan"), True, "3")]
    [True, True, False, False, False, False]
    """
    number: Any = value if isinstance(value, Real) and not isinstance(value, bool) else -1
    return bool(0 <= number <= sys.float_info.max)
