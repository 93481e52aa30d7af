"""Candidates on a set of examples: one pull scores one candidate on one example."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

from collabtop.arms.calls import DatasetTrial
from collabtop.arms.function import CalledArms, as_candidates, plain_data
from collabtop.arms.policy import PullPolicy
from collabtop.errors import InputError


class DatasetArms(CalledArms):
    """The usual shape of an evaluation: prompts on a question set, models on a test set.

    One pull scores one candidate on one random example: `score(candidate, example)`, or
    `score(candidate, example, rng)` if the scoring has chance of its own, gives a reward in [0, 1].

    Args:
        candidates: what is compared.
        examples: what it is compared on.
        score: the function, sync or `async`.
        by_agent: `examples` holds a list of examples for each agent, each sees only its own (non-IID).
        replace: draw examples with replacement; if not, an agent goes through them all in random order,
            candidate by candidate, before it uses one again.
        labels: what to call the candidates.
        policy: what happens to pulls that fail.

    >>> import collabtop as ct
    >>> questions = [("2 + 2", 4), ("3 * 3", 9), ("7 - 1", 6)]
    >>> def score(answer, question):
    ...     return answer(question[0]) == question[1]
    >>> arms = ct.DatasetArms([eval, len], questions, score, replace=False)
    >>> ct.identify(arms, m=1, agents=2, horizon=20, seed=1).top
    ['eval']
    """

    def __init__(
        self,
        candidates: Sequence[Any],
        examples: Sequence[Any],
        score: Callable[..., Any],
        *,
        by_agent: bool = False,
        replace: bool = True,
        labels: Sequence[str] | None = None,
        policy: PullPolicy | None = None,
    ) -> None:
        known = as_candidates(candidates)
        sets = [_examples(some, f"examples[{place}]") for place, some in enumerate(examples)] if by_agent else []
        if by_agent and not sets:
            raise InputError(
                "examples is empty, but with by_agent it holds a list of examples for each agent", argument="examples"
            )
        self._sets, self._replace = sets or [_examples(examples, "examples")], replace
        trial = DatasetTrial(known, self._sets, score, replace=replace)
        super().__init__(known, trial, labels=labels, agents=len(sets) if by_agent else None, policy=policy)

    def identity(self) -> list[Any]:
        """The examples belong to it: how many there are, and what they say where they are plain data."""
        said = [plain_data(list(some)) for some in self._sets]
        sums = [None if some is None else zlib.crc32(some) for some in said]
        return [*super().identity(), self._replace, [len(some) for some in self._sets], sums]


def _examples(examples: Any, name: str) -> Sequence[Any]:
    if not hasattr(examples, "__len__") or not hasattr(examples, "__getitem__"):
        raise InputError(
            f"{name} is a {type(examples).__name__}, but a list (or an array) of examples is needed",
            argument="examples",
        )
    if len(examples) == 0:
        raise InputError(f"{name} is empty, but at least 1 example is needed", argument="examples")
    return examples  # type: ignore[no-any-return]
