"""Arms whose rewards are reported from outside the program: by a laboratory, an A/B test, or people."""

from collections.abc import Iterable, Sequence
from typing import Any

from collabtop.arms.base import Recorder
from collabtop.arms.called import CalledArms
from collabtop.arms.calls import PullAttempt
from collabtop.arms.draws import ALL_AGENTS, Draws, RewardsMissing, example_order
from collabtop.arms.pull_batch import PullBatch
from collabtop.arms.tables import as_candidates
from collabtop.arms.unit import Unit
from collabtop.errors import ProtocolError


class ReportedArms(CalledArms):
    """Candidates without a function: rewards come from the recorder, and pulls without one are collected.

    Args:
        candidates: the candidates.
        examples: the number of examples to score them on, per agent if `agents` is given; None: there are none.
        paired: whether the t-th pull of every candidate belongs together; with examples it always does.
        agents: the number of agents, if each sees candidates of its own (non-IID).
        weights: with `agents`, how much each agent counts in the value of a candidate.
        unit: the unit of the rewards.
        labels: the names of the candidates.
    """

    def __init__(
        self,
        candidates: Iterable[Any],
        *,
        examples: int | None = None,
        paired: bool = False,
        agents: int | None = None,
        weights: Sequence[float] | None = None,
        unit: Unit,
        labels: Sequence[str] | None = None,
    ) -> None:
        super().__init__(
            as_candidates(candidates), _NoFunction(unit), labels=labels, agents=agents, policy=None, weights=weights
        )
        self.paired = paired or examples is not None
        self.independent = not self.paired
        self._examples = examples
        if examples is not None:
            self.pull_limit = examples * (agents or 1)
        self.missing: list[PullAttempt] = []
        """The pulls that had no reward, those of a candidate in a row together."""

    def identity(self) -> list[Any]:
        """The labels identify the candidates, so that a session can be reopened without the objects."""
        unit = [self.unit.direction, self.unit.bounds]
        weights = [] if self.weights is None else ["weights", self.weights]
        return [type(self).__name__, self.n, self.agents, self.labels, *unit, *weights, self._examples, self.paired]

    def pull_limit_of(self, agent: int) -> int | None:
        """The number of this agent's own examples."""
        return None if self.iid else self._examples

    def example(self, attempt: PullAttempt) -> int | None:
        """The number of the example of a pull; None if there are no examples."""
        if self._examples is None:
            return None
        lap, position = divmod(attempt.replicate, self._examples)
        owner = ALL_AGENTS if self.iid else attempt.agent
        return int(example_order(attempt.seed, owner, lap, self._examples)[position])

    def _fill(self, batch: PullBatch, draws: Draws, recorder: Recorder) -> None:
        """Recall rewards; raise `RewardsMissing` when all pulls without one are collected."""
        before = len(self.missing)
        self.missing.extend(self._jobs(batch, draws, recorder))
        if len(self.missing) > before:
            raise RewardsMissing


class _NoFunction:
    """Takes the place of the user's function."""

    batch, is_async = True, False

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def call(self, attempt: PullAttempt) -> Any:
        raise ProtocolError("there is no function to call: the rewards of a session are reported with tell()")

    def describe(self, attempt: PullAttempt) -> str:
        """There is nothing to name."""
        return ""
