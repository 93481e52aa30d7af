"""What the calls of a run took in all, over every process that took part in it."""

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from collabtop.runlog.format import FailedAttempt, Record, Rewards


class Totals(msgspec.Struct, frozen=True):
    """What the calls of the user's function took in all, including those of earlier processes of the same run.

    >>> import collabtop as ct
    >>> def score(prompt, rng):
    ...     return ct.Reward(0.5, cost=0.25)
    >>> ct.identify(["a", "b"], 1, pull=score, agents=1, horizon=8, seed=1).totals.cost
    2.0
    """

    cost: float | None = None
    """What all attempts were charged together, as far as they reported it; None if none did."""
    failures: int = 0
    """Pulls that failed for good."""
    attempts_failed: int = 0
    """Attempts that failed, including the last ones of pulls that failed for good."""
    retries: int = 0
    """Attempts that failed and were repeated."""
    seconds: float = 0.0
    """How long all attempts took together: the latency, added up."""

    def plus(self, other: "Totals") -> "Totals":
        """These and other totals together."""
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Totals(
            cost=math.fsum(costs) if costs else None,
            failures=self.failures + other.failures,
            attempts_failed=self.attempts_failed + other.attempts_failed,
            retries=self.retries + other.retries,
            seconds=self.seconds + other.seconds,
        )


class TotalsCounter:
    """Adds up records of pulls and failed attempts, in any order.

    The seconds of calls are multiples of a tick (`calls.TICK`), so their sum does not depend on the order either.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._cost: float | None = None
        self._failures = self._attempts_failed = self._retries = 0
        self._seconds = 0.0
        self._pending: dict[tuple[int, int], float] = {}  # charged by failed attempts, of pulls that are not made yet
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Add a record; one of a different kind is left out."""
        if isinstance(record, Rewards):
            self._add_rewards(record)
        elif isinstance(record, FailedAttempt):
            self._attempts_failed += 1
            self._retries += record.again
            self._seconds += record.seconds
            if record.cost is not None:
                pull = record.agent, record.number
                self._pending[pull] = self._pending.get(pull, 0.0) + record.cost

    def _add_rewards(self, record: Rewards) -> None:
        self._seconds += record.seconds
        if record.failures:
            self._failures += int(np.isnan(np.frombuffer(record.rewards, "<f8")).sum())
        costs = record.unpack_costs()
        if costs is not None and not np.isnan(costs).all():
            self._cost = (self._cost or 0.0) + math.fsum(costs[~np.isnan(costs)].tolist())
        self._complete(record.agent, range(record.first, record.first + record.pulls))

    def add_plain(self, agent: int, numbers: Iterable[int], seconds: float) -> None:
        """Add pulls that gave only a reward, and how long their calls took together."""
        self._seconds += seconds
        self._complete(agent, numbers)

    def _complete(self, agent: int, numbers: Iterable[int]) -> None:
        if self._pending:  # the cost of a pull contains those of its failed attempts
            for number in numbers:
                self._pending.pop((agent, number), None)

    def pending(self) -> dict[tuple[int, int], float]:
        """What failed attempts were charged, by agent and number, of pulls that are not made yet."""
        return dict(self._pending)

    def totals(self) -> Totals:
        """The totals so far."""
        pending = math.fsum(self._pending.values())
        cost = self._cost if not self._pending else (self._cost or 0.0) + pending
        return Totals(cost, self._failures, self._attempts_failed, self._retries, self._seconds)


def spent_in(records: Iterable[Record], prices: Sequence[float]) -> float:
    """What the pulls in a log cost, where one that does not report it costs its price."""
    counter, price, costs = TotalsCounter(), np.array(prices), [0.0]
    for record in records:
        counter.add(record)
        if isinstance(record, Rewards):
            arms, _ = record.unpack()
            reported = record.unpack_costs()
            costs += (price[arms] if reported is None else np.where(np.isnan(reported), price[arms], reported)).tolist()
    return math.fsum([*costs, *counter.pending().values()])
