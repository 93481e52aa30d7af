"""Candidates scored on examples: one pull scores one candidate on one example."""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from collabtop.arms.called import CalledArms
from collabtop.arms.calls import ExamplePull
from collabtop.arms.policy import PullPolicy
from collabtop.arms.tables import LabelledList, as_candidates, as_examples, library_of, plain_data
from collabtop.arms.unit import Bounds, Direction, Unit
from collabtop.errors import InputError


class DatasetArms(CalledArms):
    """Candidates that are evaluated on examples: prompts on a question set, models on a test set.

    One pull scores one candidate on one example: `score(candidate, example)`, or `score(candidate, example, rng)` if
    the scoring itself is random, returns a reward.

    The examples are put in a random order, the same for all candidates: pull number t of every candidate uses the t-th
    of them, whichever agent makes it. So candidates are compared on the same examples, and no candidate is scored on an
    example twice. A candidate that was scored on all of them is exact, and is not pulled again; only if `score` takes
    `rng` does a second lap begin, in a new order.

    Args:
        candidates: the candidates to compare: a list, a generator, `rows` of a data frame, or a dictionary whose keys
            are their labels.
        examples: the examples to score them on: a list, an array, a generator, or a pandas or polars data frame, whose
            rows `score` gets as dictionaries.
        score: the function, plain or `async`.
        by_agent: `examples` has one list of examples per agent, all of the same length, and each agent sees only its
            own (non-IID).
        replace: draw an example at random for every pull instead, for each candidate on its own.
        weights: with `by_agent`, how much each agent counts in the value of a candidate, such as the number of people
            behind its examples; equally, if omitted.
        direction: `"maximize"`, or `"minimize"` if small rewards are better: a latency, an error, a price.
        bounds: the smallest and the largest possible reward, or None if there are none.
        labels: the names of the candidates.
        policy: what happens to pulls that fail.

    >>> import collabtop as ct
    >>> questions = [("2 + 2", 4), ("3 * 3", 9), ("7 - 1", 6)]
    >>> def score(answer, question):
    ...     return answer(question[0]) == question[1]
    >>> arms = ct.DatasetArms([eval, len], questions, score)
    >>> ct.identify(arms, m=1, agents=2, horizon=3, seed=1).top
    ['eval']

    The rows of a data frame as examples:

    >>> import pandas
    >>> sums = pandas.DataFrame({"sum": ["2 + 2", "3 * 3"], "answer": [4, 9]})
    >>> arms = ct.DatasetArms([eval, len], sums, lambda solve, row: solve(row["sum"]) == row["answer"])
    >>> ct.identify(arms, m=1, horizon=4, seed=1).best
    <built-in function eval>
    """

    def __init__(
        self,
        candidates: Iterable[Any],
        examples: Iterable[Any],
        score: Callable[..., Any],
        *,
        by_agent: bool = False,
        replace: bool = False,
        weights: Sequence[float] | None = None,
        direction: Direction = "maximize",
        bounds: Bounds = (0.0, 1.0),
        labels: Sequence[str] | None = None,
        policy: PullPolicy | None = None,
    ) -> None:
        candidates = as_candidates(candidates)
        self._examples = examples_by_agent(examples) if by_agent else [as_examples(examples)]
        sizes = [len(own) for own in self._examples]
        if not replace and len(set(sizes)) > 1:
            raise InputError(
                f"examples has {min(sizes)} examples for agent {sizes.index(min(sizes))} and {max(sizes)} for agent "
                f"{sizes.index(max(sizes))}, but all agents need the same number: cut the longer lists, or use "
                "replace=True to draw examples at random",
                argument="examples",
            )
        self._replace = replace
        unit = Unit(direction, bounds)
        function = ExamplePull(candidates, self._examples, score, unit=unit, by_agent=by_agent, replace=replace)
        agents = len(self._examples) if by_agent else None
        super().__init__(candidates, function, labels=labels, agents=agents, policy=policy, weights=weights)
        self.paired, self.independent = not replace, replace
        if self.library is None and isinstance(self._examples[0], LabelledList):
            self.library = self._examples[0].library
        self.uses_examples_once = not replace and not function.takes_rng
        if self.uses_examples_once:
            self.pull_limit = sum(sizes)

    def pull_limit_of(self, agent: int) -> int | None:
        """The number of this agent's own examples, if each is used once."""
        return len(self._examples[agent]) if self.uses_examples_once and not self.iid else None

    def identity(self) -> list[Any]:
        """The examples belong to the identity: their number, and a checksum if they are plain data."""
        data = [plain_data(list(examples)) for examples in self._examples]
        checksums = [None if encoded is None else zlib.crc32(encoded) for encoded in data]
        return [*super().identity(), self._replace, [len(examples) for examples in self._examples], checksums]


def examples_by_agent(examples: Any) -> list[Sequence[Any]]:
    """The examples of each agent."""
    if library_of(examples) is not None or isinstance(examples, str | bytes | Mapping):
        raise InputError(
            f"examples is one {type(examples).__name__}, but with by_agent=True a list with the examples of each agent "
            "is needed, such as one data frame per agent",
            argument="examples",
        )
    by_agent = [as_examples(own, f"examples[{agent}]") for agent, own in enumerate(examples)]
    if not by_agent:
        raise InputError(
            "examples is empty, but with by_agent=True one list of examples per agent is needed", argument="examples"
        )
    return by_agent
